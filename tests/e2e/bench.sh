#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bench: of a model and of LSTMs of a size, on every device and variant.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so "$build/tests/plugins/remote/.libs/remote.so"
printf '[cellgate]\nplugin_path = %s\nunlisted = no\n[device cpu]\nplugin = openmp\n[device card]\nplugin = remote\n[device other]\nplugin = missing\n' \
  "$plugins" >"$work/cellgate.ini"
export CELLGATE_CONFIG="$work/cellgate.ini"
model=$fixtures/article.keras

expect 0 cellgate bench "$model" --runs 5
says stdout "batch 1, steps 20; 5 runs"
grep -q '^cpu  *t1 .*[mu]*s' "$work/stdout" && pass || fail "no line of cpu t1"
grep -q '^card  *any .*[mu]*s' "$work/stdout" && pass || fail "no line of card any"
grep -q '^other .*not timed: .*missing' "$work/stdout" && pass ||
  fail "no reason for the device that is not there"

# Three rows of 5 steps, two layers in two directions.
expect 0 cellgate bench --lstm 3,5,4,6,2,bi --runs 3 --device card --json \
  --csv "$work/bench.csv"
json batch 3
json steps 5
json runs 3
json results.0.device card
json results.0.runs 3
json results.0.host_segments 0
grep -q '^"card","any",3,5,3,' "$work/bench.csv" && pass || fail "the CSV"
expect 0 cellgate bench --lstm 1,1,1,1,1 --runs 1 --warm-up 0 --device host

# A picture, of a stand-in for gnuplot and of the real one where it is there.
mkdir "$work/empty" "$work/bin"
expect 2 cellgate bench --lstm 1,1,1,1,1 --runs 1 --plot "$work/bench.gif"
expect 5 env PATH="$work/empty" "$build/cellgate" bench --lstm 1,1,1,1,1 \
  --runs 1 --plot "$work/bench.svg"
says stderr "--plot needs gnuplot"
cat >"$work/bin/gnuplot" <<'STUB'
#!/bin/sh
script=$(cat)
file=$(printf '%s\n' "$script" | sed -n "s/^set output '\(.*\)'$/\1/p")
printf '%s\n' "$script" >"$file"
STUB
chmod +x "$work/bin/gnuplot"
expect 0 env PATH="$work/bin:$PATH" "$build/cellgate" bench \
  --lstm 1,1,1,1,1 --runs 2 --plot "$work/bench.svg"
grep -q "'cpu t1' 0" "$work/bench.svg" && pass || fail "a bar has no name"
if command -v gnuplot >/dev/null; then
  expect 0 cellgate bench --lstm 1,1,1,1,1 --runs 2 --plot "$work/bench.svg"
  grep -q '</svg>' "$work/bench.svg" && pass || fail "gnuplot's SVG is not whole"
fi

# What keeps a device from its fastest way is said everywhere.
slow=$fixtures/lstm_hard_sigmoid.keras
expect 0 cellgate inspect "$slow"
says stdout "    not its fastest way: activations other than sigmoid and tanh"
expect 0 cellgate inspect "$slow" --json
json devices.0.segments.0.note ""
json devices.1.segments.0.note \
  "activations other than sigmoid and tanh are not fused: each step is a kernel of its own"
expect 0 cellgate plan "$slow" --batch 1
says stdout "    not its fastest way: activations other than sigmoid and tanh"
expect 0 cellgate bench "$slow" --steps 5 --runs 1
says stdout "(not its fastest way: activations"

expect 2 cellgate bench
expect 2 cellgate bench "$model" --lstm 1,1,1,1,1
expect 2 cellgate bench --lstm 1,2,3
expect 2 cellgate bench --lstm 1,2,3,4,0
says stderr "layers from 1 to 64"
expect 2 cellgate bench --lstm 1,2,3,4,1,both
expect 2 cellgate bench --lstm 0,2,3,4,1
expect 2 cellgate bench "$model" --runs 0
expect 2 cellgate bench "$model" --batch 1-2
expect 5 cellgate bench "$model" --device other
expect 4 cellgate bench "$work/none.keras"
finish
