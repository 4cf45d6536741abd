/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults that faulty.la, the reference plugin compiled with -DWITH_FAULTS,
 * has on request: $FAULT names the one. They show that the suite can fail, and
 * in the right place. In reference.la they are constants of 0.
 *
 * X(NAME, group of the suite that must fail); check_faults.sh reads this list,
 * one a line.
 */
#ifndef TESTS_CONFORMANCE_FAULTS_H
#define TESTS_CONFORMANCE_FAULTS_H

#define FAULT_LIST(X)                                                          \
    X(ANY_VERSION, table)                                                      \
    X(NO_IDENTITY, devices)                                                    \
    X(SAME_NAME_TWICE, variants)                                               \
    X(NO_THREADS, variants)                                                    \
    X(NAME_NOT_LISTED, variants)                                               \
    X(IGNORES_NEW_FIELD, growth)                                               \
    X(IGNORES_NEW_RUN_FIELD, growth)                                           \
    X(REFUSES_LONGER_STRUCTS, growth)                                          \
    X(WRITES_BEYOND_VARIANT, growth)                                           \
    X(UNKNOWN_KIND_WITHOUT_REASON, growth)                                     \
    X(READS_BEYOND_SHAPE, growth)                                              \
    X(GATE_ORDER, shapes)                                                      \
    X(NO_BIAS, shapes)                                                         \
    X(TF32_CLAIMED_F32, shapes)                                                \
    X(REFUSES_A_SHAPE, shapes)                                                 \
    X(ALLOCATES_IN_RUN, shapes)                                                \
    X(REFUSES_RUNS_AND_OFFERS_THEM, shapes)                                    \
    X(LENGTHS_IGNORED, lengths)                                                \
    X(PADDING_TIMES_ZERO, lengths)                                             \
    X(LAST_IS_H, lengths)                                                      \
    X(NO_STEPS_NO_STATE, lengths)                                              \
    X(C0_IGNORED, lengths)                                                     \
    X(OVERWRITES_INPUT, lengths)                                               \
    X(WRITES_GAPS, layouts)                                                    \
    X(BATCH_MAJOR_ONLY, layouts)                                               \
    X(ALWAYS_WRITES_H, outputs)                                                \
    X(LAST_NOT_WRITTEN, outputs)                                               \
    X(FINALS_REQUIRED, outputs)                                                \
    X(REFUSES_WITHOUT_REASON, attributes)                                      \
    X(REFUSES_WITHOUT_TEXT, attributes)                                        \
    X(SIGMOID_RANGE, values)                                                   \
    X(TANH_OVERFLOWS, values)                                                  \
    X(NAN_SPREADS, nonfinite)                                                  \
    X(NAN_VANISHES, nonfinite)                                                 \
    X(READS_BEYOND, bounds)                                                    \
    X(STATE_NOT_CARRIED, pieces)                                               \
    X(REFUSES_ALL_ONCE_RUN, plans)                                             \
    X(STALE_STATE, plans)                                                      \
    X(NO_CAPACITY, plans)                                                      \
    X(SHARED_SCRATCH, threads)                                                 \
    X(SHARED_WEIGHTS, weights)                                                 \
    X(LEAK_OF_HOST_MEMORY, lifecycle)                                          \
    X(LEAK_OF_HEAP, lifecycle)

enum {
    FAULT_NONE,
#define FAULT_ENUM(name, group) FAULT_##name,
    FAULT_LIST(FAULT_ENUM)
#undef FAULT_ENUM
};

/* Whether this plugin has the fault now. */
#ifdef WITH_FAULTS
extern int fault_now;
#define HAS_FAULT(name) (fault_now == FAULT_##name)
#else
#define HAS_FAULT(name) 0
#endif

#endif
