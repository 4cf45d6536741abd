#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite passes on a correct plugin, and fails on each fault of
# faults.h in the group that is named there. Instrumented code, which is slow, tries
# every fourth of them.
set -u
conform=./cellgate-conform
plugins=tests/conformance/.libs
list=${srcdir:-.}/tests/conformance/faults.h
passed=0 failed=0 skipped=0
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

each=1
case " ${CFLAGS-} " in *-fsanitize*) each=4 ;; esac
number=0
for pair in $(sed -n 's/^    X(\([A-Z0-9_]*\), \([a-z]*\)).*/\1:\2/p' "$list"); do
  number=$((number + 1))
  [ $((number % each)) -eq 0 ] || continue
  fault=${pair%:*} group=${pair#*:}
  FAULT=$fault "$conform" --filter "$group" "$plugins/faulty.so" >"$out" 2>&1
  status=$?
  if grep -q "growth of the heap: the C library doesn't tell" "$out" &&
    [ "$fault" = LEAK_OF_HEAP ] && [ "$status" -eq 0 ]; then
    skipped=$((skipped + 1))
    continue
  fi
  # A report names the group. A crash is reported with its case. In a build with
  # a sanitizer that may be the one to find the fault, and ends the program.
  [ "$status" -ne 0 ] && [ "$status" -ne 2 ] && [ "$status" -ne 5 ] && {
    grep -q "^FAIL $group" "$out" ||
      { grep -q '^FAIL: the plugin crashed' "$out" &&
        grep -q "^     $group: " "$out"; } ||
      grep -q '^SUMMARY: .*Sanitizer' "$out"
  }
  verdict "$fault is not found by the group $group (exit status $status)" $?
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$passed" -gt 2 ] && [ "$failed" -eq 0 ]
