# SPDX-License-Identifier: Apache-2.0
# CELLGATE_SIMDE: instructions of other processors, for tests of the NEON kernels.
AC_DEFUN([CELLGATE_SIMDE], [
  cellgate_have_simde=no
  AS_CASE([$host_cpu], [aarch64], [],
    [AC_CHECK_HEADER([simde/arm/neon.h], [cellgate_have_simde=yes])])
  AM_CONDITIONAL([HAVE_SIMDE], [test "x$cellgate_have_simde" = xyes])
])
