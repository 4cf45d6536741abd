/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a device is taken out of service, and when it is tried again. Pure:
 * whoever asks says what time it is.
 *
 * It is out after `failures` failed runs within `window` seconds, or when its
 * owner says so. It is tried again after `pause` seconds; each time that it is
 * taken out again, or fails its check, the pause doubles, up to `longest`. A
 * device that stayed in service for longer than its last pause begins anew.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_BREAKER_H
#define CELLGATE_RUNTIME_PLUGIN_BREAKER_H

#include <stdbool.h>

/* Failures that are remembered. */
#define CG_BREAKER_MOST 16

typedef struct cg_breaker {
    /* Set by the owner: */
    unsigned failures; /* at most CG_BREAKER_MOST; 0: however many */
    double window;
    double pause; /* 0: it is never tried again */
    double longest;
    /* Its own, zero at first: */
    double at[CG_BREAKER_MOST]; /* of the last failures, in a ring */
    unsigned count;             /* of all failures since it came back */
    double last;                /* pause; 0: it was never out */
    double back;                /* since when it is in service */
    bool out;
} cg_breaker;

/* A run failed. True: too many did. */
bool cg_breaker_failed(cg_breaker *breaker, double now);
/* It is out of service now, or still is after a check. Returns the pause, in
   seconds; infinite: for good. */
double cg_breaker_out(cg_breaker *breaker, double now);
/* It is in service again. */
void cg_breaker_back(cg_breaker *breaker, double now);

#endif
