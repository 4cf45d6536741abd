/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on demand, and the settings that ask for them. Runs of one opened
 * device are counted from 1, in the order in which the device accepts them.
 */
#ifndef REMOTE_FAULTS_H
#define REMOTE_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cellgate/plugin.h"

/* Where in a run a fault strikes. */
enum remote_moment {
    REMOTE_BEFORE, /* the upload */
    REMOTE_DURING, /* between compute and download */
    REMOTE_AFTER   /* all results but the resident state are on the host */
};

/* Vendor codes: a launch that failed, a card that fell off the bus. */
#define REMOTE_CODE_LAUNCH 719
#define REMOTE_CODE_LOST 79

struct remote_faults {
    /* From the settings; a number of a run, 0 for never. */
    uint64_t lose_after, fail_at, hang_at, wrong_at;
    /* Runs in a hundred that fail, or lose the device, at random; and where the
       random numbers begin. */
    uint64_t fail_percent, lose_percent, seed;
    const cellgate_host *host; /* told of each random fault */
    bool wrong;                /* every run */
    uint64_t latency;          /* nanoseconds added to each run */
    uint64_t prepare;          /* likewise, to laying out weights */
    uint64_t hang_for;         /* nanoseconds after which a hung run gives up */
    /* State. */
    _Atomic uint64_t runs;
    atomic_bool lost;
};

/* A key's value in nanoseconds, and not by strtod(), whose decimal point
   depends on the application's locale. */
uint64_t remote_read_seconds(const cellgate_host *host,
                             const cellgate_settings *settings,
                             const char *key);

void remote_faults_init(struct remote_faults *faults, const cellgate_host *host,
                        const cellgate_settings *settings);

/* Laying out weights takes as long as is set. */
void remote_faults_prepare(const struct remote_faults *faults);

/* DEVICE_LOST once the device is lost. */
cellgate_status remote_faults_check(struct remote_faults *faults,
                                    cellgate_error *error);

/*
 * What happens to run `number`, called on the device's thread between compute
 * and download: sleeps, hangs, loses the device or fails the run, as set.
 */
cellgate_status remote_faults_strike(struct remote_faults *faults,
                                     uint64_t number, cellgate_error *error);

/*
 * Strikes run `number` if it is one of the random ones and this its moment; the
 * log has a line for each. Equal seeds, numbers and settings: equal faults.
 */
cellgate_status remote_faults_random(struct remote_faults *faults,
                                     uint64_t number, enum remote_moment moment,
                                     cellgate_error *error);

/* Whether the results of run `number` are to be off by 1%. */
bool remote_faults_distort(const struct remote_faults *faults, uint64_t number);

#endif
