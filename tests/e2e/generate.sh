#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The translation example, from the command line.
. "${srcdir:-.}/tests/e2e/setup.sh"
offer openmp.so
folder=$top/tests/fixtures/translation
printf '[cellgate]\nplugin_path = %s\n[device cpu]\nplugin = openmp\n' \
  "$plugins" >"$work/cellgate.ini"
ini=$work/cellgate.ini
source=$folder/sentences.npz:source

# Greedy, as Keras translates; the words come from the vocabulary.
expect 0 cellgate generate "$folder/translation.keras" --config "$ini" \
  --input "$source" --start 1 --stop 2 --max-length 12 --json \
  --vocabulary "$folder/target.txt"
json device cpu
json words 10000
json token target
json rows.0.0.ids.0 8
json rows.0.0.text "rivolo zheneton seshukoshisis"
cp "$work/stdout" "$work/greedy.json"

# The encoder and the decoder as two files, printed as words.
expect 0 cellgate generate "$folder/translation.keras" --config "$ini" \
  --input "$source" --start 1 --stop 2 --max-length 12 \
  --vocabulary "$folder/target.txt"
cp "$work/stdout" "$work/one.txt"
[ "$(wc -l <"$work/one.txt")" -eq 50 ] && pass || fail "not 50 sentences"
says stderr "device: cpu"
expect 0 cellgate generate "$folder/encoder.keras" "$folder/decoder.keras" \
  --config "$ini" --input "$source" --start 1 --stop 2 --max-length 12 \
  --vocabulary "$folder/target.txt"
cmp -s "$work/stdout" "$work/one.txt" && pass || fail "two files say otherwise"

# To a file: ids, with -1 behind the end.
expect 0 cellgate generate "$folder/translation.keras" --config "$ini" \
  --input "$source" --start 1 --stop 2 --max-length 12 --output "$work/y.npy"
[ -e "$work/y.npy" ] && pass || fail "no output file"

# Beam search and sampling.
expect 0 cellgate generate "$folder/translation.keras" --config "$ini" \
  --input "$source" --start 1 --stop 2 --max-length 12 --beam 4 --results 2 \
  --length-penalty 0.6
[ "$(wc -l <"$work/stdout")" -eq 100 ] && pass || fail "not two results a row"
sample() { # SEED
  expect 0 cellgate generate "$folder/translation.keras" --config "$ini" \
    --input "$source" --start 1 --stop 2 --max-length 12 --sample \
    --temperature 1.5 --top-k 50 --seed "$1"
  cp "$work/stdout" "$work/sample.$1"
}
sample 3
mv "$work/sample.3" "$work/first"
sample 3
cmp -s "$work/first" "$work/sample.3" && pass || fail "a seed gives two results"
sample 4
cmp -s "$work/first" "$work/sample.4" && fail "seeds do not matter" || pass

# Options of another way to choose, and what is no list of the words.
generate() { # OPTION...
  cellgate generate "$folder/translation.keras" --config "$ini" \
    --input "$source" --start 1 --stop 2 --max-length 3 "$@"
}
expect 2 generate --temperature 0.5
says stderr "go with --sample"
expect 2 generate --beam 2 --seed 0
says stderr "go with --sample"
expect 2 generate --top-k 5
expect 2 generate --sample --length-penalty 0
says stderr "goes with --beam"
expect 4 generate --vocabulary "$folder/translation.keras"
says stderr "this is no text"
head -n 9999 "$folder/target.txt" >"$work/short.txt"
expect 2 generate --vocabulary "$work/short.txt"
says stderr "has 9999 lines, but the model scores 10000 ids"

# Six steps are in the file, so six ids can be read.
fixed=$top/tests/fixtures/tf_keras/embedding_mask.h5
expect 0 cellgate generate "$fixed" --config "$ini" --start 1 --max-length 6
expect 2 cellgate generate "$fixed" --config "$ini" --start 1 --max-length 7
says stderr "fixes its input at 6 steps"

# What cannot be: exit codes.
expect 2 cellgate generate "$folder/translation.keras" --config "$ini" \
  --input "$source" --start 1 --stop 2
says stderr "--max-length"
expect 2 cellgate generate "$folder/translation.keras" --config "$ini" \
  --input "$source" --max-length 3
says stderr "--start"
expect 2 cellgate generate "$folder/translation.keras" --config "$ini" \
  --start 1 --max-length 3
says stderr "input 'source' is missing"
expect 4 cellgate generate "$fixtures/article.keras" --config "$ini" \
  --start 1 --max-length 3
says stderr "takes ids"
expect 4 cellgate generate "$folder/translation.keras" --config "$ini" \
  --input "$source" --token source --start 1 --max-length 3
says stderr "decoder_1"
expect 5 cellgate generate "$folder/translation.keras" --config "$ini" \
  --input "$source" --device nothing --start 1 --max-length 3
finish
