"""Reads the CMU Pronouncing Dictionary, for the scripts that pack it and learn from it.

In: `index.js` of the npm package `cmu-pronouncing-dictionary` (version 3.0.0), which holds one
`"word": "PHONES",` per line; `word(2)` is another pronunciation of `word`.
Out: words of `a` to `z` and the apostrophe, each with its pronunciations in order.
"""

import re

VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW".split()
CONSONANTS = "B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH".split()
# The code of a phone is its position here; arpabet.rs has the same list. Stress is 0, 1 or 2.
PHONES = [vowel + stress for vowel in VOWELS for stress in "012"] + CONSONANTS
CODES = {phone: code for code, phone in enumerate(PHONES)}

ENTRY = re.compile(r'^\s+"?([a-z\']+)(?:\((\d)\))?"?: "([A-Z0-2 ]+)(?: #[^"]*)?",?$')


def read(path):
    """Maps each word to its pronunciations, each a tuple of phone codes."""
    words = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if entry := ENTRY.match(line):
                phones = tuple(CODES[phone] for phone in entry[3].split())
                words.setdefault(entry[1], []).append(phones)
    return words


def fnv1a(word):
    """The 32-bit hash of a word; lexicon.rs computes the same."""
    value = 0x811C9DC5
    for byte in word.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def is_held_out(word):
    """Whether the letter-to-sound model must not see the word: one in ten."""
    return (fnv1a(word) >> 20) % 10 == 0
