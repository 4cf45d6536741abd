#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make fuzz: builds the fuzz targets with libFuzzer below the build folder and
# runs them one after the other. Inputs that they find go to
# tests/fuzz/found/NAME there, faults to tests/fuzz/faults/NAME; the source tree
# is left alone. The exit code says whether there was a fault.
set -eu
: "${FUZZ_SECONDS:=60}" "${CLANG:=clang}" "${CLANGXX:=clang++}"
work=$PWD/tests/fuzz
tree=$work/tree
mkdir -p "$tree"
cd "$tree"
[ -e Makefile ] ||
  "$srcdir/configure" -q --enable-fuzz CC="$CLANG" CXX="$CLANGXX" CFLAGS='-O1 -g'
programs=$(make -s print-fuzz-targets)
make -s -j"$(nproc)" $programs
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
faults=0
for name in ${FUZZ_TARGETS:-$(echo "$programs" | sed 's/[^ ]*fuzz_//g')}; do
  found=$work/found/$name
  mkdir -p "$found" "$work/faults/$name"
  echo "fuzz_$name: $FUZZ_SECONDS s"
  dictionary=$srcdir/tests/fuzz/dictionaries/$name.dict
  [ -e "$dictionary" ] && dictionary="-dict=$dictionary" || dictionary=
  # Bounds: 2 GiB in all, 256 MiB for one allocation, 25 s for one input.
  # shellcheck disable=SC2086
  "tests/fuzz/fuzz_$name" -max_total_time="$FUZZ_SECONDS" -rss_limit_mb=2048 \
    -malloc_limit_mb=256 -timeout=25 -max_len=65536 -print_final_stats=1 \
    $dictionary -artifact_prefix="$work/faults/$name/" \
    "$found" "$srcdir/tests/fuzz/corpus/$name" \
    $([ -d "$srcdir/tests/fuzz/findings/$name" ] &&
      echo "$srcdir/tests/fuzz/findings/$name") >"$work/$name.log" 2>&1 || {
    faults=$((faults + 1))
    echo "fuzz_$name found a fault:"
    tail -n 40 "$work/$name.log"
  }
  grep -E '^#[0-9]+.*DONE|^stat::' "$work/$name.log" || :
done
exit $((faults > 0))
