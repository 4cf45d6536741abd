# SPDX-License-Identifier: Apache-2.0

# CELLGATE_WITH(name, purpose, check, [values = yes|no|auto])
# -----------------------------------------------------------
# Declares --with-NAME=yes|no|auto; `values` is what --help says where a macro
# takes more and has dealt with it before. `check` is shell that sets
# cellgate_have_NAME to yes, or leaves it at no and puts the reason into
# cellgate_why_NAME. An explicit yes fails when the check does. Sets the
# automake conditional HAVE_NAME, and defines HAVE_NAME in config.h.
AC_DEFUN([CELLGATE_WITH], [
  AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1=m4_default([$4], [yes|no|auto])], [$2 (default: auto)])],
    [AS_CASE([$withval], [yes|no|auto], [],
       [AC_MSG_ERROR([--with-$1 takes m4_default([$4], [yes|no|auto]), not "$withval"])])],
    [with_$1=auto])
  cellgate_have_$1=no
  cellgate_why_$1="switched off by --with-$1=no"
  AS_IF([test "x$with_$1" != xno], [
    cellgate_why_$1="not found"
    $3
  ])
  AS_IF([test "x$with_$1" = xyes && test "x$cellgate_have_$1" != xyes],
    [AC_MSG_ERROR([--with-$1=yes was given, but: $cellgate_why_$1])])
  AS_IF([test "x$cellgate_have_$1" = xyes],
    [AC_DEFINE(AS_TR_CPP([HAVE_$1]), [1], [Define to 1 with $1: $2])
     cellgate_why_$1=])
  AM_CONDITIONAL(AS_TR_CPP([HAVE_$1]), [test "x$cellgate_have_$1" = xyes])
])

# CELLGATE_REQUIRE(VARIABLE, module, debian package)
# --------------------------------------------------
# A library that the runtime cannot be without, through pkg-config.
AC_DEFUN([CELLGATE_REQUIRE], [
  PKG_CHECK_MODULES([$1], [$2], [],
    [AC_MSG_ERROR([$2 is required (on Debian: apt-get install $3)])])
])
