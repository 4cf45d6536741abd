#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A small part of the conformance suite on Oclgrind, which checks every access to
# memory and looks for races: kernels for CPUs and for GPUs. Nothing may be
# reported.
. "${srcdir:-.}/tests/conformance/opencl_device.sh"
only /usr/lib/oclgrind/liboclgrind-rt-icd.so Oclgrind
export OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1
out=conform-oclgrind.out
status=0
check() {
  conform "$@" >$out 2>&1 || status=1
  cat $out
  if grep -aq -e '^Oclgrind' -e 'OCLGRIND' -e 'Invalid ' -e ' race ' $out; then
    echo "Oclgrind reports what it should not have to"
    status=1
  fi
}
all='projection=3 bidirectional sigmoid/tanh/tanh sigmoid/tanh/tanh bias peepholes coupled clip'
check --filter resident
check --filter optional
check --filter "$all"
check --filter "$all" --set kernels=lanes --set work_group=16
check --filter 'chains: batch=1 ' --set kernels=lanes --set work_group=64
rm -f $out
exit $status
