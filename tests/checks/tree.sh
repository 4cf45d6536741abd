#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tree itself: licence lines, file names that say what is inside, and sizes.
set -eu
cd "${srcdir:-.}"
failed=0 passed=0
bad() {
  failed=$((failed + 1))
  echo "FAILED: $*"
}
files=$(find include runtime cli plugins tests bench m4 -type f \
  \( -name '*.[ch]' -o -name '*.c[cu]' -o -name '*.sh' -o -name '*.py' -o -name 'local.am' -o -name 'cellgate_*.m4' \))
listed=$(cat Makefile.am $(find . -name '*.am' -not -path './build*'))
for file in $files; do
  head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
    bad "$file has no SPDX line"
  case $(basename "$file") in
  util.* | utils.* | common.* | misc.* | helper.* | helpers.*)
    bad "$file is named after nothing that it holds"
    ;;
  esac
  case $file in
  *.h)
    case $listed in
    *"$file"*) ;;
    *) bad "$file is in no local.am, so no release has it" ;;
    esac
    ;;
  esac
  case $file in
  *.c | *.h | *.cc | *.cu)
    lines=$(wc -l <"$file")
    [ "$lines" -le 800 ] || bad "$file has $lines lines: split it at 800"
    ;;
  esac
  passed=$((passed + 1))
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
