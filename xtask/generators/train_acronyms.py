#!/usr/bin/env python3
"""Trains the table that decides whether an unknown acronym is a word: NATO, or U C L A.

In: english.lexicon, the dictionary that ships with the program. Out: english.acronyms, read by acronyms.rs, and on
stderr its error rates. Needs Python alone, takes half a minute, and gives the same bytes every time.

    xtask/generators/train_acronyms.py crates/tandem-text/pronunciation/english.lexicon \\
        crates/tandem-text/pronunciation/english.acronyms

Each pair of neighbouring letters, with the edges of the word, has a weight; their sum says whether the letters are a word.
Words are the dictionary's own of four to six letters. Acronyms are drawn: the initials of random words, as real ones are made.
The acronyms that the dictionary itself spells take no part in the training and are a second test.
"""

import math
import random
import struct
import sys

SHORTEST, LONGEST = 4, 6
FOLDS, ROUNDS, RATE, DECAY = 5, 12, 0.08, 1e-5
SCALE = 16  # of a stored weight
NAMES = (
    "EY|B IY|S IY|D IY|IY|EH F|JH IY|EY CH|AY|JH EY|K EY|EH L|EH M|EH N|OW|P IY|K Y UW|AA R|EH S|T IY|Y UW|V IY|"
    "D AH B AH L Y UW|EH K S|W AY|Z IY"
).split("|")
VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW".split()
CONSONANTS = "B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH".split()


def main():
    source, target = sys.argv[1:]
    dictionary = read(source)
    fits = [word for word in sorted(dictionary) if word.isalpha() and SHORTEST <= len(word) <= LONGEST]
    words = [word for word in fits if not is_spelled(word, dictionary[word])]
    spelled = [word for word in fits if is_spelled(word, dictionary[word])]
    chance = random.Random(1)
    initials = [word[0] for word in sorted(dictionary) if word.isalpha()]
    drawn = ["".join(chance.choice(initials) for _ in word) for word in words]
    drawn = [letters for letters in drawn if letters not in dictionary]
    samples = [(word, 1) for word in words] + [(letters, 0) for letters in drawn]
    chance.shuffle(samples)
    wrong = [0, 0]
    for fold in range(FOLDS):
        weights = quantised(train([s for i, s in enumerate(samples) if i % FOLDS != fold]))
        for letters, label in samples[fold::FOLDS]:
            wrong[label] += (score(weights, letters) > 0) != (label == 1)
    print(f"{FOLDS}-fold: {wrong[1]} of {len(words)} words spelled ({100 * wrong[1] / len(words):.1f} %), "
          f"{wrong[0]} of {len(drawn)} drawn acronyms read as words ({100 * wrong[0] / len(drawn):.1f} %)", file=sys.stderr)
    weights = quantised(train(samples))
    missed = [letters for letters in spelled if score(weights, letters) > 0]
    print(f"of {len(spelled)} acronyms that the dictionary spells, {len(missed)} read as words: {missed}", file=sys.stderr)
    with open(target, "wb") as file:
        file.write(b"ACR1" + struct.pack(f"{27 * 27}b", *weights))


def read(source):
    """Words and their phones without stress, as packed by make_english_lexicon.py."""
    with open(source, "rb") as file:
        data = file.read()
    at = 8 + 4 * (struct.unpack("<I", data[4:8])[0] + 1)
    name = lambda code: VOWELS[code // 3] if code < 45 else CONSONANTS[code - 45]
    words = {}
    while at < len(data):
        letters = data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
        codes = data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
        words[letters.decode()] = [name(code) for code in codes]
    return words


def is_spelled(word, phones):
    return phones == " ".join(NAMES[ord(letter) - 97] for letter in word).split()


def pairs(letters):
    numbers = [0] + [ord(letter) - 96 for letter in letters] + [0]
    return [27 * first + second for first, second in zip(numbers, numbers[1:])]


def train(samples):
    """Logistic regression by stochastic gradient descent."""
    weights = [0.0] * (27 * 27)
    rows = [(pairs(letters), label) for letters, label in samples]
    for turn in range(ROUNDS):
        rate = RATE / (1 + turn)
        for features, label in rows:
            error = label - 1 / (1 + math.exp(-sum(weights[feature] for feature in features)))
            for feature in features:
                weights[feature] += rate * (error - DECAY * weights[feature])
    return weights


def quantised(weights):
    return [max(-127, min(127, round(SCALE * weight))) for weight in weights]


def score(weights, letters):
    return sum(weights[pair] for pair in pairs(letters))


if __name__ == "__main__":
    main()
