//! Checkpoints are written here, on a thread of their own.
//!
//! In: [`CheckpointSource`]s, which hold tensors of the device. Out: checkpoints on disk, and an event
//! for each. The training thread waits only for the last one, and not without a limit. A full disk
//! costs a warning, not the run: older checkpoints stay as they are. A checkpoint whose validation is
//! pending is pinned, so that retention cannot remove what may become the best one.

use crate::TrainError;
use crate::run::join::{ProgressCounter, Stuck, join_within, panic_message, send_within};
use crate::run::state::CheckpointSource;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tandem_device::backend::guarded;
use tandem_model::checkpoint::{CheckpointError, Checkpoints, Mark, Marked, Saved};
use tandem_pipeline::ThreadPriority;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Checkpoint, Warning};
use tandem_units::Hint;

/// Commands that may wait.
const ROOM: usize = 4;

/// The longest that one checkpoint may take without progress before the end of a run gives up on it.
const SLOWEST_CHECKPOINT: Duration = Duration::from_secs(600);

enum Command {
    Save { snapshot: Box<dyn CheckpointSource>, why: &'static str, pin: Pin },
    MarkBest { step: u64, score: f64, reply: SyncSender<BestMark> },
}

/// Steps whose validation is over. A list beside the queue, because the training thread adds to it and
/// must not wait for a full queue. Clones share it.
#[derive(Clone, Debug, Default)]
struct Validated(Arc<Mutex<Vec<u64>>>);

impl Validated {
    fn add(&self, step: u64) {
        lock(&self.0).push(step);
    }

    /// Takes the steps up to `newest`, the last one that was pinned. A step above it is still in the
    /// queue: its validation was refused before its checkpoint was pinned. It stays until then.
    fn take_up_to(&self, newest: u64) -> Vec<u64> {
        lock(&self.0).extract_if(.., |step| *step <= newest).collect()
    }
}

/// Whether a checkpoint must stay until its validation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    No,
    UntilValidated,
}

/// What became of a request to save a checkpoint.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It will be written.
    Yes,
    /// The ones before it are still being written; a warning is sent.
    Busy,
}

/// What became of a request to mark the best checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BestMark {
    Marked,
    /// It is not on disk, for this reason. `best.json` is unchanged.
    NotSaved(String),
}

/// Owns the thread that writes.
pub struct CheckpointWriter {
    commands: Option<SyncSender<Command>>,
    thread: Option<JoinHandle<()>>,
    written: Arc<Mutex<WrittenCheckpoints>>,
    validated: Validated,
    progress: ProgressCounter,
    recorder: Recorder,
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
}

/// Marks a validated checkpoint as the best one; cheap to clone.
#[derive(Clone)]
pub struct BestMarker {
    commands: SyncSender<Command>,
    validated: Validated,
}

impl CheckpointWriter {
    /// Starts the thread, which owns the directory's lock for as long as it lives.
    pub fn start(
        checkpoints: Checkpoints,
        recorder: Recorder,
        priority: ThreadPriority,
    ) -> Result<CheckpointWriter, TrainError> {
        let (sender, commands) = sync_channel(ROOM);
        let written = Arc::new(Mutex::new(WrittenCheckpoints::default()));
        let (validated, progress) = (Validated::default(), ProgressCounter::default());
        let mut worker = WriterThread {
            checkpoints,
            written: written.clone(),
            validated: validated.clone(),
            progress: progress.clone(),
            recorder: recorder.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("tandem-checkpoints".into())
            .spawn(move || {
                priority.apply();
                worker.run(&commands);
            })
            .map_err(TrainError::Thread)?;
        let (commands, thread) = (Some(sender), Some(thread));
        let stuck = None;
        Ok(CheckpointWriter { commands, thread, written, validated, progress, recorder, stuck })
    }

    /// Writes a checkpoint in the background. Never waits.
    pub fn save(
        &self,
        snapshot: impl CheckpointSource,
        why: &'static str,
        pin: Pin,
    ) -> Result<Accepted, TrainError> {
        let step = snapshot.step();
        let Some(commands) = &self.commands else { return Err(self.writer_ended()) };
        match commands.try_send(Command::Save { snapshot: Box::new(snapshot), why, pin }) {
            Ok(()) => Ok(Accepted::Yes),
            Err(TrySendError::Full(_)) => {
                let text = format!(
                    "no checkpoint at step {step}: the ones before it are still being read from \
                     the device or written to disk; raise `--checkpoint-every`"
                );
                self.recorder.send(Warning { code: "checkpoint_slow".into(), text });
                Ok(Accepted::Busy)
            }
            Err(TrySendError::Disconnected(_)) => Err(self.writer_ended()),
        }
    }

    /// Lets another thread mark the best checkpoint.
    pub fn marker(&self) -> Option<BestMarker> {
        let validated = self.validated.clone();
        self.commands.clone().map(|commands| BestMarker { commands, validated })
    }

    /// Writes the last checkpoint of a run. Waits for its turn while the writer makes progress: this one
    /// is left out only when the disk hangs, which `finish` reports.
    pub fn save_last(&mut self, snapshot: impl CheckpointSource, why: &'static str, pin: Pin) {
        let Some(commands) = &self.commands else { return };
        let command = Command::Save { snapshot: Box::new(snapshot), why, pin };
        self.stuck = send_within(commands, command, &self.progress, SLOWEST_CHECKPOINT).err();
    }

    /// Waits until everything is on disk.
    pub fn finish(mut self) -> WrittenCheckpoints {
        self.commands = None;
        let Some(thread) = self.thread.take() else { return WrittenCheckpoints::default() };
        let ended = match self.stuck.take() {
            Some(stuck) => Err(stuck),
            None => join_within(thread, &self.progress, SLOWEST_CHECKPOINT),
        };
        let mut written = std::mem::take(&mut *lock(&self.written));
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

impl BestMarker {
    /// The checkpoint of this step is the best so far. Waits while the writer is busy: meant for the
    /// validator's thread. The writer never waits for the validator.
    pub fn mark_best(&self, step: u64, score: f64) -> BestMark {
        let gone = || BestMark::NotSaved("the checkpoint writer ended".into());
        let (reply, answer) = sync_channel(1);
        match self.commands.send(Command::MarkBest { step, score, reply }) {
            Ok(()) => answer.recv().unwrap_or_else(|_| gone()),
            Err(_) => gone(),
        }
    }

    /// The validation of this step is over or will not happen: retention may remove its checkpoint.
    /// Never waits.
    pub fn unpin(&self, step: u64) {
        self.validated.add(step);
    }
}

struct WriterThread {
    checkpoints: Checkpoints,
    written: Arc<Mutex<WrittenCheckpoints>>,
    validated: Validated,
    progress: ProgressCounter,
    recorder: Recorder,
}

impl WriterThread {
    fn run(&mut self, commands: &Receiver<Command>) {
        for command in commands {
            self.progress.advance();
            match command {
                Command::Save { snapshot, why, pin } => self.save(&*snapshot, why, pin),
                Command::MarkBest { step, score, reply } => {
                    // The validator may have been stopped meanwhile.
                    let _ = reply.send(self.mark_best(step, score));
                }
            }
            self.progress.advance();
        }
    }

    fn save(&mut self, snapshot: &dyn CheckpointSource, why: &'static str, pin: Pin) {
        if pin == Pin::UntilValidated {
            self.checkpoints.pin(snapshot.step());
        }
        for step in self.validated.take_up_to(snapshot.step()) {
            self.checkpoints.unpin(step);
        }
        // A panic costs this checkpoint, not the ones after it.
        let saved = catch_unwind(AssertUnwindSafe(|| self.write(snapshot, why)));
        let saved = saved.unwrap_or_else(|panic| {
            let (why, safe) = (panic_message(&*panic), lock(&self.written).last_step);
            Err(TrainError::CheckpointWriter { why, safe })
        });
        let mut written = lock(&self.written);
        match saved {
            Ok(saved) => {
                written.count += 1;
                (written.last, written.last_step) = (Some(saved), Some(snapshot.step()));
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
        snapshot: &dyn CheckpointSource,
        why: &'static str,
    ) -> Result<Saved, TrainError> {
        let contents = guarded("reading the weights back", || snapshot.contents())
            .map_err(|error| CheckpointError::Device { source: Box::new(error) })??;
        self.progress.advance();
        let saved = self.checkpoints.save(&contents, Mark::Last)?;
        self.recorder.send(Checkpoint {
            step: snapshot.step(),
            path: saved.path.display().to_string(),
            bytes: saved.bytes,
            took: saved.took.into(),
            why: why.into(),
        });
        saved.tidied.failed.iter().for_each(|error| warn_of_retention(&self.recorder, error));
        Ok(saved)
    }

    fn mark_best(&mut self, step: u64, score: f64) -> BestMark {
        let marked = self.checkpoints.mark_best(step, score);
        self.checkpoints.unpin(step);
        match marked {
            Ok(Marked::Yes) => BestMark::Marked,
            Ok(Marked::Gone) => {
                BestMark::NotSaved(format!("there is no checkpoint of step {step}"))
            }
            Err(error) => BestMark::NotSaved(in_one_line(&error)),
        }
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
mod tests {
    use super::*;

    #[test]
    fn a_step_is_unpinned_without_waiting_for_a_full_queue() {
        // Nobody reads this queue, as when the disk hangs.
        let (commands, _unread) = sync_channel(0);
        let marker = BestMarker { commands, validated: Validated::default() };
        marker.unpin(7);
        assert_eq!(marker.validated.take_up_to(7), [7]);
    }

    #[test]
    fn a_step_whose_checkpoint_is_still_in_the_queue_is_unpinned_after_it() {
        let validated = Validated::default();
        [200, 100, 300].into_iter().for_each(|step| validated.add(step));
        assert!(validated.take_up_to(99).is_empty());
        assert_eq!(validated.take_up_to(200), [200, 100]);
        assert_eq!(validated.take_up_to(300), [300]);
        assert!(validated.take_up_to(300).is_empty());
    }
}
