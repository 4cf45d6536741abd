# SPDX-License-Identifier: Apache-2.0

# CELLGATE_WARNINGS
# -----------------
# WARN_CFLAGS: the warnings that both gcc and clang know. --enable-werror makes
# them errors. VISIBILITY_CFLAGS hides every symbol that no export map names.
AC_DEFUN([CELLGATE_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [make compiler warnings errors])])
  WARN_CFLAGS="-Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla -Wformat=2 -Wundef"
  AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
  AC_SUBST([WARN_CFLAGS])
  AC_SUBST([VISIBILITY_CFLAGS], [-fvisibility=hidden])
])
