# SPDX-License-Identifier: Apache-2.0
# CELLGATE_JANSSON: JSON.
AC_DEFUN([CELLGATE_JANSSON], [
  CELLGATE_REQUIRE([JANSSON], [jansson >= 2.11], [libjansson-dev])
])
