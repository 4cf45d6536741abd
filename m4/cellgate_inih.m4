# SPDX-License-Identifier: Apache-2.0
# CELLGATE_INIH: the INI parser.
AC_DEFUN([CELLGATE_INIH], [CELLGATE_REQUIRE([INIH], [inih], [libinih-dev])])
