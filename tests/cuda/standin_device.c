/* SPDX-License-Identifier: Apache-2.0 */
/* standin_device.c: settings, devices, errors. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin_private.h"

struct standin_settings standin_settings;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cudaError_t broken[STANDIN_DEVICES];
static _Thread_local int current;
static _Thread_local cudaError_t last;
static long library_calls, era;

void standin_fault(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fputs("stand-in: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    abort();
}

void standin_lock(void)
{
    (void)pthread_mutex_lock(&mutex);
}

void standin_unlock(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

/* ---- Settings ---------------------------------------------------------- */

static void set(const char *name, size_t length, long value)
{
#define STANDIN_SET(member, standard, what)                                    \
    if (strlen(#member) == length && strncmp(#member, name, length) == 0) {    \
        standin_settings.member = value;                                       \
        return;                                                                \
    }
    STANDIN_SETTING_LIST(STANDIN_SET)
#undef STANDIN_SET
    standin_fault("CELLGATE_STANDIN has no %.*s", (int)length, name);
}

__attribute__((constructor)) static void read_settings(void)
{
    const char *at = getenv("CELLGATE_STANDIN");

#define STANDIN_DEFAULT(member, standard, what)                                \
    standin_settings.member = standard;
    STANDIN_SETTING_LIST(STANDIN_DEFAULT)
#undef STANDIN_DEFAULT
    while (at && *at) {
        const size_t length = strcspn(at, "= ");
        char *end;

        if (at[length] != '=')
            standin_fault("CELLGATE_STANDIN: %s", at);
        set(at, length, strtol(at + length + 1, &end, 10));
        at = end + strspn(end, " ");
    }
}

__attribute__((destructor)) static void at_end(void)
{
    standin_check_leaks();
}

/* ---- Errors ------------------------------------------------------------ */

cudaError_t standin_error(cudaError_t code)
{
    if (code != cudaSuccess)
        last = code;
    return code;
}

void standin_break(int device, cudaError_t code)
{
    broken[device] = code;
}

cudaError_t standin_state(int device)
{
    return broken[device];
}

cudaError_t standin_usable(int device)
{
    return standin_error(standin_state(device));
}

/* What calls of this runtime answered: it asks no device. */
cudaError_t cudaGetLastError(void)
{
    const cudaError_t code = last;

    last = cudaSuccess;
    return code;
}

bool standin_library_call(int device)
{
    if (++library_calls == standin_settings.library_breaks)
        standin_break(device, cudaErrorIllegalAddress);
    return broken[device] != cudaSuccess;
}

long standin_library_calls(void)
{
    return library_calls;
}

const char *cudaGetErrorName(cudaError_t code)
{
    static const struct {
        cudaError_t code;
        const char *name;
    } names[] = {
        { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation" },
        { cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver" },
        { cudaErrorNoDevice, "cudaErrorNoDevice" },
        { cudaErrorIllegalAddress, "cudaErrorIllegalAddress" },
    };
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].code == code)
            return names[i].name;
    return "cudaErrorOfAnotherName";
}

/* ---- Devices ----------------------------------------------------------- */

static int device_count(void)
{
    return (int)(standin_settings.devices < STANDIN_DEVICES
                     ? standin_settings.devices
                     : STANDIN_DEVICES);
}

int standin_device(void)
{
    return current;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)standin_settings.driver;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    if (standin_settings.count_code)
        return standin_error((cudaError_t)standin_settings.count_code);
    if (standin_settings.driver < CUDART_VERSION)
        return standin_error(cudaErrorInsufficientDriver);
    if (device_count() == 0)
        return standin_error(cudaErrorNoDevice);
    *count = device_count();
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *of, int device)
{
    const long capability = device == 1 ? standin_settings.capability1
                                        : standin_settings.capability;

    if (device < 0 || device >= device_count())
        standin_fault("cudaGetDeviceProperties of device %d", device);
    memset(of, 0, sizeof *of);
    (void)snprintf(of->name, sizeof of->name, "NVIDIA stand-in %d", device);
    of->totalGlobalMem = (size_t)standin_settings.memory << 20;
    of->major = (int)(capability / 10);
    of->minor = (int)(capability % 10);
    of->multiProcessorCount = STANDIN_MULTIPROCESSORS;
    of->sharedMemPerBlock = 48 << 10;
    of->sharedMemPerBlockOptin = 227 << 10;
    of->cooperativeLaunch = 1;
    of->warpSize = 32;
    of->pciBusID = 0x41 + device;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                   int device)
{
    if (attribute != cudaDevAttrComputeMode)
        standin_fault("cudaDeviceGetAttribute of attribute %d", attribute);
    *value = standin_settings.prohibited && device == 0
                 ? cudaComputeModeProhibited
                 : cudaComputeModeDefault;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= device_count())
        standin_fault("cudaSetDevice of device %d of %d", device,
                      device_count());
    current = device;
    return cudaSuccess;
}

/* ---- Leaks ------------------------------------------------------------- */

static struct {
    const char *kind;
    long count;
} living[32];

void standin_count(const char *kind, int by)
{
    size_t i;

    for (i = 0; living[i].kind && strcmp(living[i].kind, kind) != 0; i++)
        if (i + 2 == sizeof living / sizeof living[0])
            standin_fault("too many kinds of things");
    living[i].kind = kind;
    living[i].count += by;
    if (living[i].count < 0)
        standin_fault("more %s destroyed than made", kind);
}

static bool any_broken(void)
{
    int device;

    for (device = 0; device < STANDIN_DEVICES; device++)
        if (broken[device])
            return true;
    return false;
}

void standin_reset(void)
{
    if (any_broken())
        memset(living, 0, sizeof living);
    memset(broken, 0, sizeof broken);
    standin_forget_fillers();
    last = cudaSuccess;
    era++;
    read_settings();
}

long standin_era(void)
{
    return era;
}

void standin_check_leaks(void)
{
    size_t i;

    /* What is on a lost device is not freed, and need not be. */
    if (any_broken())
        return;
    for (i = 0; i < sizeof living / sizeof living[0]; i++)
        if (living[i].count != 0)
            standin_fault("%ld %s are left at the end", living[i].count,
                          living[i].kind);
}
