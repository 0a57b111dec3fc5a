#!/usr/bin/env python3
"""Whether the warning about varying step times fires where it should, and only there.

  xtask/campaigns/variation_campaign.py [--runs 40] [--only undisturbed] [--tandem PROGRAM] [--steps 120] [--json FILE]

Half of the runs are disturbed (slow disk, throttled stage, throttled model, CPU contention in turn), half are not
(the demo corpus, a corpus with the lengths of LJSpeech, one with the lengths of prompts). All train a small
model with the real program. Prints a table; exit code 1: a verdict was wrong.

Another program that takes the CPU away is a disturbance too, so an undisturbed run is judged only if the machine was
quiet: the CPU time of all other processes is measured during each run. A run on a busy machine is repeated
(--retries), and counted as "busy" if that does not help. Needs Linux and Python 3.8, no packages.
"""

import argparse
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

RATE = 22050
WORDS = "the river bends slowly past an old mill where nobody lives now and a lamp burns all night".split()
# Other programs with more than this share of all cores make a run "busy".
BUSY = 0.10


def speech_like(seconds, seed):
    """Noise in syllables: loud and soft parts, so that nothing is rejected as silence."""
    draw = random.Random(seed)
    samples, level = [], 0.0
    for at in range(int(seconds * RATE)):
        level = 0.95 * level + draw.uniform(-1200, 1200)
        loud = 0.25 + abs(math.sin(at * 4.0 * math.pi / RATE))
        samples.append(max(-32768, min(32767, int(level * loud))))
    return samples


def wav(samples):
    data = struct.pack(f"<{len(samples)}h", *samples)
    head = struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVEfmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16, b"data", len(data))
    return head + data


def write_corpus(folder, lengths):
    (folder / "wavs").mkdir(parents=True)
    whole = speech_like(12.0, 1)
    draw = random.Random(2)
    rows = []
    for number, seconds in enumerate(lengths):
        count = int(seconds * RATE)
        first = draw.randrange(0, len(whole) - count)
        (folder / "wavs" / f"clip{number:04}.wav").write_bytes(wav(whole[first : first + count]))
        # About fourteen letters a second, as in read speech.
        text = ""
        while len(text) < 14 * seconds:
            text += draw.choice(WORDS) + " "
        rows.append(f"clip{number:04}|{text.strip()}|{text.strip()}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")


def ljspeech_lengths(count):
    """1.1 to 10.1 s, most of them long: mean 6.6, standard deviation 2.2."""
    draw = random.Random(3)
    return [min(9.2, max(1.1, 10.1 - abs(draw.gauss(0.0, 3.6)) - draw.uniform(0.0, 1.5))) for _ in range(count)]


def prompt_lengths(count):
    """Commands and prompts: mostly one to three seconds, a few long ones."""
    draw = random.Random(4)
    return [min(9.2, max(0.6, draw.lognormvariate(0.6, 0.5))) for _ in range(count)]


def cpu_times():
    with open("/proc/stat") as lines:
        parts = [int(word) for word in lines.readline().split()[1:]]
    idle = parts[3] + parts[4]
    return sum(parts[:8]), sum(parts[:8]) - idle


def children_time():
    times = os.times()
    return times.children_user + times.children_system


class Contention:
    """Programs that take every core in turns: a burst, then a pause."""

    LOAD = "import time,sys\nend=time.time()+float(sys.argv[1])\nwhile time.time()<end: pass\n"

    def __init__(self, on, off):
        self.on, self.off, self.running, self.next = on, off, [], 0.0

    def poll(self, now):
        self.running = [one for one in self.running if one.poll() is None]
        if now >= self.next and not self.running:
            self.next = now + self.on + self.off
            for _ in range(2 * (os.cpu_count() or 1)):
                self.running.append(subprocess.Popen([sys.executable, "-c", self.LOAD, str(self.on)]))

    def end(self):
        for one in self.running:
            one.kill()
            one.wait()


class Campaign:
    def __init__(self, args, folder):
        self.args, self.folder, self.number = args, folder, 0
        self.corpora = {
            "demo": pathlib.Path("demo"),
            "LJSpeech lengths": folder / "lj",
            "prompt lengths": folder / "prompts",
        }
        write_corpus(self.corpora["LJSpeech lengths"], ljspeech_lengths(160))
        write_corpus(self.corpora["prompt lengths"], prompt_lengths(240))

    def train(self, corpus, more=(), contention=None):
        """One run: its report, and the share of all cores that other programs used."""
        self.number += 1
        command = [self.args.tandem, "train", "--train-data", str(self.corpora[corpus])]
        command += ["--model-size", self.args.model_size]
        command += ["--batch-size", str(self.args.batch_size), "--max-steps", str(self.args.steps), "--json"]
        command += ["--checkpoint-dir", str(self.folder / f"run-{self.number}"), *more]
        out, err = open(self.folder / "out", "wb"), open(self.folder / "err", "wb")
        (all_before, busy_before), own_before = cpu_times(), children_time()
        run = subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, "NO_COLOR": "1"})
        while run.poll() is None:
            if contention:
                contention.poll(time.time())
            time.sleep(0.02)
        if contention:
            contention.end()
        (all_after, busy_after), own_after = cpu_times(), children_time()
        out.close(), err.close()
        if run.returncode != 0:
            sys.exit(f"a run failed: {' '.join(command)}\n{(self.folder / 'err').read_text()}")
        ticks = os.sysconf("SC_CLK_TCK")
        whole = max(1, all_after - all_before) / ticks
        others = (busy_after - busy_before) / ticks - (own_after - own_before)
        return json.loads((self.folder / "out").read_text()), max(0.0, others / whole)

    def usual_step(self, corpus):
        report, _ = self.train(corpus)
        return 1000 * report["steps"]["all"]["p50"]

    def disturbed(self, kind, corpus, step):
        """Flags or programs that disturb a run whose usual step takes `step` milliseconds."""
        delay = max(20, round(6 * step))
        # Longer than all that is buffered, so that the model has to wait for it.
        workers, slow = ["--num-workers", "1", "--prefetch-buffer-size", "2", "--buffer-size", "1", "--no-adapt"], "--slow"
        if kind == "slow disk":
            return [*workers, slow, f"load={delay}@6:2"], None
        if kind == "throttled stage":
            return [*workers, slow, f"align={delay}@6:2"], None
        if kind == "throttled model":
            return [slow, f"train={max(10, round(2 * step))}@20:8"], None
        return [], Contention(on=max(0.4, 6 * step / 1000), off=max(0.8, 12 * step / 1000))


def judge(report, others, expected):
    variation = report["steps"].get("variation") or {}
    fired = any(warning["code"] == "variation" for warning in report["warnings"])
    cause = variation.get("cause") or {}
    named = cause.get("stage") or cause.get("source") or "-"
    if fired == expected:
        verdict = "right"
    elif not expected and others > BUSY:
        verdict = "busy"
    else:
        verdict = "wrong"
    return fired, named, verdict, variation


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--tandem", default="tandem")
    parser.add_argument("--steps", type=int, default=120)
    # A step of the smallest model (micro) is shorter than loading its batch: then the run's own data work disturbs it.
    parser.add_argument("--model-size", default="tiny")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--retries", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600.0, help="start no further run after this time")
    parser.add_argument("--only", choices=["disturbed", "undisturbed"], help="runs of one kind only")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    kinds = ["slow disk", "throttled stage", "throttled model", "CPU contention"]
    names = ["demo", "LJSpeech lengths", "prompt lengths"]
    plan = []
    for turn in range(args.runs // 2):
        plan.append((kinds[turn % 4], names[turn % 3]))
    for turn in range(args.runs - len(plan)):
        plan.append(("none", names[turn % 3]))
    if args.only:
        plan = [one for one in plan if (one[0] != "none") == (args.only == "disturbed")]
    began, rows = time.time(), []
    print("| run | disturbance | corpus | warning | cause | by shape | raw | other programs | |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(args, pathlib.Path(folder))
        disturbs = any(kind != "none" for kind, _ in plan)
        usual = {name: campaign.usual_step(name) for name in names} if disturbs else {}
        for number, (kind, corpus) in enumerate(plan, 1):
            if time.time() - began > args.seconds:
                print(f"stopped after {args.seconds:.0f} s: {len(rows)} of {len(plan)} runs", file=sys.stderr)
                break
            for _ in range(1 + args.retries):
                more, contention = [], None
                if kind != "none":
                    more, contention = campaign.disturbed(kind, corpus, usual[corpus])
                report, others = campaign.train(corpus, more, contention)
                fired, named, verdict, variation = judge(report, others, kind != "none")
                if verdict != "busy":
                    break
            by_shape, raw = (100 * variation.get(name, 0.0) for name in ("by_shape", "raw"))
            said = "fires" if fired else "silent"
            rows.append({"disturbance": kind, "corpus": corpus, "fired": fired, "cause": named, "verdict": verdict})
            print(
                f"| {number} | {kind} | {corpus} | {said} | {named} | {by_shape:.0f} % | {raw:.0f} % | {100 * others:.0f} % | {verdict} |",
                flush=True,
            )
    count = {word: sum(row["verdict"] == word for row in rows) for word in ("right", "wrong", "busy")}
    print(f"\n{count['right']} right, {count['wrong']} wrong, {count['busy']} on a busy machine, of {len(rows)} runs")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(1 if count["wrong"] else 0)


if __name__ == "__main__":
    main()
