/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/progress.h"

#define BAR 24
#define WIDEST 200
#define SHARES 1000

static double now(void)
{
    struct timespec time = { 0, 0 };

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* "2 s", "3:05 min", "4:10 h" */
static void time_text(char *text, size_t size, double seconds)
{
    const int64_t whole = (int64_t)(seconds + 0.5);

    if (whole < 60)
        snprintf(text, size, "%" PRId64 " s", whole);
    else if (whole < 3600)
        snprintf(text, size, "%" PRId64 ":%02" PRId64 " min", whole / 60,
                 whole % 60);
    else
        snprintf(text, size, "%" PRId64 ":%02" PRId64 " h", whole / 3600,
                 whole / 60 % 60);
}

static void bar_text(char bar[BAR + 1], double part)
{
    const int filled = (int)(part * BAR);

    for (int at = 0; at < BAR; at++)
        bar[at] = (char)(at < filled ? '=' : at == filled ? '>' : ' ');
    bar[BAR] = '\0';
}

void cli_progress_share_text(char *text, int width, double done, double seconds)
{
    char bar[BAR + 1], left[32], line[WIDEST + 1];

    bar_text(bar, done);
    snprintf(left, sizeof left, "?");
    if (done > 0)
        time_text(left, sizeof left, seconds * (1 - done) / done);
    snprintf(line, sizeof line, "[%s] %3d%%  %s left", bar, (int)(done * 100),
             left);
    snprintf(text, (size_t)(width < WIDEST ? width : WIDEST) + 1, "%s", line);
}

void cli_progress_text(char *text, int width, int64_t done, int64_t total,
                       double seconds)
{
    const double part = total > 0 ? (double)done / (double)total : 1;
    const double rate = seconds > 0 ? (double)done / seconds : 0;
    char bar[BAR + 1], left[32], line[WIDEST + 1];

    bar_text(bar, part);
    if (rate > 0)
        time_text(left, sizeof left, (double)(total - done) / rate);
    else
        snprintf(left, sizeof left, "?");
    snprintf(line, sizeof line,
             "[%s] %3d%%  %" PRId64 " of %" PRId64 " rows, %.3g rows/s, %s "
             "left",
             bar, (int)(part * 100), done, total, rate, left);
    snprintf(text, (size_t)(width < WIDEST ? width : WIDEST) + 1, "%s", line);
}

static int terminal_width(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
        return 79;
    return size.ws_col - 1 < WIDEST ? size.ws_col - 1 : WIDEST;
}

void cli_progress_begin(cli_progress *progress, int64_t total)
{
    progress->shown = isatty(STDERR_FILENO) != 0;
    progress->share = false;
    progress->total = total;
    progress->start = now();
    progress->drawn = 0;
}

void cli_progress_begin_share(cli_progress *progress)
{
    cli_progress_begin(progress, SHARES);
    progress->share = true;
}

void cli_progress_update_share(cli_progress *progress, double done)
{
    cli_progress_update(progress, (int64_t)(done * SHARES));
}

void cli_progress_update(cli_progress *progress, int64_t done)
{
    char text[WIDEST + 1];
    double time = now();

    if (!progress->shown || time - progress->drawn < 0.1)
        return;
    progress->drawn = time;
    if (progress->share)
        cli_progress_share_text(text, terminal_width(), (double)done / SHARES,
                                time - progress->start);
    else
        cli_progress_text(text, terminal_width(), done, progress->total,
                          time - progress->start);
    fprintf(stderr, "\r%s\033[K", text);
    fflush(stderr);
}

void cli_progress_end(cli_progress *progress)
{
    if (progress->shown && progress->drawn > 0)
        fputs("\r\033[K", stderr);
}
