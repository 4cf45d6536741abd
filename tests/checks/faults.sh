#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests and fixtures that tests/README.md names are there.
set -eu
cd "${srcdir:-.}"
failed=0 passed=0
for name in $(sed -n '/^## Faults/,$p' tests/README.md | grep '^| ' |
  grep -oE '`[^`]+/[^`]+`' | tr -d '`' | sort -u); do
  test=${name##*/} place=${name%/*}
  case $name in
  tests/*) [ -e "$name" ] ;;
  test_*) grep -q "cmocka_unit_test($test)" "tests/unit/$place.c" ;;
  *) grep -q "^$test: " "tests/fixtures/$place/MANIFEST" ;;
  esac && passed=$((passed + 1)) || {
    failed=$((failed + 1))
    echo "FAILED: tests/README.md names $name, which is not there"
  }
done
[ $passed -gt 60 ] || {
  failed=$((failed + 1))
  echo "FAILED: tests/README.md names $passed tests and fixtures only"
}
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
