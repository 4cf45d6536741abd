#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on the OpenMP plugin, at the avx512 level.
grep -qw avx512f /proc/cpuinfo || {
  echo "this CPU has no AVX-512"
  exit 77
}
exec ./cellgate-conform ${CONFORM_MODE:---quick} --set level=avx512 .libs/openmp.so
