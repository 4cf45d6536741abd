#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on PoCL, a CPU as an OpenCL device: all of it in one
# variant of the kernels for CPUs, and in the others, the kernels for GPUs and
# CLBlast, where the build knows it, the groups in which they differ (--full: all).
# What takes the time is PoCL's compiler: a program for each variant and set of
# attributes.
. "${srcdir:-.}/tests/conformance/opencl_device.sh"
only /etc/OpenCL/vendors/pocl.icd PoCL
clblast=no
grep -q '^#define HAVE_CLBLAST 1' config.h && clblast=yes
if [ -n "${CONFORM_MODE-}" ]; then
  conform --set clblast=$clblast && conform --set kernels=lanes \
    --set work_group=64
  exit
fi
conform --set clblast=no --variant fused || exit
conform --set clblast=no \
  --filter '^(shapes|lengths|outputs|ops|lifecycle|chains: batch=5 .* lengths=ragged )' || exit
[ $clblast = no ] || conform --set clblast=yes --filter shapes || exit
conform --set kernels=lanes --set work_group=64 \
  --filter '^(lengths|layouts|outputs|nonfinite|ops|plans|resident|chains: batch=5 .* lengths=ragged )' || exit
[ $clblast = no ] || conform --set kernels=lanes --set work_group=64 \
  --set clblast=yes --filter '^chains: batch=5 .* lengths=(full|with-zeros) '
