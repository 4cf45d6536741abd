#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles by itself, twice over, as C and as C++, without
# a warning.
set -eu
srcdir=${srcdir:-.}
CC=${CC:-cc}
CXX=${CXX:-c++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0
for header in types cellgate calibrate generate plugin chain; do
  printf '#include "cellgate/%s.h"\n#include "cellgate/%s.h"\nint main(void){return 0;}\n' \
    $header $header >"$work/t.c"
  cp "$work/t.c" "$work/t.cc"
  $CC -std=c11 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Wshadow -Werror \
    -I"$srcdir/include" -c "$work/t.c" -o "$work/t.o"
  $CC -std=c99 -Wall -Wextra -Werror -I"$srcdir/include" -c "$work/t.c" -o "$work/t.o"
  $CXX -std=c++11 -Wall -Wextra -Wpedantic -Werror \
    -I"$srcdir/include" -c "$work/t.cc" -o "$work/t.o"
  checked=$((checked + 3))
done
echo "$checked passed, 0 failed"
