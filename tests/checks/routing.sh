#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Routing a request costs at most 2,000 instructions over the same plan called
# directly: a request of the shape of the one before it, in the same memory or in
# other memory. One of another shape has its buffers laid out anew, which is held
# to what it costs now. Callgrind counts them, so how busy the machine is plays no
# part.
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

alone=$(collected plan_alone)
[ "$alone" -gt 0 ] || {
  echo "FAILED: nothing was counted"
  exit 1
}
failed=0
passed=0
# over_plan NAME MOST
over_plan() {
  more=$(($(collected "$1") - alone))
  echo "$1: $more instructions more than the plan alone, which takes $alone"
  if [ "$more" -le 0 ] || [ "$more" -gt "$2" ]; then
    echo "FAILED: at most $2 are allowed"
    failed=$((failed + 1))
  else
    passed=$((passed + 1))
  fi
}
over_plan routed 2000
over_plan moved 2000
over_plan named 2000
over_plan turned 5000
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
