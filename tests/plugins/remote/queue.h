/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command queue of the stand-in card: callers submit, the device's own
 * threads execute, two commands at a time, in the order of submission.
 *
 * A command lives in the plan that submits it, so submitting allocates nothing
 * and never finds the queue full.
 */
#ifndef REMOTE_QUEUE_H
#define REMOTE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "cellgate/plugin.h"

/* Commands that run side by side. */
#define REMOTE_QUEUE_DEPTH 2

struct remote_command {
    void (*execute)(void *argument); /* on a device thread */
    void *argument;
    struct remote_command *next;
    bool done;
};

struct remote_queue {
    pthread_mutex_t lock;
    pthread_cond_t submitted; /* there is a command, or the end */
    pthread_cond_t finished;  /* some command is done */
    struct remote_command *first, **last;
    bool closing;
    pthread_t threads[REMOTE_QUEUE_DEPTH];
    unsigned thread_count;
};

/* Starts the threads. NO_MEMORY: the system has no thread to give. */
cellgate_status remote_queue_init(struct remote_queue *queue,
                                  cellgate_error *error);
/* Ends and joins the threads; nothing may be queued. */
void remote_queue_finish(struct remote_queue *queue);

/* Submits a command and returns when it has been executed. */
void remote_queue_execute(struct remote_queue *queue,
                          struct remote_command *command);

#endif
