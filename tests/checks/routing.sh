#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Routing a request costs at most 2,000 instructions: a request of a session that
# chooses by cost against one of a session whose device and variant are named.
# Callgrind counts them, so how busy the machine is plays no part. What any
# request costs besides (checks, binding, the report) is printed too.
set -eu
command -v valgrind >/dev/null || {
  echo "valgrind is not installed"
  exit 77
}
case " $CFLAGS " in
*-fsanitize*)
  echo "instrumented code is not what is counted"
  exit 77
  ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
requests=100

# collected FUNCTION: instructions of one call, on average.
collected() {
  ./libtool --mode=execute valgrind --tool=callgrind --collect-atstart=no \
    --callgrind-out-file="$work/out" --toggle-collect="$1" \
    tests/unit/routing_cost $requests >"$work/stdout" 2>"$work/stderr" || {
    cat "$work/stdout" "$work/stderr"
    exit 1
  }
  total=$(sed -n 's/^summary: //p; s/^totals: //p' "$work/out" | head -n 1)
  echo $((total / requests))
}

routed=$(collected routed)
named=$(collected named)
alone=$(collected plan_alone)
echo "instructions a request: routed $routed, named $named, the plan alone $alone"
[ "$alone" -gt 0 ] && [ "$named" -gt "$alone" ] || {
  echo "FAILED: nothing was counted"
  exit 1
}
if [ $((routed - named)) -gt 2000 ]; then
  echo "FAILED: routing costs $((routed - named)) instructions"
  exit 1
fi
echo "1 passed, 0 failed"
