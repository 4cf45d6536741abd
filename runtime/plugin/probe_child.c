/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/probe_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_FILE 3 /* in the helper */

extern char **environ;

/* Hard to hit by chance; a plugin that wants to cheat has better ways. */
static void make_token(char token[CG_PROBE_TOKEN_LENGTH + 1])
{
    unsigned char bytes[CG_PROBE_TOKEN_LENGTH / 2];
    size_t i;

    if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != sizeof bytes) {
        struct timespec now;
        uint64_t seed;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        seed = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^
               (uint64_t)getpid();
        for (i = 0; i < sizeof bytes; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            bytes[i] = (unsigned char)(seed >> 56);
        }
    }
    for (i = 0; i < sizeof bytes; i++)
        (void)snprintf(token + 2 * i, 3, "%02x", bytes[i]);
}

/*
 * A pipe whose ends are above the numbers that the helper uses, so that moving
 * one into place never hits the other, and closed on exec.
 */
static int make_pipe(int ends[2])
{
    int low[2];
    int problem = 0;
    int i;

    if (pipe2(low, O_CLOEXEC) != 0)
        return errno;
    for (i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, ANSWER_FILE + 1);
        if (ends[i] < 0)
            problem = errno;
    }
    (void)close(low[0]);
    (void)close(low[1]);
    if (problem == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
        problem = errno;
    for (i = 0; problem != 0 && i < 2; i++)
        if (ends[i] >= 0)
            (void)close(ends[i]);
    return problem;
}

static int spawn(cg_probe_child *child, const char *helper, char *const argv[],
                 int answer, int output)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int problem;

    problem = posix_spawn_file_actions_init(&actions);
    if (problem != 0)
        return problem;
    problem = posix_spawnattr_init(&attributes);
    if (problem != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return problem;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGKILL);
    (void)sigdelset(&all, SIGSTOP);
    if ((problem = posix_spawnattr_setflags(
             &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                              POSIX_SPAWN_SETSIGDEF)) == 0 &&
        (problem = posix_spawnattr_setpgroup(&attributes, 0)) == 0 &&
        (problem = posix_spawnattr_setsigmask(&attributes, &none)) == 0 &&
        (problem = posix_spawnattr_setsigdefault(&attributes, &all)) == 0 &&
        (problem = posix_spawn_file_actions_addopen(
             &actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)) == 0 &&
        (problem = posix_spawn_file_actions_adddup2(&actions, output,
                                                    STDOUT_FILENO)) == 0 &&
        (problem = posix_spawn_file_actions_adddup2(&actions, output,
                                                    STDERR_FILENO)) == 0 &&
        (problem = posix_spawn_file_actions_adddup2(&actions, answer,
                                                    ANSWER_FILE)) == 0)
        problem = posix_spawn(&child->pid, helper, &actions, &attributes, argv,
                              environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return problem;
}

int cg_probe_child_start(cg_probe_child *child, const char *helper,
                         uint32_t thread_budget, const char *path)
{
    char file[16], threads[16];
    char *argv[6];
    int answer[2], output[2];
    int problem;

    memset(child, 0, sizeof *child);
    child->exit_status = -1;
    make_token(child->token);
    (void)snprintf(file, sizeof file, "%d", ANSWER_FILE);
    (void)snprintf(threads, sizeof threads, "%u", thread_budget);
    argv[0] = (char *)helper;
    argv[1] = child->token;
    argv[2] = file;
    argv[3] = threads;
    argv[4] = (char *)path;
    argv[5] = NULL;

    problem = make_pipe(answer);
    if (problem != 0)
        return problem;
    problem = make_pipe(output);
    if (problem != 0) {
        (void)close(answer[0]);
        (void)close(answer[1]);
        return problem;
    }
    problem = spawn(child, helper, argv, answer[1], output[1]);
    (void)close(answer[1]);
    (void)close(output[1]);
    if (problem != 0) {
        (void)close(answer[0]);
        (void)close(output[0]);
        return problem;
    }
    child->answer = answer[0];
    child->output = output[0];
    return 0;
}

bool cg_probe_child_ended(cg_probe_child *child)
{
    siginfo_t info;
    int result;

    if (child->ended)
        return true;
    /* Left as it is: its number, and its group's, stay taken until finish(). */
    memset(&info, 0, sizeof info);
    do
        result =
            waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    while (result != 0 && errno == EINTR);
    if (result == 0 && info.si_pid == 0)
        return false;
    child->ended = true;
    if (result != 0)
        return true; /* the application ignores or reaps its children */
    if (info.si_code == CLD_EXITED)
        child->exit_status = info.si_status;
    else
        child->signal = info.si_status;
    return true;
}

void cg_probe_child_finish(cg_probe_child *child)
{
    const struct timespec pause = { 0, 1000000 };
    bool seen = !cg_probe_child_ended(child) || child->exit_status >= 0 ||
                child->signal != 0;
    int left = 1000;

    /* A number that somebody else reaped may be a stranger's by now. */
    if (seen)
        (void)kill(-child->pid, SIGKILL);
    while (seen && left-- > 0 && waitpid(child->pid, NULL, WNOHANG) == 0)
        (void)nanosleep(&pause, NULL);
    (void)close(child->answer);
    (void)close(child->output);
}
