#!/usr/bin/env python3
"""Trains the tables of Persian reading: a word list, letter-to-sound, where the ezafe is, and words with several readings.

In: the list of Tandem (persian.tsv), sentences with phonemes (FarsDat.csv, MIT, from Data/ of the project GE2PE; or
a file of two columns, see --pairs), and sentences for words with several readings: the even ones of fa_homographs.tsv, and
those that HomoRich (CC0) shows in its notebook scripts/Generate_Homograph_Sentences.ipynb. Out: persian.model, read by crates/tandem-text/src/pronunciation/persian/model.rs.
Needs Python alone and the example that shows what the models see, takes about four minutes, and gives the same bytes
every time. xtask/measurements/persian_reading.py measures, by cross-validation.

    cargo build --release -p tandem-text --example persian_reading
    xtask/generators/train_persian_reading.py --reader target/release/examples/persian_reading \
        --farsdat FarsDat.csv --homographs Generate_Homograph_Sentences.ipynb --output crates/tandem-text/pronunciation/persian.model

Letter-to-sound is an averaged perceptron that gives each letter zero to four sounds; the ezafe tagger is a linear-chain
conditional random field with two classes; words with several readings have a logistic regression over their cues and
neighbours, which the program lists, after its own ezafe tagger. All weights are stored as whole numbers under the hash of their feature.
"""

import argparse
import ast
import csv
import json
import math
import random
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

TEXT = Path(__file__).resolve().parents[2] / "crates/tandem-text"
LIST = TEXT / "pronunciation/persian.tsv"
OWN_HOMOGRAPHS = TEXT / "tests/readings/fa_homographs.tsv"
ZWNJ = "\u200c"
VOWELS = "ɑaeiou"
# One character for each sound while training.
SHORT = [("tʃ", "C"), ("dʒ", "J")]
FARSDAT = {"]": "ʔ", "/": "ɑ", ".": "ʃ", ",": "J", "'": "C", "[": "ʒ", ";": "ʒ", "g": "ɡ", "y": "j"}
LETTER_ROUNDS = 7
EZAFE_ROUNDS = 14
EZAFE_PENALTY = 0.02
# Features with a smaller weight are left out.
LEAST_LETTER_WEIGHT = 1.0
LEAST_EZAFE_WEIGHT = 0.1
LEAST_HOMOGRAPH_WEIGHT = 0.06
HOMOGRAPH_ROUNDS = 8
HOMOGRAPH_RATE = 0.1
HOMOGRAPH_PENALTY = 0.05
# What a cue counts; `CUE` of homographs.rs is this times SCALE.
CUE = 2.0
# What the first reading has in a text, where readings are not as often as each other; `USUAL` of homographs.rs.
USUAL = 1.5
SCALE = 128


# --- sentences with phonemes ---------------------------------------------------------------------------------------


def read_farsdat(path):
    """Sentences: the text, and the spoken words with whether an ezafe ends them."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = []
    for row in rows:
        text = row["Grapheme"].replace("\n", " ").replace("|", " ")
        found.append((text, [farsdat_word(word) for word in row["Phoneme"].split() if word.strip("12|")]))
    return found


def farsdat_word(word):
    sounds = "".join(FARSDAT.get(c, c) for c in word if c not in "12|")
    return (sounds[1:] if sounds.startswith("ʔ") else sounds, "1" in word)


def read_pairs(path):
    """Sentences of a file of two columns: text, and IPA, with or without a `1` at the end of each word with ezafe."""
    found = []
    for line in open(path, encoding="utf-8"):
        text, _, sounds = line.rstrip("\n").partition("\t")
        words = [(shorten(word.strip("1")), word.endswith("1")) for word in sounds.split()]
        found.append((text, words))
    return found


def shorten(ipa):
    for long, short in SHORT:
        ipa = ipa.replace(long, short)
    return ipa


def lengthen(sounds):
    for long, short in SHORT:
        sounds = sounds.replace(short, long)
    return sounds


def parts_of(reader, texts):
    """What the models see: for each text its sentences, of parts (text, class, sounds, after, listed)."""
    return ask([reader, "parts"], texts)


def ask(command, texts):
    done = subprocess.run(command, input="\n".join(texts) + "\n", capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- which spoken words belong to which part -----------------------------------------------------------------------

ROUGH = dict(zip("بپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیاآئءأؤ", "bptsJChxdzrzʒsʃsztzʔqfqkɡlmnvhiɑɑʔʔʔʔ"))


def without_ezafe(word):
    sounds, ezafe = word
    return re.sub("j?e$", "", sounds) if ezafe else sounds


def plain(sounds):
    """As phoneme errors are counted: without glottal stops and doubled consonants."""
    return re.sub(r"(.)\1", r"\1", sounds.replace("ʔ", ""))


def align(parts, spoken):
    """For each part the spoken words, as a range."""
    rough = []
    for text, _, _, _, listed in parts:
        rough.append(plain(shorten(listed) if listed else "".join(ROUGH.get(c, "") for c in text)))
    memory = {}

    def distance(start, end, part):
        key = (start, end, part)
        if key not in memory:
            said = "".join(sounds for sounds, _ in spoken[start : end - 1])
            both = (said + spoken[end - 1][0], said + without_ezafe(spoken[end - 1]))
            lengths = [max(1, len(plain(one)), len(rough[part])) for one in both]
            memory[key] = min(edits(plain(one), rough[part]) / length for one, length in zip(both, lengths))
        return memory[key]

    many, count = len(spoken), len(parts)
    best = {(0, 0): (0.0, None)}
    width = 5 + abs(many - count)
    for i in range(many + 1):
        for j in range(max(0, i - width), min(count, i + width) + 1):
            if (i, j) not in best:
                continue
            cost = best[i, j][0]
            steps = [(i + 1, j, 0.9)] if i < many else []
            if j < count:
                steps.append((i, j + 1, 0.9))
                for more in (1, 2, 3, 4):
                    if i + more <= many:
                        steps.append((i + more, j + 1, 0.05 * (more - 1) + distance(i, i + more, j)))
            for a, b, price in steps:
                if (a, b) not in best or best[a, b][0] > cost + price:
                    best[a, b] = (cost + price, (i, j))
    ranges = [None] * count
    at = (many, count)
    while at != (0, 0):
        before = best[at][1]
        if at[1] > before[1] and at[0] > before[0]:
            ranges[at[1] - 1] = (before[0], at[0])
        at = before
    return ranges


def edits(one, other):
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def examples(reader, sentences):
    """For each text its parts in order, with the spoken form and whether an ezafe follows."""
    found = []
    marked = any(ezafe for _, spoken in sentences for _, ezafe in spoken)
    for (_, spoken), groups in zip(sentences, parts_of(reader, [text for text, _ in sentences])):
        parts = [part for group in groups for part in group]
        ranges = align(parts, spoken)
        said, tags = [], []
        for place in ranges:
            words = spoken[place[0] : place[1]] if place else []
            said.append("".join(s for s, _ in words[:-1]) + without_ezafe(words[-1]) if words else "")
            tags.append(bool(words) and words[-1][1])
        if not marked:
            said, tags = map(list, zip(*map(unmarked_ezafe, parts, said))) if parts else ([], [])
        found.append((groups, said, tags))
    return found


def unmarked_ezafe(part, said):
    """The form and the ezafe of a part where the source does not mark it: what is more than the listed word."""
    text, _, _, _, listed = part
    known = plain(shorten(listed))
    stem = re.sub("j?e$", "", said)
    ends = stem != said and (plain(stem) == known if known else text[-1:] not in "هی")
    return (stem, True) if ends and plain(said) != known else (said, False)


# --- words that the list does not have -----------------------------------------------------------------------------


def learned_words(found):
    """Words of the sentences that the list does not have, or that are said in another way than it says."""
    forms = defaultdict(Counter)
    listed = {}
    for groups, said, tags in found:
        parts = [part for group in groups for part in group]
        for (text, kind, _, _, known), sounds, _ in zip(parts, said, tags):
            if sounds and text != "و" and kind != "L":
                forms[text][sounds] += 1
                listed[text] = shorten(known)
    words = {}
    for text, counts in sorted(forms.items()):
        total = sum(counts.values())
        sounds, count = max(counts.items(), key=lambda item: (item[1], item[0]))
        known = listed[text]
        rough = plain("".join(ROUGH.get(c, "") for c in text if c not in "اآویه"))
        consonants = re.sub(f"[{VOWELS}jvh]", "", plain(sounds))
        same = edits(re.sub("[jvh]", "", rough), consonants) <= (1 if len(rough) > 4 else 0)
        if not same or count * 2 <= total:
            continue
        if not known:
            words[text] = sounds
        elif plain(known) != plain(sounds) and count >= 3 and count * 10 >= total * 7:
            # The written ezafe of «هوای» and «کتاب‌های» is a part of the listed form.
            if not (text.endswith("ی") and known.endswith("je")):
                words[text] = sounds
    return words


# --- letter to sound -----------------------------------------------------------------------------------------------

CONSONANTS = dict(zip("بپتثجچحخدذرزژسشصضطظغفقکگلمنه", "bptsJChxdzrzʒsʃsztzqfqkɡlmnh"))
SEMI = {
    "و": "u v o va ve vo vi vɑ vɑ ov uv uva av vv vva vve vvo ua ue uʔ uʔe uʔɑ ʔu".split() + [""],
    "ی": "i j ja je jo jɑ ij ija ijɑ ej ɑ aj ʔi jj jja jje jjo iʔ iʔe ijj ijja".split() + [""],
    "ا": "ɑ a e o i ʔɑ ʔa ʔe ʔo ʔ".split() + [""],
    "آ": "ɑ ʔɑ".split(),
}
GLOTTAL = "عءئأؤ"


def letters_of(word):
    return [c for c in word if c in CONSONANTS or c in SEMI or c in GLOTTAL or c == "\u064b"]


def share_out(letters, sounds):
    """The sounds of each letter, or None where they do not fit."""
    best = {0: (0.0, ())}
    for place, letter in enumerate(letters):
        after = {}
        for done, (cost, path) in best.items():
            for take in range(5):
                if done + take > len(sounds):
                    break
                part = sounds[done : done + take]
                price = cost + price_of(letter, part, place, len(letters))
                if price < after.get(done + take, (1e9,))[0]:
                    after[done + take] = (price, path + (part,))
        best = after
    cost, path = best.get(len(sounds), (1e9, None))
    return path if cost <= 5 else None


def price_of(letter, part, place, count):
    vowels = lambda text: all(c in VOWELS for c in text)
    if letter in SEMI:
        if part in SEMI[letter]:
            return {"": 1.2 if letter in "وی" else 0.6}.get(part, 0.1 * (len(part) - 1))
        return 4
    if letter == "\u064b":
        return 0 if part in ("an", "n") else 4
    if letter in GLOTTAL:
        rest = part.lstrip("ʔ")
        return (0.2 if part == "" else 0.1 * len(rest)) if len(rest) <= 1 and vowels(rest) else 4
    base = CONSONANTS[letter]
    if part == "":
        return 0.5 if letter == "ه" and place + 1 == count else 3
    if letter == "ه" and place + 1 == count and part == "e":
        return 0
    if part[0] != base:
        return 5
    rest = part[1:]
    if rest[:1] == base:
        rest = rest[1:]
    return 0.1 * len(rest) if len(rest) <= 1 and vowels(rest) else 3


def letter_features(letters, place, before):
    at = lambda offset: letters[place + offset] if 0 <= place + offset < len(letters) else "#"
    here = at(0)
    last, second = before
    tip = last[-1]
    start, end = str(min(place, 9)), str(min(len(letters) - place, 9))
    rows = [
        ("a",), ("b", at(-3)), ("c", at(-2)), ("d", at(-1)), ("e", at(1)), ("f", at(2)), ("g", at(3)),
        ("h", at(-2), at(-1)), ("i", at(-1), at(1)), ("j", at(1), at(2)), ("k", at(-3), at(-2), at(-1)),
        ("l", at(-2), at(-1), at(1)), ("m", at(-1), at(1), at(2)), ("n", at(1), at(2), at(3)),
        ("o", at(-2), at(-1), at(1), at(2)), ("p", at(-1), at(1), at(2), at(3)),
        ("q", at(1), at(2), at(3), at(4)), ("r", at(-4), at(-3), at(-2), at(-1)),
        ("s", last), ("t", last, at(1)), ("u", last, at(1), at(2)), ("v", last, second),
        ("w", last, second, at(1)), ("x", tip, at(1), at(2), at(3)), ("y", start), ("z", end),
        ("A", start, end, at(-1), at(1)), ("B", tip, end, at(1)),
    ]  # fmt: skip
    return ["\x1f".join((row[0], here, *row[1:])) for row in rows]


class LetterModel:
    def __init__(self, words):
        self.aligned = []
        for word, sounds in words:
            letters = letters_of(word)
            shared = share_out(letters, sounds) if letters else None
            if shared:
                self.aligned.append((letters, shared))
        usual = Counter((c, s) for letters, shared in self.aligned for c, s in zip(letters, shared))
        self.aligned = [
            (letters, shared)
            for letters, shared in self.aligned
            if all(usual[pair] >= 2 for pair in zip(letters, shared))
        ]
        self.choices = defaultdict(set)
        for letters, shared in self.aligned:
            for letter, sounds in zip(letters, shared):
                self.choices[letter].add(lengthen(sounds))
        self.choices = {letter: sorted(sounds) for letter, sounds in sorted(self.choices.items())}
        self.sounds = sorted({sound for sounds in self.choices.values() for sound in sounds})
        self.train()

    def train(self):
        weights, sums = defaultdict(dict), defaultdict(dict)
        order = list(self.aligned)
        rng = random.Random(1)
        clock = 0
        for _ in range(LETTER_ROUNDS):
            rng.shuffle(order)
            for letters, shared in order:
                before = ("#", "#")
                for place, letter in enumerate(letters):
                    features = letter_features(letters, place, before)
                    right, found = lengthen(shared[place]), self.best(weights, letter, features)
                    clock += 1
                    if found != right:
                        for feature in features:
                            own, total = weights[feature], sums[feature]
                            own[right] = own.get(right, 0) + 1
                            own[found] = own.get(found, 0) - 1
                            total[right] = total.get(right, 0) + clock
                            total[found] = total.get(found, 0) - clock
                    before = (right or "_", before[0])
        self.weights = {}
        for feature, own in weights.items():
            means = {sound: own[sound] - sums[feature][sound] / clock for sound in own}
            kept = {s: round(w * SCALE) for s, w in means.items() if abs(w) >= LEAST_LETTER_WEIGHT}
            if kept:
                self.weights[feature] = kept

    def best(self, weights, letter, features):
        scores = dict.fromkeys(self.choices[letter], 0)
        for feature in features:
            own = weights.get(feature)
            if own:
                for sound, weight in own.items():
                    scores[sound] += weight
        return max(scores, key=scores.get)

    def read(self, word):
        letters = [c for c in letters_of(word) if c in self.choices]
        before, out = ("#", "#"), []
        for place, letter in enumerate(letters):
            sound = self.best(self.weights, letter, letter_features(letters, place, before))
            out.append(sound)
            before = (sound or "_", before[0])
        return "".join(out)


# --- ezafe ---------------------------------------------------------------------------------------------------------

OUTSIDE = ("#", "#", "", "#", "")


def ezafe_features(parts, place):
    """The features of a part, and those that also depend on the decision before it."""
    at = lambda offset: parts[place + offset] if 0 <= place + offset < len(parts) else OUTSIDE
    word, c, sounds, after, _ = parts[place]
    (next_, cn, _, after_next, _), (second, cs, *_), (before, cp, *_) = at(1), at(2), at(-1)
    rows = [
        ("a",), ("b", word), ("c", next_), ("d", before), ("e", word, next_), ("f", word[-1:]), ("g", word[-2:]),
        ("h", word[-3:]), ("i", next_[-1:]), ("j", next_[-2:]), ("k", next_[-3:]), ("l", next_[:2]),
        ("m", after), ("n", c), ("o", cn), ("p", c, cn), ("q", cp, c), ("r", c, cn, cs), ("s", second),
        ("t", sounds[-1:]), ("u", sounds), ("v", word[-2:], next_[-2:]), ("w", word, cn), ("x", c, next_),
        ("y", str(min(len(word), 6))), ("z", cp, c, cn), ("A", before, word), ("B", after, c, cn),
        ("C", word[-2:], cn), ("D", c, next_[-2:]), ("E", cn, cs, at(3)[1]), ("F", cn, after_next),
        ("G", c, cn, second), ("H", at(-2)[1], cp, c),
    ]  # fmt: skip
    chained = [[("T", t), ("U", t, c), ("V", t, c, cn), ("W", t, word)] for t in "01"]
    join = "\x1f".join
    return [join(row) for row in rows], [[join(row) for row in rows] for rows in chained]


class EzafeModel:
    def __init__(self, found):
        groups = []
        for sentences, _, tags in found:
            at = 0
            for parts in sentences:
                own = tags[at : at + len(parts)]
                at += len(parts)
                groups.append(([ezafe_features(parts, place) for place in range(len(parts))], own))
        counts = Counter()
        for features, _ in groups:
            for local, chained in features:
                counts.update(local)
                for rows in chained:
                    counts.update(rows)
        names = {}
        compact = []
        for features, own in groups:
            rows = []
            for local, chained in features:
                number = lambda f: names.setdefault(f, len(names))
                keep = lambda row: [number(f) for f in row if counts[f] >= 2]
                rows.append((keep(local), [keep(row) for row in chained]))
            compact.append((rows, own))
        weights = self.train(compact, len(names))
        self.weights = {
            name: round(weights[number] * SCALE)
            for name, number in names.items()
            if abs(weights[number]) >= LEAST_EZAFE_WEIGHT
        }

    def train(self, sentences, count):
        """AdaGrad on the likelihood of whole sentences."""
        weights, squares = [0.0] * count, [1.0] * count
        rng = random.Random(2)
        order = list(sentences)
        for _ in range(EZAFE_ROUNDS):
            rng.shuffle(order)
            for rows, tags in order:
                self.step(rows, tags, weights, squares)
        return weights

    @staticmethod
    def step(rows, tags, weights, squares):
        scores = []
        for local, chained in rows:
            base = sum([weights[f] for f in local])
            scores.append([base + sum([weights[f] for f in row]) for row in chained])
        # scores[i][before]: of an ezafe at i; without one the score is 0. Nothing is before the first.
        forward = [0.0, -1e9]
        alphas = []
        for pair in scores:
            alphas.append(forward)
            forward = [add(forward[0], forward[1]), add(forward[0] + pair[0], forward[1] + pair[1])]
        total = add(*forward)
        beta = [0.0, 0.0]
        before_right = [False] + list(tags[:-1])
        for place in range(len(rows) - 1, -1, -1):
            alpha, pair = alphas[place], scores[place]
            chance = [math.exp(min(0.0, alpha[b] + pair[b] + beta[1] - total)) for b in (0, 1)]
            beta = [add(beta[0], pair[b] + beta[1]) for b in (0, 1)]
            right = 1.0 if tags[place] else 0.0
            local, chained = rows[place]
            update(weights, squares, local, right - chance[0] - chance[1])
            for b in (0, 1):
                own = right if before_right[place] == bool(b) else 0.0
                update(weights, squares, chained[b], own - chance[b])

    def tag(self, parts):
        weights = self.weights
        best, back = [0, -(2**30)], []
        for place in range(len(parts)):
            local, chained = ezafe_features(parts, place)
            base = sum(weights.get(f, 0) for f in local)
            pair = [base + sum(weights.get(f, 0) for f in row) for row in chained]
            if parts[place][3] == "x":
                pair = [-(1 << 24)] * 2
            ways = [[best[0], best[1]], [best[0] + pair[0], best[1] + pair[1]]]
            back.append([way[1] > way[0] for way in ways])
            best = [max(way) for way in ways]
        now, tags = best[1] > best[0], []
        for choice in reversed(back):
            tags.append(now)
            now = choice[now]
        return tags[::-1]


def add(a, b):
    """The logarithm of a sum."""
    high, low = (a, b) if a > b else (b, a)
    return high + math.log1p(math.exp(low - high)) if low > high - 50 else high


def update(weights, squares, features, gradient):
    if abs(gradient) < 1e-3:
        return
    for feature in features:
        slope = gradient - EZAFE_PENALTY * weights[feature]
        squares[feature] += slope * slope
        weights[feature] += 0.3 * slope / math.sqrt(squares[feature])


# --- words with several readings ----------------------------------------------------------------------------------

# The notation of HomoRich.
HOMORICH = {"A": "ɑ", "S": "ʃ", "Z": "ʒ", "y": "j", "?": "ʔ", "'": "ʔ", "w": "v", "g": "ɡ", "j": "J"}


def read_homographs(path):
    """Rows of word, phonemes and sentence: of a file of three columns, or of the notebook of HomoRich."""
    if Path(path).suffix != ".ipynb":
        lines = (line.rstrip("\n").split("\t") for line in open(path, encoding="utf-8"))
        return [(word, shorten(said), text) for word, said, text in lines]
    printed = []
    for cell in json.load(open(path, encoding="utf-8"))["cells"]:
        printed += "".join("".join(o.get("text", "")) for o in cell.get("outputs", [])).splitlines()
    rows, prompt = [], None
    for line in printed:
        word, _, readings = line.partition(": {")
        asked = re.match(r"Prompting for (\S+), (\S+)", line)
        answer = re.match(r"\d+\. \[?(.*?)\]?$", line)
        if readings.endswith("]}"):
            for said, texts in ast.literal_eval("{" + readings).items():
                rows += [(word.strip(), said, text) for text in texts]
        elif asked:
            prompt = asked.groups()
        elif answer and prompt:
            rows.append((*prompt, answer[1]))
    ipa = lambda said: "".join(HOMORICH.get(c, c) for c in said)
    return [(word, ipa(said), " ".join(text.split())) for word, said, text in dict.fromkeys(rows) if text.strip()]


def own_homographs(odd):
    """Every second sentence of our own; the odd ones are never trained on."""
    rows = []
    for line in open(OWN_HOMOGRAPHS, encoding="utf-8"):
        if not line.startswith("#"):
            word, said, texts = line.rstrip("\n").split("\t")
            rows += [(word, shorten(said), text) for text in texts.split("|")]
    return rows[odd::2]


def reading_of(sight, said):
    """The number of the listed reading that is meant; the source may write its ezafe."""
    listed = [plain(shorten(phonemes)) for phonemes, _ in sight["readings"]]
    for form in (plain(said), re.sub("j?e$", "", plain(said))):
        if form in listed:
            return listed.index(form)
    return None


def homograph_examples(command, rows):
    """What the program sees of the word of each row, and which reading is right. `command` shows `homographs`."""
    found = []
    for (word, said, _), sentences in zip(rows, ask(command, [text for _, _, text in rows])):
        for sight in (sight for sentence in sentences for sight in sentence if sight["word"] == word):
            right = reading_of(sight, said)
            if right is not None:
                found.append((sight, right))
    return found


def spoken_homographs(command, texts, found):
    """The same of sentences with phonemes: `found` is from `examples`."""
    rows = []
    for (groups, said, _), sentences in zip(found, ask(command, texts)):
        at = 0
        for parts, sights in zip(groups, sentences):
            for sight in sights:
                right = reading_of(sight, said[at + sight["place"]])
                if right is not None and parts[sight["place"]][0] == sight["word"]:
                    rows.append((sight, right))
            at += len(parts)
    return rows


class HomographModel:
    def __init__(self, found):
        self.weights, self.cue, self.usual, squares = {}, CUE, 0, {}
        # Sentences show how a reading is used, not how often: those of a rare one count more.
        counts = Counter((sight["word"], right) for sight, right in found)
        words = Counter(sight["word"] for sight, _ in found)
        readings = Counter(word for word, _ in counts)
        order = list(found)
        rng = random.Random(3)
        for _ in range(HOMOGRAPH_ROUNDS):
            rng.shuffle(order)
            for sight, right in order:
                word = sight["word"]
                share = words[word] / (readings[word] * counts[word, right])
                self.step(sight, right, min(3.0, math.sqrt(share)), squares)
        # In whole numbers, as the program adds them.
        self.cue, self.usual = round(CUE * SCALE), round(USUAL * SCALE)
        self.weights = {
            feature: kept
            for feature, own in self.weights.items()
            if (kept := {n: round(w * SCALE) for n, w in own.items() if abs(w) >= LEAST_HOMOGRAPH_WEIGHT})
        }

    def scores(self, sight):
        """Of each reading: cues, its own weights, and those of its class."""
        scores = []
        for place, (_, kind) in enumerate(sight["readings"]):
            score = self.cue * sight["cues"][place] + (self.usual if place == 0 else 0)
            for number, features in ((place, sight["features"]), (kind, sight["shared"])):
                for feature in features:
                    own = self.weights.get(feature)
                    if own:
                        score += own.get(number, 0.0)
            scores.append(score)
        return scores

    def step(self, sight, right, share, squares):
        scores = self.scores(sight)
        high = max(scores)
        chances = [math.exp(score - high) for score in scores]
        total = sum(chances)
        for place, (_, kind) in enumerate(sight["readings"]):
            gradient = (1.0 if place == right else 0.0) - chances[place] / total
            if abs(gradient) < 1e-3:
                continue
            gradient *= share
            for number, features in ((place, sight["features"]), (kind, sight["shared"])):
                for feature in features:
                    own = self.weights.setdefault(feature, {})
                    slope = gradient - HOMOGRAPH_PENALTY * own.get(number, 0.0)
                    square = squares[feature, number] = squares.get((feature, number), 1.0) + slope * slope
                    own[number] = own.get(number, 0.0) + HOMOGRAPH_RATE * slope / math.sqrt(square)


# --- the file ------------------------------------------------------------------------------------------------------


def fnv1a(data):
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def feature_hash(feature):
    """Of a template and its values: each value is hashed once, and the program keeps its hash."""
    template, *values = feature.split("\x1f")
    mixed = ord(template)
    for value in values:
        mixed = ((mixed ^ fnv1a(value.encode())) * 0x9E3779B1) & 0xFFFFFFFF
        mixed ^= mixed >> 15
    return mixed


def buckets(entries):
    """A hash table: entries are (hash, bytes)."""
    count = 1
    while count * 3 < len(entries):
        count *= 2
    slots = [b""] * count
    for key, data in entries:
        slots[key & (count - 1)] += data
    out, at = struct.pack("<I", count), 0
    for slot in slots:
        out += struct.pack("<I", at)
        at += len(slot)
    return out + struct.pack("<I", at) + b"".join(slots)


def counted(data):
    assert len(data) < 256
    return bytes([len(data)]) + data


def weight_table(weights):
    """Of feature -> class -> weight. A feature may be given as its hash."""
    entries, seen = [], {}
    for feature in sorted(weights):
        key = feature if isinstance(feature, int) else feature_hash(feature)
        if seen.setdefault(key, feature) != feature:
            continue  # two features with one hash: the first is kept
        pairs = b"".join(struct.pack("<Bh", c, max(-32000, min(32000, w))) for c, w in sorted(weights[feature].items()))
        entries.append((key, struct.pack("<I", key) + bytes([len(weights[feature])]) + pairs))
    return buckets(entries)


def section(data):
    return struct.pack("<I", len(data)) + data


def without_homographs(data):
    """A file without its last section."""
    at = 4
    for _ in range(4):
        at += 4 + struct.unpack_from("<I", data, at)[0]
    return data[:at]


def pack(words, letters, ezafe):
    """All sections but the last one."""
    said = [(w.encode(), lengthen(s).encode()) for w, s in sorted(words.items())]
    number = {sound: n for n, sound in enumerate(letters.sounds)}
    alphabet = bytes([len(letters.sounds)]) + b"".join(counted(s.encode()) for s in letters.sounds)
    for letter, sounds in letters.choices.items():
        alphabet += counted(letter.encode()) + counted(bytes(number[s] for s in sounds))
    sections = [
        buckets([(fnv1a(w), counted(w) + counted(s)) for w, s in said]),
        alphabet,
        weight_table({f: {number[s]: w for s, w in own.items()} for f, own in letters.weights.items()}),
        weight_table({f: {0: w} for f, w in ezafe.weights.items()}),
    ]
    return b"FAR2" + b"".join(map(section, sections))


def listed_words():
    for line in open(LIST, encoding="utf-8"):
        columns = line.rstrip("\n").split("\t")
        if not line.startswith("#") and len(columns) == 3 and columns[2] not in ("present",):
            yield columns[0].replace(ZWNJ, ""), shorten(columns[1])


def train(reader, texts, found, rows):
    """The file of the sentences `texts`, seen as `found` (from `examples`), and of rows with homographs; the ezafe tagger."""
    words, letters, ezafe = train_words_and_ezafe(found)
    first = pack(words, letters, ezafe)
    return with_homographs(reader, first, texts, found, rows), ezafe


def with_homographs(reader, first, texts, found, rows):
    """The file `first` with the weights of homographs after its other sections."""
    with tempfile.TemporaryDirectory() as folder:
        # What the program sees of homographs depends on the ezafe.
        draft = Path(folder) / "draft.model"
        draft.write_bytes(first + section(weight_table({})))
        command = [reader, "homographs", draft]
        seen = homograph_examples(command, rows) + spoken_homographs(command, texts, found)
    return first + section(weight_table(HomographModel(seen).weights))


def train_words_and_ezafe(found):
    words = learned_words(found)
    listed = list(listed_words())
    known = {word for word, _ in listed}
    # Words of the sentences show inflected forms, which the list has not.
    more = [(w.replace(ZWNJ, ""), s) for w, s in words.items() if w not in known]
    return words, LetterModel(listed + more), EzafeModel(found)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--reader", required=True, help="the example persian_reading")
    options.add_argument("--farsdat", help="FarsDat.csv")
    options.add_argument("--pairs", help="text and IPA, separated by a tab; 1 may mark the ezafe")
    options.add_argument("--homographs", action="append", default=[], help="word, IPA and sentence, separated by tabs; or"
                         " the notebook of HomoRich")  # fmt: skip
    options.add_argument("--keep", help="the words, letters and ezafe of this file; only homographs are trained: seconds")
    options.add_argument("--output", required=True)
    given = options.parse_args()
    sentences = read_farsdat(given.farsdat) if given.farsdat else []
    sentences += read_pairs(given.pairs) if given.pairs else []
    texts = [text for text, _ in sentences]
    rows = own_homographs(0) + [row for path in given.homographs for row in read_homographs(path)]
    found = examples(given.reader, sentences)
    if given.keep:
        first = without_homographs(Path(given.keep).read_bytes())
        data = with_homographs(given.reader, first, texts, found, rows)
    else:
        data, _ = train(given.reader, texts, found, rows)
    Path(given.output).write_bytes(data)
    print(f"{len(sentences)} sentences, {len(rows)} of homographs, {len(data)} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
