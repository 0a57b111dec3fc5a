//! Checkpoints are written here, on a thread of their own.
//!
//! In: [`Snapshot`]s, which hold tensors of the device. Out: checkpoints on disk, and events that
//! say so. The training thread never waits for one, except for the last. A disk that is full
//! costs a warning, not the run: older checkpoints stay as they are.

use crate::TrainError;
use crate::run::state::Snapshot;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use tandem_device::backend::guarded;
use tandem_model::checkpoint::{CheckpointError, Checkpoints, Mark, Marked, Saved};
use tandem_pipeline::ThreadPriority;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Checkpoint, Warning};
use tandem_units::Hint;

/// Orders that may wait.
const ROOM: usize = 4;

enum Order {
    Save(Box<Snapshot>, &'static str),
    MarkBest(u64, f64),
}

/// Owns the thread that writes.
pub struct CheckpointWriter {
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<WrittenCheckpoints>>,
    recorder: Recorder,
}

/// What became of the checkpoints of a run.
#[derive(Debug, Default)]
pub struct WrittenCheckpoints {
    /// Checkpoints written.
    pub written: u64,
    /// The newest.
    pub last: Option<Saved>,
    /// Why the newest checkpoint is not on the disk, where it is not.
    pub failure: Option<CheckpointError>,
}

/// Marks a validated checkpoint; cheap to clone.
#[derive(Clone)]
pub struct BestMarker(SyncSender<Order>);

impl CheckpointWriter {
    /// Starts the thread, which owns the directory's lock as long as it lives.
    pub fn start(
        checkpoints: Checkpoints,
        recorder: Recorder,
        priority: ThreadPriority,
    ) -> Result<CheckpointWriter, TrainError> {
        let (sender, orders) = sync_channel(ROOM);
        let events = recorder.clone();
        let thread = std::thread::Builder::new()
            .name("tandem-checkpoint_writer".into())
            .spawn(move || {
                priority.apply();
                keep(checkpoints, &orders, &events)
            })
            .map_err(TrainError::Thread)?;
        Ok(CheckpointWriter { orders: Some(sender), thread: Some(thread), recorder })
    }

    /// Writes a checkpoint beside the training. Where the last ones are still being written this
    /// one is left out, with a warning. Whether it will be written.
    #[must_use]
    pub fn save(&self, snapshot: Snapshot, why: &'static str) -> bool {
        let Some(orders) = &self.orders else { return false };
        let step = snapshot.step;
        let sent = orders.try_send(Order::Save(Box::new(snapshot), why));
        if let Err(TrySendError::Full(_)) = sent {
            let text = format!(
                "no checkpoint at step {step}: the ones before are still being written; the disk \
                 is slower than `--checkpoint-every` allows"
            );
            self.recorder.send(Warning { code: "checkpoint_slow".into(), text });
        }
        sent.is_ok()
    }

    /// Lets somebody else mark the best checkpoint.
    pub fn marker(&self) -> Option<BestMarker> {
        self.orders.clone().map(BestMarker)
    }

    /// Writes the last checkpoint of a run. Waits for its turn: this one is never left out.
    pub fn save_last(&self, snapshot: Snapshot, why: &'static str) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(Order::Save(Box::new(snapshot), why));
        }
    }

    /// Waits for everything to be on disk.
    pub fn finish(mut self) -> WrittenCheckpoints {
        self.orders = None;
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl BestMarker {
    /// The checkpoint of this step is the best so far. Waits while the keeper is busy: meant for
    /// the examiner's thread.
    pub fn mark_best(&self, step: u64, score: f64) {
        let _ = self.0.send(Order::MarkBest(step, score));
    }
}

fn keep(
    mut checkpoints: Checkpoints,
    orders: &Receiver<Order>,
    recorder: &Recorder,
) -> WrittenCheckpoints {
    let mut kept = WrittenCheckpoints::default();
    for order in orders {
        match order {
            Order::Save(snapshot, why) => match save(&mut checkpoints, &snapshot, why, recorder) {
                Ok(saved) => {
                    kept.written += 1;
                    (kept.last, kept.failure) = (Some(saved), None);
                }
                Err(error) => {
                    warn(recorder, &error);
                    kept.failure = Some(error);
                }
            },
            // A checkpoint that is gone by now was not worth keeping. A mark that cannot be set
            // says nothing about the newest one.
            Order::MarkBest(step, score) => match checkpoints.mark_best(step, score) {
                Ok(Marked::Yes | Marked::Gone) => {}
                Err(error) => warn(recorder, &error),
            },
        }
    }
    kept
}

fn save(
    checkpoints: &mut Checkpoints,
    snapshot: &Snapshot,
    why: &'static str,
    recorder: &Recorder,
) -> Result<Saved, CheckpointError> {
    let contents = guarded("reading the weights back", || snapshot.contents())
        .map_err(|error| CheckpointError::Device { source: Box::new(error) })??;
    let saved = checkpoints.save(&contents, Mark::Last)?;
    recorder.send(Checkpoint {
        step: snapshot.step,
        path: saved.path.display().to_string(),
        bytes: saved.bytes,
        took: saved.took.into(),
        why: why.into(),
    });
    saved.tidied.failed.iter().for_each(|error| warn(recorder, error));
    Ok(saved)
}

fn warn(recorder: &Recorder, error: &CheckpointError) {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let hint = error.hint().map(|hint| format!("; {hint}"));
    let text = format!(
        "the checkpoint was not kept: {error}{}{}; older ones are intact and the run goes on",
        cause.unwrap_or_default(),
        hint.unwrap_or_default()
    );
    recorder.send(Warning { code: "checkpoint_failed".into(), text });
}
