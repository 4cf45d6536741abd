#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Arrows between rooms run one way: which room may include which. The core
# names no plugin.
set -eu
cd "${srcdir:-.}"
failed=0 passed=0
bad() {
  failed=$((failed + 1))
  echo "FAILED: $*"
}

# Included project headers of the files below a folder, as FILE PATH.
included() {
  find "$1" \( -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' \) -exec grep -HoE '^ *# *include *"[^"]+"' {} + |
    sed -E 's/^([^:]+): *# *include *"([^"]+)"/\1 \2/' |
    grep -v ' config\.h$' || true
}

# allow FOLDER PATTERN...: the files below may include these paths only.
allow() {
  folder=$1
  shift
  [ -d "$folder" ] || return 0
  pattern=$(printf '|%s' "$@")
  wrong=$(included "$folder" | grep -vE " (${pattern#|})" || true)
  if [ -n "$wrong" ]; then
    bad "$folder includes what it must not:"
    echo "$wrong"
  else
    passed=$((passed + 1))
  fi
}

public='cellgate/(types|cellgate|calibrate|generate|plugin|chain)\.h$'
abi='cellgate/(types|plugin|chain)\.h$'
allow include "$public"
allow runtime/config 'runtime/config/' "$public"
allow runtime/model 'runtime/model/' 'runtime/given\.h$' "$public"
allow runtime/formats 'runtime/(formats|model)/' 'runtime/(given|file_name)\.h$' "$public"
allow runtime/plugin 'runtime/(plugin|config)/' 'runtime/(formats/atomic_file|cost/clock)\.h$' "$public"
allow runtime/host 'runtime/(host|model)/' "$public"
allow runtime/cost 'runtime/cost/' "$public"
allow runtime/schedule 'runtime/(schedule|cost)/' "$public"
allow runtime/session 'runtime/(session|host|plugin|model|config|schedule|cost)/' 'runtime/(runtime|given|file_name)\.h$' 'runtime/formats/convert\.h$' "$public"
allow runtime/generate 'runtime/(generate|model)/' 'runtime/given\.h$' 'runtime/formats/convert\.h$' "$public"
allow cli 'cli/' 'cellgate/(types|cellgate|calibrate|generate)\.h$'
# The cell's mathematics is one file for all devices.
for plugin in plugins/*; do
  allow "$plugin" "$plugin/" 'plugins/opencl/cell\.cl$' "$abi"
done
allow tests/oracle 'tests/oracle/' "$abi"
allow tests/conformance 'tests/(conformance|oracle)/' "$abi"
allow tests/plugins 'tests/plugins/' "$abi"
allow tests/cuda 'tests/(cuda|oracle)/' 'plugins/cuda/' "$abi"
allow bench 'bench/' 'tests/(conformance|oracle)/' "$public"

# A file beside the others includes with its path from the top, so the rules
# above see it.
for folder in runtime cli; do
  local=$(included "$folder" | grep -vE ' [a-z]+/' || true)
  if [ -n "$local" ]; then
    bad "include with the path from the top:"
    echo "$local"
  else
    passed=$((passed + 1))
  fi
done

if grep -rniwE 'openmp|opencl|cuda' runtime --include='*.[ch]'; then
  bad "the core names a plugin"
else
  passed=$((passed + 1))
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
