#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A CPU and an OpenCL device in one configuration: PoCL as a device, what is said
# without a driver, both calibrated together, and a second process that compiles
# nothing.
. "${srcdir:-.}/tests/e2e/setup.sh"
[ -e /etc/OpenCL/vendors/pocl.icd ] || {
  echo "PoCL is not installed"
  exit 77
}
case " ${CFLAGS-} " in
*-fsanitize*)
  echo "PoCL is not run in instrumented builds: its compiler is not"
  exit 77
  ;;
esac
offer openmp.so "$build/plugins/opencl/.libs/opencl.so"
pocl=/etc/OpenCL/vendors/pocl.icd
export OCL_ICD_VENDORS=$pocl OCL_ICD_FILENAMES=$pocl
export POCL_CACHE_DIR="$build/tests/cache/pocl"
mkdir -p "$POCL_CACHE_DIR"
model=$fixtures/article
ini=$work/both.ini
cat >"$ini" <<INI
[cellgate]
plugin_path = $plugins
log = debug

[device cpu]
plugin = openmp

[device card]
plugin = opencl
match = */cpu/*
INI

expect 0 cellgate devices --config "$ini"
says stdout "Portable Computing Language"

# Keras's own output; what another process compiled is loaded.
expect 0 cellgate warm $model.keras --config "$ini"
says stderr "compiled a program in"
says stdout "card             prepared in"
says stdout "cpu              prepared in"
expect 0 cellgate run $model.keras --config "$ini" --input $model.npz:in0 \
  --device card --compare $model.npz:out0 --json
json device card
says stderr "loaded a program in"
if grep -q "compiled a program" "$work/stderr"; then
  fail "the second process compiled a program"
else
  pass
fi

# Half precision where it is named, or allowed; a CPU computes on one core where
# no more is granted.
expect 0 cellgate run $model.keras --config "$ini" --input $model.npz:in0 \
  --device card --variant fused-f16 --json
json device card
json variant fused-f16
json numeric f16
expect 0 cellgate plan $model.keras --config "$ini" --batch 64 --steps 20
says stdout "its results are f16, which [scheduler] precision = mixed allows"
if [ "$(nproc)" -ge 2 ]; then
  sed 's/^\[device card\]$/[scheduler]\nthreads = 1\n&/' "$ini" >"$work/one.ini"
  expect 0 cellgate run $model.keras --config "$work/one.ini" \
    --input $model.npz:in0 --device card --compare $model.npz:out0 --json
  json variant fused-t1
fi

# Both are measured, and the map has a place for each shape.
expect 0 cellgate calibrate $model.keras --config "$ini" --seconds 6 \
  --batch 1-64 --steps 20-20
expect 0 cellgate plan $model.keras --config "$ini" --batch 64 --steps 20
says stdout "cpu"
says stdout "card"
expect 0 cellgate plan $model.keras --config "$ini" --grid
says stdout "cpu"

expect 0 cellgate warm $model.keras --config "$ini" --device card --json
json devices.0.device card
json devices.0.reason ""

# Without a driver the CPU goes on, and the reason is shown.
export OCL_ICD_VENDORS="$work/none.icd" OCL_ICD_FILENAMES="$work/none.icd"
expect 0 cellgate devices --config "$ini"
says stdout "no OpenCL driver"
says stdout "install your device's driver"
expect 0 cellgate run $model.keras --config "$ini" --input $model.npz:in0 \
  --compare $model.npz:out0 --json
json device cpu
expect 5 cellgate run $model.keras --config "$ini" --input $model.npz:in0 \
  --device card
says stderr "no OpenCL driver"
expect 5 cellgate warm $model.keras --config "$ini" --device card
says stdout "no OpenCL driver"
expect 0 cellgate warm $model.keras --config "$ini"
expect 4 cellgate warm "$work/none.keras" --config "$ini"
finish
