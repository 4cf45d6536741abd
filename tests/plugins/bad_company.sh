#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plugins that crash, hang, exit and forge answers cost a line each in `cellgate
# devices` and nothing else: a good one beside them runs a model as if alone.
. "${srcdir:-.}/tests/e2e/setup.sh"
model=$fixtures/article
modules=$build/tests/plugins/.libs
offer "$modules/fake.so"
cat >"$work/cellgate.ini" <<INI
[cellgate]
plugin_path = $plugins
probe_timeout = 2
INI
ini=$work/cellgate.ini

# alone: what the good one does without company
expect 0 cellgate devices --config "$ini"
lines=$(wc -l <"$work/stdout")
expect 0 cellgate run "$model.keras" --config "$ini" --device fake:0 \
  --input "$model.npz:in0" --output "$work/alone.npy"

bad='crash_on_load crash_in_init exit0_in_init exit_on_load hang_on_load
hang_in_init exit_leaving_child no_common_version bad_magic many_devices'
for name in $bad; do cp "$modules/bad.so" "$plugins/$name.so"; done
cp "$modules/no_entry.so" "$plugins/"
echo 'not a plugin' >"$plugins/text.so"
mkdir "$plugins/folder.so"
ln -s nowhere "$plugins/dangling.so"
set -- $bad no_entry text folder dangling

# The first time they are probed, the second time remembered.
for time in first second; do
  start=$(date +%s)
  expect 0 cellgate devices --config "$ini"
  took=$(($(date +%s) - start))
  [ "$(wc -l <"$work/stdout")" -eq $((lines + $#)) ] && pass ||
    fail "$time time: not a line more for each of $#: $(cat "$work/stdout")"
  [ -s "$work/stderr" ] && fail "stderr: $(cat "$work/stderr")" || pass
  for name in "$@"; do
    [ "$(grep -c "/$name\.so: not used: " "$work/stdout")" -eq 1 ] && pass ||
      fail "$time time: $name has no line of its own"
  done
done
# Two that hang cost no more than their limits, and the second time nothing.
[ "$took" -le 1 ] && pass || fail "remembered verdicts took $took s"
says stdout "hang_in_init.so: not used: did not answer within 2 s"
says stdout "exit0_in_init.so: not used: ended the process with exit status 0"
says stdout "many_devices.so: not used: states 4294967295 devices"

expect 0 cellgate run "$model.keras" --config "$ini" --device fake:0 \
  --input "$model.npz:in0" --output "$work/company.npy" \
  --compare "$model.npz:out0"
[ -s "$work/stderr" ] && fail "stderr: $(cat "$work/stderr")" || pass
cmp "$work/alone.npy" "$work/company.npy" && pass || fail "outputs differ"
finish
