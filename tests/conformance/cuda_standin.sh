#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on the CUDA plugin over stand-ins for the runtime and
# cuDNN, its own kernels on the CPU executor: all of it in a fused variant, and in
# the others, above all those of the executor, which is slow, the groups in which
# they differ (--full: all of it in all of them).
. "${srcdir:-.}/tests/cuda/standin.sh"
libraries "$PWD/tests/cuda/libraries"
conform() {
  ./cellgate-conform ${CONFORM_MODE:---quick} "$@" "$standin" || exit
}
if [ -n "${CONFORM_MODE-}" ]; then
  conform
  exit
fi
case " ${CFLAGS-} " in
*-fsanitize=thread*) few=host ;;
*-fsanitize*) few=yes ;;
*) few=no ;;
esac
conform --variant cudnn
[ $few != no ] || conform --variant cudnn-dynamic --filter '^(lengths|chains|plans|threads)$'
# There the executor makes a thread of each thread of the device: it has tests of
# its own, and here it is the host's side that threads meet in.
[ $few != host ] || exit 0
conform --variant rows
for variant in cudnn-static cudnn-small cudnn-tf32 cudnn-small-f16; do
  conform --variant $variant --filter lengths
done
# What an algorithm refuses when it runs is refused at that shape alone.
CELLGATE_STANDIN='cudnn_refuse=3000 cudnn_refuse_below=4' \
  conform --variant cudnn-small --filter '^shapes: batch=(2|17) '
groups="layouts outputs resident optional"
[ $few = no ] || groups="layouts resident"
for group in $groups; do
  conform --variant step --filter $group
  conform --variant block --filter $group
  conform --variant persistent --filter $group
  conform --variant block-blas --filter $group
done
[ $few = no ] || exit 0
for variant in step-f16 block-bf16 persistent-bf16; do
  conform --variant $variant --filter outputs
done
for variant in block block-blas; do
  conform --variant $variant \
    --filter '^(lengths: batch=(2|16) |chains: batch=5 |plans: )'
done
for variant in step step-blas; do
  conform --variant $variant --filter '^lengths: batch=(2|16) '
done
# Too little memory to compute all input products ahead.
CELLGATE_STANDIN='memory=16' conform --variant step \
  --filter '^shapes: batch=(3.|6.) '
