#!/usr/bin/env python3
"""Trains the English letter-to-sound model, for words that the lexicon does not have.

In: the CMU Pronouncing Dictionary (see cmu_dictionary.py). Out: english.letters, read by
letter_to_sound.rs, and its error rates on the held-out tenth of the words, on stderr.
Needs Python alone, takes about five minutes, and gives the same bytes every time.

    npm pack cmu-pronouncing-dictionary@3.0.0 && tar xzf cmu-pronouncing-dictionary-3.0.0.tgz
    xtask/generators/train_letter_to_sound.py package/index.js crates/tandem-text/pronunciation/english.letters

The model is a joint n-gram model: each letter gives zero to two phones, and a word is a sequence of
such pairs. Letters and phones are aligned by hard EM; n-grams are smoothed as by Kneser and Ney with
three discounts, pruned by how much they change the likelihood, and stored as a trie of 8-bit costs.
"""

import math
import struct
import sys
from collections import Counter, defaultdict

import cmu_dictionary

ORDER = 7
EM_ROUNDS = 6
# Pairs that are rarer are misalignments, foreign names or abbreviations.
RAREST_PAIR = 12
# Bits that an n-gram of each size must save over all of its occurrences. Higher gives a smaller model.
PRUNE_BITS = {2: 1.75, 3: 2.8, 4: 3.5, 5: 3.5, 6: 3.5, 7: 3.5}
BEGIN, END = 0, 1  # tokens without a letter
BEAM = 12


def main():
    source, target = sys.argv[1:]
    words = {w: p for w, p in cmu_dictionary.read(source).items() if "'" not in w and len(w) > 1}
    seen = {w: p for w, p in words.items() if not cmu_dictionary.is_held_out(w)}
    aligned = align([(word, pronunciations[0]) for word, pronunciations in seen.items()])
    usual = Counter(pair for pairs in aligned for pair in pairs)
    aligned = [pairs for pairs in aligned if all(usual[pair] >= RAREST_PAIR for pair in pairs)]
    tokens = sorted({pair for pairs in aligned for pair in pairs})
    numbers = {pair: number for number, pair in enumerate(tokens, 2)}
    print(f"{len(aligned)} words, {len(tokens)} pairs", file=sys.stderr)
    model = Model(tokens, [[numbers[pair] for pair in pairs] for pairs in aligned])
    data = model.pack()
    with open(target, "wb") as file:
        file.write(data)
    print(f"{[len(level) for level in model.levels[1:]]} n-grams, {len(data)} bytes", file=sys.stderr)
    held_out = sorted(word for word in words if word not in seen)
    report(model, [(word, words[word]) for word in held_out[:: int(len(held_out) / 1500) or 1]])


def align(pairs):
    """Hard EM: each letter gets the zero to two phones that are likeliest over all words."""
    cost = defaultdict(lambda: 1.0)
    aligned = []
    for round_number in range(EM_ROUNDS):
        counts = Counter()
        aligned = []
        for word, phones in pairs:
            path = best_path(word, phones, cost, first=round_number == 0)
            if path:
                aligned.append(path)
                counts.update(path)
        by_letter = Counter()
        for (letter, _), count in counts.items():
            by_letter[letter] += count
        cost = defaultdict(lambda: 14.0)
        for (letter, part), count in counts.items():
            cost[letter, part] = -math.log(count / by_letter[letter])
    return aligned


def best_path(word, phones, cost, first):
    """The cheapest way to share the phones out over the letters; None if there is none."""
    inf = float("inf")
    best = {0: (0.0, None)}
    table = []
    for letter in word:
        after = {}
        for done, (total, _) in best.items():
            for take in (0, 1, 2):
                if done + take > len(phones):
                    break
                part = phones[done : done + take]
                # The first round knows no pairs: one phone is likelier than none or two.
                price = (0.0 if take == 1 else 1.0 + take) if first else cost[letter, part]
                if total + price < after.get(done + take, (inf,))[0]:
                    after[done + take] = (total + price, take)
        table.append(after)
        best = after
    at = len(phones)
    if at not in best:
        return None
    path = []
    for index in range(len(word) - 1, -1, -1):
        take = table[index][at][1]
        path.append((word[index], phones[at - take : at]))
        at -= take
    return path[::-1]


def smoothed(counts):
    """Probabilities of all n-grams, by size: modified Kneser-Ney."""
    used = [None] + [Counter() for _ in range(ORDER)]
    used[ORDER] = counts[ORDER]
    for size in range(ORDER, 1, -1):
        for gram in counts[size]:
            used[size - 1][gram[1:]] += 1
    # What begins a word has nothing before it that could vary.
    for size in range(2, ORDER):
        used[size].update({gram: count for gram, count in counts[size].items() if gram[0] == BEGIN})
    total = sum(used[1].values())
    full = [None, {gram: count / total for gram, count in used[1].items()}]
    for size in range(2, ORDER + 1):
        seen = Counter(count for count in used[size].values() if count <= 4)
        base = seen[1] / (seen[1] + 2 * seen[2])
        discounts = [0] + [n - (n + 1) * base * seen[n + 1] / seen[n] for n in (1, 2, 3)]
        sums, spread = Counter(), Counter()
        for gram, count in used[size].items():
            sums[gram[:-1]] += count
            spread[gram[:-1]] += discounts[min(count, 3)]
        level = {}
        for gram, count in used[size].items():
            context = gram[:-1]
            own = (count - discounts[min(count, 3)]) / sums[context]
            level[gram] = own + spread[context] / sums[context] * full[size - 1][gram[1:]]
        full.append(level)
    return full


class Model:
    """The pruned n-grams as levels of a trie, with costs as the program reads them."""

    def __init__(self, tokens, sentences):
        self.tokens = tokens
        self.by_letter = defaultdict(list)
        for number, (letter, _) in enumerate(tokens, 2):
            self.by_letter[letter].append(number)
        counts = [None] + [Counter() for _ in range(ORDER)]
        for sentence in sentences:
            padded = [BEGIN, *sentence, END]
            for end in range(1, len(padded)):
                for size in range(1, ORDER + 1):
                    if end - size + 1 < 0:
                        break
                    counts[size][tuple(padded[end - size + 1 : end + 1])] += 1
        kept = self.prune(counts)
        self.quantize(kept)

    def prune(self, counts):
        """Probabilities of the n-grams that stay, by size."""
        full = smoothed(counts)
        kept = [None, dict(full[1])] + [{} for _ in range(ORDER - 1)]
        kept[1].setdefault((BEGIN,), 1e-9)
        needed = set()
        for size in range(ORDER, 1, -1):
            for gram, chance in full[size].items():
                gain = counts[size][gram] * math.log2(chance / full[size - 1][gram[1:]])
                if gram in needed or abs(gain) > PRUNE_BITS[size]:
                    kept[size][gram] = chance
            # A context must be in the trie, and so must the shorter one it backs off to.
            needed = {gram[:-1] for gram in kept[size]} | {gram[1:] for gram in kept[size]}
        return kept

    def quantize(self, kept):
        sums, below = Counter(), Counter()
        for size in range(2, ORDER + 1):
            for gram, chance in kept[size].items():
                sums[gram[:-1]] += chance
                below[gram[:-1]] += self.chance(kept, gram[1:])
        self.levels = [None]
        for size in range(1, ORDER + 1):
            level = {}
            for gram in sorted(kept[size]):
                price = min(255, round(-math.log2(kept[size][gram]) * 8))
                left, rest = 1 - sums[gram], 1 - below[gram]
                weight = 1.0 if gram not in sums else max(left, 1e-4) / max(rest, 1e-4)
                level[gram] = (price, max(0, min(255, round(-math.log2(weight) * 16))))
            self.levels.append(level)

    def chance(self, kept, gram):
        while gram not in kept[len(gram)]:
            gram = gram[1:]
        return kept[len(gram)][gram]

    def pack(self):
        """Header, pairs, then the levels: token, cost, back-off and children of each n-gram."""
        assert len(self.tokens) + 2 <= 256, "a token is one byte"
        out = bytearray(struct.pack("<4sBBH", b"LTS2", ORDER, 0, len(self.tokens)))
        for letter, phones in self.tokens:
            codes = list(phones) + [255] * (2 - len(phones))
            out += struct.pack("<BBBB", ord(letter), len(phones), *codes)
        ordered = [None] + [sorted(self.levels[size]) for size in range(1, ORDER + 1)]
        for size in range(1, ORDER + 1):
            out += struct.pack("<I", len(ordered[size]))
        for size in range(1, ORDER + 1):
            level = self.levels[size]
            out += bytes(gram[-1] for gram in ordered[size])
            out += bytes(level[gram][0] for gram in ordered[size])
            if size == ORDER:
                break
            out += bytes(level[gram][1] for gram in ordered[size])
            children = Counter(gram[:-1] for gram in ordered[size + 1])
            out += bytes(children[gram] for gram in ordered[size])
        return bytes(out)

    def price(self, history, token):
        """Cost of a token after others, in sixteenths of a bit."""
        total = 0
        for start in range(max(0, len(history) - ORDER + 1), len(history) + 1):
            gram = (*history[start:], token)
            if gram in self.levels[len(gram)]:
                return total + 2 * self.levels[len(gram)][gram][0]
            context = gram[:-1]
            if context in self.levels[len(context)] if context else False:
                total += self.levels[len(context)][context][1]
        return total + 512

    def read(self, word):
        beam = [(0, (BEGIN,))]
        for letter in word:
            ahead = [
                (total + self.price(path[-ORDER + 1 :], token), (*path, token))
                for total, path in beam
                for token in self.by_letter[letter]
            ]
            beam = sorted(ahead)[:BEAM]
        ends = [(total + self.price(path[-ORDER + 1 :], END), path) for total, path in beam]
        _, path = min(ends)
        return tuple(phone for token in path[1:] for phone in self.tokens[token - 2][1])


def report(model, words):
    """Error rates with and without stress, against the nearest listed pronunciation."""
    plain = [phone[:2].rstrip("012") for phone in cmu_dictionary.PHONES]
    errors = {"with stress": [0, 0, 0], "without stress": [0, 0, 0]}
    for word, listed in words:
        found = model.read(word)
        for name, kind in (("with stress", lambda p: p), ("without stress", lambda p: tuple(plain[c] for c in p))):
            distance, length = min((edits(kind(found), kind(p)), len(p)) for p in listed)
            errors[name][0] += distance
            errors[name][1] += length
            errors[name][2] += distance > 0
    for name, (distance, length, wrong) in errors.items():
        print(f"{name}: phone errors {distance / length:.2%}, word errors {wrong / len(words):.2%}"
              f" ({len(words)} held-out words)", file=sys.stderr)


def edits(one, other):
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


if __name__ == "__main__":
    main()
