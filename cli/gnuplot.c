/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/gnuplot.h"

/* In single quotes nothing but the quote itself means anything. */
void cli_gnuplot_text(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputc('\'', to);
        fputc(*text, to);
    }
    fputc('\'', to);
}

static bool is_there(const char *program)
{
    const char *path = getenv("PATH");
    char full[4096];

    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");

        if (length > 0 &&
            snprintf(full, sizeof full, "%.*s/%s", (int)length, path, program) <
                (int)sizeof full &&
            access(full, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static const char *terminal_of(const char *path)
{
    const char *ending = strrchr(path, '.');

    if (ending != NULL && strcmp(ending, ".svg") == 0)
        return "set terminal svg size 900,600 font 'Helvetica,12'\n";
    if (ending != NULL && strcmp(ending, ".png") == 0)
        return "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) "
               "set terminal pngcairo size 900,600; "
               "else set terminal png size 900,600\n";
    return NULL;
}

/* Runs it on the script; its exit code, or what pclose() says. */
static int draw(const char *terminal, const char *output,
                cli_gnuplot_script script, const void *context)
{
    void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* it may end early */
    FILE *to = popen("gnuplot", "w");
    int ended = -1;

    if (to != NULL) {
        fputs(terminal, to);
        fputs("set output ", to);
        cli_gnuplot_text(to, output);
        fputc('\n', to);
        script(to, context);
        fputs("unset output\n", to);
        ended = pclose(to);
    }
    (void)signal(SIGPIPE, before);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : ended;
}

cellgate_status cli_gnuplot(const char *path, const char *option,
                            cli_gnuplot_script script, const void *context,
                            cellgate_error *error)
{
    const char *terminal = terminal_of(path);
    char output[4096];
    int ended;

    if (terminal == NULL)
        return cli_error(error, CELLGATE_INVALID,
                         "%s takes a name that ends in .png or .svg, not "
                         "\"%s\"",
                         option, path);
    if (!is_there("gnuplot"))
        return cli_error(error, CELLGATE_NOT_FOUND,
                         "%s needs gnuplot, which is not in PATH; without it, "
                         "--csv writes the same as numbers",
                         option);
    if (snprintf(output, sizeof output, "%s.part", path) >= (int)sizeof output)
        return cli_error(error, CELLGATE_INVALID, "%s: too long a name", path);
    ended = draw(terminal, output, script, context);
    if (ended != 0 || rename(output, path) != 0) {
        (void)unlink(output);
        return cli_error(error, CELLGATE_IO,
                         "%s: gnuplot did not draw it (exit code %d)", path,
                         ended);
    }
    return CELLGATE_OK;
}
