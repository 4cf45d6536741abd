/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/plugin/process.h"

static atomic_bool forked;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void child_of_fork(void)
{
    atomic_store_explicit(&forked, true, memory_order_relaxed);
}

static void register_handler(void)
{
    /* Without memory for the handler children go unnoticed: no worse than a
       program that forks knowing what it does. */
    (void)pthread_atfork(NULL, NULL, child_of_fork);
}

void cg_process_watch(void)
{
    (void)pthread_once(&once, register_handler);
}

bool cg_process_forked(void)
{
    return atomic_load_explicit(&forked, memory_order_relaxed);
}

cellgate_status cg_process_check(cellgate_error *error)
{
    if (!cg_process_forked())
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_FORKED,
                         "devices cannot be used in a child process after "
                         "fork(): create the runtime after the fork, or exec "
                         "in the child");
}
