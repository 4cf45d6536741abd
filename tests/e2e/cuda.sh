#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The CUDA plugin on a machine without a driver, and over the stand-ins: what is
# said of drivers, libraries and devices that do not do; what is not fused, and
# why; several GPUs, of which one is lost.
. "${srcdir:-.}/tests/cuda/standin.sh"
. "${srcdir:-.}/tests/e2e/setup.sh"
model=$fixtures/article

# The plugin as it is installed. Where there is a driver it runs.
offer openmp.so "$build/plugins/cuda/.libs/cuda.so"
ini=$work/cuda.ini
cat >"$ini" <<INI
[cellgate]
plugin_path = $plugins

[device card]
plugin = cuda

[device cpu]
plugin = openmp
INI
if [ ! -e /dev/nvidiactl ]; then
  expect 0 cellgate devices --config "$ini"
  says stdout "no NVIDIA driver"
  says stdout "install the driver"
  expect 0 cellgate run $model.keras --config "$ini" --input $model.npz:in0 \
    --compare $model.npz:out0 --json
  json device cpu
  expect 5 cellgate run $model.keras --config "$ini" --input $model.npz:in0 \
    --device card
  says stderr "no NVIDIA driver"
fi

# Over the stand-ins.
rm -f "$plugins/cuda.so"
cp "$standin" "$plugins/cuda.so"
libraries "$work/libraries"
with() { # SETTINGS COMMAND...
  settings=$1
  shift
  CELLGATE_STANDIN=$settings "$@"
}
run="cellgate run $model.keras --config $ini --input $model.npz:in0 --compare $model.npz:out0 --json"
devices="cellgate devices --config $ini"
sed -i 's/^plugin_path/probe_cache = no\nplugin_path/' "$ini"

expect 0 with 'devices=1' $devices
says stdout "NVIDIA stand-in 0"
says stdout "CUDA 13.0, cuDNN 9.19.0"
expect 0 with 'devices=1' $run
json device card
json variant cudnn

for case in 'driver=0:no NVIDIA driver' \
  'driver=12040:it is for CUDA 12.4, and this plugin needs 13.0' \
  'count_code=100:the NVIDIA driver shows no GPU' \
  'count_code=34:the libcuda.so.1 that was found is the toolkit' \
  'count_code=802:start nvidia-fabricmanager' \
  'count_code=803:are of different versions' \
  'count_code=804:do not support this GPU' \
  'count_code=3:the NVIDIA driver does not start' \
  'count_code=46:the CUDA driver fails' \
  'capability=61:it has compute capability 6.1, and the kernels are built for' \
  'prohibited=1:its compute mode is Prohibited'; do
  expect 0 with "${case%%:*}" $devices
  says stdout "${case#*:}"
  expect 0 with "${case%%:*}" $run
  json device cpu
done

# Without a cuDNN that does, our own kernels run, and it is said why.
for case in 'cudnn=8905:is cuDNN 8, and version 9 is needed' \
  'cudnn=100100:is cuDNN 10, and version 9 is needed' \
  'cudnn_create=1001:is all of cuDNN installed?'; do
  expect 0 with "${case%%:*}" $run
  json device card
  json variant step
  says stderr "${case#*:}"
done
rm "$work/libraries/libcudnn.so.9"
printf 'cudnn = none\n' >"$work/none"
sed -i '/^plugin = cuda/r '"$work/none" "$ini"
expect 0 with 'devices=1' $run
json variant step
says stderr "a setting excludes cuDNN"
sed -i "s|^cudnn = none|cudnn = $work/nowhere.so|" "$ini"
expect 0 with 'devices=1' $run
json variant step
says stderr "cuDNN was not found"
says stderr "install cuDNN 9"
sed -i "s|^cudnn = .*|cudnn = $build/tests/cuda/.libs/libcudart-standin.so|" "$ini"
expect 0 with 'devices=1' $run
json variant step
says stderr "it has no cudnnGetVersion"
sed -i '/^cudnn = /d' "$ini"
libraries "$work/libraries"

# A cuDNN that appears in a folder of the loader's is noticed by what was kept of
# the probe.
mv "$work/libraries/libcudnn.so.9" "$work/away"
sed -i '/^probe_cache/d' "$ini"
expect 0 with 'cudnn=92000' $devices
if grep -q "cuDNN 9.20.0" "$work/stdout"; then
  fail "it is there already"
else
  pass # perhaps the system has one
fi
mv "$work/away" "$work/libraries/libcudnn.so.9"
expect 0 with 'cudnn=92000' $devices
says stdout "CUDA 13.0, cuDNN 9.20.0"
sed -i 's/^plugin_path/probe_cache = no\nplugin_path/' "$ini"

# Costs hold for the versions of the libraries.
identity() { # SETTINGS
  CELLGATE_STANDIN=$1 cellgate devices --config "$ini" --json |
    grep -o '"identity": *"cuda/[^"]*"'
}
for other in cudnn=91901 blaslt=130100; do
  if [ -n "$(identity "$other")" ] &&
    [ "$(identity "$other")" != "$(identity devices=1)" ]; then
    pass
  else
    fail "$other has the identity $(identity "$other")"
  fi
done

# Variants that are left out, by their names.
sed "/^plugin = cuda/a exclude = cudnn cudnn-static*" "$ini" >"$work/without.ini"
without="--config $work/without.ini"
expect 0 with 'devices=1' cellgate run $model.keras $without \
  --input $model.npz:in0 --compare $model.npz:out0 --json
json device card
json variant step
expect 0 with 'devices=1' cellgate plan $model.keras $without --batch 4 --steps 20
says stdout "exclude in [device card] leaves it out"
expect 5 with 'devices=1' cellgate run $model.keras $without --device card \
  --variant cudnn-static --input $model.npz:in0
says stderr "cudnn-static"
sed -i 's/^exclude = .*/exclude = step cudnn-statc/' "$work/without.ini"
expect 3 with 'devices=1' cellgate plan $model.keras $without
says stderr "without.ini:7: [device card] exclude: plugin cuda has no variant"
says stderr "cudnn-statc (did you mean cudnn-static?); it has cudnn, step, cudnn-st"

# Calibration runs what would be chosen: rows of one length too, which alone are
# the persistent algorithms'; what breaks the GPU is named, and how to do without.
sed -i 's/^exclude = .*/exclude = step* block* persistent* cudnn-dynamic/' \
  "$work/without.ini"
calibrate="cellgate calibrate $fixtures/masking.keras $without --device card --seconds 600 --cells 1 --batch 4"
expect 0 with 'devices=1 cudnn_wrong=1' $calibrate
says stderr "card cudnn-static is not measured for"
says stderr "its results differ from the host's"
rm -rf "$XDG_DATA_HOME"/*
expect 0 with 'devices=1 cudnn_fault=1' $calibrate
says stderr "exclude = cudnn-static in the section of the device goes without"
says stderr "card cudnn-small is not measured for"
# The next one checks it last, and it is not chosen.
expect 0 with 'devices=1 cudnn_fault=1' $calibrate
if grep -q "cudnn-small is not measured" "$work/stderr"; then
  fail "what broke the GPU comes first again: $(cat "$work/stderr")"
else
  pass
fi
expect 0 with 'devices=1' cellgate plan "$fixtures/masking.keras" $without \
  --batch 4 --steps 6
says stdout "it broke its device, or hung, when it was checked on"
rm -rf "$XDG_DATA_HOME"/*
# Refused at the small shape that is tried first, and right at another.
expect 0 with 'devices=1 cudnn_refuse=3000 cudnn_refuse_below=4' $calibrate
if grep -q "not measured" "$work/stderr"; then
  fail "a small shape speaks for all: $(cat "$work/stderr")"
else
  pass
fi

# What keeps a model off the fused path, in Keras's words.
inspect() { # MODEL TEXT
  expect 0 with 'devices=1' cellgate inspect "$fixtures/$1" --config "$ini"
  says stdout "$2"
}
inspect lstm_hard_sigmoid.keras "recurrent_activation hard_sigmoid is not fused"
inspect lstm_backwards.keras "go_backwards is not fused"
expect 0 with 'devices=1' cellgate inspect $model.keras --config "$ini"
if grep -q "not fused" "$work/stdout"; then
  fail "the article's model is fused"
else
  pass
fi

# Two GPUs, of which the first is too old.
expect 0 with 'devices=2 capability=61' $devices
says stdout "unusable: compute capability 6.1 is below"
says stdout "NVIDIA stand-in 1"
cat >"$work/two.ini" <<INI
[cellgate]
plugin_path = $plugins
probe_cache = no

[scheduler]
fallback = run

[device first]
plugin = cuda
index = 0

[device second]
plugin = cuda
index = 1
INI
expect 0 with 'devices=2' cellgate run $model.keras --config "$work/two.ini" \
  --input $model.npz:in0 --compare $model.npz:out0 --json
json device first
expect 0 with 'devices=2 capability=61' cellgate run $model.keras \
  --config "$work/two.ini" --input $model.npz:in0 --compare $model.npz:out0 \
  --json
json device second
finish
