#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/peers without the peers: its arithmetic, and the process that serves
# Cellgate's side.
set -eu
top=${srcdir:-.}
passed=0 failed=0
pass() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  echo "FAILED: $*"
}

if command -v python3 >/dev/null; then
  if PYTHONDONTWRITEBYTECODE=1 python3 -W error "$top/bench/peers/test_peers.py"; then
    pass
  else
    bad "bench/peers/test_peers.py"
  fi
else
  echo "skipped: no python3 for bench/peers/test_peers.py"
fi

# asked REQUESTS: the answers of a server, joined by ";", times left out.
asked() {
  printf '%b' "$1" | bench/serve --folder "$work" --threads 2 cellgate |
    sed -E 's/^ok t1:f32\tt2:f32.*/ok NAMES/; s/[0-9.]+e-[0-9]+|[0-9]*\.[0-9]+/N/g' | tr '\n' ';'
}
# answers REQUESTS ANSWERS
answers() {
  got=$(asked "$1")
  if [ "$got" = "$2" ]; then pass; else bad "asked $1: $got instead of $2"; fi
}
if [ -x bench/serve ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  if [ "$(bench/serve --rows | sed -n '/number=5	/s/.*\(batch.*directions=.\).*/\1/p' |
    tr '\t' ' ')" = "batch=1 steps=63 input=24 hidden=32 layers=1 directions=2" ]; then
    pass
  else
    bad "the row 5 of bench/serve --rows"
  fi
  answers 'turn 0 1 1\nlimit\n' 'no no row is prepared;no no row is prepared;'
  answers 'prepare 99 1\nprepare x\n' \
    'no no such row, or no memory for it;no prepare takes a row and a seed;'
  answers 'prepare 5 1\nwrite\noutput 0 a\noutput 9 a\nturn 0 1\nturn 0 0 2\nlimit\nrelease\nname 0\n' \
    'ok NAMES;ok;ok N;no no such side;no turn takes a side and two numbers of runs;ok N;no the limits were not measured;ok;no no row is prepared;'
  for file in x.f32:6048 weights.f32:58368 a:16128; do
    size=$(wc -c <"$work/${file%:*}")
    if [ "$size" -eq "${file#*:}" ]; then
      pass
    else
      bad "${file%:*} has $size bytes, not ${file#*:}"
    fi
  done
  # Both ways compute the same, other weights something else.
  answers 'prepare 5 1\noutput 1 b\ncompare a a\ncompare a none\n' \
    'ok NAMES;ok N;ok 0;no a result is missing or has another size;'
  distance() { printf '%b' "$1" | bench/serve --folder "$work" --threads 2 cellgate | sed -n 's/^ok \(.*\)/\1/p' | tail -n 1; }
  if distance 'prepare 5 1\ncompare a b\n' | awk '{ exit !($1 < 1e-5) }'; then
    pass
  else
    bad "two variants differ"
  fi
  if distance 'prepare 5 2\noutput 0 c\ncompare a c\n' | awk '{ exit !($1 > 1e-2) }'; then
    pass
  else
    bad "another seed makes no other weights"
  fi
else
  echo "skipped: bench/serve is not built"
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
