#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
level=scalar flags=""
. "${srcdir:-.}/tests/conformance/openmp_level.sh"
