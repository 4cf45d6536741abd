#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite passes on a correct plugin, and fails on each fault of
# faults.h in the group that is named there.
set -u
conform=./cellgate-conform
plugins=tests/conformance/.libs
list=${srcdir:-.}/tests/conformance/faults.h
passed=0 failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

verdict() { # $1 is what, $2 is 0 for good
  if [ "$2" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
    tail -n 15 "$out"
  fi
}

for plugin in reference faulty; do
  FAULT=NONE "$conform" "$plugins/$plugin.so" >"$out" 2>&1
  verdict "$plugin.so without a fault does not pass" $?
done

for pair in $(sed -n 's/^    X(\([A-Z0-9_]*\), \([a-z]*\)).*/\1:\2/p' "$list"); do
  fault=${pair%:*} group=${pair#*:}
  FAULT=$fault "$conform" --filter "$group" "$plugins/faulty.so" >"$out" 2>&1
  status=$?
  # A report names the group; a crash is reported with its case.
  if [ "$status" -eq 1 ]; then
    grep -q "^FAIL $group" "$out"
  else
    [ "$status" -gt 128 ] && grep -q '^FAIL: the plugin crashed' "$out" &&
      grep -q "^     $group: " "$out"
  fi
  verdict "$fault is not found by the group $group (exit status $status)" $?
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$passed" -gt 2 ] && [ "$failed" -eq 0 ]
