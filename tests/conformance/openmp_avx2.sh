#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on the OpenMP plugin, at the avx2 level.
grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo || {
  echo "this CPU has no AVX2 with FMA"
  exit 77
}
exec ./cellgate-conform ${CONFORM_MODE:---quick} --set level=avx2 .libs/openmp.so
