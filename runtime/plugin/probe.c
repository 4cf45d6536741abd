/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/config/settings.h"
#include "runtime/plugin/probe_child.h"

#define ANSWER_MAX (8u << 20) /* bytes of one line */
#define AT_ONCE_MAX 16

/* How often a helper whose end no pipe tells is looked for, milliseconds. */
#define LOOK_AGAIN 100
#define LOOK_SOON 5

typedef enum outcome {
    RUNNING,
    ANSWERED,  /* said "done" */
    ENDED,     /* without having said it */
    TIMED_OUT, /* killed */
    TOO_LONG   /* an endless line; killed */
} outcome;

/* One helper at work. */
typedef struct probe {
    cg_probe_child child;
    size_t index; /* of the file */
    double deadline;
    bool answer_closed;
    bool output_closed;
    char *line; /* of the answer, so far */
    size_t line_size;
    size_t line_capacity;
    char stage[64];      /* the last one said; "" before the first */
    cg_verdict *verdict; /* as last said */
    char output[512];    /* the end of what the plugin printed */
    size_t output_size;
    outcome outcome;
} probe;

const char *cg_probe_helper(void)
{
    const char *named = cg_privileged() ? NULL : getenv("CELLGATE_PROBE");

    return named != NULL && named[0] != '\0' ? named
                                             : CELLGATE_PROBEDIR
               "/cellgate-probe";
}

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- What the helper says ---------------------------------------------- */

/* A line that doesn't bear the token is the plugin's own, and ignored. */
static void hear(probe *self)
{
    json_t *json = json_loadb(self->line, self->line_size, 0, NULL);
    const char *token, *stage;
    json_t *body;

    if (json_unpack(json, "{s:s, s:s, s:o}", "token", &token, "stage", &stage,
                    "verdict", &body) == 0 &&
        strcmp(token, self->child.token) == 0) {
        cg_verdict *verdict = cg_verdict_from_json(body);
        if (verdict != NULL) {
            cg_verdict_destroy(self->verdict);
            self->verdict = verdict;
            (void)snprintf(self->stage, sizeof self->stage, "%s", stage);
            if (strcmp(stage, CG_PROBE_DONE) == 0)
                self->outcome = ANSWERED;
        }
    }
    json_decref(json);
}

static bool append(probe *self, const char *bytes, size_t size)
{
    if (size > ANSWER_MAX - self->line_size)
        return false;
    if (self->line_size + size > self->line_capacity) {
        size_t capacity = 2 * (self->line_size + size);
        char *line = realloc(self->line, capacity);
        if (line == NULL)
            return false;
        self->line = line;
        self->line_capacity = capacity;
    }
    memcpy(self->line + self->line_size, bytes, size);
    self->line_size += size;
    return true;
}

static void take_answer(probe *self, const char *bytes, size_t size)
{
    while (size > 0 && self->outcome == RUNNING) {
        const char *newline = memchr(bytes, '\n', size);
        size_t part = newline != NULL ? (size_t)(newline - bytes) : size;

        if (!append(self, bytes, part)) {
            self->outcome = TOO_LONG;
            return;
        }
        if (newline == NULL)
            return;
        hear(self);
        self->line_size = 0;
        bytes += part + 1;
        size -= part + 1;
    }
}

/* Keeps the end of what the plugin prints: it may say why it fails. */
static void take_output(probe *self, const char *bytes, size_t size)
{
    size_t room = sizeof self->output - 1;
    size_t kept;

    if (size > room) {
        bytes += size - room;
        size = room;
    }
    kept = self->output_size < room - size ? self->output_size : room - size;
    memmove(self->output, self->output + self->output_size - kept, kept);
    memcpy(self->output + kept, bytes, size);
    self->output_size = kept + size;
}

/* Reads once what is there: bytes read, 0 at the pipe's end, -1 for nothing. */
static ssize_t drain(probe *self, int file,
                     void (*take)(probe *, const char *, size_t))
{
    char bytes[16384];
    ssize_t size = read(file, bytes, sizeof bytes);

    if (size > 0)
        take(self, bytes, (size_t)size);
    else if (size < 0 && errno != EAGAIN && errno != EINTR)
        size = 0;
    return size;
}

/* ---- The verdict ------------------------------------------------------- */

/* The last line that isn't empty of what the plugin printed. */
static const char *last_words(probe *self)
{
    char *output = self->output;
    size_t size = self->output_size;
    char *line;

    while (size > 0 && strchr(" \t\r\n", output[size - 1]) != NULL)
        size--;
    output[size] = '\0';
    for (line = output + size; line > output && line[-1] != '\n'; line--)
        ;
    return line;
}

static void ended(probe *self, const cg_prober *prober)
{
    const cg_probe_child *child = &self->child;
    const char *said = last_words(self);
    const char *so = said[0] != '\0' ? "; it printed: " : "";
    cg_verdict *verdict = self->verdict;

    if (self->stage[0] == '\0')
        cg_verdict_set(verdict, CELLGATE_INTERNAL,
                       "not probed: the helper program %s does not work%s%s",
                       prober->helper, so, said);
    else if (child->signal != 0)
        cg_verdict_set(verdict, CELLGATE_BAD_PLUGIN,
                       "crashed with signal %d (%s) %s%s%s", child->signal,
                       strsignal(child->signal), self->stage, so, said);
    else if (child->exit_status >= 0)
        cg_verdict_set(verdict, CELLGATE_BAD_PLUGIN,
                       "ended the process with exit status %d %s%s%s",
                       child->exit_status, self->stage, so, said);
    else
        cg_verdict_set(verdict, CELLGATE_BAD_PLUGIN, "ended the process %s%s%s",
                       self->stage, so, said);
}

static void conclude(probe *self, const cg_prober *prober)
{
    cg_verdict *verdict = self->verdict;

    if (verdict == NULL)
        verdict = self->verdict = cg_verdict_create();
    if (verdict == NULL)
        return;
    switch (self->outcome) {
    case TIMED_OUT:
        cg_verdict_set(verdict, CELLGATE_TIMEOUT,
                       "did not answer within %g s, stopped %s; [cellgate] "
                       "probe_timeout sets the limit",
                       prober->timeout,
                       self->stage[0] != '\0' ? self->stage : "at its start");
        break;
    case TOO_LONG:
        cg_verdict_set(verdict, CELLGATE_BAD_PLUGIN,
                       "gives an answer without end %s", self->stage);
        break;
    case ENDED:
        ended(self, prober);
        break;
    default:
        break;
    }
}

/* ---- Several at once --------------------------------------------------- */

static bool start(probe *self, const cg_prober *prober, const char *path,
                  size_t index, cg_verdict **verdict)
{
    int problem;

    memset(self, 0, sizeof *self);
    self->index = index;
    self->deadline = seconds_now() + prober->timeout;
    problem = cg_probe_child_start(&self->child, prober->helper,
                                   prober->thread_budget, path);
    if (problem == 0)
        return true;
    *verdict = cg_verdict_create();
    if (*verdict != NULL)
        cg_verdict_set(*verdict, CELLGATE_INTERNAL,
                       "not probed: the helper program %s cannot be started: "
                       "%s (is Cellgate installed completely?)",
                       prober->helper, strerror(problem));
    return false;
}

/* It has ended; what it said last may still be in the pipes. */
static void hear_the_rest(probe *self)
{
    size_t most = ANSWER_MAX / 4096; /* a child of its own may go on writing */

    while (self->outcome == RUNNING && most-- > 0 &&
           drain(self, self->child.answer, take_answer) > 0)
        ;
    if (self->outcome == RUNNING)
        self->outcome = ENDED;
    while (most-- > 0 && drain(self, self->child.output, take_output) > 0)
        ;
}

/* Hears what there is to hear, and decides whether it is over. */
static void attend(probe *self, short answer, short output)
{
    if (output != 0)
        self->output_closed = drain(self, self->child.output, take_output) == 0;
    if (answer != 0)
        self->answer_closed = drain(self, self->child.answer, take_answer) == 0;
    if (self->outcome != RUNNING)
        return;
    if (cg_probe_child_ended(&self->child))
        hear_the_rest(self);
    else if (seconds_now() >= self->deadline)
        self->outcome = TIMED_OUT;
}

static void finish(probe *self, const cg_prober *prober, cg_verdict **verdict)
{
    cg_probe_child_finish(&self->child);
    conclude(self, prober);
    free(self->line);
    *verdict = self->verdict;
}

/* Waits until a helper says something, closes a pipe, or runs out of time. */
static void await(const probe *probes, size_t active, struct pollfd *files)
{
    double wait = LOOK_AGAIN;
    double now = seconds_now();
    size_t i;

    for (i = 0; i < active; i++) {
        const probe *self = &probes[i];
        double left = ceil(1e3 * (self->deadline - now));
        if (left < wait)
            wait = left > 0 ? left : 0;
        if (self->answer_closed && wait > LOOK_SOON)
            wait = LOOK_SOON;
        files[2 * i] =
            (struct pollfd){ .fd =
                                 self->answer_closed ? -1 : self->child.answer,
                             .events = POLLIN };
        files[2 * i + 1] =
            (struct pollfd){ .fd =
                                 self->output_closed ? -1 : self->child.output,
                             .events = POLLIN };
    }
    if (poll(files, 2 * active, (int)wait) < 0)
        for (i = 0; i < 2 * active; i++)
            files[i].revents = 0;
}

void cg_probe(const cg_prober *prober, const char *const *paths,
              cg_verdict **verdicts, size_t count)
{
    probe probes[AT_ONCE_MAX];
    struct pollfd files[2 * AT_ONCE_MAX];
    size_t most = prober->at_once < AT_ONCE_MAX ? prober->at_once : AT_ONCE_MAX;
    size_t active = 0, next = 0, i;

    if (most == 0)
        most = 1;
    while (active > 0 || next < count) {
        while (active < most && next < count) {
            if (start(&probes[active], prober, paths[next], next,
                      &verdicts[next]))
                active++;
            next++;
        }
        if (active == 0)
            continue;
        await(probes, active, files);
        for (i = active; i-- > 0;) {
            attend(&probes[i], files[2 * i].revents, files[2 * i + 1].revents);
            if (probes[i].outcome == RUNNING)
                continue;
            finish(&probes[i], prober, &verdicts[probes[i].index]);
            probes[i] = probes[--active];
        }
    }
}
