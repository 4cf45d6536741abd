#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Damaged files through the command: an exit code, a text that begins with the
# file's name, and no output left behind.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so
export CELLGATE_PLUGIN_PATH="$plugins"
model=$fixtures/lstm_one_step
input=$model.npz:in0

# cut_to FILE BYTES NAME; spoil FILE OFFSET NAME: eight other bytes there.
cut_to() { head -c "$2" "$1" >"$work/$3"; }
spoil() {
  head -c "$2" "$1" >"$work/$3"
  printf '\252\125\252\125\252\125\252\125' >>"$work/$3"
  tail -c +$(($2 + 9)) "$1" >>"$work/$3"
}
refused() { # CODE NAME COMMAND...
  wanted_code=$1 name=$2
  shift 2
  expect "$wanted_code" "$@"
  says stderr "cellgate: $work/$name:"
}

expect 0 cellgate convert $model.keras "$work/sound.safetensors"
for file in $model.keras "$work/sound.safetensors"; do
  size=$(wc -c <"$file")
  for part in 0 1 8 9 100 $((size / 2)) $((size - 64)) $((size - 1)); do
    cut_to "$file" $part cut
    refused 4 cut cellgate inspect "$work/cut"
    refused 4 cut cellgate convert "$work/cut" "$work/never.safetensors"
    refused 4 cut cellgate run "$work/cut" --input $input --output "$work/never.npy"
  done
  for place in 0 $((size / 2)); do
    spoil "$file" $place spoilt
    refused 4 spoilt cellgate inspect "$work/spoilt"
  done
done

for file in $model.npz "$top/tests/fixtures/npy/f4.npy" \
  "$top/tests/fixtures/npy/deflated.npz"; do
  size=$(wc -c <"$file")
  for part in 0 1 8 9 $((size / 2)) $((size - 1)); do
    cut_to "$file" $part cut
    refused 4 cut cellgate run $model.keras --input "$work/cut" \
      --output "$work/never.npy"
  done
  spoil "$file" 0 spoilt
  refused 4 spoilt cellgate run $model.keras --input "$work/spoilt"
done

# Everything that was made to be refused is, by its name.
while IFS=: read -r name verdict rest; do
  case $verdict in *refused*) ;; *) continue ;; esac
  expect 4 cellgate inspect "$top/tests/fixtures/keras_broken/$name.keras"
  says stderr "keras_broken/$name.keras: "
done <"$top/tests/fixtures/keras_broken/MANIFEST"

printf '[device cpu\nplugin = openmp\n' >"$work/open.ini"
refused 3 open.ini cellgate devices --config "$work/open.ini"
head -c 100000 /dev/zero >"$work/zeros.ini"
refused 3 zeros.ini cellgate devices --config "$work/zeros.ini"
head -c 2000000 /dev/zero | tr '\0' '\n' >"$work/huge.ini"
refused 3 huge.ini cellgate devices --config "$work/huge.ini"

[ ! -e "$work/never.safetensors" ] && [ ! -e "$work/never.npy" ] && pass ||
  fail "an output of a refused file is there"
finish
