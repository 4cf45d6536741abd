#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calibrate, plan and the crossover map, on the CPU and on cards whose time is
# modelled, one of which computes wrong results.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so "$build/tests/plugins/remote/.libs/remote.so"
configuration() { # LAUNCH: of the card
  printf '[cellgate]\nplugin_path = %s\nunlisted = no\n' "$plugins"
  printf '[device cpu]\nplugin = openmp\nthreads = 1\n'
  printf '[device card]\nplugin = remote\nsimulate = yes\nlaunch = %s\n' "$1"
  printf '[device liar]\nplugin = remote\nsimulate = yes\nlaunch = 0\nstep = 0\nwrong = yes\n'
}
configuration 0.001 >"$work/cellgate.ini"
export CELLGATE_CONFIG="$work/cellgate.ini"
model=$fixtures/article.keras

# Nothing is measured yet.
expect 0 cellgate plan "$model" --batch 4 --steps 20
says stdout "first usable device"
says stdout "it is not measured"
says stdout "its results are bf16, which [scheduler] precision = mixed allows"
expect 0 cellgate inspect "$model"
says stdout "not calibrated: cellgate calibrate measures"

expect 0 cellgate calibrate "$model" --seconds 60 --batch 1-8 --json
json measured.shapes 4
json measured.stopped false
json measured.wrong 3
says stderr "liar any is not measured"
[ -s "$XDG_DATA_HOME/cellgate/costs" ] && pass || fail "there is no store"

# One row: microseconds on the CPU, a millisecond on the card.
expect 0 cellgate plan "$model" --batch 1 --steps 20
says stdout "cpu t1: measured: "
says stdout "times ahead of card"
says stdout "its results are wrong"
expect 0 cellgate plan "$model" --batch 1 --json
json choice "cpu t1"
json estimate exact
json steps 20
json candidates.0.device cpu
json candidates.0.wait 0
json candidates.0.note ""
json candidates.0.chosen true
json candidates.0.excluded ""
json candidates.1.device card
json candidates.1.chosen false
expect 0 cellgate inspect "$model" --json
json devices.0.calibrated true
expect 0 cellgate plan "$model" --batch 1 --device card
says stdout "card "
expect 2 cellgate plan "$model"
says stderr "plan takes --batch and --steps"
expect 2 cellgate plan "$model" --batch 1-8
says stderr "take --grid"
expect 2 cellgate plan "$model" --batch 0
expect 4 cellgate plan "$model" --batch 1 --steps 21
says stderr "none has 21 steps"
expect 4 cellgate plan "$work/none.keras" --batch 1
expect 2 cellgate plan "$model" --batch 1 --csv "$work/map.csv"

# What is done once was measured, and counts where few requests are expected.
expect 0 cellgate plan "$model" --batch 1 --requests 3 --json
json requests 3
json candidates.0.opening 0
says stdout '"preparing"'
card_opens=$("$build/tests/e2e/json_get" "$work/stdout" candidates.1.opening)
[ "$card_opens" != 0 ] && pass || fail "the card's opening was not measured"
expect 0 cellgate plan "$model" --batch 1 --json
json requests null
expect 2 cellgate plan "$model" --batch 1 --requests -1
says stderr "--requests takes"

# A run goes where the plan says.
expect 0 cellgate run "$model" --input "$fixtures/article.npz:in0" --json
says stdout '"reason": "measured: '

# The map: text, JSON, CSV, picture.
expect 0 cellgate plan "$model" --grid --batch 1-8 --csv "$work/map.csv"
says stdout "A  cpu t1"
grep -q '^ *1  A\*' "$work/stdout" && pass || fail "one row is not marked"
[ "$(wc -l <"$work/map.csv")" -eq 5 ] && pass || fail "the CSV has no 5 lines"
head -n 1 "$work/map.csv" |
  grep -qx 'batch,steps,choice,estimate,seconds,error,ahead,rival' && pass ||
  fail "the CSV's first line"
grep -q '^1,20,"cpu t1",exact,' "$work/map.csv" && pass || fail "the CSV's second line"
expect 0 cellgate plan "$model" --grid --batch 1-8 --json
json choices.0 "cpu t1"
json cells 4
json cells.0.choice "cpu t1"
json cells.3.batch 8
expect 2 cellgate plan "$model" --grid --batch 8-1
expect 2 cellgate plan "$model" --grid --picture "$work/map.gif"

# Without gnuplot an error, with one its picture: the script of a stand-in, and
# the real one where it is there.
mkdir "$work/empty" "$work/bin"
expect 5 env PATH="$work/empty" "$build/cellgate" plan "$model" --grid \
  --batch 1-8 --picture "$work/map.svg"
says stderr "needs gnuplot"
cat >"$work/bin/gnuplot" <<'STUB'
#!/bin/sh
script=$(cat)
file=$(printf '%s\n' "$script" | sed -n "s/^set output '\(.*\)'$/\1/p")
printf '%s\n' "$script" >"$file"
STUB
chmod +x "$work/bin/gnuplot"
expect 0 env PATH="$work/bin:$PATH" "$build/cellgate" plan "$model" --grid \
  --batch 1-8 --picture "$work/map.svg"
grep -q "^set terminal svg" "$work/map.svg" && pass || fail "no script"
grep -q "'A  cpu t1'" "$work/map.svg" && pass || fail "the choice has no name"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/gnuplot"
rm "$work/map.svg"
expect 4 env PATH="$work/bin:$PATH" "$build/cellgate" plan "$model" --grid \
  --batch 1-8 --picture "$work/map.svg"
says stderr "gnuplot did not draw it"
[ ! -e "$work/map.svg" ] && [ ! -e "$work/map.svg.part" ] && pass ||
  fail "something of the picture stayed"
if command -v gnuplot >/dev/null; then
  expect 0 cellgate plan "$model" --grid --batch 1-8 --picture "$work/map.svg"
  grep -q '</svg>' "$work/map.svg" && pass || fail "gnuplot's SVG is not whole"
fi

# To another machine, and what does not hold there.
expect 0 cellgate calibrate "$model" --export "$work/costs.txt" --diff
says stdout "written to $work/costs.txt"
says stdout "0 rows are not used"
XDG_DATA_HOME="$work/other"
expect 0 cellgate plan "$model" --batch 1
says stdout "first usable device"
expect 0 cellgate calibrate "$model" --import "$work/costs.txt" --json
rows=$(($(wc -l <"$work/costs.txt") - 1))
json imported "$rows"
head -n 2 "$work/costs.txt" >"$work/one.txt"
expect 0 cellgate calibrate "$model" --import "$work/one.txt"
says stdout "1 row read from $work/one.txt"
expect 0 cellgate plan "$model" --batch 1
says stdout "cpu t1: measured: "
configuration 0.002 >"$work/cellgate.ini"
expect 1 cellgate calibrate "$model" --diff
says stdout "settings was "
expect 1 cellgate calibrate "$model" --diff --json
[ "$("$build/tests/e2e/json_get" "$work/stdout" unused.rows)" -gt 0 ] && pass ||
  fail "no rows are unused"
echo nonsense >"$work/bad.txt"
expect 4 cellgate calibrate "$model" --import "$work/bad.txt"
says stderr "bad.txt"
expect 4 cellgate calibrate "$model" --import "$work/none.txt"
expect 2 cellgate calibrate "$model" --seconds 0
expect 2 cellgate calibrate "$model" --seconds -1
expect 2 cellgate calibrate "$model" --batch x
expect 5 cellgate calibrate "$model" --device nobody

# An interrupt ends it, and what was measured is kept.
XDG_DATA_HOME="$work/stopped"
"$build/cellgate" calibrate "$model" --seconds 60 --batch 1-512 \
  >"$work/stdout" 2>"$work/stderr" &
pid=$!
for try in $(seq 100); do # until a shape is known
  "$build/cellgate" plan "$model" --batch 1 2>/dev/null >"$work/plan" || true
  grep -q 'measured: ' "$work/plan" && break
  sleep 0.1
done
kill -TERM $pid
code=0
wait $pid || code=$?
if [ $code -eq 143 ]; then
  pass
  says stdout "stopped early; what was measured is kept"
else
  # It was sure before the signal came.
  [ $code -eq 0 ] && pass || fail "an interrupted calibration exits with $code"
fi
expect 0 cellgate plan "$model" --batch 1
says stdout "measured: "
finish
