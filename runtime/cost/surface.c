/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cost/fit.h"
#include "runtime/cost/kriging.h"
#include "runtime/cost/surface.h"

/* The least that a prediction between points may claim to be off by. */
#define LEAST_ERROR 0.02

struct cg_surface {
    double form[CG_FIT_UNKNOWNS]; /* launch, a row, a step, a valid step */
    cg_kriging *ratios;           /* ln(measured / form) between the points */
    size_t count;
    cg_cost_point points[];
};

const char *cg_cost_kind_name(cg_cost_kind kind)
{
    static const char *const names[] = { "none", "borrowed", "extrapolated",
                                         "interpolated", "exact" };

    return names[kind];
}

/* ---- Shapes ------------------------------------------------------------- */

static double octaves(int64_t n)
{
    return log2((double)(n > 0 ? n : 1));
}

/* In octaves; a fill of a half is one off a fill of one. */
static void place(const cg_cost_shape *shape, double at[CG_KRIGING_AXES])
{
    at[0] = octaves(shape->batch);
    at[1] = octaves(shape->steps);
    at[2] = 2 * shape->fill;
}

double cg_cost_distance(const cg_cost_shape *a, const cg_cost_shape *b)
{
    double from[CG_KRIGING_AXES], to[CG_KRIGING_AXES], sum = 0;

    place(a, from);
    place(b, to);
    for (int axis = 0; axis < CG_KRIGING_AXES; axis++)
        sum += (from[axis] - to[axis]) * (from[axis] - to[axis]);
    return sqrt(sum);
}

static void terms(const cg_cost_shape *shape, double of[CG_FIT_UNKNOWNS])
{
    const double batch = (double)shape->batch, steps = (double)shape->steps;

    of[0] = 1;
    of[1] = batch;
    of[2] = steps;
    of[3] = batch * steps * shape->fill;
}

static double form_at(const cg_surface *surface, const cg_cost_shape *shape)
{
    double of[CG_FIT_UNKNOWNS], sum = 0;

    terms(shape, of);
    for (int k = 0; k < CG_FIT_UNKNOWNS; k++)
        sum += surface->form[k] * of[k];
    return sum;
}

void cg_surface_shares(const cg_surface *surface, const cg_cost_shape *shape,
                       double *launch, double *steps, double *work)
{
    const double all = surface != NULL ? form_at(surface, shape) : 0;
    double of[CG_FIT_UNKNOWNS];

    *launch = *steps = 0;
    *work = 1;
    if (!(all > 0))
        return;
    terms(shape, of);
    *launch = surface->form[0] * of[0] / all;
    *steps = surface->form[2] * of[2] / all;
    *work = 1 - *launch - *steps;
}

/* ---- Making -------------------------------------------------------------- */

static bool same_shape(const cg_cost_shape *a, const cg_cost_shape *b)
{
    return a->batch == b->batch && a->steps == b->steps &&
           fabs(a->fill - b->fill) < 1e-3;
}

static void take(cg_surface *surface, const cg_cost_point *of)
{
    if (of->summary.count == 0 || !(of->summary.median > 0))
        return;
    for (size_t i = 0; i < surface->count; i++) {
        cg_cost_point *known = &surface->points[i];

        if (!same_shape(&known->shape, &of->shape))
            continue;
        if (of->summary.count > known->summary.count)
            *known = *of;
        return;
    }
    surface->points[surface->count++] = *of;
}

static int by_count(const void *a, const void *b)
{
    const uint32_t x = ((const cg_cost_point *)a)->summary.count;
    const uint32_t y = ((const cg_cost_point *)b)->summary.count;

    return (x < y) - (x > y);
}

/* Of more points than can be joined, those that are known best. */
static void limit(cg_surface *surface)
{
    if (surface->count <= CG_KRIGING_MOST)
        return;
    qsort(surface->points, surface->count, sizeof *surface->points, by_count);
    surface->count = CG_KRIGING_MOST;
}

static bool fit_form(cg_surface *surface)
{
    double(*rows)[CG_FIT_UNKNOWNS] = calloc(surface->count + 1, sizeof *rows);

    if (rows == NULL)
        return false;
    for (size_t i = 0; i < surface->count; i++) {
        const cg_cost_point *of = &surface->points[i];

        terms(&of->shape, rows[i]);
        for (int k = 0; k < CG_FIT_UNKNOWNS; k++)
            rows[i][k] /= of->summary.median;
    }
    cg_fit((const double(*)[CG_FIT_UNKNOWNS])rows, surface->count,
           surface->form);
    free(rows);
    return true;
}

static bool join_points(cg_surface *surface)
{
    double(*places)[CG_KRIGING_AXES] =
        calloc(surface->count + 1, sizeof *places);
    double *ratios = calloc(surface->count + 1, sizeof *ratios);
    double *errors = calloc(surface->count + 1, sizeof *errors);

    if (places != NULL && ratios != NULL && errors != NULL) {
        for (size_t i = 0; i < surface->count; i++) {
            const cg_cost_point *of = &surface->points[i];

            place(&of->shape, places[i]);
            ratios[i] = log(of->summary.median / form_at(surface, &of->shape));
            errors[i] = of->summary.error;
        }
        surface->ratios =
            cg_kriging_create((const double(*)[CG_KRIGING_AXES])places, ratios,
                              errors, surface->count);
    }
    free(places);
    free(ratios);
    free(errors);
    return surface->ratios != NULL;
}

cg_surface *cg_surface_create(const cg_cost_point *points, size_t count)
{
    cg_surface *surface;

    if (count > (SIZE_MAX - sizeof *surface) / sizeof(cg_cost_point))
        return NULL;
    surface = calloc(1, sizeof *surface + count * sizeof(cg_cost_point));
    if (surface == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        take(surface, &points[i]);
    limit(surface);
    if (!fit_form(surface) || !join_points(surface)) {
        cg_surface_destroy(surface);
        return NULL;
    }
    return surface;
}

void cg_surface_destroy(cg_surface *surface)
{
    if (surface == NULL)
        return;
    cg_kriging_destroy(surface->ratios);
    free(surface);
}

/* ---- Predicting ---------------------------------------------------------- */

static bool at_most(const cg_cost_shape *a, const cg_cost_shape *b)
{
    return a->batch <= b->batch && a->steps <= b->steps && a->fill <= b->fill;
}

/* Bounds from the points that a shape lies between. */
static void bounds(const cg_surface *surface, const cg_cost_shape *shape,
                   double *low, double *high)
{
    *low = 0;
    *high = HUGE_VAL;
    for (size_t i = 0; i < surface->count; i++) {
        const cg_cost_point *of = &surface->points[i];

        if (at_most(&of->shape, shape) && of->summary.median > *low)
            *low = of->summary.median;
        if (at_most(shape, &of->shape) && of->summary.median < *high)
            *high = of->summary.median;
    }
}

/* A range of measured extents, and whether a wanted one lies in it. */
typedef struct range {
    bool below, above;
} range;

static void extend(range *of, double measured, double wanted)
{
    of->below |= measured <= wanted;
    of->above |= measured >= wanted;
}

/* Whether a shape lies between measured ones on every axis. */
static bool enclosed(const cg_surface *surface, const cg_cost_shape *shape)
{
    range batch = { 0 }, steps = { 0 }, fill = { 0 };

    for (size_t i = 0; i < surface->count; i++) {
        const cg_cost_shape *of = &surface->points[i].shape;

        extend(&batch, (double)of->batch, (double)shape->batch);
        extend(&steps, (double)of->steps, (double)shape->steps);
        extend(&fill, of->fill, shape->fill);
    }
    return batch.below && batch.above && steps.below && steps.above &&
           fill.below && fill.above;
}

static const cg_cost_point *find(const cg_surface *surface,
                                 const cg_cost_shape *shape,
                                 const cg_cost_point **nearest)
{
    double least = HUGE_VAL;

    *nearest = NULL;
    for (size_t i = 0; i < surface->count; i++) {
        const cg_cost_point *at = &surface->points[i];
        const double distance = cg_cost_distance(shape, &at->shape);

        if (same_shape(&at->shape, shape))
            return at;
        if (distance < least) {
            least = distance;
            *nearest = at;
        }
    }
    return NULL;
}

static void interpolate(const cg_surface *surface, const cg_cost_shape *shape,
                        const cg_cost_point *nearest, cg_cost *cost)
{
    double at[CG_KRIGING_AXES], ratio, error, low, high;

    place(shape, at);
    cg_kriging_at(surface->ratios, at, &ratio, &error);
    cost->seconds = form_at(surface, shape) * exp(ratio);
    bounds(surface, shape, &low, &high);
    if (low <= high)
        cost->seconds = fmin(fmax(cost->seconds, low), high);
    cost->kind =
        enclosed(surface, shape) ? CG_COST_INTERPOLATED : CG_COST_EXTRAPOLATED;
    cost->error = hypot(fmax(error, LEAST_ERROR), nearest->summary.error);
    cost->samples = nearest->summary.count;
    cost->at = nearest->at;
}

void cg_surface_predict(const cg_surface *surface, const cg_cost_shape *shape,
                        cg_cost *cost)
{
    const cg_cost_point *nearest, *at;

    *cost = (cg_cost){ .seconds = HUGE_VAL, .error = HUGE_VAL };
    if (surface == NULL || surface->count == 0)
        return;
    at = find(surface, shape, &nearest);
    if (at == NULL) {
        interpolate(surface, shape, nearest, cost);
        return;
    }
    cost->seconds = at->summary.median;
    cost->error = at->summary.error;
    cost->kind = CG_COST_EXACT;
    cost->samples = at->summary.count;
    cost->at = at->at;
}
