# SPDX-License-Identifier: Apache-2.0
# Read by the tests of the OpenCL plugin: makes one driver the only one, and
# keeps what it and the plugin compile in the build folder.

# only FILE WHAT: the loader sees this driver alone; a test without it is
# skipped.
only() {
  [ -e "$1" ] || {
    echo "$2 is not installed"
    exit 77
  }
  case " ${CFLAGS-} " in
  *-fsanitize*)
    echo "$2 is not run in instrumented builds: its compiler is not"
    exit 77
    ;;
  esac
  export OCL_ICD_VENDORS="$1" OCL_ICD_FILENAMES="$1"
  export POCL_CACHE_DIR="$PWD/tests/cache/pocl"
  mkdir -p "$POCL_CACHE_DIR"
}

# conform ARGUMENT...: the suite, with the programs' cache in the build folder.
conform() {
  ./cellgate-conform ${CONFORM_MODE:---quick} \
    --set cache="$PWD/tests/cache/opencl" "$@" plugins/opencl/.libs/opencl.so
}
