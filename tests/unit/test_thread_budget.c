/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <cmocka.h>

#include "runtime/plugin/thread_budget.h"

static void test_one_for_a_resource(void **state)
{
    cg_thread_budget *cpu = cg_thread_budget_get("cpu");
    cg_thread_budget *again = cg_thread_budget_get("cpu");
    cg_thread_budget *card = cg_thread_budget_get("pci:0000:01:00.0");

    (void)state;
    assert_ptr_equal(cpu, again);
    assert_ptr_not_equal(cpu, card);
    assert_true(cg_thread_budget_try(cpu, 1, 1));
    assert_false(cg_thread_budget_try(again, 1, 1));
    assert_true(cg_thread_budget_try(card, 1, 1));
    cg_thread_budget_release(cpu, 1, 1);
    cg_thread_budget_release(card, 1, 1);
    cg_thread_budget_put(cpu);
    cg_thread_budget_put(again);
    cg_thread_budget_put(card);
    cg_thread_budget_put(NULL);
}

static void test_counts(void **state)
{
    cg_thread_budget *cpu = cg_thread_budget_get("cpu");

    (void)state;
    assert_true(cg_thread_budget_try(cpu, 4, 3));
    assert_false(cg_thread_budget_try(cpu, 4, 2));
    assert_true(cg_thread_budget_try(cpu, 4, 1));
    assert_false(cg_thread_budget_try(cpu, 4, 0)); /* 0 counts as 1 */
    cg_thread_budget_release(cpu, 4, 3);
    assert_true(cg_thread_budget_try(cpu, 4, 0));
    cg_thread_budget_release(cpu, 4, 0);
    cg_thread_budget_release(cpu, 4, 1);
    /* Wider than everything counts as everything. */
    assert_true(cg_thread_budget_try(cpu, 4, 4000));
    assert_false(cg_thread_budget_try(cpu, 4, 1));
    cg_thread_budget_release(cpu, 4, 4000);
    assert_true(cg_thread_budget_try(cpu, 4, UINT32_MAX));
    cg_thread_budget_release(cpu, 4, UINT32_MAX);
    /* Another runtime's larger limit sees the same threads at work. */
    assert_true(cg_thread_budget_try(cpu, 2, 2));
    assert_false(cg_thread_budget_try(cpu, 2, 1));
    assert_true(cg_thread_budget_try(cpu, 3, 1));
    cg_thread_budget_release(cpu, 3, 1);
    cg_thread_budget_release(cpu, 2, 2);
    cg_thread_budget_put(cpu);
}

/* A thread that acquires, says which one it was to do so, and waits. */
typedef struct taker {
    cg_thread_budget *budget;
    uint32_t limit, threads;
    atomic_int *order;
    int place;
    pthread_barrier_t *barrier;
} taker;

static void *take(void *context)
{
    taker *self = context;

    cg_thread_budget_acquire(self->budget, self->limit, self->threads);
    self->place = atomic_fetch_add(self->order, 1);
    pthread_barrier_wait(self->barrier);
    cg_thread_budget_release(self->budget, self->limit, self->threads);
    return NULL;
}

/* Until somebody is in the queue: a try fails although there is room. */
static void await_queue(cg_thread_budget *budget, uint32_t limit)
{
    while (cg_thread_budget_try(budget, limit, 1)) {
        cg_thread_budget_release(budget, limit, 1);
        (void)sched_yield();
    }
}

static void test_wide_is_not_overtaken(void **state)
{
    cg_thread_budget *budget = cg_thread_budget_get("cpu");
    pthread_barrier_t wide_barrier, narrow_barrier;
    atomic_int order = 0;
    taker wide = { budget, 4, 4, &order, -1, &wide_barrier };
    taker narrow = { budget, 4, 1, &order, -1, &narrow_barrier };
    pthread_t wide_thread, narrow_thread;

    (void)state;
    pthread_barrier_init(&wide_barrier, NULL, 2);
    pthread_barrier_init(&narrow_barrier, NULL, 2);
    cg_thread_budget_acquire(budget, 4, 2);
    assert_int_equal(pthread_create(&wide_thread, NULL, take, &wide), 0);
    await_queue(budget, 4);
    /* Two threads are free, but the wide one comes first. */
    assert_int_equal(pthread_create(&narrow_thread, NULL, take, &narrow), 0);
    assert_false(cg_thread_budget_try(budget, 4, 1));
    cg_thread_budget_release(budget, 4, 2);
    pthread_barrier_wait(&wide_barrier);
    pthread_barrier_wait(&narrow_barrier);
    pthread_join(wide_thread, NULL);
    pthread_join(narrow_thread, NULL);
    assert_int_equal(wide.place, 0);
    assert_int_equal(narrow.place, 1);
    pthread_barrier_destroy(&wide_barrier);
    pthread_barrier_destroy(&narrow_barrier);
    cg_thread_budget_put(budget);
}

#define CROWD 8
#define TURNS 2000
#define LIMIT 3

static atomic_int at_work;
static atomic_int most_at_work;

static void *work(void *context)
{
    cg_thread_budget *budget = context;
    uint32_t random = (uint32_t)(uintptr_t)&random;
    int turn;

    for (turn = 0; turn < TURNS; turn++) {
        uint32_t threads;
        int now;
        random = random * 1664525u + 1013904223u;
        threads = 1 + (random >> 16) % LIMIT;
        if (random >> 31 || !cg_thread_budget_try(budget, LIMIT, threads))
            cg_thread_budget_acquire(budget, LIMIT, threads);
        now = atomic_fetch_add(&at_work, (int)threads) + (int)threads;
        if (now > LIMIT)
            atomic_store(&most_at_work, now);
        atomic_fetch_sub(&at_work, (int)threads);
        cg_thread_budget_release(budget, LIMIT, threads);
    }
    return NULL;
}

static void test_crowd(void **state)
{
    cg_thread_budget *budget = cg_thread_budget_get("cpu");
    pthread_t crowd[CROWD];
    int i;

    (void)state;
    for (i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&crowd[i], NULL, work, budget), 0);
    for (i = 0; i < CROWD; i++)
        pthread_join(crowd[i], NULL);
    assert_int_equal(atomic_load(&most_at_work), 0);
    assert_int_equal(atomic_load(&at_work), 0);
    assert_true(cg_thread_budget_try(budget, LIMIT, LIMIT));
    cg_thread_budget_release(budget, LIMIT, LIMIT);
    cg_thread_budget_put(budget);
}

typedef struct turn {
    cg_thread_budget *budget;
    atomic_int *next;
    int place;
} turn;

static void *take_turn(void *context)
{
    turn *self = context;

    cg_thread_budget_acquire(self->budget, 2, 1);
    self->place = atomic_fetch_add(self->next, 1);
    cg_thread_budget_release(self->budget, 2, 1);
    return NULL;
}

/* Eight callers of one thread each on a budget of two, of which one is taken:
   each has its turn in the order in which it came. */
static void test_nobody_starves(void **state)
{
    cg_thread_budget *budget = cg_thread_budget_get("cpu");
    pthread_t threads[CROWD];
    turn turns[CROWD];
    atomic_int next = 0;

    (void)state;
    cg_thread_budget_acquire(budget, 2, 1);
    cg_thread_budget_acquire(budget, 2, 1);
    for (int i = 0; i < CROWD; i++) {
        turns[i] = (turn){ budget, &next, -1 };
        assert_int_equal(
            pthread_create(&threads[i], NULL, take_turn, &turns[i]), 0);
        while (cg_thread_budget_waiting(budget) < (size_t)i + 1)
            (void)sched_yield();
    }
    assert_false(cg_thread_budget_try(budget, 2, 1));
    cg_thread_budget_release(budget, 2, 1);
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(turns[i].place, i);
    }
    cg_thread_budget_release(budget, 2, 1);
    cg_thread_budget_put(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_for_a_resource),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_wide_is_not_overtaken),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_nobody_starves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
