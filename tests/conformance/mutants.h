/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults that can be compiled into the reference plugin, to show that the
 * suite finds each of them: -DMUTANT=MUTANT_NAME. X(NAME, group that must fail)
 * Read by check_mutants.sh too: one a line.
 */
#ifndef TESTS_CONFORMANCE_MUTANTS_H
#define TESTS_CONFORMANCE_MUTANTS_H

#define MUTANT_LIST(X)                                                         \
    X(NONE, none)                                                              \
    X(GATE_ORDER, shapes)

enum {
#define MUTANT_ENUM(name, group) MUTANT_##name,
    MUTANT_LIST(MUTANT_ENUM)
#undef MUTANT_ENUM
};

#ifndef MUTANT
#define MUTANT MUTANT_NONE
#endif

/* Whether this build has the fault. */
#define HAS_FAULT(name) (MUTANT == MUTANT_##name)

#endif
