/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/config/settings.h"
#include "runtime/plugin/probe.h"
#include "tests/unit/plugin_folder.h"

/* A sanitizer turns signals into exits of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static bool privileged;

bool __wrap_cg_privileged(void);
bool __wrap_cg_privileged(void)
{
    return privileged;
}

static cg_prober prober;

static int enter(void **state)
{
    privileged = false;
    if (plugin_folder_enter(state) != 0)
        return -1;
    prober = (cg_prober){
        .helper = TEST_PROBE, .timeout = 20, .thread_budget = 3, .at_once = 4
    };
    return 0;
}

/* No child, not even a dead one, is left. */
static int leave(void **state)
{
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
        return -1;
    return plugin_folder_leave(state);
}

static cg_verdict *probe(const char *path)
{
    cg_verdict *verdict = NULL;

    cg_probe(&prober, &path, &verdict, 1);
    assert_non_null(verdict);
    return verdict;
}

/* Probes the module under that name; the reason must begin so. */
static void check(const char *module, const char *name, cellgate_status status,
                  const char *reason)
{
    cg_verdict *verdict = probe(plugin_add(module, name));

    if (verdict->status != status ||
        strncmp(verdict->reason, reason, strlen(reason)) != 0)
        fail_msg("%s: status %d, \"%s\"", name, (int)verdict->status,
                 verdict->reason);
    assert_null(strchr(verdict->reason, '\n'));
    assert_null(strchr(verdict->reason, '\033'));
    assert_int_equal(verdict->device_count,
                     status == CELLGATE_OK && reason[0] == '\0');
    cg_verdict_destroy(verdict);
}

static void test_good(void **state)
{
    cg_verdict *verdict;

    (void)state;
    (void)setenv("CELLGATE_FAKE_DEVICES", "2", 1);
    verdict = probe(plugin_add("fake", "fake"));
    assert_string_equal(verdict->reason, "");
    assert_int_equal(verdict->status, CELLGATE_OK);
    assert_string_equal(verdict->name, "fake");
    assert_string_equal(verdict->version, "1.0");
    assert_string_equal(verdict->build, "loops");
    assert_int_equal(verdict->abi, CELLGATE_ABI_VERSION);
    assert_int_equal(verdict->key_count, 2);
    assert_string_equal(verdict->keys[1].choices, "plain|fancy");
    assert_int_equal(verdict->watched_count, 1);
    assert_int_equal(verdict->device_count, 2);
    assert_string_equal(verdict->devices[1].name, "Fake 1");
    assert_string_equal(verdict->devices[1].resource, "fake:1");
    assert_true(verdict->devices[1].memory == UINT64_C(1) << 63);
    cg_verdict_destroy(verdict);
}

static void test_admitted(void **state)
{
    (void)state;
    check("bad", "short_table", CELLGATE_OK, "");
    check("bad", "chatter", CELLGATE_OK, "");
    check("bad", "forger", CELLGATE_OK, "");
    check("bad", "slow", CELLGATE_OK, "");
    check("bad", "leaves_child", CELLGATE_OK, "");
    check("bad", "no_utf8", CELLGATE_OK, "");
}

static void test_refused(void **state)
{
    (void)state;
    check("bad", "no_driver", CELLGATE_NO_DEVICE,
          "no driver: install the package named driver");
    check("bad", "silent_failure", CELLGATE_DEVICE_FAILED,
          "its init() failed without a reason");
    check("bad", "endless_reason", CELLGATE_NO_DEVICE, "xxxxx");
    check("bad", "no_devices", CELLGATE_OK,
          "has no device here: no card in any slot");
    check("bad", "no_devices_no_word", CELLGATE_OK,
          "has no device here and says no reason");
    check("bad", "many_devices", CELLGATE_BAD_PLUGIN,
          "states 4294967295 devices");
    check("bad", "describe_fails", CELLGATE_DEVICE_FAILED,
          "cannot describe its device 0: the card is gone");
    check("bad", "endless_name", CELLGATE_BAD_PLUGIN,
          "describes its device 0 with a name");
    check("bad", "no_resource", CELLGATE_BAD_PLUGIN,
          "describes its device 0 with a resource");
    check("bad", "version_99", CELLGATE_BAD_PLUGIN, "talks version 99");
    check("no_entry", "no_entry", CELLGATE_BAD_PLUGIN,
          "is not a Cellgate plugin");
}

static void test_ended(void **state)
{
    const char *crashed = SANITIZED ? "" : "crashed with signal 11 (";

    (void)state;
    check("bad", "crash_in_init", CELLGATE_BAD_PLUGIN, crashed);
    check("bad", "crash_on_load", CELLGATE_BAD_PLUGIN, crashed);
    check("bad", "crash_in_describe", CELLGATE_BAD_PLUGIN,
          SANITIZED ? "" : "crashed with signal 8 (");
    if (!SANITIZED)
        check("bad", "abort_in_init", CELLGATE_BAD_PLUGIN,
              "crashed with signal 6 (Aborted) in init(); it printed: the "
              "driver is cross");
    check("bad", "exit0_in_init", CELLGATE_BAD_PLUGIN,
          "ended the process with exit status 0 in init(); it printed: ");
    check("bad", "exit3_in_init", CELLGATE_BAD_PLUGIN,
          "ended the process with exit status 3 in init()");
    check("bad", "exit_on_load", CELLGATE_BAD_PLUGIN,
          SANITIZED ? "ended the process with exit status "
                    : "ended the process with exit status 5 while it was "
                      "loaded");
    check("bad", "exit_in_entry", CELLGATE_BAD_PLUGIN,
          "ended the process with exit status 6 in its entry");
    check("bad", "exit_leaving_child", CELLGATE_BAD_PLUGIN,
          "ended the process with exit status 4 in init()");
    check("bad", "endless_answer", CELLGATE_BAD_PLUGIN,
          "gives an answer without end in init()");
}

/* A damaged file may end in a message or in a signal. */
static void test_truncated(void **state)
{
    static char content[1 << 20];
    FILE *file = fopen(plugin_add("bad", "whole"), "rb");
    size_t size = fread(content, 1, sizeof content, file);
    size_t cut;

    (void)state;
    (void)fclose(file);
    for (cut = 1; cut < 8; cut++) {
        cg_verdict *verdict =
            probe(plugin_write("cut.so", content, cut * size / 8));
        /* Most of it is for linkers and debuggers, and not missed. */
        if (cut == 1)
            assert_int_equal(verdict->status, CELLGATE_BAD_PLUGIN);
        assert_true(verdict->status == CELLGATE_OK ||
                    verdict->reason[0] != '\0');
        cg_verdict_destroy(verdict);
    }
}

/* All that hang at once: the whole takes about one limit, not four. */
static void test_hung(void **state)
{
    static const char *const names[] = { "hang_on_load", "hang_in_init",
                                         "hang_without_files",
                                         "endless_output" };
    const char *paths[4];
    cg_verdict *verdicts[4] = { NULL };
    struct timespec before, after;
    size_t i;

    (void)state;
    for (i = 0; i < 4; i++)
        paths[i] = plugin_add("bad", names[i]);
    prober.timeout = 1.5;
    (void)clock_gettime(CLOCK_MONOTONIC, &before);
    cg_probe(&prober, paths, verdicts, 4);
    (void)clock_gettime(CLOCK_MONOTONIC, &after);
    assert_in_range(after.tv_sec - before.tv_sec, 1, 5);
    for (i = 0; i < 4; i++) {
        assert_int_equal(verdicts[i]->status, CELLGATE_TIMEOUT);
        assert_non_null(strstr(verdicts[i]->reason,
                               "did not answer within 1.5 s, stopped "));
        assert_non_null(strstr(verdicts[i]->reason, "probe_timeout"));
        cg_verdict_destroy(verdicts[i]);
    }
}

static size_t open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count;
}

static void test_many(void **state)
{
    const char *paths[40];
    cg_verdict *verdicts[40] = { NULL };
    size_t before = open_files();
    char name[16];
    size_t i;

    (void)state;
    for (i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, "%zu", i);
        paths[i] = strdup(plugin_add(i % 2 ? "fake" : "no_entry", name));
    }
    prober.at_once = 1000; /* cut to what is sensible */
    cg_probe(&prober, paths, verdicts, 40);
    for (i = 0; i < 40; i++) {
        assert_int_equal(verdicts[i]->status,
                         i % 2 ? CELLGATE_OK : CELLGATE_BAD_PLUGIN);
        cg_verdict_destroy(verdicts[i]);
        free((char *)paths[i]);
    }
    cg_probe(&prober, NULL, NULL, 0);
    assert_int_equal(open_files(), before);
}

static void reap_any(int number)
{
    int saved = errno;

    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    errno = saved;
}

/* An application that takes all children's ends for itself. */
static void test_foreign_reaping(void **state)
{
    struct sigaction action, before;

    (void)state;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_IGN;
    assert_int_equal(sigaction(SIGCHLD, &action, &before), 0);
    check("bad", "slow", CELLGATE_OK, "");
    check("bad", "exit3_in_init", CELLGATE_BAD_PLUGIN,
          "ended the process in init()");
    action.sa_handler = reap_any;
    assert_int_equal(sigaction(SIGCHLD, &action, NULL), 0);
    check("bad", "short_table", CELLGATE_OK, "");
    check("bad", "exit0_in_init", CELLGATE_BAD_PLUGIN, "ended the process");
    (void)sigaction(SIGCHLD, &before, NULL);
}

/* The helper must not inherit what would keep it from being ended. */
static void test_blocked_signals(void **state)
{
    sigset_t all, before;

    (void)state;
    (void)sigfillset(&all);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    if (!SANITIZED)
        check("bad", "abort_in_init", CELLGATE_BAD_PLUGIN,
              "crashed with signal 6");
    check("bad", "short_table", CELLGATE_OK, "");
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The application has no stdin, stdout, stderr: its pipes get low numbers. */
static void test_closed_streams(void **state)
{
    int saved[3];
    int i;
    cg_verdict *verdict;
    const char *path = plugin_add("bad", "chatter");

    (void)state;
    (void)fflush(NULL);
    for (i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD, 10);
        (void)close(i);
    }
    verdict = NULL;
    cg_probe(&prober, &path, &verdict, 1);
    for (i = 0; i < 3; i++) {
        (void)dup2(saved[i], i);
        (void)close(saved[i]);
    }
    assert_non_null(verdict);
    assert_string_equal(verdict->reason, "");
    assert_int_equal(verdict->status, CELLGATE_OK);
    cg_verdict_destroy(verdict);
}

/* A helper made of shell lines. */
static void check_helper(const char *script, mode_t mode,
                         cellgate_status status, const char *text)
{
    const char *path = plugin_write("helper", script, strlen(script));
    cg_verdict *verdict;

    assert_int_equal(chmod(path, mode), 0);
    prober.helper = path;
    prober.timeout = 3;
    verdict = probe("/some/plugin.so");
    if (verdict->status != status || strstr(verdict->reason, text) == NULL)
        fail_msg("status %d, \"%s\"", (int)verdict->status, verdict->reason);
    cg_verdict_destroy(verdict);
}

#define SAY(token, stage, verdict)                                             \
    "echo '{\"token\":\"'" token "'\",\"stage\":\"" stage                      \
    "\",\"verdict\":" verdict "}' >&3\n"
#define VERDICT                                                                \
    "{\"status\":0,\"reason\":\"\",\"name\":\"n\",\"version\":\"\","           \
    "\"build\":\"\",\"abi\":0,\"keys\":[],\"watched\":[],\"variants\":[],"     \
    "\"devices\":[]}"

static void test_helpers(void **state)
{
    (void)state;
    check_helper("#!/bin/sh\n" SAY("$1", "done", VERDICT) "sleep 60\n", 0700,
                 CELLGATE_OK, "");
    check_helper("#!/bin/sh\necho no >&2; exit 1\n", 0700, CELLGATE_INTERNAL,
                 "does not work; it printed: no");
    check_helper("#!/bin/sh\n" SAY("$2", "done", VERDICT), 0700,
                 CELLGATE_INTERNAL, "does not work");
    check_helper("#!/bin/sh\n" SAY("$1", "done", "{}"), 0700, CELLGATE_INTERNAL,
                 "does not work");
    check_helper("#!/bin/sh\n" SAY("$1", "somewhere", VERDICT) "echo '{' >&3\n",
                 0700, CELLGATE_BAD_PLUGIN,
                 "ended the process with exit status 0 somewhere");
    check_helper("#!/bin/sh\nexec sleep 60\n", 0700, CELLGATE_TIMEOUT,
                 "stopped at its start");
    check_helper("", 0600, CELLGATE_INTERNAL, "cannot be started");
    prober.helper = plugin_path("nowhere");
    check("fake", "fake", CELLGATE_INTERNAL, "not probed: the helper program");
}

static void test_helper_path(void **state)
{
    (void)state;
    (void)setenv("CELLGATE_PROBE", "/some/where", 1);
    assert_string_equal(cg_probe_helper(), "/some/where");
    privileged = true;
    assert_non_null(strstr(cg_probe_helper(), "/cellgate/cellgate-probe"));
    privileged = false;
    (void)unsetenv("CELLGATE_PROBE");
    assert_non_null(strstr(cg_probe_helper(), "/cellgate/cellgate-probe"));
}

/* Run by hand it says what it is for. */
static void test_usage(void **state)
{
    char command[512];
    int status;

    (void)state;
    (void)snprintf(command, sizeof command, "%s a b >%s 2>&1", TEST_PROBE,
                   plugin_path("said"));
    status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    (void)snprintf(command, sizeof command, "grep -q 'run by libcellgate' %s",
                   plugin_path("said"));
    assert_int_equal(system(command), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(test_good),
        TEST(test_admitted),
        TEST(test_refused),
        TEST(test_ended),
        TEST(test_truncated),
        TEST(test_hung),
        TEST(test_many),
        TEST(test_foreign_reaping),
        TEST(test_blocked_signals),
        TEST(test_closed_streams),
        TEST(test_helpers),
        TEST(test_helper_path),
        TEST(test_usage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
