/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cellgate/plugin.h"
#include "runtime/cost/work.h"

/* The least that an estimate from another structure may claim to be off by. */
#define LEAST_ERROR 0.5
/* Of a function of one number, roughly. */
#define FUNCTION 8.0

/* ---- Reading ------------------------------------------------------------ */

/* What is read, and where its end stands: how many numbers come out of the last
   op, and whether there is one set of them a step. */
typedef struct reading {
    cg_work *work;
    double width;
    bool steps;
} reading;

static void add_operations(reading *of, double operations)
{
    if (of->steps)
        of->work->step_operations += operations;
    else
        of->work->row_operations += operations;
}

/* The number behind " KEY" in the text of an op; `missing` where there is
   none. */
static int64_t number_after(const char *op, const char *key, int64_t missing)
{
    for (const char *at = strstr(op, key); at != NULL; at = strstr(at + 1, key))
        if (isdigit((unsigned char)at[strlen(key)]))
            return strtoll(at + strlen(key), NULL, 10);
    return missing;
}

static bool read_lstm(reading *of, const char *op)
{
    const int64_t directions = number_after(op, " d", 0);
    const int64_t outputs = number_after(op, " o", 0);
    int64_t input, hidden, out;

    if (sscanf(op, "lstm %" SCNd64 " %" SCNd64, &input, &hidden) != 2 ||
        directions < 1 || outputs == 0)
        return false;
    out = number_after(op, " p", hidden);
    add_operations(of, (double)directions * 8 * (double)hidden *
                           (double)(input + out));
    if (out != hidden)
        add_operations(of,
                       (double)directions * 2 * (double)hidden * (double)out);
    of->width = (double)(directions * out);
    of->steps = of->steps && (outputs & CELLGATE_LSTM_SEQUENCE) != 0;
    of->work->recurrences++;
    return true;
}

static bool read_op(reading *of, const char *op)
{
    int64_t first, second;

    if (strncmp(op, "lstm ", 5) == 0)
        return read_lstm(of, op);
    if (sscanf(op, "dense %" SCNd64 " %" SCNd64, &first, &second) == 2) {
        add_operations(of, 2 * (double)first * (double)second);
        of->width = (double)second;
        return true;
    }
    if (sscanf(op, "embedding %" SCNd64 " %" SCNd64, &first, &second) == 2) {
        add_operations(of, (double)second);
        of->width = (double)second;
        return true;
    }
    if (sscanf(op, "activation %" SCNd64, &first) == 1 ||
        sscanf(op, "softmax %" SCNd64, &first) == 1) {
        add_operations(of, FUNCTION * (double)first);
        of->width = (double)first;
        return true;
    }
    return false;
}

/* Numbers that go in a step: the first op's; an id is one. */
static double input_width(const char *op)
{
    const char *number = strchr(op, ' ');

    if (number == NULL || strncmp(op, "embedding", 9) == 0)
        return 1;
    return strtod(number, NULL);
}

bool cg_work_read(const char *structure, cg_work *work)
{
    cg_work found = { .rows = strncmp(structure, "rows; ", 6) == 0 };
    reading of = { .work = &found, .steps = true };
    const char *op = structure + (found.rows ? 6 : 0);

    found.step_numbers = input_width(op);
    for (; op != NULL; op = strstr(op, "; ")) {
        char text[256];

        op += op[0] == ';' ? 2 : 0;
        snprintf(text, sizeof text, "%.*s", (int)strcspn(op, ";"), op);
        if (!read_op(&of, text))
            return false;
    }
    if (of.steps)
        found.step_numbers += of.width;
    else
        found.row_numbers += of.width;
    *work = found;
    return true;
}

/* ---- Borrowing ---------------------------------------------------------- */

double cg_work_ratio(const cg_work *of, const cg_work *to,
                     const cg_cost_shape *shape)
{
    const double steps = (double)shape->steps * shape->fill;
    const double operations =
        (to->step_operations * steps + to->row_operations) /
        (of->step_operations * steps + of->row_operations);
    const double numbers = (to->step_numbers * steps + to->row_numbers) /
                           (of->step_numbers * steps + of->row_numbers);

    if (of->rows != to->rows || (of->recurrences > 0) != (to->recurrences > 0))
        return 0;
    return isfinite(operations) && isfinite(numbers)
               ? sqrt(operations * numbers)
               : 0;
}

void cg_cost_borrow(const cg_surface *lender, const cg_work *of,
                    const cg_work *to, const cg_cost_shape *shape,
                    cg_cost *cost)
{
    const double ratio = cg_work_ratio(of, to, shape);
    double launch, steps, work;

    cg_surface_predict(ratio > 0 ? lender : NULL, shape, cost);
    if (cost->kind == CG_COST_NONE)
        return;
    cg_surface_shares(lender, shape, &launch, &steps, &work);
    cost->seconds *= launch + steps * sqrt(ratio) + work * ratio;
    cost->error = hypot(cost->error, LEAST_ERROR + fabs(log(ratio)) / 2);
    cost->seconds *= exp(cost->error);
    cost->kind = CG_COST_BORROWED;
}
