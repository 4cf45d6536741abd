# SPDX-License-Identifier: Apache-2.0
# CELLGATE_CMOCKA: unit tests.
AC_DEFUN([CELLGATE_CMOCKA], [
  CELLGATE_WITH([cmocka], [build the unit tests], [
    PKG_CHECK_MODULES([CMOCKA], [cmocka], [cellgate_have_cmocka=yes],
      [cellgate_why_cmocka="cmocka was not found (on Debian: apt-get install libcmocka-dev)"])
  ])
])
