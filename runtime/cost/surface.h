/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one candidate costs over all shapes, from what was measured at some.
 *
 * A cost has a form that hardware gives it: a launch, a part a row, a part a
 * step (the chain), and a part for each valid step of each row (the work). The
 * four are fitted to the measured points in relative terms, none of them
 * negative. What the form does not explain (tiles, caches, algorithms that
 * change) is the ratio of measured to fitted at each point; between points the
 * ratios are interpolated in log space, weighted by distance in octaves. At a
 * measured shape the measurement is the answer.
 *
 * More rows, steps or valid steps never cost less, so a prediction is kept
 * between the measured points that it dominates and those that dominate it,
 * where these do not contradict each other.
 *
 * Pure arithmetic. A surface is immutable once made: any thread may read it.
 */
#ifndef CELLGATE_RUNTIME_COST_SURFACE_H
#define CELLGATE_RUNTIME_COST_SURFACE_H

#include <stddef.h>

#include "runtime/cost/samples.h"

/* The shape of a request, as far as its cost depends on it. */
typedef struct cg_cost_shape {
    int64_t batch;
    int64_t steps;
    /* Share of the batch * steps that are valid, in [0, 1]; 1 without lengths
       or masks. */
    double fill;
} cg_cost_shape;

typedef struct cg_cost_point {
    cg_cost_shape shape;
    cg_summary summary;
    int64_t at; /* when it was measured, in seconds since 1970; 0: now */
} cg_cost_point;

/* Where an estimate comes from, from the best down. */
typedef enum cg_cost_kind {
    CG_COST_NONE,         /* nothing was measured */
    CG_COST_BORROWED,     /* from another structure */
    CG_COST_EXTRAPOLATED, /* beyond the measured shapes */
    CG_COST_INTERPOLATED, /* between them */
    CG_COST_EXACT         /* at one of them */
} cg_cost_kind;

typedef struct cg_cost {
    double seconds;
    double error; /* standard error of ln(seconds) */
    cg_cost_kind kind;
    uint32_t samples; /* at the shape itself, or at the nearest measured one */
    int64_t at; /* when that was measured, in seconds since 1970; 0: not known */
} cg_cost;

typedef struct cg_surface cg_surface;

/* "exact", "interpolated" ... */
const char *cg_cost_kind_name(cg_cost_kind kind);

/*
 * Fits `count` points; those without samples are left out. Points at the same
 * shape: the one with more samples counts. NULL: no memory. The caller destroys
 * the surface.
 */
cg_surface *cg_surface_create(const cg_cost_point *points, size_t count);
void cg_surface_destroy(cg_surface *surface); /* NULL is allowed */

/* Of no points, or of a NULL surface: NONE, with infinite seconds and error. */
void cg_surface_predict(const cg_surface *surface, const cg_cost_shape *shape,
                        cg_cost *cost);

/* Of the form at a shape, the shares of the launch, of the steps, and of what
   grows with the rows; they add up to 1. All is work where nothing is known. */
void cg_surface_shares(const cg_surface *surface, const cg_cost_shape *shape,
                       double *launch, double *steps, double *work);

/* Distance of two shapes, in octaves. */
double cg_cost_distance(const cg_cost_shape *a, const cg_cost_shape *b);

#endif
