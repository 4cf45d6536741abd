#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
level=avx2 flags="avx2 fma"
. "${srcdir:-.}/tests/conformance/openmp_level.sh"
