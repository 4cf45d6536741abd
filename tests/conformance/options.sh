#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What cellgate-conform's options promise: a run in which nothing ran, or not all
# of it for want of time, is not one that passed.
set -u
conform=./cellgate-conform
plugin=tests/conformance/.libs/reference.so
passed=0 failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT
export FAULT=NONE

expect() { # STATUS ARGUMENT...
  wanted=$1
  shift
  "$conform" "$@" >"$out" 2>&1
  status=$?
  if [ $status -eq "$wanted" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $* exits with $status, not $wanted"
    tail -n 15 "$out"
  fi
}
says() { # TEXT
  if grep -qF -- "$1" "$out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: it does not say: $1; it says:"
    tail -n 15 "$out"
  fi
}

holds() { # WHAT: whether the command before it succeeded
  if [ $? -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1; it says:"
    tail -n 15 "$out"
  fi
}

expect 0 --variants "$plugin"
says '  naive'
[ "$(grep -c . "$out")" -eq 2 ]
holds 'the variant is named once, and nothing else'
expect 2 --variants --json "$plugin"

expect 0 --variant naive --filter outputs "$plugin"
expect 1 --variant other --filter outputs "$plugin"
says 'no case ran in this variant'

# The time is over before the first case.
expect 1 --seconds 1e-9 --filter outputs "$plugin"
says 'not tried: the time was over'
says '0 passed, 0 failed, 84 skipped'
expect 0 --seconds 600 --filter outputs "$plugin"
expect 2 --seconds 0 "$plugin"
expect 2 --seconds soon "$plugin"

# Both groups, and of one of them some of the cases.
expect 0 --filter '^(lengths: batch=7 .* lengths=ragged |outputs: )' "$plugin"
grep -q '^0 *lengths *naive *4 ' "$out" && grep -q '^0 *outputs ' "$out" &&
  ! grep -q '^0 *layouts ' "$out"
holds '--filter takes these cases alone'
expect 2 --filter '(' "$plugin"
says "--filter '('"

# Offered, and refused by each variant from the first run on: nothing has run, and
# what every plugin must take was to.
plugin=tests/conformance/.libs/faulty.so
FAULT=REFUSES_ALL_ONCE_RUN
expect 1 --filter '^shapes: .* lstm.hidden=257 ' "$plugin"
says 'each variant was offered, and refuses it, though every plugin must take it'
says '0 passed, 1 failed, 1 skipped'
expect 1 --variant naive --filter '^shapes: .* lstm.hidden=257 ' "$plugin"
says 'no case ran in this variant'
says '0 passed, 1 failed, 1 skipped'

echo "$passed passed, $failed failed"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
