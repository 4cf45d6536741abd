# SPDX-License-Identifier: Apache-2.0
# CELLGATE_SQLITE: the calibration store.
AC_DEFUN([CELLGATE_SQLITE], [
  CELLGATE_REQUIRE([SQLITE], [sqlite3 >= 3.35], [libsqlite3-dev])
])
