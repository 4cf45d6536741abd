#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on both cards of the stand-in, in every variant. They are
# alike: instrumented code, which is slow, runs one.
case " ${CFLAGS-} " in
*-fsanitize*) one=--device=0 ;;
*) one= ;;
esac
exec ./cellgate-conform --quick $one tests/plugins/remote/.libs/remote.so
