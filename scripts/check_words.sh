#!/usr/bin/env bash
# Fails where the tree uses a private word for something that the field has a word for.
# Prints every place as FILE:LINE: TEXT with the standard word. Names count too: `HostLesson`, `next_lesson`.
#
#   scripts/check_words.sh [FILE...]     default: every text file that git knows, after a test of the check itself
set -euo pipefail
cd "$(dirname "$0")/.."
# Lines are cut by characters, not bytes.
export LC_ALL=C.UTF-8

# word or phrase (a Perl expression) = the standard word
words='
lessons? = batch
exams?|examiners? = validation, validator
pupils? = model
drills? = profile scenario
exercises? = profile scenario
narrators? = speaker
likeness(es)? = distance, similarity
sharpness = precision
holdings = memory in use
keepers? = checkpoint writer
shelf|shelves = checkpoint directory, pool
desks? = worker, directory
precedence = thread priority
laid[ _]over|lays?[ _]over = aligned, align
(is|was|are)[ _]no[ _]number(?! (of|reader)) = NaN or infinite, non-finite
anew = again
whoever = any caller
readers\.safetensors = aligner_snapshots.safetensors
(taken|takes?|took)[ _]up[ _]again = resumed, resume
(goes|go|went|gone|going)[ _]on(?! (to )?the\b) = continues, continue
doorways?|farewells? = listener, goodbye message
outlets? = emitter
troubles? = fault, failure, StageError
(struct|enum|trait|type)[ _](gate|lap|hold)\b = permit, interval, QueueLimits
signs?[ _]of[ _]life = heartbeat
comes[ _]to(?! (a|an|the) (stop|end|halt)\b) = reaches, reach
'

# FILE (a glob) | PHRASE (text of the line) | REASON
allowed='
crates/tandem-text/tests/goldens/english_pronunciation.tsv | trouble | a word that is pronounced
crates/tandem-model/src/network/ops/gate.rs | type Gate | the gate of a network, a word of the field
crates/tandem/demo-corpus/*.csv | shelf | a sentence of the demo corpus
crates/tandem/demo-corpus/*.tsv | shelf | a word of the demo corpus
crates/tandem/demo-human/*.csv | kathleen | sentences of old books
crates/tandem/demo-human/LICENSE | Copyright | the text of CC0 1.0
crates/tandem/demo-human/LICENSE | likeness | the text of CC0 1.0
xtask/generators/demo_corpus/en.txt | shelf | a sentence of the demo corpus
'

# This file lists the words; the changelog describes old versions in their own words.
skipped=(scripts/check_words.sh CHANGELOG.md)

# find_words FILE...: every use of a word that is not allowed; returns 1 where there is any.
find_words() {
    local line word standard hits hit file phrase reason ok found=0
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        word=${line%% = *} standard=${line#* = }
        # As whole words, and as parts of a name: `HostLesson`, `host_lesson`.
        hits=$(git grep --untracked --no-color -nIP "(?i:(?<![a-z])(?:$word)(?![a-z]))|(?=[A-Z][a-z])(?i:$word)(?![a-z])" -- "$@" ||
            [ $? = 1 ])
        while IFS= read -r hit; do
            [ -n "$hit" ] || continue
            ok=
            while IFS='|' read -r file phrase reason; do
                [ -n "$reason" ] || continue
                file=${file% } phrase=${phrase# } phrase=${phrase% }
                # The file is a glob.
                # shellcheck disable=SC2254
                case ${hit%%:*} in $file) ;; *) continue ;; esac
                case $hit in *"$phrase"*) ok=yes ;; esac
            done <<<"$allowed"
            [ -z "$ok" ] || continue
            printf '%s   [instead: %s]\n' "${hit:0:200}" "$standard"
            found=1
        done <<<"$hits"
    done <<<"$words"
    return "$found"
}

# expect CODE TEXT: the check of a file with this text must return this code.
expect() {
    local code=0
    printf '%s\n' "$2" >"$sample"
    find_words "$sample" >/dev/null || code=$?
    [ "$code" = "$1" ] || { echo "error: the check of words returns $code for \`$2\`, not $1" >&2; exit 2; }
}

if [ $# -gt 0 ]; then
    find_words "$@" || exit 1
    exit 0
fi
sample=$(mktemp scripts/words_sample.XXXXXX)
trap 'rm -f "$sample"' EXIT
expect 1 'takes the next lesson'
expect 1 'struct HostLesson;'
expect 1 'fn next_lesson() {}'
expect 1 'Whoever waits'
expect 1 'the loss is no number'
expect 1 'is taken up again'
expect 1 'enum Trouble {'
expect 1 'struct Gate(bool);'
expect 0 'lessen, examine, EXAMPLE, goes on the page, troubleshooting, gated'
rm -f "$sample"

list=(crates docs scripts xtask fuzz/src fuzz/fuzz_targets .ci ':(glob)*.md' ':(glob)*.toml')
for file in "${skipped[@]}"; do
    list+=(":!$file")
done
code=0
find_words "${list[@]}" || code=1
# Names of files and directories.
names=$(git ls-files -- "${list[@]}" | grep -iP "(?<![a-z])(?:$(sed -nE 's/^(.*) = .*/\1/p' <<<"$words" | paste -sd'|'))(?![a-z])" || true)
[ -z "$names" ] || { printf '%s   [name of a file]\n' $names; code=1; }
[ "$code" = 0 ] || echo "error: use the standard words, or add a line to \`allowed\` in scripts/check_words.sh with a reason" >&2
exit "$code"
