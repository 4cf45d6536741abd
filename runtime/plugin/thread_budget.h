/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread budgets: how many host threads are at work on one resource, counted
 * for the whole process, so that two runtimes don't take the same cores twice.
 *
 * Admission is first come, first served: a wide request is not overtaken by
 * narrow ones that would fit earlier, so none starves.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_THREAD_BUDGET_H
#define CELLGATE_RUNTIME_PLUGIN_THREAD_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cg_thread_budget cg_thread_budget;

/*
 * The budget of a resource ("cpu", "pci:..."), made on first need; NULL
 * without memory. Each get needs a put.
 */
cg_thread_budget *cg_thread_budget_get(const char *resource);
void cg_thread_budget_put(cg_thread_budget *budget); /* NULL is allowed */

/*
 * Waits for its turn, and until the threads at work and these are at most
 * `limit`; then takes them. More than `limit` counts as `limit`, 0 as 1. The
 * limit belongs to the caller: requests with different ones queue together.
 */
void cg_thread_budget_acquire(cg_thread_budget *budget, uint32_t limit,
                              uint32_t threads);
/* The same without waiting; false when others wait or it doesn't fit. */
bool cg_thread_budget_try(cg_thread_budget *budget, uint32_t limit,
                          uint32_t threads);
/* Gives back what was acquired with the same `limit` and `threads`. */
void cg_thread_budget_release(cg_thread_budget *budget, uint32_t limit,
                              uint32_t threads);
/* How many requests stand in line. */
size_t cg_thread_budget_waiting(cg_thread_budget *budget);

#endif
