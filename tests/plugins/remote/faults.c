/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "tests/plugins/remote/faults.h"

#define NANOSECONDS 1000000000u

static uint64_t read_number(const cellgate_host *host,
                            const cellgate_settings *settings, const char *key)
{
    return strtoull(host->setting(host->context, settings, key), NULL, 10);
}

uint64_t remote_read_seconds(const cellgate_host *host,
                             const cellgate_settings *settings, const char *key)
{
    const char *text = host->setting(host->context, settings, key);
    char *end;
    uint64_t nanoseconds = strtoull(text, &end, 10) * NANOSECONDS;
    uint64_t unit = NANOSECONDS / 10;

    if (*end == '.')
        for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
            nanoseconds += (uint64_t)(*end - '0') * unit;
    return nanoseconds;
}

void remote_faults_init(struct remote_faults *faults, const cellgate_host *host,
                        const cellgate_settings *settings)
{
    faults->lose_after = read_number(host, settings, "lose_after");
    faults->fail_at = read_number(host, settings, "fail_at");
    faults->hang_at = read_number(host, settings, "hang_at");
    faults->wrong_at = read_number(host, settings, "wrong_at");
    faults->fail_percent = read_number(host, settings, "fail_percent");
    faults->lose_percent = read_number(host, settings, "lose_percent");
    faults->seed = read_number(host, settings, "fault_seed");
    faults->host = host;
    faults->wrong =
        strcmp(host->setting(host->context, settings, "wrong"), "yes") == 0;
    faults->latency = remote_read_seconds(host, settings, "latency");
    faults->prepare = remote_read_seconds(host, settings, "prepare");
    faults->hang_for = remote_read_seconds(host, settings, "hang_for");
    atomic_init(&faults->runs, 0);
    atomic_init(&faults->lost, false);
}

cellgate_status remote_faults_check(struct remote_faults *faults,
                                    cellgate_error *error)
{
    if (!atomic_load(&faults->lost))
        return CELLGATE_OK;
    (void)cellgate_fail(error, CELLGATE_DEVICE_LOST,
                        "the card has fallen off the bus");
    error->vendor_code = REMOTE_CODE_LOST;
    return CELLGATE_DEVICE_LOST;
}

static void sleep_for(uint64_t nanoseconds)
{
    struct timespec left = { (time_t)(nanoseconds / NANOSECONDS),
                             (long)(nanoseconds % NANOSECONDS) };

    while (nanosleep(&left, &left) != 0)
        ;
}

void remote_faults_prepare(const struct remote_faults *faults)
{
    if (faults->prepare > 0)
        sleep_for(faults->prepare);
}

cellgate_status remote_faults_strike(struct remote_faults *faults,
                                     uint64_t number, cellgate_error *error)
{
    if (faults->latency > 0)
        sleep_for(faults->latency);
    if (number == faults->hang_at) {
        sleep_for(faults->hang_for);
        atomic_store(&faults->lost, true);
    }
    if (faults->lose_after > 0 && number >= faults->lose_after)
        atomic_store(&faults->lost, true);
    if (number == faults->fail_at) {
        (void)cellgate_fail(error, CELLGATE_DEVICE_FAILED,
                            "launch failed, as fail_at = %" PRIu64 " asks",
                            number);
        error->vendor_code = REMOTE_CODE_LAUNCH;
        return CELLGATE_DEVICE_FAILED;
    }
    if (remote_faults_check(faults, error) != CELLGATE_OK)
        return CELLGATE_DEVICE_LOST;
    return remote_faults_random(faults, number, REMOTE_DURING, error);
}

/* splitmix64, Steele, Lea and Flood (2014). */
static uint64_t scatter(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void tell(const struct remote_faults *faults, const char *what,
                 uint64_t number, enum remote_moment moment)
{
    static const char *const moments[] = { "before", "during", "after" };
    char line[80];

    (void)snprintf(line, sizeof line, "random fault: run %" PRIu64 " %s, %s it",
                   number, what, moments[moment]);
    faults->host->log(faults->host->context, CELLGATE_LOG_DEBUG, line);
}

cellgate_status remote_faults_random(struct remote_faults *faults,
                                     uint64_t number, enum remote_moment moment,
                                     cellgate_error *error)
{
    const uint64_t random = scatter(scatter(faults->seed) + number);
    const uint64_t share = random % 100;

    if (share >= faults->fail_percent + faults->lose_percent ||
        (random >> 32) % 3 != (uint64_t)moment)
        return CELLGATE_OK;
    if (share >= faults->fail_percent) {
        tell(faults, "loses the card", number, moment);
        atomic_store(&faults->lost, true);
        return remote_faults_check(faults, error);
    }
    tell(faults, "fails", number, moment);
    (void)cellgate_fail(error, CELLGATE_DEVICE_FAILED,
                        "run %" PRIu64 " failed, as fail_percent asks", number);
    error->vendor_code = REMOTE_CODE_LAUNCH;
    return CELLGATE_DEVICE_FAILED;
}

bool remote_faults_distort(const struct remote_faults *faults, uint64_t number)
{
    return faults->wrong || number == faults->wrong_at;
}
