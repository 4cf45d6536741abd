/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/settings.h"

#include <sys/types.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

bool cg_privileged(void)
{
#if defined(__linux__)
    /* Also true for a program that gains capabilities from its file. */
    if (getauxval(AT_SECURE) != 0)
        return true;
#endif
    return getuid() != geteuid() || getgid() != getegid();
}
