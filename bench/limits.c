/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/limits.h"
#include "bench/measure.h"

/* Sixteen floats: one register of AVX-512, or as many as the target needs. */
typedef float wide __attribute__((vector_size(64)));
typedef float half __attribute__((vector_size(32)));

#define TRIALS 25
#define CHAINS 12 /* independent sums: more than latency times width */

/* Multiply-adds in registers; returns their number. */
#define FMA_LOOP(name, vector, target)                                         \
    target static double name(long rounds, float *sink)                        \
    {                                                                          \
        vector sum[CHAINS], scale = { 0 };                                     \
        long i;                                                                \
        int k;                                                                 \
                                                                               \
        for (k = 0; k < CHAINS; k++)                                           \
            sum[k] = scale + (float)k;                                         \
        scale = scale + *sink;                                                 \
        for (i = 0; i < rounds; i++) {                                         \
            _Pragma("GCC unroll 12") for (k = 0; k < CHAINS; k++) sum[k] =     \
                sum[k] * scale + scale;                                        \
        }                                                                      \
        for (k = 1; k < CHAINS; k++)                                           \
            sum[0] += sum[k];                                                  \
        *sink += sum[0][0] * 0;                                                \
        return (double)rounds * CHAINS * (double)sizeof scale / sizeof *sink;  \
    }

/* Reads `count` floats `rounds` times; returns the number of bytes. */
#define READ_LOOP(name, vector, target)                                        \
    target static double name(const float *from, size_t count, long rounds,    \
                              float *sink)                                     \
    {                                                                          \
        const size_t lanes = sizeof(vector) / sizeof *from;                    \
        vector sum[8] = { { 0 } };                                             \
        size_t at;                                                             \
        long i;                                                                \
        int k;                                                                 \
                                                                               \
        for (i = 0; i < rounds; i++) {                                         \
            for (at = 0; at + 8 * lanes <= count; at += 8 * lanes)             \
                _Pragma("GCC unroll 8") for (k = 0; k < 8; k++) sum[k] +=      \
                    *(const vector *)(const void *)(from + at + k * lanes);    \
            __asm__ __volatile__("" ::: "memory");                             \
        }                                                                      \
        for (k = 1; k < 8; k++)                                                \
            sum[0] += sum[k];                                                  \
        *sink += sum[0][0] * 0;                                                \
        return (double)rounds * (double)count * sizeof *from;                  \
    }

FMA_LOOP(fma_plain, half, )
READ_LOOP(read_plain, half, )
#if defined(__x86_64__)
FMA_LOOP(fma_avx2, half, __attribute__((target("avx2,fma"))))
READ_LOOP(read_avx2, half, __attribute__((target("avx2,fma"))))
FMA_LOOP(fma_avx512, wide, __attribute__((target("avx512f"))))
READ_LOOP(read_avx512, wide, __attribute__((target("avx512f"))))
#endif

struct loops {
    const char *name;
    double (*fma)(long rounds, float *sink);
    double (*read)(const float *from, size_t count, long rounds, float *sink);
};

static struct loops best_loops(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return (struct loops){ "AVX-512", fma_avx512, read_avx512 };
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct loops){ "AVX2", fma_avx2, read_avx2 };
#endif
    return (struct loops){ "baseline", fma_plain, read_plain };
}

/* One thread's part of a trial: `bytes` 0 for multiply-adds. */
struct part {
    struct loops loops;
    pthread_barrier_t *start;
    float *buffer;
    size_t bytes;
    long rounds;
    double done; /* operations or bytes */
    double begin, end;
};

static void *do_part(void *argument)
{
    struct part *part = argument;
    float sink = 0.5f;

    if (part->bytes) /* into its cache */
        (void)part->loops.read(part->buffer, part->bytes / sizeof(float), 1,
                               &sink);
    (void)pthread_barrier_wait(part->start);
    part->begin = bench_now();
    part->done = part->bytes ? part->loops.read(part->buffer,
                                                part->bytes / sizeof(float),
                                                part->rounds, &sink)
                             : 2 * part->loops.fma(part->rounds, &sink);
    part->end = bench_now();
    part->buffer[0] = sink;
    return NULL;
}

/* Rate of all threads together: the best of some trials. */
static double rate(struct part *parts, int threads, size_t bytes, long rounds)
{
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    double best = 0;
    int trial, i;

    for (trial = 0; ids && trial < TRIALS; trial++) {
        pthread_barrier_t start;
        double done = 0, begin = 1e300, end = 0;

        (void)pthread_barrier_init(&start, NULL, (unsigned)threads);
        for (i = 0; i < threads; i++) {
            parts[i].bytes = bytes;
            parts[i].rounds = rounds;
            parts[i].start = &start;
            if (pthread_create(&ids[i], NULL, do_part, &parts[i]) != 0)
                abort();
        }
        for (i = 0; i < threads; i++) {
            (void)pthread_join(ids[i], NULL);
            done += parts[i].done;
            begin = parts[i].begin < begin ? parts[i].begin : begin;
            end = parts[i].end > end ? parts[i].end : end;
        }
        (void)pthread_barrier_destroy(&start);
        best = done / (end - begin) > best ? done / (end - begin) : best;
    }
    free(ids);
    return best;
}

/* Size of a cache of this machine, or a common one where it is not told. */
static double cache_size(int level)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE
    static const int names[3] = { _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                  _SC_LEVEL3_CACHE_SIZE };
    long size = sysconf(names[level]);

    if (size > 0)
        return (double)size;
#endif
    return level == 0 ? 32e3 : level == 1 ? 512e3 : 8e6;
}

/*
 * Bytes that each thread reads to measure a level: half of a cache of its own,
 * a part of the common one well above the level below (other users of the
 * machine have parts of it too), or four times that one.
 */
static size_t probe_size(int level, int threads)
{
    double bytes = level < 2    ? cache_size(level) / 2
                   : level == 2 ? sqrt(cache_size(1) * cache_size(2)) / threads
                                : cache_size(2) * 4 / threads;

    return (size_t)bytes / 4096 * 4096;
}

int bench_limits_measure(struct bench_limits *limits, int threads)
{
    const struct loops loops = best_loops();
    const double total = cache_size(2) * 4; /* what is read from memory */
    const int64_t apart = (int64_t)(total / 4 / threads) / 16 * 16;
    struct part *parts = calloc((size_t)threads, sizeof *parts);
    void *buffer = NULL;
    size_t bytes;
    int level, i;

    if (!parts || posix_memalign(&buffer, 64, (size_t)total) != 0) {
        free(parts);
        return -1;
    }
    memset(buffer, 0, (size_t)total);
    for (i = 0; i < threads; i++)
        parts[i] = (struct part){ .loops = loops,
                                  .buffer = (float *)buffer + apart * i };
    limits->threads = threads;
    limits->vectors = loops.name;
    limits->operations = rate(parts, threads, 0, 2000000);
    for (level = 0; level < LIMIT_LEVELS; level++) {
        limits->capacity[level] = level < 2    ? cache_size(level) * threads
                                  : level == 2 ? cache_size(2)
                                               : 1e300;
        bytes = probe_size(level, threads);
        limits->bandwidth[level] =
            rate(parts, threads, bytes, 1 + (long)(100000000 / bytes));
    }
    free(buffer);
    free(parts);
    return 0;
}

double bench_limits_time(const struct bench_limits *limits,
                         const struct bench_work *work)
{
    double arithmetic = work->operations / limits->operations, reading;
    double once = work->input_bytes + work->recurrent_bytes;
    int level = 0, where = 0;

    while (work->recurrent_bytes > limits->capacity[level])
        level++;
    while (once > limits->capacity[where])
        where++;
    reading = work->steps * work->recurrent_bytes / limits->bandwidth[level] +
              work->input_bytes / limits->bandwidth[where];
    return reading > arithmetic ? reading : arithmetic;
}
