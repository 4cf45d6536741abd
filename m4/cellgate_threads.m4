# SPDX-License-Identifier: Apache-2.0
# CELLGATE_THREADS: POSIX threads, dlopen and the mathematics library, wherever
# the C library keeps them.
AC_DEFUN([CELLGATE_THREADS], [
  cellgate_saved_LIBS=$LIBS
  LIBS=
  AC_SEARCH_LIBS([pthread_create], [pthread], [],
    [AC_MSG_ERROR([POSIX threads are required])])
  AC_SEARCH_LIBS([dlopen], [dl], [], [AC_MSG_ERROR([dlopen is required])])
  AC_SUBST([THREADS_LIBS], ["$LIBS"])
  LIBS=
  AC_SEARCH_LIBS([expm1f], [m], [], [AC_MSG_ERROR([expm1f is required])])
  AC_SUBST([MATH_LIBS], ["$LIBS"])
  LIBS=$cellgate_saved_LIBS
])
