/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The [pin NAME] sections that a session follows: requests of some shapes go to
 * a device whatever it costs. Made when the session is created, so that a
 * device that cannot be used is known at once; immutable then, but for
 * placements, which are made again when their device was opened anew.
 */
#ifndef CELLGATE_RUNTIME_SESSION_RULES_H
#define CELLGATE_RUNTIME_SESSION_RULES_H

#include "runtime/session/placement.h"

struct cellgate_session;

typedef struct cg_rule {
    const cg_pin_section *section; /* the configuration's */
    _Atomic(cg_placement *) placement;
} cg_rule;

typedef struct cg_rules {
    cg_rule *of; /* in the order of the file */
    size_t count;
} cg_rules;

/*
 * Those whose pattern fits the name of the model's file. NOT_FOUND: there is no
 * such device or variant; else what keeps the device from running the model.
 * The session's candidates are listed.
 */
cellgate_status cg_rules_init(cg_rules *rules, struct cellgate_session *session,
                              cellgate_error *error);
/* Whether all of it could be freed, as cg_placement_destroy(). */
bool cg_rules_finish(cg_rules *rules);

/* The first rule for requests of that shape; NULL: none. `steps` 0: the model
   has none. */
cg_rule *cg_rules_find(const cg_rules *rules, int64_t batch, int64_t steps);
/* Where it sends a request. Any thread; the session's mutex is not held. */
cellgate_status cg_rule_placement(cg_rule *rule,
                                  struct cellgate_session *session,
                                  cg_placement **placement,
                                  cellgate_error *error);
/* The same for who holds it. */
cellgate_status cg_rule_placement_held(cg_rule *rule,
                                       struct cellgate_session *session,
                                       cg_placement **placement,
                                       cellgate_error *error);
/* Retires placements on the engine. */
void cg_rules_retire(const cg_rules *rules, const cg_engine *engine);

#endif
