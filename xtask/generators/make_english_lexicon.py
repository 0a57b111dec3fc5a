#!/usr/bin/env python3
"""Packs the CMU Pronouncing Dictionary for the program.

In: the dictionary (see cmu_dictionary.py). Out: english.lexicon, read by
packed_lexicon.rs. Of several pronunciations the first is kept; those that depend on the sentence
are in homographs.rs. Needs Python alone and gives the same bytes every time.

    npm pack cmu-pronouncing-dictionary@3.0.0 && tar xzf cmu-pronouncing-dictionary-3.0.0.tgz
    xtask/generators/make_english_lexicon.py package/index.js crates/tandem-text/pronunciation/english.lexicon

The file is a hash table: `LEX1`, the number of buckets, the offset of every bucket and of the end,
then the entries of each bucket: length and letters of a word, length and codes of its phones.
"""

import struct
import sys

import cmu_dictionary

BUCKETS = 1 << 15

# Where the first pronunciation is an abbreviation written out, casual, or unlike that of similar words.
CORRECTED = {
    "aaa": "EY2 EY0 EY1",
    "audio": "AO1 D IY0 OW2",
    "august": "AO1 G AH0 S T",
    "bought": "B AO1 T",
    "caught": "K AO1 T",
    "coffee": "K AO1 F IY0",
    "cough": "K AO1 F",
    "monday": "M AH1 N D EY2",
    "tuesday": "T UW1 Z D EY2",
    "wednesday": "W EH1 N Z D EY2",
    "friday": "F R AY1 D EY2",
    "saturday": "S AE1 T ER0 D EY2",
    "thirteen": "TH ER2 T IY1 N",
    "fourteen": "F AO2 R T IY1 N",
    "fifteen": "F IH2 F T IY1 N",
    "sixteen": "S IH2 K S T IY1 N",
    "seventeen": "S EH2 V AH0 N T IY1 N",
    "eighteen": "EY2 T IY1 N",
    "nineteen": "N AY2 N T IY1 N",
    "thirty": "TH ER1 T IY0",
    "violin": "V AY2 AH0 L IH1 N",
    "vs": "V ER1 S AH0 S",
}


def main():
    source, target = sys.argv[1:]
    words = {word: listed[0] for word, listed in cmu_dictionary.read(source).items()}
    for word, phones in CORRECTED.items():
        words[word] = tuple(cmu_dictionary.CODES[phone] for phone in phones.split())
    buckets = [[] for _ in range(BUCKETS)]
    for word in sorted(words):
        buckets[cmu_dictionary.fnv1a(word) % BUCKETS].append(word)
    offsets, entries = [], bytearray()
    for bucket in buckets:
        offsets.append(len(entries))
        for word in bucket:
            entries += bytes([len(word)]) + word.encode()
            entries += bytes([len(words[word])]) + bytes(words[word])
    offsets.append(len(entries))
    head = struct.pack("<4sI", b"LEX1", BUCKETS) + struct.pack(f"<{len(offsets)}I", *offsets)
    with open(target, "wb") as file:
        file.write(head + entries)
    print(f"{len(words)} words, {len(head) + len(entries)} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
