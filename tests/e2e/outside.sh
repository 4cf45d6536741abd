#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A vendor's day: installed files only, a plugin built outside the tree, an INI
# section; libcellgate's file stays as it was. And an application, likewise.
. "${srcdir:-.}/tests/e2e/setup.sh"
stage=$work/stage
make -C "$build" install DESTDIR="$stage" >"$work/install.log" 2>&1 ||
  { cat "$work/install.log"; exit 1; }
pc=$(find "$stage" -name cellgate-plugin.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$stage"
export LD_LIBRARY_PATH="$libdir"
export CELLGATE_PROBE=$(find "$stage" -name cellgate-probe)
before=$(sha256sum "$libdir"/libcellgate.so.*.*.*)

# Links between installed documents lead somewhere.
documents=$(dirname "$(find "$stage" -name plugin-guide.md)")
links=$(grep -ohE '\]\([^)#:]+\)' "$documents"/*.md | sort -u | tr -d ']()')
[ -n "$links" ] && pass || fail "no links in $documents"
for link in $links; do
  [ -e "$documents/$link" ] && pass || fail "an installed document links to $link"
done

# The plugin folder is where pkg-config says it is.
plugindir=$(pkg-config --variable=plugindir cellgate-plugin)
case $plugindir in
*/cellgate) pass ;;
*) fail "plugindir is '$plugindir'" ;;
esac

mkdir "$work/vendor"
cp "$top"/tests/plugins/outside/minimal.c "$top"/tests/plugins/outside/Makefile \
  "$work/vendor/"
# With a vendor's own flags, not with those of the tree.
expect 0 env -u MAKEFLAGS -u MAKELEVEL -u CFLAGS -u LDFLAGS \
  make -C "$work/vendor" CC="${CC:-cc}"
cat >"$work/vendor.ini" <<INI
[cellgate]
plugin_path = $work/vendor

[device mine]
plugin = minimal
INI
model=$fixtures/article
installed=$(find "$stage" -path '*/bin/cellgate')
expect 0 "$installed" devices --config "$work/vendor.ini"
says stdout "mine:"
expect 0 "$installed" run $model.keras --config "$work/vendor.ini" \
  --device mine --input $model.npz:in0 --compare $model.npz:out0 --json
json device mine

# A limit on shapes is asked before a plan is made: 64 rows are too many.
cat >"$work/limit.ini" <<INI
[cellgate]
plugin_path = $work/vendor

[device mine]
plugin = minimal
max_batch = 48
INI
limited="run $model.keras --input $model.npz:in0 --compare $model.npz:out0 --json"
# shellcheck disable=SC2086
expect 4 "$installed" $limited --config "$work/limit.ini"
says stderr "device 'mine' cannot plan lstm for batch 64"
says stderr "batch 64 is above max_batch = 48"
printf '\n[scheduler]\nfallback = run\n' >>"$work/limit.ini"
# shellcheck disable=SC2086
expect 0 "$installed" $limited --config "$work/limit.ini"
json device host
says stdout "above max_batch = 48"
# The plan's shape is rounded up only where the device takes that too.
three=$fixtures/lstm_sequences
sed -i 's/max_batch = 48/max_batch = 3/; /fallback/d' "$work/limit.ini"
expect 0 "$installed" run $three.keras --config "$work/limit.ini" \
  --input $three.npz:in0 --compare $three.npz:out0 --json
json device mine
[ "$before" = "$(sha256sum "$libdir"/libcellgate.so.*.*.*)" ] && pass ||
  fail "libcellgate changed"

# The conformance report, from installed files.
export CELLGATE_CONFORM=$(find "$stage" -name cellgate-conform)
expect 0 "$installed" conform "$work/vendor/minimal.so" --quick

# An application against the installed library.
cat >"$work/app.c" <<'C'
#include <cellgate/cellgate.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (argc != 2 || cellgate_model_load(argv[1], &model, &error) != CELLGATE_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%zu nodes\n", cellgate_model_node_count(model));
    cellgate_model_destroy(model);
    return 0;
}
C
expect 0 ${CC:-cc} "$work/app.c" -o "$work/app" ${CFLAGS:-} ${LDFLAGS:-} \
  $(pkg-config --cflags --libs cellgate)
expect 0 "$work/app" $model.keras
says stdout "2 nodes"

# The program of README.md, as it stands there.
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$top/README.md" \
  >"$work/readme.c"
expect 0 ${CC:-cc} -std=c11 -Wall -Wextra -Werror "$work/readme.c" \
  -o "$work/readme" ${CFLAGS:-} ${LDFLAGS:-} \
  $(pkg-config --cflags --libs cellgate)
cp $model.keras "$work/model.keras"
cd "$work"
CELLGATE_CONFIG="$work/vendor.ini" expect 0 "$work/readme"
says stdout "mine plain: "
cd "$build"

# What is installed, and what is not.
for file in bin/cellgate include/cellgate/plugin.h share/man/man1/cellgate.1; do
  [ -n "$(find "$stage" -path "*/$file")" ] && pass || fail "$file is not installed"
done
[ -z "$(find "$stage" -name '*.la' -path '*/lib/cellgate/*' -o -name 'fake*.so')" ] &&
  pass || fail "test plugins or .la files beside the plugins are installed"
finish
