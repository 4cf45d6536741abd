/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include "plugins/openmp/spread.h"
#include "plugins/openmp/team.h"

/*
 * How long a wait spins before it offers the processor (under a microsecond),
 * and how often it does that before it sleeps (some 150 us). Where other work
 * takes a member's processor, the others lose the spin at every barrier, so it
 * is short: on two busy processors 2000 spins made small layers take 3 to 5
 * times as long, and on idle ones they gained nothing.
 */
#define SPINS 60
#define YIELDS 400

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* ---- Signals and barriers ---------------------------------------------- */

bool cpu_signal_init(struct cpu_signal *signal)
{
    atomic_init(&signal->value, 0);
    atomic_init(&signal->sleepers, 0);
    if (pthread_mutex_init(&signal->mutex, NULL) != 0)
        return false;
    if (pthread_cond_init(&signal->changed, NULL) != 0) {
        pthread_mutex_destroy(&signal->mutex);
        return false;
    }
    return true;
}

void cpu_signal_finish(struct cpu_signal *signal)
{
    pthread_cond_destroy(&signal->changed);
    pthread_mutex_destroy(&signal->mutex);
}

/*
 * Sleeping and raising meet in sequential consistency: the sleeper counts
 * itself and then looks at the value, the raiser changes the value and then
 * looks at the count, so that one of them sees the other.
 */
uint32_t cpu_signal_raise(struct cpu_signal *signal)
{
    uint32_t value = atomic_fetch_add(&signal->value, 1) + 1;

    if (atomic_load(&signal->sleepers) != 0) {
        pthread_mutex_lock(&signal->mutex);
        pthread_cond_broadcast(&signal->changed);
        pthread_mutex_unlock(&signal->mutex);
    }
    return value;
}

static bool raised(struct cpu_signal *signal, uint32_t seen)
{
    return atomic_load_explicit(&signal->value, memory_order_acquire) != seen;
}

void cpu_signal_wait(struct cpu_signal *signal, uint32_t seen)
{
    int i;

    for (i = 0; i < SPINS; i++) {
        if (raised(signal, seen))
            return;
        relax();
    }
    for (i = 0; i < YIELDS; i++) {
        if (raised(signal, seen))
            return;
        (void)sched_yield();
    }
    pthread_mutex_lock(&signal->mutex);
    atomic_fetch_add(&signal->sleepers, 1);
    while (atomic_load(&signal->value) == seen)
        pthread_cond_wait(&signal->changed, &signal->mutex);
    atomic_fetch_sub(&signal->sleepers, 1);
    pthread_mutex_unlock(&signal->mutex);
}

bool cpu_barrier_init(struct cpu_barrier *barrier, uint32_t size)
{
    atomic_init(&barrier->arrived, 0);
    barrier->size = size;
    return cpu_signal_init(&barrier->passed);
}

void cpu_barrier_finish(struct cpu_barrier *barrier)
{
    cpu_signal_finish(&barrier->passed);
}

void cpu_barrier_wait(struct cpu_barrier *barrier)
{
    uint32_t seen =
        atomic_load_explicit(&barrier->passed.value, memory_order_relaxed);

    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == barrier->size) {
        atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
        (void)cpu_signal_raise(&barrier->passed);
    } else {
        cpu_signal_wait(&barrier->passed, seen);
    }
}

/* ---- The team ---------------------------------------------------------- */

struct cpu_team {
    const cellgate_host *host;
    uint32_t size;
    pid_t process;          /* that has the threads */
    pthread_mutex_t turn;   /* held by the run that has the team */
    struct cpu_signal job;  /* raised for each job, and to end */
    struct cpu_signal idle; /* raised by the last member to finish a job, and
                               once when the region has formed */
    _Atomic uint32_t busy;  /* members other than 0 still at the job */
    _Atomic uint32_t gone;  /* members that have left the region */
    /* Written before `job` or `idle` is raised, read after. */
    void (*work)(void *context, uint32_t member);
    void *context;
    uint32_t formed; /* members that OpenMP granted, with member 0 */
    bool ending;
    /* Guarded by `turn`. */
    bool started;
    pthread_t owner;
    struct cpu_spread spread; /* of the members over the processors */
};

static void report_done(struct cpu_team *team)
{
    if (atomic_fetch_sub(&team->busy, 1) == 1)
        (void)cpu_signal_raise(&team->idle);
}

/* What a member does while the region lasts. */
static void serve(struct cpu_team *team, uint32_t member)
{
    uint32_t seen = 0;

    cpu_spread_join(&team->spread, member);
    for (;;) {
        cpu_signal_wait(&team->job, seen);
        seen++;
        if (team->ending)
            break;
        team->work(team->context, member);
        report_done(team);
    }
}

static void *own_region(void *argument)
{
    struct cpu_team *team = argument;
    const uint32_t wanted = team->size - 1;

    omp_set_dynamic(0);
#pragma omp parallel num_threads((int)wanted) firstprivate(team)
    {
        uint32_t member = (uint32_t)omp_get_thread_num() + 1;

        if (member == 1) {
            team->formed = (uint32_t)omp_get_num_threads() + 1;
            (void)cpu_signal_raise(&team->idle);
        }
        serve(team, member);
        atomic_fetch_add_explicit(&team->gone, 1, memory_order_release);
    }
    /* The region's end is OpenMP's barrier; this one orders memory for all. */
    while (atomic_load_explicit(&team->gone, memory_order_acquire) <
           team->formed - 1)
        (void)sched_yield();
    return NULL;
}

cellgate_status cpu_team_create(const cellgate_host *host, uint32_t size,
                                struct cpu_team **team, cellgate_error *error)
{
    struct cpu_team *made =
        host->allocate(host->context, _Alignof(struct cpu_team), sizeof *made);

    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a team of threads");
    memset(made, 0, sizeof *made);
    made->host = host;
    made->size = size;
    atomic_init(&made->busy, 0);
    atomic_init(&made->gone, 0);
    if (pthread_mutex_init(&made->turn, NULL) != 0)
        goto no_turn;
    if (!cpu_signal_init(&made->job))
        goto no_job;
    if (!cpu_signal_init(&made->idle))
        goto no_idle;
    *team = made;
    return CELLGATE_OK;
no_idle:
    cpu_signal_finish(&made->job);
no_job:
    pthread_mutex_destroy(&made->turn);
no_turn:
    host->release(host->context, made);
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no resources for a team of threads");
}

/* Ends the region and its thread. */
static void stop(struct cpu_team *team)
{
    team->ending = true;
    (void)cpu_signal_raise(&team->job);
    pthread_join(team->owner, NULL);
    team->started = false;
}

void cpu_team_destroy(struct cpu_team *team)
{
    if (!team || (team->started && team->process != getpid()))
        return;
    if (team->started)
        stop(team);
    cpu_signal_finish(&team->idle);
    cpu_signal_finish(&team->job);
    pthread_mutex_destroy(&team->turn);
    team->host->release(team->host->context, team);
}

static cellgate_status start(struct cpu_team *team, cellgate_error *error)
{
    uint32_t seen = atomic_load(&team->idle.value);
    int failure;

    /* A team that could not form is put together afresh. */
    atomic_store(&team->job.value, 0);
    atomic_store(&team->gone, 0);
    team->ending = false;
    team->process = getpid();
    cpu_spread_init(&team->spread);
    failure = pthread_create(&team->owner, NULL, own_region, team);
    if (failure != 0)
        return cellgate_fail(error, CELLGATE_DEVICE_FAILED,
                             "cannot start a thread: %s", strerror(failure));
    team->started = true;
    cpu_signal_wait(&team->idle, seen);
    if (team->formed == team->size)
        return CELLGATE_OK;
    stop(team);
    return cellgate_fail(error, CELLGATE_DEVICE_FAILED,
                         "OpenMP granted %u of %u threads; see "
                         "OMP_THREAD_LIMIT, or set threads = %u",
                         team->formed, team->size, team->formed);
}

cellgate_status cpu_team_start(struct cpu_team *team, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    pthread_mutex_lock(&team->turn);
    if (!team->started)
        status = start(team, error);
    pthread_mutex_unlock(&team->turn);
    return status;
}

void cpu_team_run(struct cpu_team *team,
                  void (*work)(void *context, uint32_t member), void *context)
{
    uint32_t seen;

    pthread_mutex_lock(&team->turn);
    cpu_spread_from_caller(&team->spread, team->size);
    seen = atomic_load(&team->idle.value);
    team->work = work;
    team->context = context;
    atomic_store(&team->busy, team->size - 1);
    (void)cpu_signal_raise(&team->job);
    work(context, 0);
    cpu_signal_wait(&team->idle, seen);
    pthread_mutex_unlock(&team->turn);
}
