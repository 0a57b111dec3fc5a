#!/usr/bin/env python3
"""Whole runs of `tandem train` on two stand-in cards: test_runs.py TANDEM [TEST...]

xtask/tests/cuda_tests.sh sets the variables of the driver. Data work is on card 0 and the model on card 1. The runs share
one store of tuned kernels. Nothing here depends on how long anything took: overlap is read from the order in the driver's log.
"""
import hashlib
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

STEPS, SAVED_EVERY, FAILING_STEPS = 6, 2, 90
# No alignment by the model, as at the start of every run: nothing but the losses is read from the model's card.
FLAT = ("--align-flat-start", "300")
LATE = "launch=60us,copy=3ms,set=300us,event=200us,free=300us"
QUICK = "TANDEM_TEST_QUICK" in os.environ


def write_corpus(directory, lengths):
    """One tone of each length, in samples."""
    rate = 22050
    os.makedirs(os.path.join(directory, "wavs"))
    for row, samples in enumerate(lengths):
        wave = [int(13000 * math.sin(at * math.tau * (220 + 40 * (row % 8)) / rate)) for at in range(samples)]
        data = struct.pack(f"<{samples}h", *wave)
        head = struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVEfmt ", 16, 1, 1, rate, 2 * rate, 2, 16, b"data", len(data))
        with open(os.path.join(directory, "wavs", f"{row}.wav"), "wb") as file:
            file.write(head + data)
    with open(os.path.join(directory, "metadata.csv"), "w", encoding="utf-8") as file:
        file.writelines(f"{row}|hello there|hello there\n" for row in range(len(lengths)))


class Run:
    """One run: its directory, exit code and messages, and what the driver logged."""

    def __init__(self, place, name, *flags, corpus="corpus", steps=STEPS, libraries=(), **variables):
        self.flags, self.corpus = flags, corpus
        self.directory, self.log = os.path.join(place, name), os.path.join(place, f"{name}.log")
        command = [
            sys.argv[1], "train", "--train-data", os.path.join(place, corpus), "--model-size", "micro", "--batch-size", "4",
            "--num-workers", "1", "--no-adapt", "--backend", "cuda", "--data-gpu", "0", "--model-gpu", "1", "--mel-on", "host",
            "--align-every", "2", "--align-lag", "2",
            "--checkpoint-every", str(SAVED_EVERY), "--checkpoint-dir", self.directory,
            "--max-steps", str(steps), *flags,
            *([] if FLAT[0] in flags else [FLAT[0], "2"]),
        ]
        driver = {f"CUDA_STAND_IN_{key}": value for key, value in variables.items()}
        paths = ":".join([*libraries, os.environ["LD_LIBRARY_PATH"]])
        # Every wait of the driver ends before this.
        environment = {**os.environ, "LD_LIBRARY_PATH": paths, "XDG_CACHE_HOME": os.environ["TANDEM_TEST_STORE"], "CUDA_STAND_IN_LOG": self.log, **driver}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        self.code, self.said = ran.returncode, ran.stderr
        if "TANDEM_TEST_SHOW" in os.environ:
            print(f"{name}: exit code {self.code}", ran.stderr[-3000:], sep="\n", file=sys.stderr)

    def losses(self):
        """The total of each step; none where it was not read. A resumed run has a record of its own."""
        return {event["step"]: event["losses"].get("total") for event in self.events("step")}

    def events(self, kind):
        """All of this kind in the newest record."""
        records = sorted((name for name in os.listdir(self.directory) if name.endswith(".jsonl")), key=len)
        with open(os.path.join(self.directory, records[-1]), encoding="utf-8") as file:
            return [event for event in map(json.loads, file) if event["event"] == kind]

    def tensors(self):
        """The files of the newest checkpoint: weights, state, aligner snapshots."""
        place, found = os.path.join(self.directory, self.checkpoints()[-1]), {}
        for name in sorted(os.listdir(place)):
            if name.endswith(".safetensors"):
                with open(os.path.join(place, name), "rb") as file:
                    found[name] = hashlib.sha256(file.read()).hexdigest()
        return found

    def checkpoints(self):
        names = (name for name in os.listdir(self.directory) if re.fullmatch(r"step-\d+", name))
        return sorted(names, key=lambda name: int(name[5:]))

    def trace(self):
        with open(self.log, encoding="utf-8") as file:
            return [line.split() for line in file if line.startswith(("begin ", "end ", "sync "))]


def training_launches(trace):
    """The stream of the training thread, which is that with the most launches of card 1, and where they begin."""
    launches = [(line[4], at) for at, line in enumerate(trace) if line[:3] == ["begin", "device", "1"] and line[5] == "launch"]
    streams = [stream for stream, _ in launches]
    training = max(set(streams), key=streams.count)
    return training, [at for stream, at in launches if stream == training]


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.place = cls.temporary.name
        # All of one shape.
        write_corpus(os.path.join(cls.place, "corpus"), 8 * [9000])
        # The first run of a build fills the store of kernels.
        cls.quiet = Run(cls.place, "quiet")
        assert cls.quiet.code == 0, cls.quiet.said
        # Shared by the tests, by seed.
        cls.late = {}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def late_run(self, seed):
        if seed not in self.late:
            # Without graphs, so that there are launches to order.
            self.late[seed] = self.run_with(f"late-{seed}", "--no-graphs", DELAY=LATE, SEED=seed, TRACE="1")
        run = self.late[seed]
        self.assertEqual(run.code, 0, run.said)
        return run

    def run_with(self, name, *flags, **options):
        return Run(self.place, name, *flags, **options)

    def assert_same(self, one, other, at_least):
        """The losses of the steps that two runs have in common. What the library fuses depends on the timing of several
        threads, and which kernels it takes on whether they are tuned, and with both the last digits. The test
        `late_work_changes_no_bit_of_a_loss` compares bits, with one thread."""
        common = [step for step, loss in one.items() if loss is not None and other.get(step) is not None]
        self.assertGreaterEqual(len(common), at_least)
        for step in common:
            self.assertAlmostEqual(one[step] / other[step], 1, delta=1e-5, msg=f"step {step}")

    def test_late_work_changes_no_result(self):
        for seed in ("1",) if QUICK else ("1", "2", "3"):
            self.assert_same(self.late_run(seed).losses(), self.quiet.losses(), STEPS)

    def test_training_goes_on_while_a_batch_is_copied(self):
        trace = self.late_run("1").trace()
        training, launches = training_launches(trace)
        copying, during = set(), 0
        for what, _, device, _, stream, kind, *_ in trace:
            if what == "sync":
                continue
            if kind == "copy" and stream != training:
                (copying.add if what == "begin" else copying.discard)(stream)
            elif kind == "launch" and stream == training and what == "end":
                during += bool(copying)
        self.assertGreater(during, 100, "launches of the training stream that ended during a copy of another")
        print(f"{during} of {len(launches)} launches of training ended during copies of other streams", file=sys.stderr)

    def test_training_waits_for_nothing(self):
        trace = self.late_run("1").trace()
        training, launches = training_launches(trace)
        # The second half is after the warm-up, which waits.
        middle, last = launches[len(launches) // 2], launches[-1]
        # The thread that trains is the first of the program; that of the library submits the work of a card.
        waits = [at for at, line in enumerate(trace[:last]) if line[0] == "sync" and (line[6] == "main" or line[4] == training)]
        self.assertTrue(any(at < middle for at in waits))
        self.assertEqual([trace[at] for at in waits if at >= middle], [])

    def test_no_tensor_goes_through_nccl(self):
        # Validation, aligner snapshots and checkpoints, each from a thread of its own.
        flags = ("--validate-every", "2")
        run = self.run_with("with-nccl", *flags, libraries=[os.environ["CUDA_STAND_IN_NCCL"]])
        self.assertEqual(run.code, 0, run.said)
        self.assertIn("NCCL was found", run.said)
        self.assertNotIn("NCCL was called", run.said)
        self.assert_same(run.losses(), self.quiet.losses(), STEPS)

    def test_after_the_warm_up_training_hardly_meets_another_stream(self):
        run = self.run_with("counted", "--no-graphs", "--validate-every", "4", steps=10, DELAY=LATE, SEED="1", TRACE="1")
        self.assertEqual(run.code, 0, run.said)
        with open(run.log, encoding="utf-8") as file:
            log = [line.split() for line in file]
        training, _ = training_launches([line for line in log if line[:1] == ["begin"]])
        launches = [(at, line[6]) for at, line in enumerate(log) if line[:5] == ["launch", "device", "1", "stream", training]]
        middle, known = launches[len(launches) // 2][0], {kernel for at, kernel in launches[: len(launches) // 2]}
        later = [kernel for at, kernel in launches if at >= middle]
        new = sum(kernel not in known for kernel in later)
        # A launch that reads memory of another stream records an event on its own.
        events = [line for line in log[middle:] if line[:3] == ["begin", "device", "1"] and line[4:6] == [training, "event"]]
        print(f"{len(events)} events of the training stream with {len(later)} launches, {new} new kernels", file=sys.stderr)
        self.assertLess(50 * len(events), len(later))

    def with_and_without_graphs(self, name, *flags, steps=STEPS):
        """The same run twice: trained, aligned by the model, validated, saved, resumed."""
        runs = []
        for kind, more in (("graphs", ()), ("eager", ("--no-graphs",))):
            flags_of_one = (*flags, *more, "--validate-every", "3")
            first = self.run_with(f"{name}-{kind}", *flags_of_one, steps=steps)
            self.assertEqual(first.code, 0, first.said)
            losses = first.losses()
            run = self.run_with(f"{name}-{kind}", "--resume", *flags_of_one, steps=steps + 4)
            self.assertEqual(run.code, 0, run.said)
            runs.append((run, {**losses, **run.losses()}))
        return runs

    def test_graphs_change_no_bit(self):
        (graphs, losses), (eager, others) = self.with_and_without_graphs("bits")
        self.assertEqual(list(losses), list(range(1, STEPS + 5)))
        self.assertEqual(losses, others)
        self.assertEqual(graphs.tensors(), eager.tensors())
        self.assertIn("aligner_snapshots.safetensors", graphs.tensors())
        last = graphs.events("graphs")[-1]
        self.assertEqual((last["shapes"], last["replayed"], last["others"]), (1, 4, 0), last)
        self.assertGreater(last["memory"], 0)
        self.assertEqual(eager.events("graphs")[-1]["why_none"], "--no-graphs")

    @unittest.skipIf(QUICK, "32 bits are tested")
    def test_a_run_in_16_bits_has_no_graphs_and_says_so(self):
        run = self.run_with("half", "--mixed-precision", "f16", steps=2)
        self.assertEqual(run.code, 0, run.said)
        said = [event["text"] for event in run.events("warning") if event["code"] == "no_graphs"]
        self.assertEqual(len(said), 1, run.events("warning"))
        last = run.events("graphs")[-1]
        self.assertEqual((last["why_none"], last["replayed"], last["others"]), ("the weights are rounded to 16 bits", 0, 2))

    def test_a_step_with_a_graph_is_a_few_launches_and_no_wait(self):
        # Trained, aligned by the model, validated and saved, with late work.
        run = self.run_with("few-launches", "--validate-every", "4", steps=10, DELAY=LATE, SEED="2", TRACE="1")
        self.assertEqual(run.code, 0, run.said)
        with open(run.log, encoding="utf-8") as file:
            log = [line.split() for line in file]
        graphs = [at for at, line in enumerate(log) if line[:3] == ["launch", "device", "1"] and line[5] == "graph"]
        # The first one is a test of the graph, before step 1.
        self.assertEqual(len(graphs), 11)
        training = log[graphs[0]][4]
        steps = [log[one:next] for one, next in zip(graphs[1:], graphs[2:])]
        launches = [sum(line[:5] == ["launch", "device", "1", "stream", training] for line in step) for step in steps]
        waits = [line for step in steps for line in step if line[0] == "sync" and (line[6] == "main" or line[4] == training)]
        # The data card also validates, of which nothing is warmed up.
        before, after = ({line[6] for line in part if line[:3] == ["launch", "device", "1"] and line[5] == "module"} for part in (log[: graphs[1]], log[graphs[1] :]))
        print(f"launches of steps with graphs: {launches}; new kernels on the model's card: {len(after - before)}", file=sys.stderr)
        # Steps after which nothing is copied for others, and all others.
        self.assertLessEqual(min(launches), 5)
        self.assertLessEqual(max(launches), 20)
        self.assertEqual(waits, [])
        self.assertTrue(after)
        self.assertEqual(after - before, set())

    def assert_runs_without_graphs(self, run):
        """One message, and the losses of a run without graphs."""
        self.assertEqual(run.code, 0, run.said)
        said = [event["text"] for event in run.events("warning") if event["code"] == "graphs_refused"]
        self.assertEqual(len(said), 1, run.events("warning"))
        self.assertIn("the run continues without CUDA graphs", said[0])
        last = run.events("graphs")[-1]
        self.assertEqual((last["why_none"], last["replayed"], last["others"]), ("refused", 0, STEPS))
        self.assertEqual(run.losses(), self.quiet.losses())

    def test_a_driver_that_refuses_captures_leaves_a_run_without_graphs(self):
        self.assert_runs_without_graphs(self.run_with("no-capture", FAIL="capture:1@1"))

    def test_a_graph_without_memory_leaves_a_run_without_graphs(self):
        self.assert_runs_without_graphs(self.run_with("no-room", FAIL="graph:1@1"))

    def test_steps_of_several_batches_have_no_graphs(self):
        run = self.run_with("several", "--grad-accum", "2", steps=2)
        self.assertEqual(run.code, 0, run.said)
        last = run.events("graphs")[-1]
        self.assertEqual((last["why_none"], last["others"]), ("a step has several batches", 2))

    def assert_ends_and_resumes(self, run, named, repeated=1):
        """Exit code 2 with one error that names what happened; the last checkpoint is whole: a run resumed from it repeats
        the steps after it."""
        self.assertEqual(run.code, 2, run.said)
        for text in ("error: ", "hint: ", named):
            self.assertIn(text, run.said)
        for text in ("panicked", "acktrace"):
            self.assertNotIn(text, run.said)
        before = run.losses()
        self.assertLess(max(before), FAILING_STEPS // 2, "the run ends soon after the failure")
        saved = run.checkpoints()
        self.assertTrue(saved, run.said)
        last = int(saved[-1][5:]) + 2
        name = os.path.basename(run.directory)
        resumed = self.run_with(name, "--resume", *run.flags, corpus=run.corpus, steps=last)
        self.assertEqual(resumed.code, 0, resumed.said)
        self.assertEqual(list(resumed.losses()), [last - 1, last])
        self.assert_same(resumed.losses(), before, repeated)

    def after_the_first_checkpoint(self, name, failure, *flags, **options):
        at = os.path.join(self.place, name, "step-*", "manifest.json")
        # More steps than it reaches. Learning rates are the same: they rise until step 100 in any case.
        run = self.run_with(name, *FLAT, *flags, steps=FAILING_STEPS, FAIL=failure, FAIL_AFTER=at, **options)
        with open(run.log, encoding="utf-8") as log:
            self.assertIn("injected: ", log.read(), "the program never made the call that fails")
        return run

    def test_a_failed_launch_ends_the_run(self):
        run = self.after_the_first_checkpoint("failed-launch", "launch:60@1")
        self.assert_ends_and_resumes(run, "CUDA_ERROR_LAUNCH_FAILED")

    def test_a_card_lost_during_a_graph_ends_the_run(self):
        run = self.after_the_first_checkpoint("lost-replay", "replay:3@1")
        # The newest checkpoint may be that of the step before: no step is repeated then.
        self.assert_ends_and_resumes(run, "CUDA_ERROR_UNKNOWN", repeated=0)

    @unittest.skipIf(QUICK, "a failed launch is tested")
    def test_a_lost_card_ends_the_run(self):
        run = self.after_the_first_checkpoint("lost-card", "lost:60@1")
        self.assert_ends_and_resumes(run, "CUDA_ERROR_UNKNOWN")

    @unittest.skipIf(QUICK, "a failed launch is tested")
    def test_a_failed_copy_to_the_data_card_ends_the_run(self):
        run = self.after_the_first_checkpoint("failed-copy", "copy:3@0")
        # The batches that were copied before are trained, and saved: the card of the model still works.
        self.assert_ends_and_resumes(run, "CUDA_ERROR_ECC_UNCORRECTABLE", repeated=0)

    @unittest.skipIf(QUICK, "a failed launch is tested")
    def test_memory_that_runs_out_ends_the_run(self):
        # After its warm-up a run asks for no memory. Without fixed shapes there is none, and the only batch of long
        # recordings needs more than all before it: with this seed it is step 32.
        write_corpus(os.path.join(self.place, "one-long-batch"), 236 * [4000] + 4 * [44100])
        flags = ("--enable-static-shapes=false", "--seed", "5")
        run = self.after_the_first_checkpoint("full-card", "alloc:1+@1", *flags, corpus="one-long-batch")
        self.assert_ends_and_resumes(run, "out of device memory")

    @unittest.skipIf(QUICK, "a failed launch is tested")
    def test_a_card_without_room_ends_the_run_before_its_first_step(self):
        # 600 MiB are the driver's own.
        run = self.run_with("small-card", MEMORY="610")
        self.assertEqual(run.code, 2, run.said)
        self.assertIn("out of device memory", run.said)
        self.assertEqual(run.losses(), {})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
