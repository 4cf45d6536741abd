#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# [scheduler] precision: which numeric classes are measured, taken and reported,
# on a card whose time is modelled and on the CPU.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so "$build/tests/plugins/remote/.libs/remote.so"
model=$fixtures/article.keras
export CELLGATE_CONFIG="$work/cellgate.ini"
configuration() { # PRECISION VARIANTS: of the card
  printf '[cellgate]\nplugin_path = %s\nunlisted = no\n' "$plugins"
  printf '[scheduler]\nprecision = %s\n' "$1"
  printf '[device card]\nplugin = remote\nvariants = %s\n' "$2"
}

# A card that has nothing but bfloat16: refused, or taken, and said so.
configuration float32 bf16 >"$CELLGATE_CONFIG"
expect 0 cellgate run "$model" --input "$fixtures/article.npz:in0" --device card
says stderr "host: lstm: its results are bf16, which [scheduler] precision = mixed allows"
expect 0 cellgate plan "$model" --batch 4
says stdout "its results are bf16, which [scheduler] precision = mixed allows"
for precision in mixed int8; do
  configuration $precision bf16 >"$CELLGATE_CONFIG"
  expect 0 cellgate run "$model" --input "$fixtures/article.npz:in0" \
    --device card --json
  json variant bf16
  json numeric bf16
  json segments.0.numeric bf16
  expect 0 cellgate run "$model" --input "$fixtures/article.npz:in0" \
    --output "$work/out.npy"
  says stdout "precision: bf16"
done

# Where there is float32 too, it is the default until something is measured.
configuration mixed all >"$CELLGATE_CONFIG"
expect 0 cellgate run "$model" --input "$fixtures/article.npz:in0" --json
json numeric f32
expect 0 cellgate run "$model" --input "$fixtures/article.npz:in0" \
  --output "$work/out.npy"
! grep -q "precision:" "$work/stdout" && pass || fail "float32 is said to be none"
expect 0 cellgate calibrate "$model" --seconds 2 --batch 4
expect 0 cellgate plan "$model" --batch 4 --json
! grep -q '"its results are' "$work/stdout" && pass ||
  fail "a class that mixed allows is excluded"

# A variant that is named runs in its own class, whatever the configuration says.
configuration float32 all >"$CELLGATE_CONFIG"
expect 0 cellgate run "$model" --input "$fixtures/article.npz:in0" \
  --device card --variant bf16 --json
json numeric bf16

# The CPU keeps weights narrower where that is allowed.
for row in float32:0 mixed:1 int8:2; do
  printf '[cellgate]\nplugin_path = %s\n[scheduler]\nprecision = %s\n%s' \
    "$plugins" "${row%:*}" '[device cpu]
plugin = openmp
threads = 1
' >"$CELLGATE_CONFIG"
  expect 0 cellgate calibrate "$model" --device cpu --seconds 1 --batch 4 --json
  json measured.candidates $((1 + ${row#*:}))
done
expect 0 cellgate run "$model" --input "$fixtures/article.npz:in0" \
  --device cpu --variant t1-int8 --json
json numeric int8

configuration half all >"$CELLGATE_CONFIG"
expect 3 cellgate devices
says stderr "[scheduler] precision: expected float32, mixed or int8, not \"half\""
finish
