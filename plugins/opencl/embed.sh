#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh FOLDER: writes a C file with the kernels' source in it, a text a
# program, on standard output.
set -eu
cd "$1"
text() { # NAME FILE...
  name=$1
  shift
  printf 'const char %s[] = {\n' "$name"
  cat "$@" | od -An -v -tx1 | sed 's/[0-9a-f][0-9a-f]/0x&,/g'
  printf '0 };\n'
}
echo '/* Made by plugins/opencl/embed.sh. */'
echo '#include "plugins/opencl/program.h"'
text ocl_source_rows arguments.h prelude.cl cell.cl rows.cl
text ocl_source_lstm arguments.h prelude.cl cell.cl lstm.cl
