/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/conformance/report.h"

/* Of one row; the rest is only counted, or a broken plugin floods the screen.
 */
#define FAILURES_SHOWN 5

typedef struct report_row {
    uint32_t device;
    char group[32];
    char variant[40];
    int64_t passed, refused, skipped, failed;
    double share;
} report_row;

/* A refusal or a skip, with how often it was given. */
typedef struct report_remark {
    uint32_t device;
    char group[32];
    int32_t reason; /* -1: a skip */
    char text[300];
    int64_t count;
} report_remark;

struct report {
    int json;
    int out_of_memory;
    char plugin[128], path[512], build[128];
    uint64_t seed;
    int full;
    uint32_t device;
    json_t *devices, *failures;
    report_row *rows;
    size_t row_count;
    report_remark *remarks;
    size_t remark_count;
};

report *report_create(int json)
{
    report *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->json = json;
    r->devices = json_array();
    r->failures = json_array();
    if (r->devices != NULL && r->failures != NULL)
        return r;
    report_destroy(r);
    return NULL;
}

void report_destroy(report *r)
{
    if (r == NULL)
        return;
    json_decref(r->devices);
    json_decref(r->failures);
    free(r->rows);
    free(r->remarks);
    free(r);
}

void report_plugin(report *r, const char *path, const char *name,
                   const char *version, const char *build, uint64_t seed,
                   int full)
{
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    (void)snprintf(r->plugin, sizeof r->plugin, "%s %s", name, version);
    (void)snprintf(r->build, sizeof r->build, "%s", build);
    r->seed = seed;
    r->full = full;
    if (!r->json)
        printf("plugin %s (%s), build %s\nseed %" PRIu64 ", %s\n", r->plugin,
               r->path, r->build, seed, full ? "full" : "quick");
}

void report_device(report *r, uint32_t index, const char *name)
{
    r->device = index;
    if (!r->json)
        printf("device %" PRIu32 ": %s\n", index, name);
    if (json_array_append_new(
            r->devices,
            json_pack("{s:i, s:s}", "index", (int)index, "name", name)) != 0)
        r->out_of_memory = 1;
}

/* One more element at the end of an array, zeroed; NULL without memory. */
static void *grow(report *r, void **array, size_t *count, size_t size)
{
    char *grown = realloc(*array, (*count + 1) * size);

    if (grown == NULL) {
        r->out_of_memory = 1;
        return NULL;
    }
    *array = grown;
    memset(grown + *count * size, 0, size);
    return grown + (*count)++ * size;
}

static report_row *row_of(report *r, const char *group, const char *variant)
{
    static report_row nowhere;
    report_row *row;
    void *rows = r->rows;

    variant = variant != NULL ? variant : "-";
    for (size_t i = 0; i < r->row_count; i++)
        if (r->rows[i].device == r->device &&
            strcmp(r->rows[i].group, group) == 0 &&
            strcmp(r->rows[i].variant, variant) == 0)
            return &r->rows[i];
    row = grow(r, &rows, &r->row_count, sizeof *row);
    r->rows = rows;
    if (row == NULL)
        return &nowhere;
    row->device = r->device;
    (void)snprintf(row->group, sizeof row->group, "%s", group);
    (void)snprintf(row->variant, sizeof row->variant, "%s", variant);
    return row;
}

static void remark(report *r, const char *group, int32_t reason,
                   const char *text)
{
    report_remark *m;
    void *remarks = r->remarks;

    for (size_t i = 0; i < r->remark_count; i++) {
        m = &r->remarks[i];
        if (m->device == r->device && m->reason == reason &&
            strcmp(m->group, group) == 0 &&
            strncmp(m->text, text, sizeof m->text - 1) == 0) {
            m->count++;
            return;
        }
    }
    m = grow(r, &remarks, &r->remark_count, sizeof *m);
    r->remarks = remarks;
    if (m == NULL)
        return;
    m->device = r->device;
    m->reason = reason;
    m->count = 1;
    (void)snprintf(m->group, sizeof m->group, "%s", group);
    (void)snprintf(m->text, sizeof m->text, "%s", text);
}

void report_passed(report *r, const char *group, const char *variant,
                   double share)
{
    report_row *row = row_of(r, group, variant);

    row->passed++;
    if (share > row->share)
        row->share = share;
}

void report_skipped(report *r, const char *group, const char *variant,
                    const char *why)
{
    row_of(r, group, variant)->skipped++;
    remark(r, group, -1, why);
}

void report_refused(report *r, const char *group, int32_t reason,
                    const char *text)
{
    row_of(r, group, NULL)->refused++;
    remark(r, group, reason, text);
}

void report_failed(report *r, const char *group, const char *variant,
                   const char *what, const char *format, ...)
{
    report_row *row = row_of(r, group, variant);
    char text[700];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    row->failed++;
    if (row->failed > FAILURES_SHOWN)
        return;
    if (!r->json)
        printf("FAIL %s, device %" PRIu32 ", variant %s\n     %s\n     %s\n",
               group, r->device, row->variant, what, text);
    if (json_array_append_new(r->failures,
                              json_pack("{s:i, s:s, s:s, s:s, s:s}", "device",
                                        (int)r->device, "group", group,
                                        "variant", row->variant, "case", what,
                                        "text", text)) != 0)
        r->out_of_memory = 1;
    (void)fflush(stdout);
}

typedef struct report_total {
    int64_t passed, failed, skipped;
} report_total;

static report_total total_of(const report *r)
{
    report_total total = { 0, 0, 0 };

    for (size_t i = 0; i < r->row_count; i++) {
        total.passed += r->rows[i].passed;
        total.failed += r->rows[i].failed;
        total.skipped += r->rows[i].skipped + r->rows[i].refused;
    }
    return total;
}

int64_t report_failures(const report *r)
{
    return total_of(r).failed + r->out_of_memory;
}

int64_t report_ran(const report *r, const char *variant)
{
    int64_t count = 0;

    for (size_t i = 0; i < r->row_count; i++)
        if (strcmp(r->rows[i].variant, variant) == 0)
            count += r->rows[i].passed + r->rows[i].failed;
    return count;
}

const char *report_reason_name(int32_t reason)
{
    switch (reason) {
#define REASON_NAME(name, value, text)                                         \
    case value:                                                                \
        return #name;
        CELLGATE_REASON_LIST(REASON_NAME)
#undef REASON_NAME
    default:
        return "?";
    }
}

static void print_table(const report *r)
{
    printf("\n%-6s %-13s %-14s %7s %8s %8s %7s  %s\n", "device", "group",
           "variant", "passed", "refused", "skipped", "failed",
           "worst error / tolerance");
    for (size_t i = 0; i < r->row_count; i++) {
        const report_row *row = &r->rows[i];
        printf("%-6" PRIu32 " %-13s %-14s %7" PRId64 " %8" PRId64 " %8" PRId64
               " %7" PRId64,
               row->device, row->group, row->variant, row->passed, row->refused,
               row->skipped, row->failed);
        if (row->share > 0.0)
            printf("  %.3f", row->share);
        printf("\n");
    }
}

static void print_remarks(const report *r)
{
    if (r->remark_count > 0)
        printf("\nrefused and skipped:\n");
    for (size_t i = 0; i < r->remark_count; i++) {
        const report_remark *m = &r->remarks[i];
        printf("  device %" PRIu32 " %s, %" PRId64 " times, %s: %s\n",
               m->device, m->group, m->count,
               m->reason < 0 ? "skipped" : report_reason_name(m->reason),
               m->text);
    }
}

static json_t *rows_to_json(const report *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->row_count; i++) {
        const report_row *row = &r->rows[i];
        (void)json_array_append_new(
            list,
            json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:I, s:f}", "device",
                      (int)row->device, "group", row->group, "variant",
                      row->variant, "passed", (json_int_t)row->passed,
                      "refused", (json_int_t)row->refused, "skipped",
                      (json_int_t)row->skipped, "failed",
                      (json_int_t)row->failed, "worst_share", row->share));
    }
    return list;
}

static json_t *remarks_to_json(const report *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->remark_count; i++) {
        const report_remark *m = &r->remarks[i];
        (void)json_array_append_new(
            list,
            json_pack("{s:i, s:s, s:I, s:s, s:s}", "device", (int)m->device,
                      "group", m->group, "count", (json_int_t)m->count,
                      "reason",
                      m->reason < 0 ? "skipped" : report_reason_name(m->reason),
                      "text", m->text));
    }
    return list;
}

static void print_json(const report *r)
{
    report_total total = total_of(r);
    json_t *all = json_pack(
        "{s:s, s:s, s:s, s:I, s:b, s:O, s:o, s:o, s:O, s:I, s:I, s:I}",
        "plugin", r->plugin, "path", r->path, "build", r->build, "seed",
        (json_int_t)r->seed, "full", r->full, "devices", r->devices, "results",
        rows_to_json(r), "remarks", remarks_to_json(r), "failures", r->failures,
        "passed", (json_int_t)total.passed, "failed", (json_int_t)total.failed,
        "skipped", (json_int_t)total.skipped);

    if (all == NULL || json_dumpf(all, stdout, JSON_INDENT(2)) != 0)
        (void)fprintf(stderr, "the report could not be written\n");
    printf("\n");
    json_decref(all);
}

void report_print(const report *r)
{
    report_total total = total_of(r);

    if (r->json) {
        print_json(r);
        return;
    }
    print_table(r);
    print_remarks(r);
    if (r->out_of_memory)
        printf("out of memory: results are missing\n");
    printf("%" PRId64 " passed, %" PRId64 " failed, %" PRId64 " skipped\n",
           total.passed, total.failed, total.skipped);
}
