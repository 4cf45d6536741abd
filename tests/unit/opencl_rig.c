/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/oracle/random.h"
#include "tests/unit/opencl_rig.h"

#define POCL "/etc/OpenCL/vendors/pocl.icd"

/* ---- The host ---------------------------------------------------------- */

char cache[400];
const char *kernels = "auto", *threads = "0", *clblast = "auto";
const char *excluded = "";
uint32_t budget = 2;

static void host_log(void *context, int32_t level, const char *text)
{
    (void)context;
    (void)level;
    assert_null(strchr(text, '\n')); /* the interface's word: one line */
}

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
    return strcmp(key, "cache") == 0        ? cache
           : strcmp(key, "cache_size") == 0 ? "67108864"
           : strcmp(key, "kernels") == 0    ? kernels
           : strcmp(key, "threads") == 0    ? threads
           : strcmp(key, "clblast") == 0    ? clblast
                                            : "0";
}

static uint32_t host_budget(void *context, const char *resource)
{
    (void)context;
    assert_string_equal(resource, "cpu");
    return budget;
}

static uint64_t host_clock(void *context)
{
    (void)context;
    return 0;
}

static int32_t host_excludes(void *context, const cellgate_settings *settings,
                             const char *variant)
{
    (void)context;
    (void)settings;
    return excluded[0] != '\0' &&
           strncmp(variant, excluded, strlen(excluded)) == 0;
}

static const cellgate_host host = {
    .struct_size = sizeof host,
    .log = host_log,
    .allocate = host_allocate,
    .release = host_release,
    .setting = host_setting,
    .thread_budget = host_budget,
    .clock = host_clock,
    .excludes = host_excludes,
};

/* ---- One layer --------------------------------------------------------- */

float kernel[INPUT * 4 * HIDDEN], recurrent[HIDDEN * 4 * HIDDEN];
float bias[4 * HIDDEN], x[BATCH * STEPS * INPUT];
float y[BATCH * STEPS * HIDDEN], first_y[BATCH * STEPS * HIDDEN];
cellgate_lstm lstm = {
    .op = { sizeof lstm, CELLGATE_OP_LSTM, 0 },
    .input_size = INPUT,
    .hidden_size = HIDDEN,
    .directions = 1,
    .outputs = CELLGATE_LSTM_SEQUENCE,
    .has_bias = 1,
    .activations = { { { CELLGATE_SIGMOID, 0, 0 },
                       { CELLGATE_TANH, 0, 0 },
                       { CELLGATE_TANH, 0, 0 } } },
    .weights = { { kernel, recurrent, bias, NULL, NULL } },
};
const cellgate_op *const ops[1] = { &lstm.op };
const cellgate_segment segment = { sizeof segment, 1, 0, ops };
const cellgate_shape shape = { sizeof shape, BATCH, STEPS };
const cellgate_plugin *table;
cellgate_instance *instance;
cellgate_error error;

void make_random(float *to, size_t count, uint64_t seed)
{
    random_source random = random_from(seed, 1);
    size_t i;

    for (i = 0; i < count; i++)
        to[i] = (float)random_integer(&random, -1000, 1000) / 2500.0f;
}

cellgate_device *open_device(void)
{
    cellgate_device *device = NULL;

    assert_int_equal(table->device_open(instance, 0, NULL, &device, &error),
                     CELLGATE_OK);
    return device;
}

cellgate_weights *prepare_pack(cellgate_device *device, uint32_t pack)
{
    cellgate_weights *weights = NULL;

    if (table->prepare(device, &segment, pack, &weights, &error) != CELLGATE_OK)
        fail_msg("prepare: %s", error.text);
    return weights;
}

cellgate_weights *prepare(cellgate_device *device)
{
    return prepare_pack(device, 0);
}

bool next_variant(const cellgate_weights *weights, uint64_t *id)
{
    cellgate_error ignored = CELLGATE_ERROR_INIT;

    for (; ocl_variant_at(*id); ++*id)
        if (ocl_variant_at(*id)->pack == weights->pack &&
            ocl_variant_check(weights->device, &weights->outline, *id, BATCH,
                              &ignored) == CELLGATE_OK)
            return true;
    return false;
}

const int32_t *lengths;
struct ocl_api driver;

cellgate_status run(cellgate_plan *plan, float *to)
{
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = BATCH,
        .steps = STEPS,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .lengths = lengths,
        .y = { to, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };

    return table->run(plan, &r, &error);
}

void remove_folder(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    char name[700];

    while (directory && (entry = readdir(directory)) != NULL) {
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        (void)unlink(name);
    }
    if (directory)
        (void)closedir(directory);
    (void)rmdir(path);
}

/* ---- All of it --------------------------------------------------------- */

int opencl_rig_start(void **state)
{
    (void)state;
    make_random(kernel, INPUT * 4 * HIDDEN, 1);
    make_random(recurrent, HIDDEN * 4 * HIDDEN, 2);
    make_random(bias, 4 * HIDDEN, 3);
    make_random(x, BATCH * STEPS * INPUT, 4);
    table = cellgate_plugin_entry(0, 0);
    error = (cellgate_error)CELLGATE_ERROR_INIT;
    if (table->init(&host, &instance, &error) != CELLGATE_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    driver = instance->api;
    return 0;
}

int opencl_rig_end(void **state)
{
    (void)state;
    table->finish(instance);
    remove_folder(cache);
    return 0;
}

/* PoCL alone, with what it compiles in the build folder. */
static bool use_pocl(void)
{
    char here[300], folder[360];

    if (access(POCL, R_OK) != 0 || !getcwd(here, sizeof here))
        return false;
    (void)snprintf(folder, sizeof folder, "%s/tests/cache", here);
    (void)mkdir(folder, 0700);
    (void)snprintf(folder, sizeof folder, "%s/tests/cache/pocl", here);
    (void)mkdir(folder, 0700);
    (void)snprintf(cache, sizeof cache, "%s/tests/cache/programs-%ld", here,
                   (long)getpid());
    return setenv("OCL_ICD_VENDORS", POCL, 1) == 0 &&
           setenv("OCL_ICD_FILENAMES", POCL, 1) == 0 &&
           setenv("POCL_CACHE_DIR", folder, 1) == 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INSTRUMENTED true
#endif
#endif
#ifndef INSTRUMENTED
#define INSTRUMENTED false
#endif

bool opencl_rig_usable(void)
{
    if (INSTRUMENTED)
        (void)printf("PoCL is not run in instrumented builds\n");
    else if (!use_pocl())
        (void)printf("PoCL is not installed\n");
    else
        return true;
    return false;
}
