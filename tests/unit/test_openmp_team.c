/* SPDX-License-Identifier: Apache-2.0 */
/* The device's threads: barriers, teams, many callers, too many threads. */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugins/openmp/team.h"

#define MEMBERS 6 /* more than processors, on most machines that test */
#define ROUNDS 300

static void *host_allocate(void *context, size_t alignment, size_t size)
{
    void *memory = NULL;

    (void)context;
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void host_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static const cellgate_host host = { .struct_size = sizeof host,
                                    .allocate = host_allocate,
                                    .release = host_release };

/*
 * Each member adds to a plain counter when it is its turn by the round's
 * number: only the barrier keeps them from each other.
 */
struct shared {
    struct cpu_barrier barrier;
    int counter;
};

static void take_turns(void *context, uint32_t member)
{
    struct shared *shared = context;
    const struct cpu_crew crew = { MEMBERS, member, &shared->barrier };
    uint32_t round;

    for (round = 0; round < ROUNDS; round++) {
        if (round % MEMBERS == member)
            shared->counter++;
        cpu_crew_meet(&crew);
    }
}

static struct cpu_team *team_of(uint32_t size)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    struct cpu_team *team = NULL;

    assert_int_equal(cpu_team_create(&host, size, &team, &error), CELLGATE_OK);
    return team;
}

static void start(struct cpu_team *team)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cpu_team_start(team, &error), CELLGATE_OK);
}

static void test_barrier(void **state)
{
    struct cpu_team *team = team_of(MEMBERS);
    struct shared shared = { .counter = 0 };
    int run;

    (void)state;
    assert_true(cpu_barrier_init(&shared.barrier, MEMBERS));
    start(team);
    start(team); /* has no effect */
    for (run = 1; run <= 5; run++) {
        cpu_team_run(team, take_turns, &shared);
        assert_int_equal(shared.counter, run * ROUNDS);
    }
    cpu_team_destroy(team);
    cpu_barrier_finish(&shared.barrier);
}

static void mark(void *context, uint32_t member)
{
    int *marks = context;

    marks[member]++;
}

/* After a pause the members sleep, and must wake. */
static void test_sleeping_members(void **state)
{
    struct cpu_team *team = team_of(3);
    int marks[3] = { 0 }, run, i;

    (void)state;
    start(team);
    for (run = 1; run <= 4; run++) {
        (void)usleep(30000);
        cpu_team_run(team, mark, marks);
        for (i = 0; i < 3; i++)
            assert_int_equal(marks[i], run);
    }
    cpu_team_destroy(team);
}

struct caller {
    struct cpu_team *team;
    int marks[2];
};

static void *call_often(void *argument)
{
    struct caller *caller = argument;
    int i;

    for (i = 0; i < ROUNDS; i++)
        cpu_team_run(caller->team, mark, caller->marks);
    return NULL;
}

static void test_many_callers(void **state)
{
    struct cpu_team *team = team_of(2);
    struct caller callers[4];
    pthread_t threads[4];
    int i;

    (void)state;
    start(team);
    for (i = 0; i < 4; i++) {
        callers[i] = (struct caller){ .team = team };
        assert_int_equal(
            pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(callers[i].marks[0], ROUNDS);
        assert_int_equal(callers[i].marks[1], ROUNDS);
    }
    cpu_team_destroy(team);
}

/* In a child process there is nobody to join. */
static void test_destroy_after_fork(void **state)
{
    struct cpu_team *team = team_of(2);
    int status = -1;
    pid_t child;

    (void)state;
    start(team);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(20);
        cpu_team_destroy(team);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cpu_team_destroy(team);
}

static void test_never_started(void **state)
{
    (void)state;
    cpu_team_destroy(team_of(4));
    cpu_team_destroy(NULL);
}

static void test_shares(void **state)
{
    int64_t first, end, next = 0;
    uint32_t member;

    (void)state;
    for (member = 0; member < 7; member++) {
        const struct cpu_crew crew = { 7, member, NULL };

        cpu_crew_share(&crew, 17, &first, &end);
        assert_int_equal(first, next);
        assert_in_range(end - first, 2, 3);
        next = end;
    }
    assert_int_equal(next, 17);
}

#if defined(__linux__)
static void see_processors(void *context, uint32_t member)
{
    cpu_set_t *seen = context;

    if (member == 1)
        (void)sched_getaffinity(0, sizeof *seen, seen);
}

/* Wherever the caller is, the other member may run anywhere but there. */
static void test_members_keep_off_the_caller(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    struct cpu_team *team = NULL;
    cpu_set_t all, one, seen, expected;
    int processor;

    (void)state;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        skip();
    assert_int_equal(cpu_team_create(&host, 2, &team, &error), CELLGATE_OK);
    assert_int_equal(cpu_team_start(team, &error), CELLGATE_OK);
    for (processor = 0; processor < CPU_SETSIZE; processor++) {
        if (!CPU_ISSET(processor, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        CPU_ZERO(&seen);
        cpu_team_run(team, see_processors, &seen);
        expected = all;
        CPU_CLR(processor, &expected);
        assert_true(CPU_EQUAL(&seen, &expected));
    }
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    cpu_team_destroy(team);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if defined(__linux__)
        cmocka_unit_test(test_members_keep_off_the_caller),
#endif
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_never_started),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_sleeping_members),
        cmocka_unit_test(test_many_callers),
        cmocka_unit_test(test_destroy_after_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
