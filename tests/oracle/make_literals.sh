#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes literals.h beside this script. Each argument is a Python that has the
# framework: make_literals.sh KERAS_PYTHON ONNX_PYTHON TORCH_PYTHON
set -eu
here=$(dirname "$0")
parts=$(mktemp)
trap 'rm -f "$parts"' EXIT
"$1" "$here/make_literals.py" keras >"$parts"
"$2" "$here/make_literals.py" onnx >>"$parts"
"$3" "$here/make_literals.py" torch >>"$parts"
{
  echo '/* SPDX-License-Identifier: Apache-2.0 */'
  echo '/* Made by make_literals.sh from runs of the programs named below; the'
  echo ' * layouts are those of cellgate/plugin.h. Not to be edited. */'
  echo '/* clang-format off */'
  echo '#ifndef TESTS_ORACLE_LITERALS_H'
  echo '#define TESTS_ORACLE_LITERALS_H'
  echo
  cat "$parts"
  echo
  echo '#endif'
} >"$here/literals.h"
