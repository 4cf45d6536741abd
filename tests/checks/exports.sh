#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What libraries export: libcellgate the functions of cellgate.h and nothing
# else; a plugin its entry alone, and it needs no symbol of the core.
set -eu
srcdir=${srcdir:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
verdict() { # ok|bad text
  case $1 in
  ok) passed=$((passed + 1)) ;;
  *)
    failed=$((failed + 1))
    echo "FAILED: $2"
    ;;
  esac
}
defined() { nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort; }

cat "$srcdir/include/cellgate/cellgate.h" \
  "$srcdir/include/cellgate/calibrate.h" \
  "$srcdir/include/cellgate/generate.h" | tr '\n' ' ' |
  grep -oE 'CELLGATE_API [^;]*;' | grep -oE '[a-z_]+\(' | grep '^cellgate_' |
  tr -d '(' | sort -u >"$work/declared"
defined .libs/libcellgate.so >"$work/exported"
if diff "$work/declared" "$work/exported" >"$work/diff"; then
  verdict ok
else
  cat "$work/diff"
  verdict bad "libcellgate's exports (>) are not the functions of cellgate.h, calibrate.h and generate.h (<)"
fi

for plugin in .libs/openmp.so plugins/opencl/.libs/opencl.so \
    plugins/cuda/.libs/cuda.so; do
  [ -e "$plugin" ] || continue
  [ "$(defined "$plugin")" = cellgate_plugin_entry ] && verdict ok ||
    verdict bad "$plugin exports more, or less, than cellgate_plugin_entry"
  if nm -D --undefined-only "$plugin" | grep -q ' cellgate_'; then
    verdict bad "$plugin needs a symbol of the core"
  else
    verdict ok
  fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
