#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts/gpu-check from a tree such as scripts/gpu-bundle makes, over the
# stand-ins in place of a GPU: every variant is tried, what there is no time for
# is not passed, and neither is a variant that ran nothing.
. "${srcdir:-.}/tests/cuda/standin.sh"
. "${srcdir:-.}/tests/e2e/setup.sh"
case " ${CFLAGS-} " in
*-fsanitize*)
  echo "what it runs is run in instrumented builds by other tests"
  exit 77
  ;;
esac
bundle=$work/bundle
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/plugins" "$bundle/models"
for program in cellgate cellgate-probe cellgate-conform; do
  cp "$build/.libs/$program" "$bundle/bin/" 2>/dev/null ||
    cp "$build/$program" "$bundle/bin/"
done
cp -P "$build"/.libs/libcellgate.so* "$bundle/lib/"
cp "$top/scripts/gpu-check" "$bundle/"
cp "$build/.libs/openmp.so" "$bundle/plugins/"
cp "$standin" "$bundle/plugins/cuda.so"
cp "$build"/tests/cuda/.libs/libcudart-standin.so* "$bundle/lib/"
cp $fixtures/article.keras $fixtures/article.npz "$bundle/models/"

# cuDNN and cuBLASLt where packages of python3 have them.
mkdir -p "$work/site/nvidia/cudnn/lib" "$work/site/nvidia/cu13/lib"
cp "$build/tests/cuda/.libs/cudnn-standin.so" \
  "$work/site/nvidia/cudnn/lib/libcudnn.so.9"
cp "$build/tests/cuda/.libs/blaslt-standin.so" \
  "$work/site/nvidia/cu13/lib/libcublasLt.so.13"
unset LD_LIBRARY_PATH CUDA_HOME CUDA_PATH
export PYTHONPATH="$work/site"

# A sanitizer that runs what it is given.
mkdir "$work/tools"
printf '#!/bin/sh\nshift 2\nexec "$@"\n' >"$work/tools/compute-sanitizer"
chmod +x "$work/tools/compute-sanitizer"
PATH=$work/tools:$PATH

# check NAME SECONDS STANDIN CODE
check() {
  results=$work/$1
  code=0
  CELLGATE_STANDIN=$3 GPU_CHECK_SECONDS=$2 GPU_CHECK_SHAPES=2,3,4,5,1 \
    GPU_CHECK_FILTER='^(lengths: batch=2 .* lengths=full .* state=given |ops: batch=6 rows )' \
    "$bundle/gpu-check" "$results" >"$work/stdout" 2>"$work/stderr" || code=$?
  if [ $code -eq "$4" ]; then
    pass
  else
    fail "gpu-check $1 exits with $code, not $4"
  fi
}
told() { # FILE PATTERN
  if grep -qE -- "$2" "$results/$1"; then
    pass
  else
    fail "$1 lacks: $2; it is:"
    sed 's/^/    /' "$results/$1" | tail -n 40
  fi
}

check whole 600 'devices=1' 0
told summary.txt "cuDNN: $work/site/nvidia/cudnn/lib/libcudnn.so.9"
told devices.txt 'cuDNN 9\.19'
told summary.txt '^0 failed, 0 not tried'
told summary.txt 'compute-sanitizer: nothing found'
# As many as the plugin's table has, each in the conformance and in the table.
count=$(grep -cE '^    (FUSED|OWN|BLAS)\(' "$top/plugins/cuda/variants.c")
[ "$(grep -c '^conformance of .*, full: [1-9][0-9]* cases passed' "$results/summary.txt")" -eq $((count + 1)) ] &&
  pass || fail "not all $count variants, and rows, are in the conformance"
[ "$(grep -c '^"2,3,4,5,1","gpu",' "$results/bench.csv")" -eq "$count" ] && pass ||
  fail "not all $count variants are in the table"
told bench.csv '^"shape",device'
told bench.csv '^"2,3,4,5,1","cpu","t1"'
told map.csv '^"article.keras",'
[ "$(find "$results" -type f | wc -l)" -le 8 ] && pass ||
  fail "there are more than eight results"

# Nothing can be done in the time.
check late 2 'devices=1' 1
told summary.txt '^NOT TRIED, no time left: conformance of '
told summary.txt '^not tried: .*map of article.keras'
# cuDNN that has no persistent algorithm when it comes to it, and a sanitizer that
# has complained by the time that it is stopped.
rm "$bundle/models/article.keras"
cat >"$work/tools/compute-sanitizer" <<'SH'
#!/bin/sh
echo "========= COMPUTE-SANITIZER"
echo "========= Invalid __global__ write of size 4 bytes"
echo "=========     at step_kernel+0x10"
echo "========= Error: process didn't terminate successfully"
exit 124
SH
check refused 600 'devices=1 cudnn_refuse=1' 1
told summary.txt '^FAILED: compute-sanitizer: ========= Invalid __global__ write'
told summary.txt '^FAILED: conformance of cudnn-dynamic, full: '
told summary.txt '^conformance of cudnn, full: [1-9]'
# There is no GPU.
check none 60 'devices=1 driver=0' 1
told summary.txt '^nothing ran on a GPU'
told summary.txt 'no NVIDIA driver'
finish
