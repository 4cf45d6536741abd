/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/config/settings.h"

#define NOBODY 65534

static void an_ordinary_process_is_not(void **state)
{
    (void)state;
    assert_false(cg_privileged());
}

/* In a child, since there is no way back: 1 privileged, 0 not, 2 not tried. */
static int in_child(int (*change)(void))
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(change() != 0 ? 2 : cg_privileged() ? 1 : 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int other_user(void)
{
    return seteuid(NOBODY);
}

static int other_group(void)
{
    return setegid(NOBODY);
}

static int nobody_at_all(void)
{
    return setgid(NOBODY) != 0 || setuid(NOBODY) != 0;
}

static void another_effective_user_or_group_is(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can change them */
    assert_int_equal(in_child(other_user), 1);
    assert_int_equal(in_child(other_group), 1);
    assert_int_equal(in_child(nobody_at_all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ordinary_process_is_not),
        cmocka_unit_test(another_effective_user_or_group_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
