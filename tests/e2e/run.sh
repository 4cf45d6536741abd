#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The path that a user walks: a Keras file, an INI, a prediction that is Keras's.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so
model=$fixtures/article
cat >"$work/cellgate.ini" <<INI
[cellgate]
plugin_path = $plugins

[device cpu]
plugin = openmp
INI
ini=$work/cellgate.ini

# Against what Keras stored, with the device named in the report.
expect 0 cellgate run $model.keras --config $ini --input $model.npz:in0 \
  --compare $model.npz:out0 --json
json device cpu
json segments 1
json outputs.0.shape.0 64
json outputs.0.shape.1 1

# The comparison can say no: outputs against the wrong array.
expect 1 cellgate run $model.keras --config $ini --input $model.npz:in0 \
  --compare $model.npz:out0 --tolerance 1e-12
says stderr "differ by more than allowed"

# To a file and back; through the native file; on the host reference.
expect 0 cellgate run $model.keras --config $ini --input $model.npz:in0 \
  --output $work/y.npy
[ ! -e $work/y.npy ] && fail "no output file" || pass
expect 0 cellgate run $model.keras --config $ini --input $model.npz:in0 \
  --compare $work/y.npy --tolerance 0
expect 0 cellgate convert $model.keras $work/article.safetensors
expect 0 cellgate run $work/article.safetensors --config $ini \
  --input $model.npz:in0 --compare $work/y.npy --tolerance 0
expect 0 cellgate run $model.keras --config $ini --input $model.npz:in0 \
  --device host --compare $model.npz:out0 --json
json device host

# Each level, and one thread, by name.
for level in scalar avx2; do
  [ $level = scalar ] || grep -qw avx2 /proc/cpuinfo || continue
  printf '[cellgate]\nplugin_path = %s\n[device %s]\nplugin = openmp\nlevel = %s\n' \
    "$plugins" $level $level >"$work/$level.ini"
  expect 0 cellgate run $model.keras --config "$work/$level.ini" \
    --input $model.npz:in0 --compare $model.npz:out0 --device $level \
    --variant t1 --json
  json device $level
  json variant t1
done

# Several inputs by name, several outputs into a .npz, masks.
two=$fixtures/encoder_decoder
expect 0 cellgate inspect $two.keras --config $ini --json
json inputs 2
first=$("$build/tests/e2e/json_get" "$work/stdout" inputs.0.name)
second=$("$build/tests/e2e/json_get" "$work/stdout" inputs.1.name)
expect 0 cellgate run $two.keras --config $ini --input "$second=$two.npz:in1" \
  --input "$first=$two.npz:in0" --compare $two.npz:out0
states=$fixtures/lstm_states
expect 0 cellgate run $states.keras --config $ini --input $states.npz:in0 \
  --output $work/states.npz
expect 0 cellgate run $states.keras --config $ini --input $states.npz:in0 \
  --compare $states.npz:out0 --compare $states.npz:out1 \
  --compare $states.npz:out2
expect 0 cellgate run $states.keras --config $ini --input $states.npz:in0 \
  --compare $work/states.npz --compare $work/states.npz \
  --compare $work/states.npz --tolerance 0
holes=$fixtures/lstm_holes
expect 0 cellgate run $holes.keras --config $ini --input $holes.npz:in0 \
  --mask $holes.npz:mask0 --compare $holes.npz:out0

# Files with steps before rows, as the model's Keras has them.
turned=${fixtures%/keras}/tf_keras/time_major_layers
for form in $turned.h5 $work/turned.safetensors; do
  [ -e $form ] || expect 0 cellgate convert $turned.h5 $form
  expect 0 cellgate run $form --config $ini --input $turned.npz:in0 \
    --input $turned.npz:in1 --input $turned.npz:in2 --compare $turned.npz:out0 \
    --compare $turned.npz:out1 --compare $turned.npz:out2
done
expect 0 cellgate inspect $turned.h5 --config $ini
says stdout "in files (steps, batch, ...)"

# Lengths, from float16: 20.0 for each row is all of it; 20.5 is no length.
lengths() { # TWO-BYTES
  printf '\223NUMPY\001\000\166\000%-117s\n' \
    "{'descr': '<f2', 'fortran_order': False, 'shape': (64,), }"
  row=0
  while [ $row -lt 64 ]; do
    # shellcheck disable=SC2059
    printf "$1"
    row=$((row + 1))
  done
}
lengths '\000\115' >"$work/lengths.npy"
expect 0 cellgate run $model.keras --config $ini --input $model.npz:in0 \
  --lengths "$work/lengths.npy" --compare $model.npz:out0
lengths '\040\115' >"$work/lengths.npy"
expect 4 cellgate run $model.keras --config $ini --input $model.npz:in0 \
  --lengths "$work/lengths.npy"

# Outputs in files of their own, and only the one that is wanted.
first=$(cellgate inspect $states.keras --config $ini --json >"$work/names.json" &&
  "$build/tests/e2e/json_get" "$work/names.json" outputs.1.name)
expect 0 cellgate run $states.keras --config $ini --input $states.npz:in0 \
  --output "$first=$work/h.npy"
expect 0 cellgate run $states.keras --config $ini --input $states.npz:in0 \
  --compare "$first=$work/h.npy" --tolerance 0
expect 0 cellgate run $states.keras --config $ini --input $states.npz:in0 \
  --output $work/y0.npy --output $work/y1.npy --output $work/y2.npy
cmp -s $work/h.npy $work/y1.npy && pass || fail "the second output is another"
# Several in one .npz; one .npy cannot hold two; a name that is none.
second=$("$build/tests/e2e/json_get" "$work/names.json" outputs.2.name)
named=$fixtures/named_inputs_outputs
expect 0 cellgate run $named.keras --config $ini --input $named.npz:in0 \
  --input $named.npz:in1 --output z=$work/two.npz --output y=$work/two.npz
expect 0 cellgate run $named.keras --config $ini --input $named.npz:in0 \
  --input $named.npz:in1 --compare y=$work/two.npz:y \
  --compare z=$work/two.npz:z --tolerance 0
expect 2 cellgate run $states.keras --config $ini --input $states.npz:in0 \
  --output "$first=$work/one.npy" --output "$second=$work/one.npy"
says stderr "one.npy: two outputs go there"
expect 2 cellgate run $states.keras --config $ini --input $states.npz:in0 \
  --output "nope=$work/h.npy"
says stderr "the model has no output 'nope'; its outputs are '"
says stderr "'$first', '$second'"

# A tensor that is two outputs, and outputs in a dictionary: by their keys.
twice=$fixtures/output_is_input
expect 0 cellgate run $twice.keras --config $ini --input $twice.npz:in0 \
  --output $work/twice.npz
expect 0 cellgate inspect $named.keras --config $ini
says stdout "output z "
expect 0 cellgate convert $named.keras $work/named.safetensors
expect 0 cellgate inspect $work/named.safetensors --config $ini
says stdout "output z "

# State from one call to the next, as Keras's stateful layers have it.
kept=$fixtures/stateful
expect 0 cellgate run $kept.keras --config $ini --input $kept.npz:in0 \
  --compare $kept.npz:out0 --state-out $work/kept.npz
expect 0 cellgate run $kept.keras --config $ini --input $kept.npz:next_in0 \
  --state-in $work/kept.npz --state-out $work/kept.npz \
  --compare $kept.npz:next_out0
expect 1 cellgate run $kept.keras --config $ini --input $kept.npz:next_in0 \
  --state-in $work/kept.npz --compare $kept.npz:next_out0
expect 2 cellgate run $kept.keras --config $ini --input $kept.npz:in0 \
  --state-out $work/kept.npz --repeat 2
expect 4 cellgate run $model.keras --config $ini --input $model.npz:in0 \
  --state-in $work/kept.npz
says stderr "kept.npz"

# Printed where no output is named.
expect 0 cellgate run $model.keras --config $ini --input $model.npz:in0
says stderr "device: cpu"
[ "$(wc -l <"$work/stdout")" -eq 65 ] && pass || fail "not 64 rows and a title"

# What a file of lower precision becomes is said, and kept by convert.
expect 0 cellgate inspect $fixtures/lstm_float16_policy.keras --config $ini
says stdout "note: the dtype policy is "
says stdout "computed in float32"
expect 0 cellgate inspect $fixtures/lstm_float16_policy.keras --config $ini --json
json format keras
note=$("$build/tests/e2e/json_get" "$work/stdout" note)
expect 0 cellgate convert $fixtures/lstm_float16_policy.keras $work/half.safetensors
expect 0 cellgate inspect $work/half.safetensors --config $ini --json
json format native
json note "$note"
expect 0 cellgate inspect $model.keras --config $ini --json
json note ""

# inspect in text.
expect 0 cellgate inspect $model.keras --config $ini
says stdout "On cpu:"
says stdout "6305 parameters"
finish
