/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the library's own. */
#ifndef CELLGATE_RUNTIME_SCHEDULE_THREAD_H
#define CELLGATE_RUNTIME_SCHEDULE_THREAD_H

#include <pthread.h>

/* As pthread_create(), with every signal blocked: they are the application's.
   Returns 0, or an errno value. */
int cg_thread_start(pthread_t *thread, void *(*function)(void *context),
                    void *context);

/* A condition for timed waits on CLOCK_MONOTONIC; likewise. */
int cg_condition_init(pthread_cond_t *condition);

#endif
