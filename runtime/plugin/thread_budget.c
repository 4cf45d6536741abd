/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/thread_budget.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A thread in the queue; it lives on that thread's stack. */
typedef struct waiter {
    struct waiter *next;
    pthread_cond_t granted_condition;
    uint64_t limit;
    uint64_t threads;
    bool granted;
} waiter;

struct cg_thread_budget {
    struct cg_thread_budget *next;
    char *resource;
    uint64_t references; /* under `registry` */
    pthread_mutex_t mutex;
    uint64_t busy;
    waiter *first;
    waiter *last;
};

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static cg_thread_budget *budgets; /* under `registry` */

static cg_thread_budget *create(const char *resource)
{
    cg_thread_budget *budget = calloc(1, sizeof *budget);

    if (budget == NULL)
        return NULL;
    budget->resource = strdup(resource);
    if (budget->resource == NULL ||
        pthread_mutex_init(&budget->mutex, NULL) != 0) {
        free(budget->resource);
        free(budget);
        return NULL;
    }
    budget->next = budgets;
    budgets = budget;
    return budget;
}

cg_thread_budget *cg_thread_budget_get(const char *resource)
{
    cg_thread_budget *budget;

    pthread_mutex_lock(&registry);
    for (budget = budgets; budget != NULL; budget = budget->next)
        if (strcmp(budget->resource, resource) == 0)
            break;
    if (budget == NULL)
        budget = create(resource);
    if (budget != NULL)
        budget->references++;
    pthread_mutex_unlock(&registry);
    return budget;
}

void cg_thread_budget_put(cg_thread_budget *budget)
{
    cg_thread_budget **link;

    if (budget == NULL)
        return;
    pthread_mutex_lock(&registry);
    if (--budget->references > 0) {
        pthread_mutex_unlock(&registry);
        return;
    }
    for (link = &budgets; *link != budget; link = &(*link)->next)
        ;
    *link = budget->next;
    pthread_mutex_unlock(&registry);
    assert(budget->busy == 0 && budget->first == NULL);
    pthread_mutex_destroy(&budget->mutex);
    free(budget->resource);
    free(budget);
}

static uint64_t counted(uint32_t limit, uint32_t threads)
{
    if (limit == 0)
        limit = 1;
    if (threads == 0)
        threads = 1;
    return threads < limit ? threads : limit;
}

static bool fits(const cg_thread_budget *budget, uint64_t limit,
                 uint64_t threads)
{
    return budget->busy + threads <= limit;
}

/* With the mutex held: admits from the head of the queue while it fits. */
static void admit(cg_thread_budget *budget)
{
    waiter *head;

    while ((head = budget->first) != NULL &&
           fits(budget, head->limit, head->threads)) {
        budget->busy += head->threads;
        budget->first = head->next;
        if (budget->first == NULL)
            budget->last = NULL;
        head->granted = true;
        pthread_cond_signal(&head->granted_condition);
    }
}

void cg_thread_budget_acquire(cg_thread_budget *budget, uint32_t limit,
                              uint32_t threads)
{
    waiter self = { .limit = limit > 0 ? limit : 1,
                    .threads = counted(limit, threads) };

    pthread_mutex_lock(&budget->mutex);
    if (budget->first == NULL && fits(budget, self.limit, self.threads)) {
        budget->busy += self.threads;
        pthread_mutex_unlock(&budget->mutex);
        return;
    }
    pthread_cond_init(&self.granted_condition, NULL);
    if (budget->last != NULL)
        budget->last->next = &self;
    else
        /* It leaves the queue before this returns. */
        /* cppcheck-suppress autoVariables */
        budget->first = &self;
    /* cppcheck-suppress autoVariables */
    budget->last = &self;
    while (!self.granted)
        pthread_cond_wait(&self.granted_condition, &budget->mutex);
    pthread_mutex_unlock(&budget->mutex);
    pthread_cond_destroy(&self.granted_condition);
}

bool cg_thread_budget_try(cg_thread_budget *budget, uint32_t limit,
                          uint32_t threads)
{
    uint64_t wanted = counted(limit, threads);
    bool taken;

    pthread_mutex_lock(&budget->mutex);
    taken =
        budget->first == NULL && fits(budget, limit > 0 ? limit : 1, wanted);
    if (taken)
        budget->busy += wanted;
    pthread_mutex_unlock(&budget->mutex);
    return taken;
}

void cg_thread_budget_release(cg_thread_budget *budget, uint32_t limit,
                              uint32_t threads)
{
    uint64_t given = counted(limit, threads);

    pthread_mutex_lock(&budget->mutex);
    assert(budget->busy >= given);
    budget->busy -= given;
    admit(budget);
    pthread_mutex_unlock(&budget->mutex);
}

size_t cg_thread_budget_waiting(cg_thread_budget *budget)
{
    size_t count = 0;

    pthread_mutex_lock(&budget->mutex);
    for (const waiter *at = budget->first; at != NULL; at = at->next)
        count++;
    pthread_mutex_unlock(&budget->mutex);
    return count;
}
