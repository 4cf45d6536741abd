/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/breaker.h"

#include <math.h>

bool cg_breaker_failed(cg_breaker *breaker, double now)
{
    const unsigned most = breaker->failures;

    if (most == 0)
        return false;
    breaker->at[breaker->count++ % most] = now;
    /* The next in the ring is the oldest. */
    return breaker->count >= most &&
           now - breaker->at[breaker->count % most] <= breaker->window;
}

double cg_breaker_out(cg_breaker *breaker, double now)
{
    const bool anew = breaker->last <= 0 ||
                      (!breaker->out && now - breaker->back > breaker->last);

    breaker->count = 0;
    breaker->out = true;
    if (!(breaker->pause > 0))
        return HUGE_VAL;
    breaker->last =
        anew ? breaker->pause
             : fmax(fmin(2 * breaker->last, breaker->longest), breaker->pause);
    return breaker->last;
}

void cg_breaker_back(cg_breaker *breaker, double now)
{
    breaker->out = false;
    breaker->count = 0;
    breaker->back = now;
}
