#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on both cards of the stand-in, in every variant. They are
# alike: instrumented code, which is slow, runs one, and the groups in which its
# queue, its memory and its threads are used each in its own way.
case " ${CFLAGS-} " in
*-fsanitize*)
  exec ./cellgate-conform --quick --device=0 \
    --filter '^(lengths|layouts|chains|bounds|plans|threads|weights|lifecycle|resident|optional)$' \
    tests/plugins/remote/.libs/remote.so
  ;;
esac
exec ./cellgate-conform --quick tests/plugins/remote/.libs/remote.so
