#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether the choice is right after a short calibration: LSTMs of 32, 128 and 512
# units behind Dense(1), batch 1 to 256, steps 1 to 512 (powers of two: 90 shapes
# each), over the variants of the CPU and two simulated accelerators. At most 15%
# of the shapes are measured; then 70 of each model's shapes are drawn by a seed
# and audited. Fails if less than 95% of all are right. It measures: nothing else
# should run. `make check-choice`; 10 to 20 minutes.
#
# SEED (1), CELLS (70), SECONDS_EACH (420, of each audit), THREADS (all) may be
# set in the environment; REPORT names a folder that keeps what was measured.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so "$build/tests/plugins/remote/.libs/remote.so"
report=${REPORT:-$work}
mkdir -p "$report"
cat >"$work/cellgate.ini" <<INI
[cellgate]
plugin_path = $plugins
unlisted = no
[device cpu]
plugin = openmp
threads = ${THREADS:-0}
[device near]
plugin = remote
index = 0
simulate = yes
variants = any
launch = 0.00006
step = 0.000004
tile = 16
bus = 1000000000
rate = 300000000000
noise = 2
compute_most = 50000000
[device far]
plugin = remote
index = 1
simulate = yes
variants = any
launch = 0.0006
step = 0.000006
large_batch = 64
large_step = 0.000003
bus = 1000000000
rate = 3000000000000
noise = 2
compute_most = 50000000
INI
export CELLGATE_CONFIG="$work/cellgate.ini"
number() { "$build/tests/e2e/json_get" "$work/stdout" "$1"; }
right=0 all=0 near=0 near_right=0

for hidden in 32 128 512; do
  model=$work/lstm$hidden.safetensors
  expect 0 "$build/tests/e2e/make_lstm" "$model" 16 $hidden
  expect 0 cellgate calibrate "$model" --batch 1-256 --steps 1-512 --cells 13 \
    --seconds 240 --json
  json measured.shapes 90
  measured=$(number measured.shapes_measured)
  [ "$measured" -le 13 ] && pass || fail "$measured shapes were measured"
  expect 0 cellgate audit "$model" --batch 1-256 --steps 1-512 \
    --cells "${CELLS:-70}" --seed "${SEED:-1}" --seconds "${SECONDS_EACH:-420}" \
    --json --csv "$report/choice$hidden.csv"
  cp "$work/stdout" "$report/choice$hidden.json"
  for what in all crossover; do
    r=$(number $what.right) w=$(number $what.wrong) u=$(number $what.undecided)
    echo "$hidden units, $measured of 90 measured, $what: $r right, $w wrong, $u undecided"
    if [ $what = all ]; then
      right=$((right + r)) all=$((all + r + w + u))
    else
      near_right=$((near_right + r)) near=$((near + r + w + u))
    fi
  done
  echo "  regret $(number regret), itself $(number self_median) and $(number self_worst)," \
    "left out $(number left_out), not reached $(number unreached)"
done
echo "right: $right of $all; near a crossover: $near_right of $near"
[ $((right * 100)) -ge $((all * 95)) ] && pass || fail "less than 95% are right"
finish
