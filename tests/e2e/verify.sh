#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A native file carries its self-test; verify runs it on every device and in
# every variant, and says no when one disagrees.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so
printf '[cellgate]\nplugin_path = %s\n[device cpu]\nplugin = openmp\n[device other]\nplugin = missing\n' \
  "$plugins" >"$work/cellgate.ini"
export CELLGATE_CONFIG="$work/cellgate.ini"

# Masks, ids, several inputs and outputs, states: each agrees everywhere.
for name in article encoder_decoder lstm_states lstm_holes embedding_mask_zero \
  bidirectional_holes masking; do
  [ -e "$fixtures/$name.keras" ] || continue
  expect 0 cellgate convert "$fixtures/$name.keras" "$work/$name.safetensors"
  expect 0 cellgate verify "$work/$name.safetensors"
done

expect 0 cellgate verify "$work/article.safetensors"
says stdout "stored in the file"
says stdout "self-test of 3 rows"
says stdout "t1"
grep -q '^cpu .* agrees' "$work/stdout" && pass || fail "cpu does not agree"
grep -q '^host .* agrees' "$work/stdout" && pass || fail "host does not agree"
grep -q '^other .* not run: .*missing' "$work/stdout" && pass ||
  fail "no reason for the device that is not there"
expect 0 cellgate verify "$work/article.safetensors" --json
json rows 3
json stored true
json agrees true
json results.0.device cpu
json results.0.variant t1
json results.0.verdict agrees
json results.0.host_segments 0

# Of one device; a device that cannot be used is an error when it is named.
expect 0 cellgate verify "$work/article.safetensors" --device host --json
json results 1
json results.0.device host
expect 5 cellgate verify "$work/article.safetensors" --device other
expect 5 cellgate verify "$work/article.safetensors" --device nobody
says stdout "there is no device 'nobody'"

# A Keras file has no answers: the host reference gives them now.
expect 0 cellgate verify "$fixtures/article.keras"
says stdout "computed now by the host reference"
expect 0 cellgate verify "$fixtures/article.keras" --json
json stored false

# A device whose results are 1% off is told from those that are not.
offer "$build/tests/plugins/remote/.libs/remote.so"
printf '[cellgate]\nplugin_path = %s\n[device cpu]\nplugin = openmp\n[device off]\nplugin = remote\nwrong = yes\n' \
  "$plugins" >"$work/wrong.ini"
expect 1 cellgate verify "$work/article.safetensors" --config "$work/wrong.ini"
grep -q '^off .* DISAGREES' "$work/stdout" && pass || fail "off agrees"
grep -q '^cpu .* agrees' "$work/stdout" && pass || fail "cpu disagrees"
expect 1 cellgate verify "$work/article.safetensors" --config "$work/wrong.ini" \
  --device off --json
json agrees false
json results.0.verdict disagrees
expect 0 cellgate verify "$work/article.safetensors" --config "$work/wrong.ini" \
  --device cpu

expect 0 cellgate convert "$fixtures/article.keras" "$work/article.safetensors" \
  --json
json read.format keras
json written.format native
json written.selftest_rows 3
expect 0 cellgate convert "$work/article.safetensors" "$work/again.safetensors" \
  --json
json read.format native
cmp -s "$work/article.safetensors" "$work/again.safetensors" && pass ||
  fail "converting again gives other bytes"
expect 4 cellgate verify "$work/none.keras"
expect 2 cellgate verify
finish
