#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on PoCL, a CPU as an OpenCL device: all of it in two
# variants of the kernels for CPUs, and in the others, the kernels for GPUs and
# CLBlast, where the build knows it, the groups in which they differ (--full: all).
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
conform --set clblast=no --variant whole4 || exit
for group in shapes lengths outputs ops chains lifecycle; do
  conform --set clblast=no --filter $group || exit
done
[ $clblast = no ] || conform --set clblast=yes --filter shapes || exit
for group in lengths layouts outputs nonfinite ops chains plans resident; do
  conform --set kernels=lanes --set work_group=64 --filter $group || exit
done
[ $clblast = no ] || conform --set kernels=lanes --set work_group=64 \
  --set clblast=yes --filter chains
