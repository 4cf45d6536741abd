# SPDX-License-Identifier: Apache-2.0

# CELLGATE_LEVEL(NAME, host-cpu, flags, header)
# ---------------------------------------------
# Whether kernels for an instruction set can be compiled: sets the conditional
# LEVEL_NAME, and LEVEL_NAME_CFLAGS for that one convenience library.
AC_DEFUN([CELLGATE_LEVEL], [
  cellgate_level_$1=no
  AS_CASE([$host_cpu], [$2], [
    AC_MSG_CHECKING([whether $CC compiles $1 ($3)])
    cellgate_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $3"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <$4>]])],
      [cellgate_level_$1=yes])
    CFLAGS=$cellgate_saved_CFLAGS
    AC_MSG_RESULT([$cellgate_level_$1])
  ])
  AS_IF([test "x$cellgate_level_$1" = xyes], [
    AC_SUBST([LEVEL_$1_CFLAGS], ["$3"])
    AC_DEFINE([LEVEL_$1], [1], [Define to 1 if kernels for $1 are built])
    cellgate_levels="$cellgate_levels $1"
  ])
  AM_CONDITIONAL([LEVEL_$1], [test "x$cellgate_level_$1" = xyes])
])
