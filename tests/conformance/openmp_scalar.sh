#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on the OpenMP plugin, at the scalar level.
exec ./cellgate-conform ${CONFORM_MODE:---quick} --set level=scalar .libs/openmp.so
