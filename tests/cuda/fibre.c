/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/cuda/fibre.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#ifdef FIBRE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBRE_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *place);
void __tsan_release(void *place);
#define WITHOUT_ORDER 1u /* a switch does not order memory */
#endif

#define STACK_SIZE ((size_t)128 << 10)

#if defined(__x86_64__)
typedef void *context; /* the stack pointer */

/* Saves what a function must keep, leaves its stack for another, and goes on
   there as that one's call returns. */
void fibre_switch(context *from, context to);
__asm__(".text\n"
        ".globl fibre_switch\n"
        ".hidden fibre_switch\n"
        ".type fibre_switch, @function\n"
        "fibre_switch:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n"
        ".size fibre_switch, . - fibre_switch\n");
#define SWITCH(from, to) fibre_switch(&(from), (to))
#else
typedef ucontext_t context;
#define SWITCH(from, to) ((void)swapcontext(&(from), &(to)))
#endif

struct fibre {
    context here;
    unsigned char *stack;
    void (*body)(void *);
    void *argument;
#ifdef FIBRE_ASAN
    void *fake_stack;
#endif
#ifdef FIBRE_TSAN
    void *thread;
#endif
};

/* Who resumes fibres: the one thread that runs launches. */
static context resumer;
static fibre *running;
#ifdef FIBRE_ASAN
static void *resumer_fake_stack;
static const void *resumer_stack;
static size_t resumer_size;
#endif
#ifdef FIBRE_TSAN
static void *resumer_thread;
#endif

/* Inline: to ThreadSanitizer, whoever enters a function must leave it. */
__attribute__((always_inline)) QUIET static inline void
begin_switch(const fibre *to, int finished)
{
#ifdef FIBRE_ASAN
    if (to)
        __sanitizer_start_switch_fiber(&resumer_fake_stack, to->stack,
                                       STACK_SIZE);
    else
        __sanitizer_start_switch_fiber(finished ? NULL : &running->fake_stack,
                                       resumer_stack, resumer_size);
#endif
#ifdef FIBRE_TSAN
    __tsan_switch_to_fiber(to ? to->thread : resumer_thread, WITHOUT_ORDER);
#endif
    (void)to;
    (void)finished;
}

/* On the fibre's stack, for its first and for every other time. */
__attribute__((always_inline)) QUIET static inline void arrived(void)
{
#ifdef FIBRE_ASAN
    __sanitizer_finish_switch_fiber(running->fake_stack, &resumer_stack,
                                    &resumer_size);
#endif
}

QUIET static void entry(void)
{
    arrived();
    running->body(running->argument);
    begin_switch(NULL, 1);
    SWITCH(running->here, resumer);
    abort(); /* nobody resumes what has finished */
}

#if defined(__x86_64__)
static void context_init(fibre *f)
{
    uintptr_t *top = (uintptr_t *)(void *)(f->stack + STACK_SIZE);

    /* As if it had been called: the place to return to, and below it what
       fibre_switch() takes off. */
    *--top = 0;
    *--top = (uintptr_t)entry;
    for (int i = 0; i < 6; i++)
        *--top = 0;
    f->here = top;
}
#else
static void context_init(fibre *f)
{
    (void)getcontext(&f->here);
    f->here.uc_stack.ss_sp = f->stack;
    f->here.uc_stack.ss_size = STACK_SIZE;
    f->here.uc_link = NULL;
    makecontext(&f->here, entry, 0);
}
#endif

/* One more than asked for: it has the whole of the stacks, and their number. */
fibre *fibres_create(size_t count)
{
    fibre *fibres = calloc(count + 1, sizeof *fibres);
    void *stacks;

    if (!fibres)
        return NULL;
    stacks = mmap(NULL, count * STACK_SIZE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
        free(fibres);
        return NULL;
    }
    fibres[0].argument = stacks;
    fibres[0].stack = stacks;
    fibres++;
    for (size_t i = 0; i < count; i++)
        fibres[i].stack = (unsigned char *)stacks + i * STACK_SIZE;
    fibres[-1].stack += count * STACK_SIZE;
    return fibres;
}

void fibres_destroy(fibre *fibres)
{
    if (!fibres)
        return;
    fibres--;
    (void)munmap(
        fibres[0].argument,
        (size_t)(fibres[0].stack - (unsigned char *)fibres[0].argument));
    free(fibres);
}

void fibre_begin(fibre *fibres, size_t at, void (*body)(void *), void *argument)
{
    fibre *f = &fibres[at];

    f->body = body;
    f->argument = argument;
#ifdef FIBRE_ASAN
    ASAN_UNPOISON_MEMORY_REGION(f->stack, STACK_SIZE);
    f->fake_stack = NULL;
#endif
#ifdef FIBRE_TSAN
    /* Forgets who used this stack before. */
    if (mmap(f->stack, STACK_SIZE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
        abort();
#endif
    context_init(f);
#ifdef FIBRE_TSAN
    /* After all of that: it sees what was done before. */
    f->thread = __tsan_create_fiber(0);
#endif
}

void fibre_end(fibre *fibres, size_t at)
{
#ifdef FIBRE_TSAN
    __tsan_destroy_fiber(fibres[at].thread);
#endif
    (void)fibres;
    (void)at;
}

QUIET void fibre_resume(fibre *fibres, size_t at)
{
    running = &fibres[at];
#ifdef FIBRE_TSAN
    resumer_thread = __tsan_get_current_fiber();
#endif
    begin_switch(running, 0);
    SWITCH(resumer, running->here);
#ifdef FIBRE_ASAN
    __sanitizer_finish_switch_fiber(resumer_fake_stack, NULL, NULL);
#endif
}

QUIET void fibre_yield(void)
{
    begin_switch(NULL, 0);
    SWITCH(running->here, resumer);
    arrived();
}

QUIET void fibre_release(void *place)
{
#ifdef FIBRE_TSAN
    __tsan_release(place);
#endif
    (void)place;
}

QUIET void fibre_acquire(void *place)
{
#ifdef FIBRE_TSAN
    __tsan_acquire(place);
#endif
    (void)place;
}
