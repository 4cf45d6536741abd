/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results, and the report for the plugin's author: a row for each device,
 * group of cases and variant. Failures are printed as they happen.
 */
#ifndef TESTS_CONFORMANCE_REPORT_H
#define TESTS_CONFORMANCE_REPORT_H

#include <stdint.h>

#include "cellgate/types.h"

typedef struct report report;

/* `json`: nothing is printed before report_print(). NULL without memory. */
report *report_create(int json);
void report_destroy(report *r);

/* What the following results belong to. Texts are copied. */
void report_plugin(report *r, const char *path, const char *name,
                   const char *version, const char *build, uint64_t seed,
                   int full);
void report_device(report *r, uint32_t index, const char *name);

/*
 * One result. `variant` may be NULL for what concerns none; `share` is the
 * worst error as a share of its tolerance.
 */
void report_passed(report *r, const char *group, const char *variant,
                   double share);
void report_skipped(report *r, const char *group, const char *variant,
                    const char *why);
void report_refused(report *r, const char *group, int32_t reason,
                    const char *text);
/* `what` is checked (a case's description); then printf-like: what's wrong. */
__attribute__((format(printf, 5, 6))) void
report_failed(report *r, const char *group, const char *variant,
              const char *what, const char *format, ...);

int64_t report_failures(const report *r);
/* Cases that ran in a variant, on all devices: passed or failed. */
int64_t report_ran(const report *r, const char *variant);

/* The table (or JSON), and the line "N passed, N failed, N skipped". */
void report_print(const report *r);

/* "PROJECTION", ... or "?" */
const char *report_reason_name(int32_t reason);

#endif
