//! Sequences of saves, validations, kills and resumes, as both trainers make them.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tandem_model::checkpoint::{Best, Contents, Keep, Parts, load};
use tandem_telemetry::event::RunHeader;
use tandem_telemetry::record::{RecordOptions, Recording};

const ROWS: &str = "test rows";

/// A checkpoint that knows its loss.
struct Scored {
    step: u64,
    loss: f64,
    fails: bool,
}

impl CheckpointSource for Scored {
    fn step(&self) -> u64 {
        self.step
    }

    fn contents(&self) -> Result<Contents, CheckpointError> {
        assert!(!self.fails, "the device is gone");
        let mut contents = Contents::new(self.step);
        contents.add_document("loss", &self.loss)?;
        Ok(contents)
    }
}

fn open(directory: &Path) -> Checkpoints {
    Checkpoints::open(directory, Keep { last: 1 }).unwrap()
}

fn writer(directory: &Path, step: u64) -> CheckpointWriter {
    let (from, priority) = ((step, ScoredBy::by_loss(ROWS)), ThreadPriority::default());
    CheckpointWriter::start(open(directory), from, Recorder::off(), priority).unwrap()
}

fn result(step: u64, loss: f64) -> ValidationResult {
    ValidationResult { step, loss, heard: None, report: Box::new(drop) }
}

/// Which trainer makes the calls.
#[derive(Clone, Copy, Debug)]
enum Trainer {
    /// Validates on another thread: results arrive some steps later, fail, or are skipped.
    Voice,
    /// Validates on the training thread, at once.
    Vocoder,
}

/// One step at which something is due.
#[derive(Clone, Debug)]
struct DueStep {
    after: u64,
    loss: f64,
    save: Save,
    validation: Validation,
    /// Steps until the result arrives.
    lag: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Save {
    Written,
    Fails,
    /// The writer had no room.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Validation {
    NotDue,
    Measured,
    Fails,
}

/// What the writer is told.
#[derive(Clone, Copy, Debug)]
enum Told {
    Save { step: u64, loss: f64, fails: bool, pin: Pin },
    Validated { step: u64, loss: f64 },
    NotValidated { step: u64 },
}

fn due_step() -> impl Strategy<Value = DueStep> {
    let save =
        prop_oneof![6 => Just(Save::Written), 1 => Just(Save::Fails), 1 => Just(Save::Refused)];
    let validation = prop_oneof![
        1 => Just(Validation::NotDue),
        5 => Just(Validation::Measured),
        1 => Just(Validation::Fails),
    ];
    (1..4u64, 0..12u8, save, validation, 0..3usize).prop_map(
        |(after, loss, save, validation, lag)| DueStep {
            after,
            loss: f64::from(loss) / 8.0,
            save,
            validation,
            lag,
        },
    )
}

/// One process: its steps, and how much of what it said was done when it was killed.
fn process() -> impl Strategy<Value = (Vec<DueStep>, usize)> {
    (prop::collection::vec(due_step(), 0..7), 0..16usize)
}

fn commands(trainer: Trainer, from: u64, steps: &[DueStep]) -> Vec<Told> {
    let (mut told, mut step, mut late) = (Vec::new(), from, VecDeque::new());
    for (number, due) in steps.iter().enumerate() {
        step += due.after;
        let DueStep { loss, save, validation, lag, .. } = *due;
        let pin = if validation == Validation::NotDue { Pin::No } else { Pin::UntilValidated };
        match save {
            Save::Refused => {}
            save => told.push(Told::Save { step, loss, fails: save == Save::Fails, pin }),
        }
        let outcome = match (validation, trainer) {
            (Validation::NotDue, _) => None,
            (Validation::Fails, Trainer::Voice) => Some(Told::NotValidated { step }),
            _ => Some(Told::Validated { step, loss }),
        };
        let lag = if matches!(trainer, Trainer::Voice) { lag } else { 0 };
        late.extend(outcome.map(|outcome| (number + lag, outcome)));
        while late.front().is_some_and(|(at, _)| *at <= number) {
            told.extend(late.pop_front().map(|(_, outcome)| outcome));
        }
    }
    told.extend(late.into_iter().map(|(_, outcome)| outcome));
    told
}

/// What must be on disk.
#[derive(Clone, Debug, Default)]
struct Model {
    newest: u64,
    best: Option<(u64, f64)>,
    worse: BTreeSet<u64>,
}

impl Model {
    fn process(&mut self, told: &[Told]) {
        let mut saved = BTreeSet::new();
        self.worse.retain(|step| *step <= self.newest);
        for told in told {
            match *told {
                Told::Save { step, fails: false, .. } => {
                    saved.insert(step);
                    self.newest = step;
                }
                Told::Validated { step, loss } => match self.best {
                    Some((_, best)) if loss >= best => drop(self.worse.insert(step)),
                    _ if saved.contains(&step) => {
                        (self.best, self.worse) = (Some((step, loss)), BTreeSet::new());
                    }
                    _ => {}
                },
                Told::Save { .. } | Told::NotValidated { .. } => {}
            }
        }
    }

    fn standing(&self) -> Standing {
        let counted = self.worse.iter().filter(|step| **step <= self.newest).count();
        Standing { best: self.best.map(|(_, loss)| loss), since_best: counted as u32 }
    }
}

fn run(directory: &Path, from: u64, told: &[Told]) -> Standing {
    let writer = writer(directory, from);
    let results = writer.results();
    for told in told {
        match *told {
            Told::Save { step, loss, fails, pin } => {
                let mut scored = Scored { step, loss, fails };
                // The queue is short, and this loop is faster than a disk.
                while writer.save(scored, "test", pin).unwrap() == Accepted::Busy {
                    std::thread::yield_now();
                    scored = Scored { step, loss, fails };
                }
            }
            Told::Validated { step, loss } => results.validated(result(step, loss)),
            Told::NotValidated { step } => results.not_validated(step),
        }
    }
    writer.finish().standing
}

fn check(trainer: Trainer, processes: &[(Vec<DueStep>, usize)]) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let mut model = Model::default();
    for (steps, done) in processes {
        let told = commands(trainer, model.newest, steps);
        let told = &told[..told.len().min(*done)];
        let before = model.best.map(|(_, loss)| loss);
        let from = model.newest;
        model.process(told);
        let standing = run(directory.path(), from, told);
        prop_assert_eq!(standing.best, model.best.map(|(_, loss)| loss));
        prop_assert_eq!(standing.since_best as usize, model.worse.len());
        let checkpoints = open(directory.path());
        let mark = checkpoints.best().unwrap();
        prop_assert_eq!(mark.as_ref().map(|best| (best.step, best.score)), model.best);
        if let Some(mark) = mark {
            let contents = load(&mark.path, Parts::All).unwrap().contents;
            let own: f64 = contents.document("loss").unwrap();
            prop_assert_eq!(own, mark.score, "the mark names the checkpoint that was measured");
            prop_assert!(
                before.is_none_or(|before| mark.score <= before),
                "a worse one replaced it"
            );
        }
        let (resumed, note) = BestSoFar::read(&checkpoints, model.newest, ROWS).unwrap();
        prop_assert_eq!(note, None);
        prop_assert_eq!(resumed.standing(), model.standing(), "after a resume");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_voice_keeps_its_best_checkpoint_and_its_patience_through_kills(
        processes in prop::collection::vec(process(), 1..5)
    ) {
        check(Trainer::Voice, &processes)?;
    }

    #[test]
    fn a_vocoder_keeps_its_best_checkpoint_and_its_patience_through_kills(
        processes in prop::collection::vec(process(), 1..5)
    ) {
        check(Trainer::Vocoder, &processes)?;
    }
}

#[test]
fn a_best_loss_on_other_rows_is_not_compared_with() {
    let directory = tempfile::tempdir().unwrap();
    let told = [
        Told::Save { step: 1, loss: 0.5, fails: false, pin: Pin::UntilValidated },
        Told::Validated { step: 1, loss: 0.5 },
    ];
    assert_eq!(run(directory.path(), 0, &told).best, Some(0.5));
    let (best, note) = BestSoFar::read(&open(directory.path()), 1, "other rows").unwrap();
    assert_eq!(best.standing(), Standing::default());
    assert!(note.unwrap().starts_with("the validation rows changed"));
    // Nor that of a checkpoint which the run was resumed before.
    let (best, note) = BestSoFar::read(&open(directory.path()), 0, ROWS).unwrap();
    assert_eq!(best.standing(), Standing::default());
    assert!(note.unwrap().starts_with("the best checkpoint is that of step 1"));
}

#[test]
fn a_checkpoint_of_an_earlier_process_is_not_marked_for_a_step_that_was_not_saved() {
    let directory = tempfile::tempdir().unwrap();
    let save = Told::Save { step: 2, loss: 0.9, fails: false, pin: Pin::No };
    run(directory.path(), 0, &[save]);
    // Resumed before it; its own checkpoint of step 2 was refused.
    let standing = run(directory.path(), 1, &[Told::Validated { step: 2, loss: 0.1 }]);
    assert_eq!(standing, Standing::default());
    assert_eq!(open(directory.path()).best().unwrap(), None);
}

/// Losses and what a judge heard, one step after the other.
fn judged(directory: &Path, results: &[(f64, Option<f64>)]) -> (Standing, Best) {
    let scored = ScoredBy { rows: ROWS, judged: true };
    let (from, priority) = ((0, scored), ThreadPriority::default());
    let checkpoints = Checkpoints::open(directory, Keep { last: 9 }).unwrap();
    let writer = CheckpointWriter::start(checkpoints, from, Recorder::off(), priority).unwrap();
    for (step, (loss, heard)) in (1..).zip(results) {
        let (loss, heard) = (*loss, *heard);
        loop {
            let checkpoint = Scored { step, loss, fails: false };
            match writer.save(checkpoint, "test", Pin::UntilValidated).unwrap() {
                Accepted::Yes => break,
                Accepted::Busy => std::thread::yield_now(),
            }
        }
        let report = Box::new(drop);
        writer.results().validated(ValidationResult { step, loss, heard, report });
    }
    let standing = writer.finish().standing;
    (standing, open(directory).best().unwrap().unwrap())
}

#[test]
fn what_a_judge_hears_decides_instead_of_the_loss() {
    let directory = tempfile::tempdir().unwrap();
    let results = [(0.5, Some(0.4)), (0.4, Some(0.6)), (0.6, Some(0.2)), (0.1, Some(0.3))];
    let (standing, best) = judged(directory.path(), &results);
    assert_eq!(standing, Standing { best: Some(0.2), since_best: 1 });
    assert_eq!((best.step, best.score), (3, 0.2));
    let (_, note) = BestSoFar::read(&open(directory.path()), 9, ROWS).unwrap();
    assert!(note.unwrap().contains("who scores them"), "errors and losses cannot be compared");
}

#[test]
fn after_a_judge_that_failed_the_loss_decides_about_the_best_so_far_too() {
    let directory = tempfile::tempdir().unwrap();
    let results = [(0.5, Some(0.4)), (0.6, Some(0.5)), (0.55, None), (0.45, None), (0.7, None)];
    let (standing, best) = judged(directory.path(), &results);
    assert_eq!(standing, Standing { best: Some(0.45), since_best: 1 });
    assert_eq!((best.step, best.score, best.rows.as_deref()), (4, 0.45, Some(ROWS)));
}

#[test]
fn a_thread_that_still_has_a_handle_does_not_keep_the_writer_alive() {
    let directory = tempfile::tempdir().unwrap();
    let writer = writer(directory.path(), 0);
    // As a validator that is stuck.
    let held = writer.results();
    assert!(writer.finish().failure.is_none());
    held.validated(result(1, 0.5));
    drop(open(directory.path()));
}

/// As on a slow disk: its contents take until someone sends.
struct Slow {
    step: u64,
    proceed: Receiver<()>,
    /// Dropped with it.
    _memory: Arc<()>,
}

impl CheckpointSource for Slow {
    fn step(&self) -> u64 {
        self.step
    }

    fn contents(&self) -> Result<Contents, CheckpointError> {
        let _ = self.proceed.recv();
        Ok(Contents::new(self.step))
    }
}

fn slow(step: u64, memory: &Arc<()>) -> (Slow, SyncSender<()>) {
    let (send, proceed) = sync_channel(0);
    (Slow { step, proceed, _memory: memory.clone() }, send)
}

#[test]
fn a_slow_disk_holds_two_checkpoints_at_most_and_is_named_before_one_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let header = RunHeader::now("test", "0", serde_json::Value::Null);
    let path = directory.path().join("run.jsonl");
    let recording = Recording::create(&path, header, RecordOptions::default()).unwrap();
    let (from, priority) = ((0, ScoredBy::by_loss(ROWS)), ThreadPriority::default());
    let checkpoints = open(&directory.path().join("run"));
    let writer =
        CheckpointWriter::start(checkpoints, from, recording.recorder(), priority).unwrap();
    let memory = Arc::new(());
    let save = |step| {
        let (slow, proceed) = slow(step, &memory);
        (writer.save(slow, "test", Pin::No).unwrap(), proceed)
    };
    let (first, write_first) = save(1);
    // The writer has it when a second one finds room.
    let (second, write_second) = loop {
        match save(2) {
            (Accepted::Yes, proceed) => break (Accepted::Yes, proceed),
            (Accepted::Busy, _) => std::thread::yield_now(),
        }
    };
    assert_eq!((first, second), (Accepted::Yes, Accepted::Yes));
    assert_eq!(save(3).0, Accepted::Busy);
    assert_eq!(Arc::strong_count(&memory), 1 + MOST_SNAPSHOTS);
    write_first.send(()).unwrap();
    write_second.send(()).unwrap();
    assert_eq!(writer.finish().count, 2);
    assert_eq!(Arc::strong_count(&memory), 1);
    recording.finish();
    let record = std::fs::read_to_string(&path).unwrap();
    let early = "the checkpoint of step 1 was not written when that of step 2 was due";
    assert_eq!(record.matches(early).count(), 1, "{record}");
    assert!(record.contains("no checkpoint at step 3"), "{record}");
    assert!(record.find(early) < record.find("no checkpoint at step 3"), "{record}");
}

#[test]
fn the_result_of_a_validation_never_waits_for_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let writer = writer(directory.path(), 0);
    let (slow, proceed) = slow(1, &Arc::new(()));
    assert_eq!(writer.save(slow, "test", Pin::UntilValidated).unwrap(), Accepted::Yes);
    let (tell, told) = sync_channel(1);
    let report = Box::new(move |best| tell.send(best).unwrap());
    // With a writer that is not done before this returns, waiting would never end.
    writer.results().validated(ValidationResult { step: 1, loss: 0.5, heard: None, report });
    assert_eq!(writer.standing(), Standing::default(), "not before it is marked");
    proceed.send(()).unwrap();
    assert!(told.recv().unwrap());
    assert_eq!(writer.finish().standing.best, Some(0.5));
}
