#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What goes wrong is told: the exit code, the file, the line, what to do; and
# nothing half-written stays.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so
model=$fixtures/article
export CELLGATE_PLUGIN_PATH="$plugins"

expect 2 cellgate
expect 2 cellgate runn
says stderr "no command 'runn'"
expect 2 cellgate run
expect 2 cellgate run $model.keras
says stderr "--input"
expect 2 cellgate run $model.keras --inptu x.npy
says stderr "--inptu"
expect 2 cellgate run $model.keras extra --input $model.npz:in0
expect 2 cellgate run $model.keras --input $model.npz:in0 --repeat 0
expect 0 cellgate --help
expect 0 cellgate --version
for command in run inspect devices convert; do
  expect 0 cellgate $command --help
  says stdout "--config"
done

# Configuration: file:line, and what was probably meant.
printf '[device cpu]\nplugin = openmp\nthreds = 2\n' >"$work/typo.ini"
expect 3 cellgate run $model.keras --input $model.npz:in0 --config "$work/typo.ini"
says stderr "typo.ini:3"
says stderr "threads"
printf '[cellgate]\nlog = loud\n' >"$work/bad.ini"
expect 3 cellgate devices --config "$work/bad.ini"
says stderr "bad.ini:2"
expect 3 cellgate devices --config "$work/none.ini"
says stderr "none.ini"

# Files.
expect 4 cellgate run "$work/none.keras" --input $model.npz:in0
says stderr "none.keras"
head -c 3000 $model.keras >"$work/cut.keras"
expect 4 cellgate run "$work/cut.keras" --input $model.npz:in0
says stderr "cut.keras"
expect 4 cellgate run $model.keras --input "$work/none.npy"
expect 5 cellgate run $model.keras --input $model.npz:nope
says stderr "in0"
expect 5 cellgate run $model.keras --input nope=$model.npz:in0
expect 4 cellgate run $model.keras --input $model.npz:out0
says stderr "input_layer"
says stderr "2 axes"
expect 4 cellgate run $model.keras --input $model.npz:in0 --output "$work/no/y.npy"
expect 2 cellgate run $model.keras --input $model.npz:in0 --output "$work/y.txt"
says stderr ".npy or .npz"
expect 4 cellgate convert "$work/cut.keras" "$work/out.safetensors"
[ -z "$(find "$work" -name 'out*')" ] && pass || fail "a failed convert left a file"
embedding=$fixtures/embedding
expect 0 cellgate run $embedding.keras --input $embedding.npz:in0

# Devices: the one named, or an error; never another.
expect 5 cellgate run $model.keras --input $model.npz:in0 --device card
says stderr "card"
expect 5 cellgate run $model.keras --input $model.npz:in0 --variant t99
says stderr "t99"
printf '[device card]\nplugin = vendor\n' >"$work/absent.ini"
expect 5 cellgate run $model.keras --input $model.npz:in0 --device card \
  --config "$work/absent.ini"
says stderr "vendor"
printf '[device card]\nplugin = vendor\nenabled = yes\n' >"$work/must.ini"
expect 5 cellgate run $model.keras --input $model.npz:in0 --config "$work/must.ini"
says stderr "vendor"
CELLGATE_PLUGIN_PATH="$work/empty" expect 5 \
  cellgate run $model.keras --input $model.npz:in0
finish
