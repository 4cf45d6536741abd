# SPDX-License-Identifier: Apache-2.0
# CELLGATE_POPT: options of the command.
AC_DEFUN([CELLGATE_POPT], [CELLGATE_REQUIRE([POPT], [popt], [libpopt-dev])])
