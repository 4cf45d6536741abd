# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Read by tests that run the CUDA plugin over the stand-ins: libraries are found
# where the loader looks first.
standin=$PWD/tests/cuda/.libs/cuda-standin.so
[ -e "$standin" ] || {
  echo "built without the CUDA toolkit"
  exit 77
}
# libraries FOLDER: puts them there as the system's, and nothing else.
libraries() {
  mkdir -p "$1"
  ln -sf "$PWD/tests/cuda/.libs/cudnn-standin.so" "$1/libcudnn.so.9"
  ln -sf "$PWD/tests/cuda/.libs/blaslt-standin.so" "$1/libcublasLt.so.13"
  export LD_LIBRARY_PATH="$1:$PWD/tests/cuda/.libs"
}
