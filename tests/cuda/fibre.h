/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fibre.h: functions with stacks of their own that take turns, as the
 * sanitizers must be told of them. All code of the executor that several fibres
 * run through is QUIET: to ThreadSanitizer it is part of the machine.
 */
#ifndef TESTS_CUDA_FIBRE_H
#define TESTS_CUDA_FIBRE_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBRE_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define FIBRE_ASAN 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define FIBRE_TSAN 1
#endif
#ifdef __SANITIZE_ADDRESS__
#define FIBRE_ASAN 1
#endif

#ifdef FIBRE_TSAN
#define QUIET __attribute__((no_sanitize_thread))
#else
#define QUIET
#endif

typedef struct fibre fibre;

/* The stacks of `count` fibres; NULL without memory. */
fibre *fibres_create(size_t count);
void fibres_destroy(fibre *fibres);

/* Fibre number `at` begins: it will run body(argument), once. */
void fibre_begin(fibre *fibres, size_t at, void (*body)(void *),
                 void *argument);
/* What it left is dropped, finished or not. */
void fibre_end(fibre *fibres, size_t at);
/* Runs it until it yields or its body returns. */
void fibre_resume(fibre *fibres, size_t at);
/* Back to who resumed the fibre that runs. */
void fibre_yield(void);

/* Memory order, for ThreadSanitizer: what was done before a release of this
   place is seen after an acquire of it. */
void fibre_release(void *place);
void fibre_acquire(void *place);

#endif /* TESTS_CUDA_FIBRE_H */
