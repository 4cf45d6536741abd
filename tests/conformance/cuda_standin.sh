#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on the CUDA plugin over stand-ins for the runtime and
# cuDNN, its own kernels on the CPU executor: all of it in the fused variants, and
# in those of the executor, which is slow, the groups in which they differ.
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
[ $few != no ] || conform --variant cudnn-dynamic
# There the executor makes a thread of each thread of the device: it has tests of
# its own, and here it is the host's side that threads meet in.
[ $few != host ] || exit 0
conform --variant rows
for variant in cudnn-static cudnn-small cudnn-tf32 cudnn-small-f16; do
  conform --variant $variant --filter lengths
done
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
for group in lengths chains plans; do
  conform --variant block --filter $group
  conform --variant block-blas --filter $group
done
conform --variant step-blas --filter lengths
conform --variant step --filter lengths
# Too little memory to compute all input products ahead.
CELLGATE_STANDIN='memory=16' conform --variant step --filter shapes
