# SPDX-License-Identifier: Apache-2.0
# CELLGATE_OPENMP: the CPU plugin's team of threads.
AC_DEFUN([CELLGATE_OPENMP], [
  AC_OPENMP
  CELLGATE_WITH([openmp], [build the OpenMP plugin for CPUs], [
    AS_IF([test "x$ac_cv_prog_c_openmp" = xunsupported],
      [cellgate_why_openmp="the compiler has no OpenMP (on Debian, for clang: apt-get install libomp-dev)"],
      [cellgate_have_openmp=yes])
  ])
])
