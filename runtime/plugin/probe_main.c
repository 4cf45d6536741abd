/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellgate-probe: finds out what a plugin offers, in a process that may crash,
 * hang or exit without harm to anyone. libcellgate runs it (probe.c):
 *
 *   cellgate-probe TOKEN FD THREADS PATH
 *
 * It writes lines of JSON to the descriptor FD, before each thing it does with
 * the plugin and at the end ("stage" is "done" then). Each repeats the token,
 * so that nothing the plugin writes is taken for an answer.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <jansson.h>

#include "runtime/plugin/admission.h"
#include "runtime/plugin/probe.h"

typedef struct answer {
    const char *token;
    int file;
} answer;

static void write_all(int file, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(file, text, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            _exit(1); /* nobody listens */
        text += written;
        size -= (size_t)written;
    }
}

static void say(void *context, const char *stage, const cg_verdict *verdict)
{
    const answer *to = context;
    json_t *body = cg_verdict_to_json(verdict);
    json_t *line = json_pack("{s:s, s:s, s:o}", "token", to->token, "stage",
                             stage, "verdict", body);
    char *text = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;

    json_decref(line);
    if (text == NULL)
        _exit(1);
    write_all(to->file, text, strlen(text));
    write_all(to->file, "\n", 1);
    free(text);
}

/* What the application left open is none of the plugin's business. */
static void close_others(int file)
{
    long most = sysconf(_SC_OPEN_MAX);
    int other;

#if defined(HAVE_CLOSE_RANGE)
    if (close_range((unsigned)file + 1, ~0u, 0) == 0)
        return;
#endif
    if (most < 0 || most > 4096)
        most = 4096;
    for (other = file + 1; other < most; other++)
        (void)close(other);
}

/* Dies with the application, and leaves no core file behind. */
static void be_humble(void)
{
    const struct rlimit none = { 0, 0 };

    (void)setrlimit(RLIMIT_CORE, &none);
#if defined(__linux__)
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

int main(int argc, char **argv)
{
    cg_admission admission = { .progress = say };
    cg_verdict *verdict;
    answer to;

    if (argc != 5 || strlen(argv[1]) != CG_PROBE_TOKEN_LENGTH) {
        (void)fprintf(stderr,
                      "cellgate-probe is run by libcellgate, to look into "
                      "plugins; see cellgate devices\n");
        return 2;
    }
    to.token = argv[1];
    to.file = atoi(argv[2]);
    if (to.file <= STDERR_FILENO || fcntl(to.file, F_SETFD, FD_CLOEXEC) != 0)
        return 2;
    close_others(to.file);
    be_humble();
    verdict = cg_verdict_create();
    if (verdict == NULL)
        return 1;
    admission.thread_budget = (uint32_t)strtoul(argv[3], NULL, 10);
    admission.progress_context = &to;
    cg_admit(argv[4], &admission, verdict);
    say(&to, CG_PROBE_DONE, verdict);
    /* Nothing of the plugin runs any more, its destructors included. */
    _exit(0);
}
