#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The code in doc/plugin-guide.md is the example's, to the letter: the blocks
# marked with a file's name, put together with a blank line between them.
set -eu
here=${srcdir:-.}/tests/plugins/outside
guide=${srcdir:-.}/doc/plugin-guide.md
blocks=$(mktemp)
trap 'rm -f "$blocks"' EXIT

failed=0
for file in minimal.c Makefile; do
  awk -v name="$file" '
    /^```/ { if (inside) { inside = 0; next }
             if ($2 == name) { if (some) print ""; some = inside = 1 }
             else skipping = !skipping
             next }
    inside' "$guide" >"$blocks"
  if diff -u "$here/$file" "$blocks"; then
    echo "$file: the guide and the example agree"
  else
    echo "FAILED: $guide shows another $file than $here has"
    failed=1
  fi
done
exit $failed
