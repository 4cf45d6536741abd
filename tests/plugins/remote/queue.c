/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/queue.h"

/* The next command, in order; NULL when the queue closes. */
static struct remote_command *take(struct remote_queue *queue)
{
    struct remote_command *command;

    pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL && !queue->closing)
        pthread_cond_wait(&queue->submitted, &queue->lock);
    command = queue->first;
    if (command != NULL) {
        queue->first = command->next;
        if (queue->first == NULL)
            queue->last = &queue->first;
    }
    pthread_mutex_unlock(&queue->lock);
    return command;
}

static void *serve(void *argument)
{
    struct remote_queue *queue = argument;
    struct remote_command *command;

    while ((command = take(queue)) != NULL) {
        command->execute(command->argument);
        pthread_mutex_lock(&queue->lock);
        command->done = true;
        pthread_cond_broadcast(&queue->finished);
        pthread_mutex_unlock(&queue->lock);
    }
    return NULL;
}

cellgate_status remote_queue_init(struct remote_queue *queue,
                                  cellgate_error *error)
{
    memset(queue, 0, sizeof *queue);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->submitted, NULL);
    pthread_cond_init(&queue->finished, NULL);
    queue->last = &queue->first;
    while (queue->thread_count < REMOTE_QUEUE_DEPTH) {
        int code = pthread_create(&queue->threads[queue->thread_count], NULL,
                                  serve, queue);
        if (code != 0) {
            remote_queue_finish(queue);
            (void)cellgate_fail(error, CELLGATE_NO_MEMORY,
                                "a device thread cannot be started");
            error->vendor_code = code;
            return CELLGATE_NO_MEMORY;
        }
        queue->thread_count++;
    }
    return CELLGATE_OK;
}

void remote_queue_finish(struct remote_queue *queue)
{
    unsigned at;

    pthread_mutex_lock(&queue->lock);
    queue->closing = true;
    pthread_cond_broadcast(&queue->submitted);
    pthread_mutex_unlock(&queue->lock);
    for (at = 0; at < queue->thread_count; at++)
        (void)pthread_join(queue->threads[at], NULL);
    pthread_cond_destroy(&queue->finished);
    pthread_cond_destroy(&queue->submitted);
    pthread_mutex_destroy(&queue->lock);
}

void remote_queue_execute(struct remote_queue *queue,
                          struct remote_command *command)
{
    pthread_mutex_lock(&queue->lock);
    command->done = false;
    command->next = NULL;
    *queue->last = command;
    queue->last = &command->next;
    pthread_cond_signal(&queue->submitted);
    while (!command->done)
        pthread_cond_wait(&queue->finished, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
}
