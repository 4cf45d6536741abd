/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite: groups of checks, run on each device of the plugin under test,
 * and what the checks have in common.
 */
#ifndef TESTS_CONFORMANCE_SUITE_H
#define TESTS_CONFORMANCE_SUITE_H

#include <regex.h>

#include "tests/conformance/execution.h"
#include "tests/conformance/plugin_file.h"
#include "tests/conformance/report.h"

#define SUITE_MAX_VARIANTS 64

/* What suite_plan_init() and suite_run() give where the plugin refuses a
   variant that it offered, and goes on refusing it. */
#define SUITE_REFUSED (-2)

/* What the command line asks for. */
typedef struct suite_options {
    const char *path;
    int full;     /* more and larger cases */
    int list;     /* print the cases, run nothing */
    int variants; /* print what the device offers for them, run nothing */
    int json;
    int verbose;
    uint64_t seed;
    int64_t device;         /* -1: all */
    const char *variant;    /* NULL: all */
    const char *filter;     /* a group's name, or an extended regular
                               expression that is found in descriptions */
    double seconds;         /* then no case is begun; 0: there is no end */
    uint32_t threads;       /* the budget; 0: as many as there are */
    host_setting *settings; /* canonical after suite_open() */
    size_t setting_count;
} suite_options;

typedef struct suite {
    const suite_options *options;
    plugin_file plugin;
    struct cellgate_settings settings;
    report *report;
    regex_t filter;
    int filters;                   /* the filter is compiled */
    double end;                    /* on suite_clock(), where there is one */
    int64_t untried;               /* cases that came after it */
    struct variant_list *variants; /* with --variants */
    /* The device under test: */
    uint32_t device_index;
    cellgate_device_description description;
    cellgate_device *device;
} suite;

/* A group of checks; `run` is called once a device, or once in all. */
typedef struct suite_group {
    const char *name;
    const char *what; /* one line */
    int once;         /* concerns the plugin, not a device */
    void (*run)(suite *s);
} suite_group;

/* The groups in the order in which they run, ended by a NULL name. */
extern const suite_group suite_groups[];

/* Exit statuses beside 0 (passed), 1 (failed) and 2 (wrong options). */
enum { SUITE_UNUSABLE = 5, SUITE_NO_MEMORY = 6 };

/* Runs everything and returns the exit status. */
int suite_main(const suite_options *options);

/* Seconds on the host's clock. */
double suite_clock(suite *s);

/* ---- --variants --------------------------------------------------------- */

/* Asks for the variants of a case, and keeps those that are new. */
void variants_note(suite *s, const test_case *c);
/* Prints the device's, and forgets them. */
void variants_print(suite *s);

/* ---- For checks --------------------------------------------------------- */

/* Whether the case is to be run; in a listing, prints it and says no. */
int suite_wants(suite *s, const test_case *c);

/* The same for a check that isn't described by a case. */
int suite_wants_check(suite *s, const char *group, const char *what);

/* What the device offers for a case. */
typedef struct suite_offer {
    uint32_t count;
    cellgate_variant variants[SUITE_MAX_VARIANTS];
} suite_offer;

/*
 * Asks support() for all variants at the case's own shape. A refusal is
 * reported: as a failure if the case belongs to the minimum profile or the
 * refusal gives no reason. So is a case of that profile for which no variant is
 * listed that can run, unless --variant is given. The offer has only variants
 * that --variant wants.
 */
void suite_ask(suite *s, const case_data *data, suite_offer *offer);

/* Weights and a plan of one variant for one case. */
typedef struct suite_plan {
    suite *s;
    const case_data *data;
    cellgate_variant variant;
    cellgate_weights *weights;
    int owns_weights;
    cellgate_plan *plan;
} suite_plan;

/*
 * Prepares and plans for runs up to (batch, steps); `weights` NULL: its own.
 * SUITE_REFUSED: reported as refused; -1: as failed, or as skipped for want of
 * device memory.
 */
int suite_plan_init(suite_plan *p, suite *s, const case_data *data,
                    const cellgate_variant *variant, cellgate_weights *weights,
                    int64_t batch, int64_t steps);
void suite_plan_finish(suite_plan *p); /* a zeroed struct is allowed */

/*
 * Runs `with`, which may belong to another case of the same segment, and
 * collects into `to`. Checks what must hold for every run: success, inputs
 * intact, guards whole, every element written, nothing allocated. SUITE_REFUSED
 * and -1 as above.
 */
int suite_run(suite_plan *p, execution *with, results *to);

/*
 * Compares with the oracle and reports failure; `note` says in which situation
 * (NULL: none worth saying). Returns the worst share, or -1 when it failed, or
 * -2 when no row could be compared.
 */
double suite_compare(suite_plan *p, expected *e, const results *r,
                     const char *note);

/* All of it for a case: every variant against the oracle. */
void suite_case(suite *s, const test_case *c);

/* A failure that concerns a plan; printf-like. */
__attribute__((format(printf, 2, 3))) void suite_fail(const suite_plan *p,
                                                      const char *format, ...);

/* ---- The groups --------------------------------------------------------- */

void group_table(suite *s);
void group_devices(suite *s);
void group_variants(suite *s);
void group_shapes(suite *s);
void group_lengths(suite *s);
void group_layouts(suite *s);
void group_outputs(suite *s);
void group_attributes(suite *s);
void group_activations(suite *s);
void group_values(suite *s);
void group_nonfinite(suite *s);
void group_ops(suite *s);
void group_chains(suite *s);
void group_pieces(suite *s);
void group_plans(suite *s);
void group_threads(suite *s);
void group_weights(suite *s);
void group_lifecycle(suite *s);
void group_resident(suite *s);
void group_optional(suite *s);
void group_growth(suite *s);
void group_bounds(suite *s);

#endif
