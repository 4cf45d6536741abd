#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Audit: choices by true costs and by false ones, over the CPU and cards whose
# time is modelled. All differences are large: no time of the machine decides.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so "$build/tests/plugins/remote/.libs/remote.so"
cat >"$work/cellgate.ini" <<INI
[cellgate]
plugin_path = $plugins
unlisted = no
[device cpu]
plugin = openmp
threads = 1
[device card]
plugin = remote
simulate = yes
variants = any
launch = 0.02
[device liar]
plugin = remote
simulate = yes
variants = any
launch = 0
step = 0
wrong = yes
INI
export CELLGATE_CONFIG="$work/cellgate.ini"
model=$fixtures/article.keras

# A row takes microseconds on the CPU, and 20 ms on the card.
expect 0 cellgate calibrate "$model" --seconds 60 --batch 1-4 --cells 2 --json
json measured.shapes 3
json measured.shapes_measured 2
expect 0 cellgate audit "$model" --seconds 30 --batch 1-4 --json \
  --csv "$work/audit.csv"
json shapes 3
json all.right 3
json all.wrong 0
json all.undecided 0
json exact.right 2
json crossover.right 0
json left_out 0
json unreached 0
json cells.0.verdict right
json cells.0.choice "cpu t1"
json cells.0.best "cpu t1"
json cells.0.steps 20
json cells.0.rivals 1
json cells.0.far 1
head -n 1 "$work/audit.csv" |
  grep -q '^batch,steps,verdict,crossover,choice,best,' && pass ||
  fail "the CSV's first line"
[ "$(grep -c '^[124],20,right,0,"cpu t1","cpu t1",' "$work/audit.csv")" -eq 3 ] &&
  pass || fail "the CSV's lines"

# The same seed draws the same shape, and an audit changes no cost.
expect 0 cellgate plan "$model" --batch 2 --json
cp "$work/stdout" "$work/plan"
for try in 1 2; do
  expect 0 cellgate audit "$model" --batch 1-512 --cells 1 --seed 7 --csv "$work/$try.csv"
  says stdout "1 shape of batch 1 to 512"
  cut -d, -f1,2 "$work/$try.csv" >"$work/$try"
done
cmp -s "$work/1" "$work/2" && pass || fail "a seed draws different shapes"
expect 0 cellgate plan "$model" --batch 2 --json
cmp -s "$work/stdout" "$work/plan" && pass || fail "an audit changed what is known"

# Costs that are false: the CPU's are a million times too large.
expect 0 cellgate calibrate "$model" --export "$work/costs.txt"
export XDG_DATA_HOME="$work/false"
awk -F '\t' -v OFS='\t' '
  NR == 1 { n = split($0, title, " "); for (i = 5; i <= n; i++) at[title[i]] = i - 4 }
  NR > 1 && $1 == "cpu" {
    $at["median"] *= 1e6; $at["low"] *= 1e6; $at["high"] *= 1e6
  } { print }' "$work/costs.txt" >"$work/false.txt"
expect 0 cellgate calibrate "$model" --import "$work/false.txt"
expect 0 cellgate audit "$model" --batch 1-4 --seconds 30
says stdout "card any"
grep -q '^all  *3  *0  *3  *0  *0.0%' "$work/stdout" && pass ||
  fail "the choice is not found wrong: $(cat "$work/stdout")"

# Without time nothing is right.
expect 0 cellgate audit "$model" --batch 1-4 --seconds 0.000001 --json
json unreached 3
json all.right 0
expect 2 cellgate audit "$model" --seconds 0
expect 2 cellgate audit "$model" --batch 4-1
expect 2 cellgate audit
expect 4 cellgate audit "$work/none.keras"
expect 5 cellgate audit "$model" --device nobody
finish
