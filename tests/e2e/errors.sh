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
says stderr "no command 'runn'; there are run, "
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

# Variants that are left out: every way to run on the device, by a pattern; and a
# name that none has.
printf '[device cpu]\nplugin = openmp\nexclude = t*\n' >"$work/without.ini"
expect 0 cellgate run $model.keras --input $model.npz:in0 --json \
  --config "$work/without.ini" --device cpu
json device host
says stdout "exclude in [device cpu] leaves it out"
expect 0 cellgate inspect $model.keras --config "$work/without.ini"
says stdout "exclude in [device cpu] leaves it out"
printf '[device cpu]\nplugin = openmp\nexclude = t1 u*\n' >"$work/without.ini"
expect 3 cellgate devices --config "$work/without.ini"
says stderr "without.ini:3: [device cpu] exclude: plugin openmp has no variant u*"
says stderr "it has t*"
# The example of etc/cellgate.ini.
sed -n 's/^#exclude/exclude/p' "$top/etc/cellgate.ini" >"$work/example"
[ -s "$work/example" ] && pass || fail "there is no example"
sed "/^exclude/d" "$work/without.ini" | cat - "$work/example" >"$work/with.ini"
expect 0 cellgate devices --config "$work/with.ini"

# Files.
expect 4 cellgate run "$work/none.keras" --input $model.npz:in0
says stderr "none.keras"
head -c 3000 $model.keras >"$work/cut.keras"
expect 4 cellgate run "$work/cut.keras" --input $model.npz:in0
says stderr "cut.keras"
expect 4 cellgate run $model.keras --input "$work/none.npy"
expect 4 cellgate run $model.keras --input $model.npz:nope
says stderr "$model.npz: there is no array 'nope'"
says stderr "in0"
expect 2 cellgate run $model.keras --input nope=$model.npz:in0
says stderr "no input 'nope'; it has: input_layer"
expect 2 cellgate run $model.keras --input $model.npz:in0 \
  --compare nope=$model.npz:out0
says stderr "no output 'nope'; it has: dense"
expect 4 cellgate run $model.keras --input $model.npz:in0 \
  --compare $model.npz:in0
says stderr "shape (64, 20, 16); output 'dense'"
says stderr "(64, 1)"
# None of the arrays has the name of an input: none is taken for one.
two=$fixtures/encoder_decoder
expect 4 cellgate run $two.keras --input $two.npz
says stderr "name one of its arrays"
expect 4 cellgate run $model.keras --input $model.npz:out0
says stderr "'input_layer' has shape (64, 1); the model takes (batch, 20, 16)"
expect 2 cellgate run $two.keras --input $two.npz:in0
says stderr "is missing"
expect 4 cellgate run $model.keras --input $model.npz:in0 --lengths $model.npz:in0
says stderr "lengths of shape (64, 20, 16)"
says stderr "it must be (64)"
# 64 lengths of 2.5.
{
  printf '\223NUMPY\001\000\166\000%-117s\n' \
    "{'descr': '<f4', 'fortran_order': False, 'shape': (64,), }"
  for _ in 1 2 3 4 5 6 7 8; do
    for _ in 1 2 3 4 5 6 7 8; do printf '\000\000\040\100'; done
  done
} >"$work/halves.npy"
expect 4 cellgate run $model.keras --input $model.npz:in0 \
  --lengths "$work/halves.npy"
says stderr "halves.npy: the length of row 0 is 2.5"
expect 4 cellgate run $model.keras --input $model.npz:in0 --mask $model.npz:out0
says stderr "it must be (64, 20)"
expect 4 cellgate run $model.keras --input $model.npz:in0 --output "$work/no/y.npy"
expect 2 cellgate run $model.keras --input $model.npz:in0 --output "$work/y.txt"
says stderr "end in .npy, or in .npz for all"
states=$fixtures/lstm_states
expect 2 cellgate run $states.keras --input $states.npz:in0 --output "$work/y.npy"
says stderr "the model has 3 outputs; give a .npz, a .npy for each"
expect 2 cellgate run $model.keras --input $model.npz:in0 --tolerance -1
expect 2 cellgate convert $model.keras "$work/out.onnx"
says stderr ".safetensors"
expect 4 cellgate convert $model.keras "$work/no/out.safetensors"
says stderr "cellgate: $work/no/out.safetensors: no file can be made"
if [ -w /dev/full ]; then
  for command in inspect "run --input $model.npz:in0" \
    "run --input $model.npz:in0 --json"; do
    code=0
    # shellcheck disable=SC2086
    cellgate $command $model.keras 2>"$work/stderr" >/dev/full || code=$?
    [ $code -eq 4 ] && pass || fail "$command on a full disk exits with $code"
    says stderr "cannot write to standard output"
  done
fi
expect 4 cellgate convert "$work/cut.keras" "$work/out.safetensors"
[ -z "$(find "$work" -name 'out*')" ] && pass || fail "a failed convert left a file"
embedding=$fixtures/embedding
expect 0 cellgate run $embedding.keras --input $embedding.npz:in0

# One kind of file in another's place, and the way out.
expect 4 cellgate run $model.keras --input $model.keras
says stderr "this is a Keras model, and a .npy or .npz file"
expect 4 cellgate run $model.keras --input "$work"
says stderr "this is a folder; a .npy or .npz file is expected"
expect 4 cellgate inspect "$work"
says stderr "a model is one file"
masking=$fixtures/masking
expect 2 cellgate run $masking.keras --input $masking.npz:in0 \
  --lengths "$work/halves.npy"
says stderr "it finds the padding itself"
half=$fixtures/lstm_bfloat16_weights
expect 1 cellgate run $half.keras --input $half.npz:in0 --tolerance 0 \
  --compare $half.npz:f32_out0
says stderr "differ by more than allowed; the dtype policy is bfloat16"

# Devices: the one named, or an error; never another.
expect 5 cellgate run $model.keras --input $model.npz:in0 --device card
says stderr "no device 'card'; there are openmp:0, host"
expect 5 cellgate run $model.keras --input $model.npz:in0 --variant t99
says stderr "no variant 't99'"
says stderr "'t1'"
printf '[device card]\nplugin = vendor\n' >"$work/absent.ini"
expect 5 cellgate run $model.keras --input $model.npz:in0 --device card \
  --config "$work/absent.ini"
says stderr "vendor"
expect 0 cellgate devices --config "$work/absent.ini" --json
says stdout '"out_seconds": 0.0'
says stdout '"retry_seconds": null'
printf '[device card]\nplugin = vendor\nenabled = yes\n' >"$work/must.ini"
expect 5 cellgate run $model.keras --input $model.npz:in0 --config "$work/must.ini"
says stderr "vendor"
CELLGATE_PLUGIN_PATH="$work/empty" expect 5 \
  cellgate run $model.keras --input $model.npz:in0
says stderr "there is no plugin in $work/empty"
expect 0 cellgate run $model.keras --input $model.npz:in0 --device host \
  --plugin-path "$work/nowhere"
says stderr "plugin folder $work/nowhere: No such file"
mkdir "$work/junk"
echo junk >"$work/junk/junk.so"
CELLGATE_PLUGIN_PATH="$work/junk" expect 5 \
  cellgate run $model.keras --input $model.npz:in0
says stderr "no device is usable: junk.so: "
printf '[cellgate]\nunlisted = no\n' >"$work/nothing.ini"
expect 5 cellgate run $model.keras --input $model.npz:in0 \
  --config "$work/nothing.ini"
says stderr "unlisted = no"
printf '[cellgate]\nunlisted = no\n[device a]\nplugin = openmp\nmatch = *no such*\n' \
  >"$work/match.ini"
expect 5 cellgate run $model.keras --input $model.npz:in0 \
  --config "$work/match.ini"
says stderr 'a: no device of plugin openmp matches "*no such*"'

# The conformance suite, through the command: the same exit codes.
expect 0 cellgate conform --help
says stdout "Usage: cellgate conform"
expect 0 cellgate conform -h
expect 2 cellgate conform
says stderr "name the plugin"
expect 2 cellgate conform --no-such-option
expect 5 cellgate conform "$work/none.so"
says stderr "none.so: No such file"
expect 5 cellgate conform "$work/junk/junk.so"
finish
