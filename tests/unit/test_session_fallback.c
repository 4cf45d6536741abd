/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each setting of [scheduler] fallback does when the device meant for a
 * request can't be used: never, load and run, for every way in which it can't,
 * once with the device named by the application and once without.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/session_rig.h"

enum setting { NEVER, LOAD, RUN, SETTINGS };

static const char *const setting_names[SETTINGS] = { "never", "load", "run" };

/* Expected: a status, or OK with the device that answers. */
typedef struct outcome {
    cellgate_status status;
    const char *answers;
} outcome;

#define FAILS(status)                                                          \
    {                                                                          \
        CELLGATE_##status, NULL                                                \
    }
#define ANSWERS(device)                                                        \
    {                                                                          \
        CELLGATE_OK, device                                                    \
    }

typedef struct fault {
    const char *name;
    const char *section; /* of [device card]; NULL: there is none */
    bool at_run;         /* else when the session is made */
    const char *reason;  /* in the error, or in the report of what answers */
    outcome named[SETTINGS];
    outcome unnamed[SETTINGS];
} fault;

static const fault faults[] = {
    { .name = "there is no such device",
      .reason = "there is no device 'card'",
      .named = { FAILS(NOT_FOUND), FAILS(NOT_FOUND), FAILS(NOT_FOUND) },
      .unnamed = { ANSWERS("cpu"), ANSWERS("cpu"), ANSWERS("cpu") } },
    { .name = "its hardware is missing",
      .section = "plugin = remote\nmatch = *slot 9*\n",
      .reason = "slot 9",
      .named = { FAILS(NO_DEVICE), FAILS(NO_DEVICE), FAILS(NO_DEVICE) },
      .unnamed = { ANSWERS("cpu"), ANSWERS("cpu"), ANSWERS("cpu") } },
    { .name = "its plugin is missing",
      .section = "plugin = nowhere\n",
      .reason = "no plugin named nowhere",
      .named = { FAILS(NOT_FOUND), FAILS(NOT_FOUND), FAILS(NOT_FOUND) },
      .unnamed = { ANSWERS("cpu"), ANSWERS("cpu"), ANSWERS("cpu") } },
    { .name = "the model does not fit into it",
      .section = "plugin = remote\nmemory = 64K\n",
      .reason = "do not fit",
      .named = { FAILS(DEVICE_MEMORY), FAILS(DEVICE_MEMORY),
                 FAILS(DEVICE_MEMORY) },
      .unnamed = { FAILS(DEVICE_MEMORY), ANSWERS("cpu"), ANSWERS("cpu") } },
    { .name = "it refuses the shape",
      .section = "plugin = remote\nmax_batch = 2\n",
      .at_run = true,
      .reason = "above max_batch = 2",
      .named = { FAILS(UNSUPPORTED), FAILS(UNSUPPORTED), ANSWERS("cpu") },
      .unnamed = { FAILS(UNSUPPORTED), FAILS(UNSUPPORTED), ANSWERS("cpu") } },
    { .name = "it fails at run",
      .section = "plugin = remote\nfail_at = 1\n",
      .at_run = true,
      .reason = "launch failed",
      .named = { FAILS(DEVICE_FAILED), FAILS(DEVICE_FAILED), ANSWERS("cpu") },
      .unnamed = { FAILS(DEVICE_FAILED), FAILS(DEVICE_FAILED),
                   ANSWERS("cpu") } },
    { .name = "it is lost at run",
      .section = "plugin = remote\nlose_after = 1\n",
      .at_run = true,
      .reason = "fallen off the bus",
      .named = { FAILS(DEVICE_LOST), FAILS(DEVICE_LOST), ANSWERS("cpu") },
      .unnamed = { FAILS(DEVICE_LOST), FAILS(DEVICE_LOST), ANSWERS("cpu") } },
    { .name = "it hangs",
      .section = "plugin = remote\nhang_at = 1\nhang_for = 3600\n",
      .at_run = true,
      .reason = "a run did not end within",
      .named = { FAILS(TIMEOUT), FAILS(TIMEOUT), ANSWERS("cpu") },
      .unnamed = { FAILS(TIMEOUT), FAILS(TIMEOUT), ANSWERS("cpu") } },
};

#define FAULTS (sizeof faults / sizeof faults[0])

/* One fault under one setting. */
typedef struct trial {
    const fault *fault;
    enum setting setting;
    bool named;
    cellgate_runtime *runtime;
    cellgate_model *model;
    rig_request request;
    float *wanted; /* what the host ops give */
} trial;

static const outcome *expected(const trial *of)
{
    return of->named ? &of->fault->named[of->setting]
                     : &of->fault->unnamed[of->setting];
}

static void complain(const trial *of, const char *what, const char *text)
{
    fail_msg("%s, %s, fallback = %s: %s: %s", of->fault->name,
             of->named ? "named" : "not named", setting_names[of->setting],
             what, text);
}

static cellgate_model *make_model(void)
{
    rig_model rig;
    rig_lstm lstm;

    rig_model_begin(&rig, 4);
    rig_lstm_init(&lstm, 4, 100); /* weights beyond 64K */
    rig_add_lstm(&rig, rig_input(&rig, CG_UNKNOWN, 4), &lstm);
    rig_output(&rig, lstm.sequence);
    return rig_model_end(&rig);
}

static void begin(trial *of)
{
    cellgate_session *host;
    uint64_t random = 1;
    char config[400];
    size_t count;

    snprintf(config, sizeof config,
             "[cellgate]\nunlisted = no\n[calibration]\nstore = "
             "/dev/null/none\n[scheduler]\nfallback = %s\nwatchdog = 150ms\n"
             "%s%s[device cpu]\nplugin = openmp\n",
             setting_names[of->setting],
             of->fault->section != NULL ? "[device card]\n" : "",
             of->fault->section != NULL ? of->fault->section : "");
    of->runtime = rig_runtime(config);
    of->model = make_model();
    host = rig_session(of->runtime, of->model, "host", NULL);
    rig_request_init(&of->request, host, of->model, 3, 5, 0, &random);
    rig_run(host, &of->request, NULL);
    of->wanted = rig_outputs(&of->request, &count);
    cellgate_session_destroy(host);
}

static void end(trial *of)
{
    free(of->wanted);
    rig_request_finish(&of->request);
    cellgate_model_destroy(of->model);
    cellgate_runtime_destroy(of->runtime);
}

/* The expected failure names the device and says the reason. */
static void check_failure(const trial *of, cellgate_status got,
                          const cellgate_error *error)
{
    if (got != expected(of)->status || error->status != (int32_t)got)
        complain(of, cellgate_status_name(got), error->text);
    if (strstr(error->text, "card") == NULL ||
        strstr(error->text, of->fault->reason) == NULL)
        complain(of, "the reason is not told", error->text);
}

/* What answers is told; what was meant to, if it only failed at run, too. */
static void check_answer(const trial *of, const cellgate_report *report)
{
    if (strcmp(report->device, expected(of)->answers) != 0)
        complain(of, "answered by", report->device);
    if (of->fault->at_run &&
        (strstr(report->reason, "after a failure: device 'card'") == NULL ||
         strstr(report->reason, of->fault->reason) == NULL))
        complain(of, "not told in the report", report->reason);
    if (!of->fault->at_run && expected(of)->answers != NULL &&
        of->fault->section != NULL &&
        strstr(report->reason, "not card: ") == NULL)
        complain(of, "not told in the report", report->reason);
    rig_expect(&of->request, of->wanted, 1e-5);
}

static void run(trial *of)
{
    cellgate_session_options options = { .struct_size = sizeof options,
                                         .device = of->named ? "card" : NULL };
    cellgate_report report = { .struct_size = sizeof report };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session = NULL;
    cellgate_status status = cellgate_session_create(
        of->runtime, of->model, &options, &session, &error);

    if (status == CELLGATE_OK) {
        if (!of->fault->at_run && expected(of)->status != CELLGATE_OK)
            complain(of, "the session was made", "");
        status = cellgate_run(session, &of->request.request, &report, &error);
    } else if (of->fault->at_run) {
        complain(of, "the session was not made", error.text);
    }
    if (status != CELLGATE_OK)
        check_failure(of, status, &error);
    else if (expected(of)->status != CELLGATE_OK)
        complain(of, "answered by", report.device);
    else
        check_answer(of, &report);
    cellgate_session_destroy(session);
}

static void under(enum setting setting)
{
    for (size_t at = 0; at < FAULTS; at++)
        for (int named = 0; named < 2; named++) {
            trial of = { .fault = &faults[at],
                         .setting = setting,
                         .named = named != 0 };

            begin(&of);
            run(&of);
            end(&of);
        }
}

static void never_means_never(void **state)
{
    (void)state;
    under(NEVER);
}

static void load_means_when_the_session_is_made(void **state)
{
    (void)state;
    under(LOAD);
}

static void run_means_at_each_request(void **state)
{
    (void)state;
    under(RUN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_means_never),
        cmocka_unit_test(load_means_when_the_session_is_made),
        cmocka_unit_test(run_means_at_each_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
