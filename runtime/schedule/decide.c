/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdbool.h>

#include "runtime/schedule/decide.h"

/* 95% of a normal variable lies below this many standard deviations. */
#define ONE_SIDED 1.645

void cg_policy_init(cg_policy *policy)
{
    *policy = (cg_policy){ .objective = CG_LATENCY,
                           .expected_requests = 1,
                           .margin = 0.05 };
}

double cg_option_score(const cg_option *option, const cg_policy *policy)
{
    double once;

    if (option->excluded != NULL || option->cost.kind == CG_COST_NONE)
        return HUGE_VAL;
    once = option->once / fmax(policy->expected_requests, 1);
    if (policy->objective == CG_THROUGHPUT)
        return (option->cost.seconds + once) * option->share;
    return option->wait + option->cost.seconds + once;
}

/* The best of those that `without` is not among: measured ones first. */
static size_t best_of(const cg_option *options, size_t count, size_t without,
                      const cg_policy *policy)
{
    size_t best = CG_NO_OPTION;

    for (size_t i = 0; i < count; i++) {
        if (i == without || options[i].excluded != NULL)
            continue;
        if (best == CG_NO_OPTION || cg_option_score(&options[i], policy) <
                                        cg_option_score(&options[best], policy))
            best = i;
    }
    return best;
}

/* Of ln(a's score / b's score): only the runs are uncertain. */
static double noise(const cg_option *a, const cg_option *b,
                    const cg_policy *policy)
{
    double first = a->cost.error, second = b->cost.error;

    if (policy->objective == CG_LATENCY) {
        first *= a->cost.seconds / cg_option_score(a, policy);
        second *= b->cost.seconds / cg_option_score(b, policy);
    }
    return hypot(first, second);
}

/* ln of the gain that overturns a pin. */
static double needed(double error, const cg_policy *policy)
{
    return fmax(log1p(policy->margin), ONE_SIDED * error);
}

/* Whether a pin on `pinned` should go to `best`. */
static bool overturns(const cg_option *options, size_t pinned, size_t best,
                      const cg_policy *policy)
{
    const double now = cg_option_score(&options[pinned], policy);
    const double then = cg_option_score(&options[best], policy);

    if (isinf(now))
        return !isinf(then);
    return log(now / then) >
           needed(noise(&options[pinned], &options[best], policy), policy);
}

static void compare(const cg_option *options, size_t count,
                    const cg_policy *policy, cg_decision *decision)
{
    const cg_option *chosen = &options[decision->chosen], *rival;

    decision->score = cg_option_score(chosen, policy);
    decision->rival = best_of(options, count, decision->chosen, policy);
    if (decision->rival == CG_NO_OPTION)
        return;
    rival = &options[decision->rival];
    if (isinf(decision->score) || isinf(cg_option_score(rival, policy)))
        return;
    decision->ahead = cg_option_score(rival, policy) / decision->score;
    decision->error = noise(chosen, rival, policy);
    decision->needed = exp(needed(decision->error, policy));
}

void cg_decide(const cg_option *options, size_t count, size_t pinned,
               const cg_policy *policy, cg_decision *decision)
{
    const size_t best = best_of(options, count, CG_NO_OPTION, policy);
    const bool held = pinned < count && options[pinned].excluded == NULL;

    *decision = (cg_decision){ .chosen = best, .rival = CG_NO_OPTION };
    if (best == CG_NO_OPTION)
        return;
    decision->because = CG_BECAUSE_BEST;
    if (held && pinned != best && !overturns(options, pinned, best, policy)) {
        decision->chosen = pinned;
        decision->because = CG_BECAUSE_KEPT;
    }
    compare(options, count, policy, decision);
    if (isinf(decision->score))
        decision->because = CG_BECAUSE_UNKNOWN;
    if (decision->rival == CG_NO_OPTION)
        decision->because = CG_BECAUSE_ONLY;
}
