//! Checkpoints of a run, and which of them is the best: written, validated and marked through here by every trainer.
//!
//! In: [`CheckpointSource`]s, which hold tensors of the device, and the losses of their validations. Out: checkpoints on
//! disk, an event for each, and `best.json`, which is the truth about the best one: [`BestSoFar`]. One thread writes both,
//! in the order of the commands. No sender waits for the disk; the training thread waits only for the last checkpoint, and
//! not without a limit. A full disk costs a warning, not the run: older checkpoints stay as they are. A checkpoint whose
//! validation is pending is pinned, so that retention cannot remove what may become the best one.

use crate::TrainError;
pub use crate::run::best_so_far::ScoredBy;
use crate::run::best_so_far::{BestSoFar, SharedStanding, Standing, Verdict};
use crate::run::checkpoint_queue::{CheckpointQueue, Command, QueuePosition, Refused, SaveCommand};
use crate::run::join::{ProgressCounter, Stuck, join_within, offer_within, panic_message};
use crate::run::state::CheckpointSource;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tandem_device::backend::guarded;
use tandem_model::checkpoint::{CheckpointError, Checkpoints, Mark, Marked, Saved};
use tandem_pipeline::ThreadPriority;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Checkpoint, Warning};
use tandem_units::Hint;

pub use crate::run::checkpoint_queue::{MOST_SNAPSHOTS, Pin, ValidationResult};

/// The longest that one checkpoint may take without progress before the end of a run gives up on it.
const SLOWEST_CHECKPOINT: Duration = Duration::from_secs(600);

/// What became of a request to save a checkpoint.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It will be written.
    Yes,
    /// The ones before it are still being written; a warning is sent.
    Busy,
}

/// Owns the thread that writes.
pub struct CheckpointWriter {
    queue: CheckpointQueue,
    thread: Option<JoinHandle<()>>,
    written: Arc<Mutex<WrittenCheckpoints>>,
    standing: SharedStanding,
    progress: ProgressCounter,
    recorder: Recorder,
    /// A warning about a slow disk was sent.
    warned: AtomicBool,
    /// The last checkpoint found no room in the queue within the limit.
    stuck: Option<Stuck>,
}

/// The checkpoints that a run wrote.
#[derive(Debug, Default)]
pub struct WrittenCheckpoints {
    pub count: u64,
    /// The newest one that is on disk.
    pub last: Option<Saved>,
    /// The step of it.
    pub last_step: Option<u64>,
    /// Why the newest requested checkpoint is not on disk, if it is not.
    pub failure: Option<TrainError>,
    /// The best validation so far.
    pub standing: Standing,
}

/// Tells the writer how validations ended; cheap to clone. Never waits.
#[derive(Clone)]
pub struct ValidationResults(CheckpointQueue);

impl ValidationResults {
    /// The step is marked as the best one, if it is and its checkpoint is on disk.
    pub fn validated(&self, result: ValidationResult) {
        self.0.add(Command::Validated(result));
    }

    /// The validation of this step is over without a result, or will not happen: retention may remove its
    /// checkpoint.
    pub fn not_validated(&self, step: u64) {
        self.0.add(Command::NotValidated { step });
    }
}

impl CheckpointWriter {
    /// Starts the thread, which owns the directory's lock for as long as it lives. The run starts after `step` steps
    /// and is scored in this way: what `best.json` says is continued as far as it holds for that.
    pub fn start(
        mut checkpoints: Checkpoints,
        (step, scored): (u64, ScoredBy<'_>),
        recorder: Recorder,
        priority: ThreadPriority,
    ) -> Result<CheckpointWriter, TrainError> {
        let rows = scored.name();
        let (best, note) = BestSoFar::read(&checkpoints, step, &rows)?;
        if let Some(text) = note {
            recorder.send(Warning { code: "best_reset".into(), text });
        }
        best.forget_later(&mut checkpoints)?;
        checkpoints.set_rows(&rows);
        let standing = SharedStanding::default();
        standing.set(best.standing());
        let written = Arc::new(Mutex::new(WrittenCheckpoints::default()));
        let queue = CheckpointQueue::default();
        let progress = ProgressCounter::from(checkpoints.progress());
        let mut worker = WriterThread {
            checkpoints,
            best,
            judged_rows: scored.judged.then(|| scored.rows.to_owned()),
            best_loss: None,
            saves: BTreeMap::new(),
            standing: standing.clone(),
            written: written.clone(),
            progress: progress.clone(),
            recorder: recorder.clone(),
        };
        let commands = EndOnDrop(queue.clone());
        let thread = std::thread::Builder::new()
            .name("tandem-checkpoints".into())
            .spawn(move || {
                priority.apply();
                let commands = commands;
                worker.run(&commands.0);
            })
            .map_err(TrainError::Thread)?;
        let (thread, warned, stuck) = (Some(thread), AtomicBool::new(false), None);
        Ok(CheckpointWriter { queue, thread, written, standing, progress, recorder, warned, stuck })
    }

    /// Writes a checkpoint in the background. Never waits.
    pub fn save(
        &self,
        snapshot: impl CheckpointSource,
        why: &'static str,
        pin: Pin,
    ) -> Result<Accepted, TrainError> {
        let step = snapshot.step();
        match self.queue.save(SaveCommand { snapshot: Box::new(snapshot), why, pin }) {
            Ok(QueuePosition::First) => Ok(Accepted::Yes),
            Ok(QueuePosition::Behind { step: before }) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    self.warn_of_slow_writes(format!(
                        "the checkpoint of step {before} was not written when that of step {step} was due: the disk, or \
                         reading from the device, is slow; where a second one would have to wait, it is left out"
                    ));
                }
                Ok(Accepted::Yes)
            }
            Err(Refused::Full(_)) => {
                self.warn_of_slow_writes(format!(
                    "no checkpoint at step {step}: the two before it are still being read from the device or written to \
                     disk"
                ));
                Ok(Accepted::Busy)
            }
            Err(Refused::Ended) => Err(self.writer_ended()),
        }
    }

    fn warn_of_slow_writes(&self, fact: String) {
        let text = format!(
            "{fact}; raise `--checkpoint-every`, or give `--checkpoint-dir` on a faster disk"
        );
        self.recorder.send(Warning { code: "checkpoint_slow".into(), text });
    }

    /// For the validator.
    pub fn results(&self) -> ValidationResults {
        ValidationResults(self.queue.clone())
    }

    /// The best validation so far, as `best.json` has it.
    pub fn standing(&self) -> Standing {
        self.standing.get()
    }

    /// Raised when the writer makes progress.
    pub fn progress(&self) -> &ProgressCounter {
        &self.progress
    }

    /// Writes the last checkpoint of a run. Waits for its turn while the writer makes progress: this one
    /// is left out only when the disk hangs, which `finish` reports.
    pub fn save_last(&mut self, snapshot: impl CheckpointSource, why: &'static str, pin: Pin) {
        let save = SaveCommand { snapshot: Box::new(snapshot), why, pin };
        let offer = |save| match self.queue.save(save) {
            // A thread that ended takes nothing: joining it tells why.
            Ok(_) | Err(Refused::Ended) => Ok(()),
            Err(Refused::Full(back)) => Err(back),
        };
        self.stuck = offer_within(save, offer, &self.progress, SLOWEST_CHECKPOINT).err();
    }

    /// Waits until everything is on disk.
    pub fn finish(mut self) -> WrittenCheckpoints {
        self.queue.add(Command::End);
        let Some(thread) = self.thread.take() else { return WrittenCheckpoints::default() };
        let ended = match self.stuck.take() {
            Some(stuck) => Err(stuck),
            None => join_within(thread, &self.progress, SLOWEST_CHECKPOINT),
        };
        let mut written = std::mem::take(&mut *lock(&self.written));
        written.standing = self.standing.get();
        let why = match ended {
            Ok(()) => return written,
            Err(Stuck::Panicked(message)) => message,
            Err(Stuck::NoProgress(limit)) => {
                format!("the disk took no data for {} s", limit.as_secs())
            }
        };
        written.failure = Some(TrainError::CheckpointWriter { why, safe: written.last_step });
        written
    }

    fn writer_ended(&self) -> TrainError {
        let safe = lock(&self.written).last_step;
        TrainError::CheckpointWriter { why: "its thread ended".into(), safe }
    }
}

/// A run that fails early drops its writer: its thread ends, and the lock with it.
impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        self.queue.add(Command::End);
    }
}

/// Also where the thread ends by a panic, nothing waits for it any more.
struct EndOnDrop(CheckpointQueue);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct WriterThread {
    checkpoints: Checkpoints,
    /// What `best.json` says.
    best: BestSoFar,
    /// The rows, where a judge scores them; none where the loss does.
    judged_rows: Option<String>,
    /// The loss of the best checkpoint, where its score is another one and this process validated it.
    best_loss: Option<f64>,
    /// The checkpoints that this run tried to write, by step, and why one was not written.
    saves: BTreeMap<u64, Result<(), String>>,
    standing: SharedStanding,
    written: Arc<Mutex<WrittenCheckpoints>>,
    progress: ProgressCounter,
    recorder: Recorder,
}

impl WriterThread {
    fn run(&mut self, commands: &CheckpointQueue) {
        loop {
            let command = commands.take();
            self.progress.advance();
            match command {
                Command::Save(save) => self.save(save),
                Command::Validated(result) => self.validated(result),
                Command::NotValidated { step } => self.checkpoints.unpin(step),
                Command::End => return,
            }
            self.progress.advance();
        }
    }

    fn save(&mut self, save: SaveCommand) {
        let SaveCommand { snapshot, why, pin } = save;
        let step = snapshot.step();
        if pin == Pin::UntilValidated {
            self.checkpoints.pin(step);
        }
        // A panic costs this checkpoint, not the ones after it.
        let saved = catch_unwind(AssertUnwindSafe(|| self.write(snapshot, why)));
        let saved = saved.unwrap_or_else(|panic| {
            let (why, safe) = (panic_message(&*panic), lock(&self.written).last_step);
            Err(TrainError::CheckpointWriter { why, safe })
        });
        let as_text = saved.as_ref().map(|_| ()).map_err(|error| in_one_line(error));
        self.saves.insert(step, as_text);
        let mut written = lock(&self.written);
        match saved {
            Ok(saved) => {
                written.count += 1;
                (written.last, written.last_step) = (Some(saved), Some(step));
                written.failure = None;
            }
            Err(error) => {
                warn(&self.recorder, &error, written.last_step);
                written.failure = Some(error);
            }
        }
    }

    fn write(
        &mut self,
        snapshot: Box<dyn CheckpointSource>,
        why: &'static str,
    ) -> Result<Saved, TrainError> {
        let step = snapshot.step();
        let contents = guarded("reading the weights back", || snapshot.contents())
            .map_err(|error| CheckpointError::Device { source: Box::new(error) })??;
        // A slow disk does not keep device memory.
        drop(snapshot);
        self.progress.advance();
        let saved = self.checkpoints.save(&contents, Mark::Last)?;
        self.recorder.send(Checkpoint {
            step,
            path: saved.path.display().to_string(),
            bytes: saved.bytes,
            took: saved.took.into(),
            why: why.into(),
        });
        saved.tidied.failed.iter().for_each(|error| warn_of_retention(&self.recorder, error));
        Ok(saved)
    }

    /// A validation counts when `best.json` has it: what the file does not say is lost with this process.
    fn validated(&mut self, result: ValidationResult) {
        let ValidationResult { step, loss, heard, report } = result;
        if heard.is_none() {
            self.score_by_loss();
        }
        let score = heard.unwrap_or(loss);
        let verdict = self.best.verdict(step, score);
        let stored = match verdict {
            Verdict::Better => self.mark_best(step, score),
            Verdict::Worse => self.count_worse(step),
            Verdict::NotCounted => Ok(()),
        };
        if verdict == Verdict::Better && stored.is_ok() {
            self.best_loss = Some(loss);
        }
        self.checkpoints.unpin(step);
        if let Err(why) = &stored {
            let text = match verdict {
                Verdict::Better => format!(
                    "step {step} has the best validation so far ({score:.4}), but its checkpoint \
                     is not on disk: {why}; the best checkpoint stays the one before"
                ),
                _ => format!("`--patience` does not count the validation of step {step}: {why}"),
            };
            self.recorder.send(Warning { code: "best_not_saved".into(), text });
        }
        self.standing.set(self.best.standing());
        report(verdict == Verdict::Better && stored.is_ok());
    }

    /// The judge has no result: from here on the loss decides, also about the best checkpoint so far. One whose loss
    /// is not known is replaced by the next.
    fn score_by_loss(&mut self) {
        let Some(rows) = self.judged_rows.take() else { return };
        self.checkpoints.set_rows(&rows);
        let worse = self.best.worse().clone();
        let best = self.best.step().zip(self.best_loss);
        self.best = BestSoFar::default();
        let Some((step, loss)) = best else { return };
        if self.mark_best(step, loss).is_ok() && self.checkpoints.set_worse(worse.clone()).is_ok() {
            self.best.stored_worse(worse);
        }
    }

    /// Only a checkpoint of this run can be the one that was validated.
    fn mark_best(&mut self, step: u64, loss: f64) -> Result<(), String> {
        match self.saves.get(&step) {
            Some(Ok(())) => {}
            Some(Err(why)) => return Err(why.clone()),
            None => return Err("the writer was busy with earlier checkpoints".into()),
        }
        match self.checkpoints.mark_best(step, loss) {
            Ok(Marked::Yes) => {
                self.best.marked(step, loss);
                Ok(())
            }
            Ok(Marked::Gone) => Err(format!("there is no checkpoint of step {step}")),
            Err(error) => Err(in_one_line(&error)),
        }
    }

    fn count_worse(&mut self, step: u64) -> Result<(), String> {
        let steps = self.best.worse_with(step);
        self.checkpoints.set_worse(steps.clone()).map_err(|error| in_one_line(&error))?;
        self.best.stored_worse(steps);
        Ok(())
    }
}

fn warn(recorder: &Recorder, error: &TrainError, safe: Option<u64>) {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    let safe = match safe {
        Some(step) => format!("the checkpoint of step {step} is safe on disk"),
        None => "older checkpoints are intact".to_string(),
    };
    let text = format!(
        "the checkpoint was not saved: {}{hint}; {safe}; training continues",
        in_one_line(error)
    );
    recorder.send(Warning { code: "checkpoint_failed".into(), text });
}

fn warn_of_retention(recorder: &Recorder, error: &CheckpointError) {
    let text = format!("an old checkpoint could not be removed: {}", in_one_line(error));
    recorder.send(Warning { code: "checkpoint_retention".into(), text });
}

fn in_one_line(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
