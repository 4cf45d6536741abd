# SPDX-License-Identifier: Apache-2.0
# CELLGATE_XXHASH: fingerprints of models.
AC_DEFUN([CELLGATE_XXHASH], [
  CELLGATE_REQUIRE([XXHASH], [libxxhash >= 0.8], [libxxhash-dev])
])
