#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
level=avx512 flags="avx512f avx512dq"
. "${srcdir:-.}/tests/conformance/openmp_level.sh"
