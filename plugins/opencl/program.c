/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/opencl/program.h"

#define OPTIONS_SIZE 256

struct ocl_program {
    struct ocl_program *next;
    char options[OPTIONS_SIZE];
    cl_program program;
};

static void options_of(const cellgate_device *device,
                       const struct ocl_build *build, char *options)
{
    int used = snprintf(options, OPTIONS_SIZE,
                        "-cl-std=CL1.2 -DV=%u -DSIDE=%u -DHALF=%d",
                        device->vector, device->side, build->half);

    if (!build->lstm) {
        (void)snprintf(options + used, OPTIONS_SIZE - (size_t)used,
                       " -DUSUAL=0");
        return;
    }
    (void)snprintf(options + used, OPTIONS_SIZE - (size_t)used,
                   " -DSLICES=%u -DROWS=%u -DFUSED=%d -DPROJECT=%d -DUSUAL=%d",
                   device->slices, build->rows, build->fused, build->project,
                   build->usual);
}

/* ---- The cache --------------------------------------------------------- */

/* What a binary depends on, as one text: driver, device, options, source. */
static char *cache_key(const cellgate_device *device, const char *options,
                       const char *source, size_t *size)
{
    const cellgate_device_description *of = &device->found->description;
    size_t most = strlen(source) + strlen(options) + 512;
    char *key = malloc(most);
    int used;

    if (!key)
        return NULL;
    used = snprintf(key, most, "%s\n%u\n%s\n%s\n%s\n%s", of->identity,
                    (unsigned)device->units, of->driver, of->vendor, options,
                    source);
    *size = (size_t)used < most ? (size_t)used : most - 1;
    return key;
}

static cl_program load_binary(cellgate_device *device, const char *options,
                              const void *binary, size_t size)
{
    const struct ocl_api *cl = device->cl;
    const unsigned char *data = binary;
    cl_device_id id = device->id;
    cl_int code, loaded;
    cl_program program = cl->CreateProgramWithBinary(
        device->context, 1, &id, &size, &data, &loaded, &code);

    if (!program || code != CL_SUCCESS)
        return NULL;
    if (loaded == CL_SUCCESS &&
        cl->BuildProgram(program, 1, &id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    (void)cl->ReleaseProgram(program);
    return NULL;
}

static void keep_binary(cellgate_device *device, cl_program program,
                        const char *key, size_t key_size)
{
    const struct ocl_api *cl = device->cl;
    unsigned char *binary;
    size_t size = 0;

    if (cl->GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size,
                           NULL) != CL_SUCCESS ||
        size == 0)
        return;
    binary = malloc(size);
    if (binary &&
        cl->GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary,
                           NULL) == CL_SUCCESS)
        ocl_cache_put(&device->cache, key, key_size, binary, size);
    free(binary);
}

/* ---- Compiling --------------------------------------------------------- */

/* The compiler's words, to be freed with free(); NULL: none. */
static char *build_log(cellgate_device *device, cl_program program)
{
    const struct ocl_api *cl = device->cl;
    const cl_device_id id = device->id;
    size_t size = 0;
    char *log;

    if (cl->GetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, NULL,
                                &size) != CL_SUCCESS)
        return NULL;
    log = calloc(1, size + 1);
    if (log && cl->GetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size,
                                       log, NULL) == CL_SUCCESS)
        return log;
    free(log);
    return NULL;
}

/* A text to the host's log, line by line. */
static void tell_lines(cellgate_device *device, char *text)
{
    const cellgate_host *host = device->host;
    char *rest = NULL, *line = strtok_r(text, "\r\n", &rest);

    for (; line; line = strtok_r(NULL, "\r\n", &rest))
        host->log(host->context, CELLGATE_LOG_ERROR, line);
}

/* The compiler's words: the first into the error, all of them to the log. */
static cellgate_status build_failed(cellgate_device *device, cl_program program,
                                    cl_int code, cellgate_error *error)
{
    char *log = build_log(device, program);

    (void)ocl_device_fail(device, error, code, "clBuildProgram",
                          "compiling the kernels");
    (void)cellgate_fail(error, error->status,
                        "compiling the kernels: clBuildProgram answers %s "
                        "(%d): %.300s",
                        ocl_code_name(code), (int)code,
                        log && log[0] ? log : "no build log");
    error->vendor_code = code;
    if (log)
        tell_lines(device, log);
    free(log);
    return error->status;
}

static cellgate_status compile(cellgate_device *device, const char *options,
                               const char *source, cl_program *program,
                               cellgate_error *error)
{
    const struct ocl_api *cl = device->cl;
    cl_int code;
    cl_program made =
        cl->CreateProgramWithSource(device->context, 1, &source, NULL, &code);
    cellgate_status status;

    if (code != CL_SUCCESS)
        return ocl_device_fail(device, error, code, "clCreateProgramWithSource",
                               "compiling the kernels");
    code = cl->BuildProgram(made, 1, &device->id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        status = build_failed(device, made, code, error);
        (void)cl->ReleaseProgram(made);
        return status;
    }
    *program = made;
    return CELLGATE_OK;
}

static void tell(cellgate_device *device, const char *what, const char *options,
                 uint64_t since)
{
    const cellgate_host *host = device->host;
    char text[OPTIONS_SIZE + 80];

    (void)snprintf(text, sizeof text, "%s a program in %.3f s: %s", what,
                   1e-9 * (double)(host->clock(host->context) - since),
                   options);
    host->log(host->context, CELLGATE_LOG_DEBUG, text);
}

static cellgate_status make(cellgate_device *device, const char *options,
                            const char *source, cl_program *program,
                            cellgate_error *error)
{
    const uint64_t since = device->host->clock(device->host->context);
    size_t key_size = 0, size = 0;
    char *key = cache_key(device, options, source, &key_size);
    void *binary =
        key ? ocl_cache_get(&device->cache, key, key_size, &size) : NULL;
    cellgate_status status = CELLGATE_OK;
    cl_program made =
        binary ? load_binary(device, options, binary, size) : NULL;

    if (made) {
        atomic_fetch_add(&device->loaded, 1);
        tell(device, "loaded", options, since);
    } else {
        if (binary)
            ocl_cache_drop(&device->cache, key, key_size);
        status = compile(device, options, source, &made, error);
        if (status == CELLGATE_OK) {
            atomic_fetch_add(&device->built, 1);
            tell(device, "compiled", options, since);
            if (key)
                keep_binary(device, made, key, key_size);
        }
    }
    free(binary);
    free(key);
    if (status == CELLGATE_OK)
        *program = made;
    return status;
}

static cellgate_status add_program(cellgate_device *device, const char *options,
                                   const char *source, cl_program *program,
                                   cellgate_error *error)
{
    struct ocl_program *entry = calloc(1, sizeof *entry);
    cellgate_status status;

    if (!entry)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    status = make(device, options, source, &entry->program, error);
    if (status != CELLGATE_OK) {
        free(entry);
        return status;
    }
    (void)snprintf(entry->options, sizeof entry->options, "%s", options);
    *program = entry->program;
    (void)pthread_mutex_lock(&device->lock);
    entry->next = device->programs;
    device->programs = entry;
    (void)pthread_mutex_unlock(&device->lock);
    return CELLGATE_OK;
}

static cl_program find_program(cellgate_device *device, const char *options)
{
    cl_program found = NULL;
    struct ocl_program *at;

    (void)pthread_mutex_lock(&device->lock);
    for (at = device->programs; at && !found; at = at->next)
        if (strcmp(at->options, options) == 0)
            found = at->program;
    (void)pthread_mutex_unlock(&device->lock);
    return found;
}

/* Requests that need what is there don't wait for what is being compiled. */
cellgate_status ocl_program_get(cellgate_device *device,
                                const struct ocl_build *build,
                                cl_program *program, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    char options[OPTIONS_SIZE];
    cl_program found;

    options_of(device, build, options);
    found = find_program(device, options);
    if (!found) {
        (void)pthread_mutex_lock(&device->compiling);
        found = find_program(device, options); /* by another thread? */
        if (!found)
            status = add_program(
                device, options,
                build->lstm ? ocl_source_lstm : ocl_source_rows, &found, error);
        (void)pthread_mutex_unlock(&device->compiling);
    }
    if (status == CELLGATE_OK)
        *program = found;
    return status;
}

cellgate_status ocl_kernel_create(cellgate_device *device, cl_program program,
                                  const char *name, cl_kernel *kernel,
                                  cellgate_error *error)
{
    cl_int code;
    cl_kernel made = device->cl->CreateKernel(program, name, &code);

    if (code != CL_SUCCESS)
        return ocl_device_fail(device, error, code, "clCreateKernel", name);
    *kernel = made;
    return CELLGATE_OK;
}

void ocl_programs_free(cellgate_device *device)
{
    struct ocl_program *at = device->programs, *next;

    for (; at; at = next) {
        next = at->next;
        (void)device->cl->ReleaseProgram(at->program);
        free(at);
    }
    device->programs = NULL;
}
