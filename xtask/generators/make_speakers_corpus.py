#!/usr/bin/env python3
"""Generates a corpus of many synthetic speakers, for fine-tuning and cloning experiments.

In: the English sentences in xtask/generators/demo_corpus/en.txt, and Debian's `espeak-ng`, `flite` and, if installed, `festival`.
Out: a corpus directory: wavs/, metadata_train.csv and metadata_eval.csv. Every speaker says a part of the sentences; the
sentences at every ninth place are held out for all speakers. The same programs give the same corpus: nothing is random.

    python3 xtask/generators/make_speakers_corpus.py --out speakers                  all speakers: 88 with flite
    python3 xtask/generators/make_speakers_corpus.py --out many --speakers 10 --without flite-slt
    python3 xtask/generators/make_speakers_corpus.py --out new --only flite-slt --seconds 120
    python3 xtask/generators/make_speakers_corpus.py --out seen --part seen          to train a voice for cloning_similarity.py ...
    python3 xtask/generators/make_speakers_corpus.py --out unseen --part unseen      ... and the speakers it never heard
    python3 xtask/generators/make_speakers_corpus.py --list

Speakers: each usable voice variant of espeak-ng with one of seven accents and a pitch of its own, the voices of flite, and
the English voices of festival (Debian: festival, festvox-kallpc16k, festvox-kdlpc16k, festvox-us-slt-hts). They sound like
synthesizers: a voice that is trained on them clones synthesizers, not people.
"""

import argparse
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import wave

HERE = pathlib.Path(__file__).resolve().parent
SENTENCES = HERE / "demo_corpus" / "en.txt"
EVAL_EVERY, EVAL_AT = 9, 4  # sentence i is held out where i % 9 == 4, as in the demo corpus
FEWEST = 60

ACCENTS = ["en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-029", "en-us-nyc"]
PITCHES = [30, 45, 60, 75]
# Effects rather than speakers, and `Mr serious`, whose name espeak-ng cannot be given.
NO_SPEAKERS = {"whisper", "whisperf", "croak", "fast", "Demonic", "anikaRobot", "Tweaky", "Storm", "UniRobot", "Mr"}
# Speakers for --part unseen: every eighth of espeak-ng, and two people whose voices flite and festival have.
UNSEEN_EVERY, UNSEEN_AT = 8, 3
UNSEEN_PEOPLE = ("rms", "slt")
FESTIVAL_VOICES = {
    "kal_diphone": "kallpc16k",
    "ked_diphone": "kdlpc16k",
    "cmu_us_slt_arctic_hts": "us-slt-hts",
}


def speakers():
    """Name and command of every speaker; the command takes the text and the file."""
    found = {}
    for number, variant in enumerate(sorted(espeak_variants())):
        accent, pitch = ACCENTS[number % len(ACCENTS)], PITCHES[number % len(PITCHES)]
        speed = 150 + 10 * (number % 4)
        words = ["espeak-ng", "-v", f"{accent}+{variant}", "-p", str(pitch), "-s", str(speed)]
        found[f"espeak-{variant}"] = (lambda text, path, words=words: [*words, "-w", path, text], None)
    if shutil.which("flite"):
        listed = subprocess.run(["flite", "-lv"], capture_output=True, text=True, check=True).stdout
        for voice in listed.split(":")[1].split():
            if voice == "awb_time":  # says nothing but the time
                continue
            words = ["flite", "-voice", voice]
            found[f"flite-{voice}"] = (lambda text, path, words=words: [*words, "-t", text, "-o", path], None)
    if shutil.which("text2wave"):
        for voice in festival_voices():
            words = ["text2wave", "-eval", f"(voice_{voice})"]
            found[f"festival-{voice}"] = (lambda text, path, words=words: [*words, "-o", path], "stdin")
    return found


def espeak_variants():
    listed = subprocess.run(["espeak-ng", "--voices=variant"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines()[1:]:
        name = line.split("!v/", 1)[-1].split()[0] if "!v/" in line else ""
        if name and name not in NO_SPEAKERS and not name.startswith("robosoft"):
            yield name


def festival_voices():
    words = ["festival", "--batch", "(print (voice.list))"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return [voice for voice in FESTIVAL_VOICES if voice in listed]


def unseen(names):
    """Speakers that training for a cloning measurement leaves out."""
    of_espeak = [name for name in names if name.startswith("espeak-")]
    people = [name for name in names if name not in of_espeak and any(one in name for one in UNSEEN_PEOPLE)]
    return of_espeak[UNSEEN_AT::UNSEEN_EVERY] + people


def sentences():
    for line in SENTENCES.read_text(encoding="utf-8").splitlines():
        raw, _, spoken = line.partition("|")
        yield raw, spoken or raw


def speak(job):
    (command, source), text, path = job
    words = command(text, str(path))
    subprocess.run(words, input=text if source else None, text=True, check=True, capture_output=True)
    with wave.open(str(path)) as file:
        return file.getnframes() / file.getframerate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--speakers", type=int, help="this many, evenly chosen; default: all")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--without", action="append", default=[], metavar="NAME")
    parser.add_argument("--part", choices=["seen", "unseen"], help="a fixed division of the speakers")
    parser.add_argument("--sentences", type=int, default=25, help="training sentences per speaker")
    parser.add_argument("--seconds", type=float, help="stop at so many seconds of training speech per speaker")
    parser.add_argument("--list", action="store_true", help="print the names of all speakers")
    args = parser.parse_args()
    if not shutil.which("espeak-ng"):
        sys.exit("espeak-ng is missing: apt-get install espeak-ng flite")
    known = speakers()
    if args.list:
        print("\n".join(known))
        return 0
    if not args.out:
        parser.error("--out is missing")
    if args.out.exists():
        sys.exit(f"{args.out} exists: name another directory")
    if unknown := [name for name in [*args.only, *args.without] if name not in known]:
        sys.exit(f"unknown speakers: {', '.join(unknown)}; --list shows all")
    names = args.only or [name for name in known if name not in args.without]
    if args.part:
        left_out = unseen(list(known))
        names = [name for name in names if (name in left_out) == (args.part == "unseen")]
    if not args.only and not args.speakers and args.part != "unseen" and len(names) < FEWEST:
        sys.exit(f"only {len(names)} speakers, {FEWEST} are needed: apt-get install espeak-ng espeak-ng-data flite")
    if args.speakers:
        names = [names[number * len(names) // args.speakers] for number in range(args.speakers)]
    build(args, names, known)
    return 0


def build(args, names, known):
    texts = list(enumerate(sentences()))
    training = [one for one in texts if one[0] % EVAL_EVERY != EVAL_AT]
    held_out = [one for one in texts if one[0] % EVAL_EVERY == EVAL_AT]
    count = len(training) if args.seconds else args.sentences
    rows = {"train": [], "eval": []}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, name in enumerate(names):
            folder = args.out / "wavs" / name
            folder.mkdir(parents=True)
            # Each speaker begins at another sentence, so that together they say all of them.
            own = [training[(number * count + at) % len(training)] for at in range(count)]
            tests = [held_out[(number * 2 + at) % len(held_out)] for at in range(len(held_out) if args.only else 2)]
            parts = [("train", one) for one in own] + [("eval", one) for one in tests]
            jobs = [(known[name], spoken, folder / f"{index:03}.wav") for _, (index, (_, spoken)) in parts]
            spent = 0.0
            for (part, (index, (raw, spoken))), seconds in zip(parts, pool.map(speak, jobs)):
                if part == "train" and args.seconds and spent >= args.seconds:
                    (folder / f"{index:03}.wav").unlink()
                    continue
                spent += seconds if part == "train" else 0
                rows[part].append(f"{name}/{index:03}|{raw}|{spoken}|{name}|en")
    for part, lines in rows.items():
        head = "id|text|normalised|speaker|language"
        path = args.out / f"metadata_{part}.csv"
        path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    print(f"{args.out}: {len(names)} speakers, {len(rows['train'])} training rows, {len(rows['eval'])} held out")


if __name__ == "__main__":
    sys.exit(main())
