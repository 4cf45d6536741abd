# SPDX-License-Identifier: Apache-2.0
# CELLGATE_LIBZIP: .keras and .npz archives.
AC_DEFUN([CELLGATE_LIBZIP], [
  CELLGATE_REQUIRE([LIBZIP], [libzip >= 1.5], [libzip-dev])
])
