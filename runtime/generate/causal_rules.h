/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the kinds: how a node's outputs follow from the ids if its
   inputs do, or why a step at a time cannot compute it. */
#ifndef CELLGATE_RUNTIME_GENERATE_CAUSAL_RULES_H
#define CELLGATE_RUNTIME_GENERATE_CAUSAL_RULES_H

#include "runtime/generate/causal.h"

#define CG_TIME_AXIS 1

typedef struct cg_trace {
    const cellgate_model *model;
    cg_reach *reach;
} cg_trace;

/* Sets the reach of the node's outputs from that of its inputs. UNSUPPORTED as
   cg_causal_trace(). */
cellgate_status cg_causal_rule(const cg_trace *trace, const cg_node *node,
                               cellgate_error *error);

/* Of kinds that remember, or look at, other steps. */
cellgate_status cg_causal_rule_recurrent(const cg_trace *trace,
                                         const cg_node *node,
                                         cellgate_error *error);
cellgate_status cg_causal_rule_attention(const cg_trace *trace,
                                         const cg_node *node,
                                         cellgate_error *error);

/* ---- For rules ----------------------------------------------------------- */

/* Of an input that is absent: CG_APART. */
cg_reach cg_causal_reach(const cg_trace *trace, const cg_node *node,
                         size_t input);
const cg_value *cg_causal_input(const cg_trace *trace, const cg_node *node,
                                size_t input);
/* Of those outputs that are needed. */
void cg_causal_set(const cg_trace *trace, const cg_node *node, cg_reach reach);
/* UNSUPPORTED: the text, and what follows from it. */
CELLGATE_PRINTF_LIKE(3, 4)
cellgate_status cg_causal_refuse(const cg_node *node, cellgate_error *error,
                                 const char *format, ...);
/*
 * Those inputs that follow from the ids do so alike, and the others serve every
 * step: all outputs follow as they do. Axes match as those of a combination.
 */
cellgate_status cg_causal_rule_same(const cg_trace *trace, const cg_node *node,
                                    cellgate_error *error);

#endif
