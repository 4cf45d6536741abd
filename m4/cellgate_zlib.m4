# SPDX-License-Identifier: Apache-2.0
# CELLGATE_ZLIB: deflated data in HDF5 files.
AC_DEFUN([CELLGATE_ZLIB], [
  CELLGATE_REQUIRE([ZLIB], [zlib], [zlib1g-dev])
])
