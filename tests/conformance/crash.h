/* SPDX-License-Identifier: Apache-2.0 */
/* Says which case was running when the plugin crashed. */
#ifndef TESTS_CONFORMANCE_CRASH_H
#define TESTS_CONFORMANCE_CRASH_H

/* Installs the handlers; the previous ones run after the message. */
void crash_install(void);

/* What is running now; copied. */
void crash_context(const char *what, const char *variant);

#endif
