# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Read by the end-to-end tests: where things are, and the words they check with.
# They run in the build folder.
set -eu
top=$(cd "${srcdir:-.}" && pwd)
build=$PWD
fixtures=$top/tests/fixtures/keras
export CELLGATE_PROBE="$build/cellgate-probe"
export CELLGATE_CONFORM="$build/cellgate-conform"
unset CELLGATE_CONFIG CELLGATE_PLUGIN_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME="$work/config" XDG_CACHE_HOME="$work/cache"
export XDG_DATA_HOME="$work/data"
mkdir -p "$XDG_CONFIG_HOME" "$XDG_CACHE_HOME" "$XDG_DATA_HOME"
passed=0 failed=0

cellgate() { "$build/cellgate" "$@"; }

# Where libtool leaves the plugins: a folder with nothing but the one wanted.
plugins=$work/plugins
mkdir "$plugins"
offer() { # PLUGIN.so...: makes it findable
  for plugin in "$@"; do cp "$build/.libs/$plugin" "$plugins/" 2>/dev/null ||
    cp "$plugin" "$plugins/"; done
}

pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  echo "FAILED: $*"
}

# expect CODE COMMAND...: runs it; its exit code must be CODE. Its output is
# in $work/stdout and $work/stderr.
expect() {
  wanted=$1
  shift
  code=0
  "$@" >"$work/stdout" 2>"$work/stderr" || code=$?
  if [ $code -eq "$wanted" ]; then
    pass
  else
    fail "$* exits with $code, not $wanted"
    sed 's/^/    /' "$work/stdout" "$work/stderr" | tail -n 20
  fi
}

# says FILE TEXT: the file (stdout or stderr) has it.
says() {
  if grep -qF -- "$2" "$work/$1"; then
    pass
  else
    fail "$1 lacks: $2; it is:"
    sed 's/^/    /' "$work/$1" | tail -n 20
  fi
}

# json PATH VALUE: the JSON on stdout has this there.
json() {
  found=$("$build/tests/e2e/json_get" "$work/stdout" "$1") || found="(nothing)"
  if [ "$found" = "$2" ]; then pass; else fail "$1 is $found, not $2"; fi
}

finish() {
  echo "$passed passed, $failed failed"
  [ $failed -eq 0 ] && [ $passed -gt 0 ]
}
