#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run --batch: files larger than memory, in pieces; atomic, whatever happens.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so
export CELLGATE_PLUGIN_PATH="$plugins"
model=$fixtures/article

# npy DESCR SHAPE: a header of 128 bytes; the elements are what follows.
npy() {
  printf '\223NUMPY\001\000\166\000%-117s\n' \
    "{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
}
# noise BYTES: bytes of the fixtures, in which no row is like another.
noise() { cat "$fixtures"/article.* "$fixtures"/lstm_*.npz | head -c "$1"; }
# only FOLDER FILE...: the folder has these files and no other.
only() {
  folder=$1
  shift
  if [ "$(ls -A "$folder")" = "$(printf '%s\n' "$@")" ]; then
    pass
  else
    fail "$folder has $(ls -A "$folder")"
  fi
}

# 50 rows of int8, as one request and in pieces of every kind of size.
{ npy '|i1' '(50, 20, 16)'; noise 16000; } >"$work/x.npy"
expect 0 cellgate run $model.keras --input "$work/x.npy" --output "$work/whole.npy"
for batch in 1 7 50 1000; do
  expect 0 cellgate run $model.keras --input "$work/x.npy" --batch $batch \
    --output "$work/y.npy"
  expect 0 cellgate run $model.keras --input "$work/x.npy" \
    --compare "$work/y.npy" --tolerance 1e-6
done
cmp -s "$work/whole.npy" "$work/y.npy" && pass || fail "one piece, other bytes"
[ -s "$work/stderr" ] && fail "a bar without a terminal" || pass

# Compared in pieces, too: what differs in one row of one piece is found.
expect 0 cellgate run $model.keras --input "$work/x.npy" --batch 7 \
  --compare "$work/whole.npy" --tolerance 1e-6 --json --report "$work/report.json"
json rows 50
json runs 8
json batch 7
json outputs.0.shape.0 50
json comparison.tolerance 1e-06
cp "$work/report.json" "$work/stdout"
json runs 8
json outputs.0.shape.0 50
{ head -c 320 "$work/whole.npy"; printf '\000\000\000\000'
  tail -c +325 "$work/whole.npy"; } >"$work/other.npy"
expect 1 cellgate run $model.keras --input "$work/x.npy" --batch 7 \
  --compare "$work/other.npy" --tolerance 1e-6

# Lengths and masks go through the pieces with their rows.
{ npy '|u1' '(50,)'; head -c 50 "$model.npz" | tr '\000-\377' \
  '[\001*32][\002*32][\005*32][\010*32][\011*32][\012*32][\020*32][\024*32]'; } \
  >"$work/lengths.npy"
{ npy '|u1' '(50, 20)'; noise 1000 | tr '\000-\100' '[\000*65]'; } \
  >"$work/mask.npy"
for valid in lengths mask; do
  expect 0 cellgate run $model.keras --input "$work/x.npy" \
    --$valid "$work/$valid.npy" --output "$work/valid.npy"
  cmp -s "$work/whole.npy" "$work/valid.npy" && fail "$valid change nothing" ||
    pass
  expect 0 cellgate run $model.keras --input "$work/x.npy" --batch 7 \
    --$valid "$work/$valid.npy" --compare "$work/valid.npy" --tolerance 1e-6
done
{ npy '|u1' '(49,)'; head -c 49 /dev/zero; } >"$work/short.npy"
expect 4 cellgate run $model.keras --input "$work/x.npy" --batch 7 \
  --lengths "$work/short.npy" --output "$work/z.npy"
says stderr "lengths of shape (49)"
{ npy '|u1' '(50,)'; head -c 49 /dev/zero; printf '\025'; } >"$work/long.npy"
expect 4 cellgate run $model.keras --input "$work/x.npy" --batch 7 \
  --lengths "$work/long.npy" --output "$work/z.npy"
says stderr "rows 49 to 49"

# Several inputs and outputs; each output has a file of its own.
states=$fixtures/lstm_states
expect 0 cellgate inspect $states.keras --json
first=$("$build/tests/e2e/json_get" "$work/stdout" outputs.0.name)
last=$("$build/tests/e2e/json_get" "$work/stdout" outputs.2.name)
axes=$("$build/tests/e2e/json_get" "$work/stdout" inputs.0.shape.1)
features=$("$build/tests/e2e/json_get" "$work/stdout" inputs.0.shape.2)
{ npy '|i1' "(9, $axes, $features)"; noise $((9 * axes * features)); } \
  >"$work/s.npy"
expect 0 cellgate run $states.keras --input "$work/s.npy" --output "$work/s.npz"
mkdir "$work/s"
expect 0 cellgate run $states.keras --input "$work/s.npy" --batch 4 \
  --output "$last=$work/s/last.npy" --output "$first=$work/s/first.npy"
only "$work/s" first.npy last.npy
expect 0 cellgate run $states.keras --input "$work/s.npy" \
  --compare "$last=$work/s/last.npy" --compare "$first=$work/s/first.npy" \
  --tolerance 1e-6
expect 2 cellgate run $states.keras --input "$work/s.npy" --batch 4 \
  --output "$last=$work/s/a.npy" --output "$last=$work/s/b.npy"
expect 2 cellgate run $states.keras --input "$work/s.npy" --output "$work/a.npz" \
  --output "$work/b.npz"

expect 2 cellgate run $states.keras --input "$work/s.npy" --batch 4 \
  --output "$work/s/one.npy"
says stderr "NAME=FILE.npy"
only "$work/s" first.npy last.npy

# What is refused, and the way out.
cp "$work/x.npy" "$work/mine.npy"
for pieces in "" "--batch 7"; do
  expect 2 cellgate run $model.keras --input "$work/mine.npy" $pieces \
    --output "$work/mine.npy"
  says stderr "would replace the input"
  expect 0 cmp "$work/x.npy" "$work/mine.npy"
done
expect 2 cellgate run $model.keras --input "$work/x.npy" --batch 0 \
  --output "$work/z.npy"
expect 2 cellgate run $model.keras --input "$work/x.npy" --batch 7 --repeat 2 \
  --output "$work/z.npy"
says stderr "--repeat"
expect 2 cellgate run $model.keras --input "$work/x.npy" --batch 7
says stderr "--output"
expect 4 cellgate run $model.keras --input $model.npz:in0 --batch 7 \
  --output "$work/z.npy"
says stderr "numpy.save()"
expect 4 cellgate run $model.keras --batch 7 --output "$work/z.npy" \
  --input "$top/tests/fixtures/npy/fortran3.npy"
says stderr "ascontiguousarray"
expect 2 cellgate run $model.keras --input "$work/x.npy" --batch 7 \
  --output "$work/z.npz"
expect 4 cellgate run $model.keras --input "$work/x.npy" --batch 7 \
  --output "$work/no/z.npy"
expect 2 cellgate run $model.keras --input "$work/x.npy" --input "$work/x.npy" \
  --batch 7 --output "$work/z.npy"
[ -e "$work/z.npy" ] && fail "an output after an error" || pass

# A bad id in the last row: the error has its piece, the old file stays.
mkdir "$work/kept"
echo old >"$work/kept/y.npy"
{ npy '|u1' '(10, 7)'; head -c 69 /dev/zero; printf '\377'; } >"$work/ids.npy"
expect 4 cellgate run $fixtures/embedding.keras --input "$work/ids.npy" \
  --batch 4 --output "$work/kept/y.npy"
says stderr "rows 8 to 9"
only "$work/kept" y.npy
[ "$(cat "$work/kept/y.npy")" = old ] && pass || fail "the old file is gone"
echo old >"$work/kept/report.json"
expect 4 cellgate run $fixtures/embedding.keras --input "$work/ids.npy" \
  --batch 4 --output "$work/kept/y.npy" --report "$work/kept/report.json"
[ "$(cat "$work/kept/report.json")" = old ] && pass || fail "report gone"
rm "$work/kept/report.json"

# 1.1 GB, without that much memory. Sparse: the disk holds next to nothing.
npy '<f8' '(440000, 20, 16)' >"$work/big.npy"
truncate -s $((128 + 440000 * 20 * 16 * 8)) "$work/big.npy"
# Sanitizers reserve terabytes of addresses: then there is nothing to bound.
if (ulimit -v 400000 && cellgate --version) >/dev/null 2>&1; then
  bounded() (ulimit -v 400000 && timeout 240 "$build/cellgate" "$@")
  expect 0 bounded run $model.keras --input "$work/big.npy" --batch 2000 \
    --output "$work/big_y.npy" --json
  json rows 440000
  json runs 220
  [ "$(wc -c <"$work/big_y.npy")" -eq 1760128 ] && pass || fail "not all rows"
  expect 6 bounded run $model.keras --input "$work/big.npy" --batch 440000 \
    --output "$work/z.npy"
fi

# Stopped by a signal as soon as it writes: it ends by that signal, and takes back
# what it wrote. A shell lets what it starts in the background ignore SIGINT.
for signal in TERM INT; do
  code=0
  [ $signal = TERM ] && wanted=143 || wanted=130
  env --default-signal=INT "$build/cellgate" run $model.keras \
    --input "$work/big.npy" --batch 1 --output "$work/kept/y.npy" \
    >"$work/stdout" 2>"$work/stderr" &
  run=$!
  while kill -0 $run 2>/dev/null && [ "$(ls -A "$work/kept")" = y.npy ]; do
    sleep 0.01
  done
  kill -s $signal $run 2>/dev/null || true
  wait $run || code=$?
  [ $code -eq $wanted ] && pass || fail "$signal: exit code $code"
  says stderr "stopped after"
  only "$work/kept" y.npy
  [ "$(cat "$work/kept/y.npy")" = old ] && pass || fail "$signal: the old file"
done

# A bar where there is a terminal.
if command -v script >/dev/null; then
  expect 0 script -qec "'$build/cellgate' run '$model.keras' --input \
    '$work/x.npy' --batch 1 --output '$work/y.npy'" /dev/null
  says stdout "of 50 rows"
  says stdout "rows/s"
fi
finish
