/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin's own promises beyond the ABI's: the keys `level` and `threads`,
 * and that a sample's result has the same bits in any batch, on any number of
 * threads and however the work is dealt out.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cellgate/plugin.h"
#include "plugins/openmp/levels.h"
#include "tests/oracle/random.h"

#define STEPS 9
#define INPUT 5
#define HIDDEN 37
#define UNITS 21
#define MOST 40 /* samples */

/* What the host says of the two keys and of threads. */
static const char *level = "auto", *threads = "0";
static uint32_t budget = 3;

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

static const char *
host_setting(void *context, const cellgate_settings *settings, const char *key)
{
    (void)context;
    (void)settings;
    return strcmp(key, "level") == 0 ? level : threads;
}

static uint32_t host_budget(void *context, const char *resource)
{
    (void)context;
    assert_string_equal(resource, "cpu");
    return budget;
}

static const cellgate_host host = { .struct_size = sizeof host,
                                    .allocate = host_allocate,
                                    .release = host_release,
                                    .setting = host_setting,
                                    .thread_budget = host_budget };

static const cellgate_plugin *table;
static cellgate_instance *instance;

static int set_up(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    table = cellgate_plugin_entry(CELLGATE_ABI_VERSION, CELLGATE_ABI_VERSION);
    return table ? (int)table->init(&host, &instance, &error) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    table->finish(instance);
    return 0;
}

static cellgate_device *open_device(const char *level_key,
                                    const char *threads_key)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_device *device = NULL;

    level = level_key;
    threads = threads_key;
    assert_int_equal(table->device_open(instance, 0, NULL, &device, &error),
                     CELLGATE_OK);
    return device;
}

/* An LSTM in both directions, and a dense layer on each step. */
struct model {
    cellgate_lstm lstm;
    cellgate_dense dense;
    const cellgate_op *ops[2];
    cellgate_segment segment;
    float weights[2 * (INPUT + HIDDEN + 1) * 4 * HIDDEN];
    float dense_weights[(2 * HIDDEN + 1) * UNITS];
    float x[MOST * STEPS * INPUT];
    int32_t lengths[MOST];
};

static void fill(float *values, size_t count, double scale, uint64_t stream)
{
    random_source random = random_from(11, stream);
    size_t i;

    for (i = 0; i < count; i++)
        values[i] = (float)random_between(&random, -scale, scale);
}

static struct model *model_create(void)
{
    struct model *m = calloc(1, sizeof *m);
    const float *w;
    int d;

    assert_non_null(m);
    fill(m->weights, sizeof m->weights / sizeof(float), 0.4, 1);
    fill(m->dense_weights, sizeof m->dense_weights / sizeof(float), 0.4, 2);
    fill(m->x, sizeof m->x / sizeof(float), 2, 3);
    m->lstm = (cellgate_lstm){ .op = { sizeof m->lstm, CELLGATE_OP_LSTM, 0 },
                               .input_size = INPUT,
                               .hidden_size = HIDDEN,
                               .directions = 2,
                               .outputs = CELLGATE_LSTM_SEQUENCE,
                               .has_bias = 1 };
    for (d = 0; d < 2; d++) {
        m->lstm.activations[d][0].kind = CELLGATE_SIGMOID;
        w = m->weights + d * (INPUT + HIDDEN + 1) * 4 * HIDDEN;
        m->lstm.weights[d].kernel = w;
        m->lstm.weights[d].recurrent_kernel = w + INPUT * 4 * HIDDEN;
        m->lstm.weights[d].bias = w + (INPUT + HIDDEN) * 4 * HIDDEN;
    }
    m->dense =
        (cellgate_dense){ .op = { sizeof m->dense, CELLGATE_OP_DENSE, 0 },
                          .input_size = 2 * HIDDEN,
                          .units = UNITS,
                          .has_bias = 1,
                          .activation = { CELLGATE_LINEAR, 0, 0 },
                          .kernel = m->dense_weights,
                          .bias = m->dense_weights + 2 * HIDDEN * UNITS };
    m->ops[0] = &m->lstm.op;
    m->ops[1] = &m->dense.op;
    m->segment = (cellgate_segment){ sizeof m->segment, 2, 0, m->ops };
    for (d = 0; d < MOST; d++)
        m->lengths[d] = (d * 7) % (STEPS + 1);
    return m;
}

/* Computes `r` with a variant of the segment. */
static void run_segment(cellgate_device *device,
                        const cellgate_segment *segment, uint32_t variant_index,
                        const cellgate_segment_run *r)
{
    const cellgate_shape shape = { sizeof shape, r->batch, r->steps };
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;

    assert_int_equal(table->support(device, segment, &shape, variant_index,
                                    &variant, &error),
                     CELLGATE_OK);
    assert_int_equal(
        table->prepare(device, segment, variant.pack, &weights, &error),
        CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, variant.id, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(table->run(plan, r, &error), CELLGATE_OK);
    table->plan_destroy(plan);
    table->weights_free(weights);
}

/* Samples [first, first + count) in one run; y is [count][STEPS][UNITS]. */
static void run(cellgate_device *device, const struct model *m,
                uint32_t variant_index, int first, int count, float *y)
{
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = count,
        .steps = STEPS,
        .x = { (void *)(uintptr_t)(m->x + first * STEPS * INPUT), STEPS * INPUT,
               INPUT, CELLGATE_F32, 0 },
        .lengths = m->lengths + first,
        .y = { y, STEPS * UNITS, UNITS, CELLGATE_F32, 0 },
    };

    run_segment(device, &m->segment, variant_index, &r);
}

static void check_same_bits(const char *level_key)
{
    static const int counts[] = { 1, 2, 3, 5, 7, MOST };
    static float whole[MOST * STEPS * UNITS], part[MOST * STEPS * UNITS];
    cellgate_device *device = open_device(level_key, "0");
    struct model *m = model_create();
    uint32_t variant;
    size_t i;
    int first;

    /* Of each type of weights, the variant for one thread and the wide one. */
    for (variant = 0; variant < 2 * CPU_PACKS; variant++) {
        if (variant % 2 == 0)
            run(device, m, variant, 0, MOST, whole);
        for (i = 0; i < sizeof counts / sizeof counts[0]; i++)
            for (first = 0; first + counts[i] <= MOST; first += 11) {
                run(device, m, variant, first, counts[i], part);
                assert_memory_equal(part, whole + first * STEPS * UNITS,
                                    (size_t)(counts[i] * STEPS * UNITS) *
                                        sizeof *part);
            }
    }
    free(m);
    table->device_close(device);
}

static void test_same_bits(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; cpu_level_at(i, CPU_PACK_F32) != NULL; i++)
        check_same_bits(cpu_level_at(i, CPU_PACK_F32)->name);
}

/* ---- A result larger than the caches ------------------------------------ */

#define WORDS 5003 /* rows of it are not aligned to anything */
#define ROWS 120   /* a sample */
#define SAMPLES 8  /* 19 MB */
#define FEATURES 3
#define GAP 5 /* floats between two rows, which nobody writes */

/* The softmax of a row of the product, in double. */
static void check_words(const float *kernel, const float *x, const float *y)
{
    double e[WORDS], total = 0;
    int w, i;

    for (w = 0; w < WORDS; w++) {
        double sum = 0;

        for (i = 0; i < FEATURES; i++)
            sum += (double)x[i] * (double)kernel[i * WORDS + w];
        e[w] = exp(sum);
        total += e[w];
    }
    for (w = 0; w < WORDS; w++)
        assert_true(fabs(y[w] - e[w] / total) <= 2e-6 * e[w] / total);
    for (w = WORDS; w < WORDS + GAP; w++)
        assert_true(y[w] == -7.0f);
}

static void check_large_result(cellgate_device *device, uint32_t variant)
{
    const size_t rows = (size_t)SAMPLES * ROWS, width = WORDS + GAP;
    float *kernel = malloc(FEATURES * WORDS * sizeof *kernel);
    float *x = malloc(rows * FEATURES * sizeof *x);
    float *y = malloc(rows * width * sizeof *y);
    const cellgate_dense dense = {
        .op = { sizeof dense, CELLGATE_OP_DENSE, 0 },
        .input_size = FEATURES,
        .units = WORDS,
        .activation = { CELLGATE_LINEAR, 0, 0 },
        .kernel = kernel,
    };
    const cellgate_softmax softmax = {
        { sizeof softmax, CELLGATE_OP_SOFTMAX, 0 }, WORDS
    };
    const cellgate_op *const ops[] = { &dense.op, &softmax.op };
    const cellgate_segment segment = { sizeof segment, 2, 0, ops };
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = SAMPLES,
        .steps = ROWS,
        .x = { x, (int64_t)ROWS * FEATURES, FEATURES, CELLGATE_F32, 0 },
        .y = { y, ROWS * (int64_t)width, (int64_t)width, CELLGATE_F32, 0 },
    };
    size_t i;

    assert_true(kernel && x && y);
    fill(kernel, FEATURES * WORDS, 1, 5);
    fill(x, rows * FEATURES, 1, 6);
    for (i = 0; i < rows * width; i++)
        y[i] = -7;
    run_segment(device, &segment, variant, &r);
    for (i = 0; i < rows; i++)
        check_words(kernel, x + i * FEATURES, y + i * width);
    free(kernel);
    free(x);
    free(y);
}

static void test_large_result(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; cpu_level_at(i, CPU_PACK_F32) != NULL; i++) {
        cellgate_device *device =
            open_device(cpu_level_at(i, CPU_PACK_F32)->name, "0");

        check_large_result(device, 0);
        check_large_result(device, 1);
        table->device_close(device);
    }
}

/* ---- The keys ----------------------------------------------------------- */

static uint32_t widest(cellgate_device *device, char *name, size_t size)
{
    struct model *m = model_create();
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_error error = CELLGATE_ERROR_INIT;
    uint32_t index, most = 0;

    for (index = 0; table->support(device, &m->segment, NULL, index, &variant,
                                   &error) == CELLGATE_OK;
         index++)
        if (variant.threads > most) {
            most = variant.threads;
            (void)snprintf(name, size, "%s", variant.name);
        }
    free(m);
    table->device_close(device);
    return most;
}

static void test_threads_key(void **state)
{
    char name[32];

    (void)state;
    assert_int_equal(widest(open_device("auto", "0"), name, sizeof name), 3);
    assert_string_equal(name, "t3"); /* float32 comes first */
    assert_int_equal(widest(open_device("auto", "2"), name, sizeof name), 2);
    assert_int_equal(widest(open_device("auto", "1"), name, sizeof name), 1);
    /* Never more than the host grants. */
    assert_int_equal(widest(open_device("auto", "64"), name, sizeof name), 3);
}

static void test_level_key(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_device *device = NULL;

    (void)state;
    table->device_close(open_device("scalar", "1"));
    level = "no such level";
    assert_int_equal(table->device_open(instance, 0, NULL, &device, &error),
                     CELLGATE_BAD_CONFIG);
    assert_null(device);
    assert_non_null(strstr(error.text, "no such level"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_large_result),
        cmocka_unit_test(test_threads_key),
        cmocka_unit_test(test_level_key),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
