//! The queue in front of the checkpoint writer.
//!
//! In: commands of any thread, in order. Out: the same, to the one thread that writes. Checkpoints hold as much
//! device memory as weights and optimizer, so only one may wait behind the one that is written; everything else is small and is always accepted, so that no sender waits for the disk. The end is a
//! command: a thread that still has a handle cannot keep the writer alive.

use crate::run::state::CheckpointSource;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Checkpoints that hold device memory at the same time: the one that is written, and one that waits.
pub const MOST_SNAPSHOTS: usize = 2;
/// Checkpoints that may wait.
const ROOM: usize = MOST_SNAPSHOTS - 1;

/// Whether a checkpoint must stay until its validation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    No,
    UntilValidated,
}

pub(crate) struct SaveCommand {
    pub(crate) snapshot: Box<dyn CheckpointSource>,
    pub(crate) why: &'static str,
    pub(crate) pin: Pin,
}

/// The loss of a validated step.
pub struct ValidationResult {
    pub step: u64,
    /// Lower is better.
    pub loss: f64,
    /// The character errors that a judge heard, where one listens; lower is better.
    pub heard: Option<f64>,
    /// Called when it is known whether this is the best one so far.
    pub report: Box<dyn FnOnce(bool) + Send>,
}

pub(crate) enum Command {
    Save(SaveCommand),
    Validated(ValidationResult),
    /// The validation of this step is over without a result, or will not happen.
    NotValidated {
        step: u64,
    },
    End,
}

/// Where an accepted checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    First,
    /// The checkpoint of this step is still being written.
    Behind {
        step: u64,
    },
}

/// Why a checkpoint was not accepted.
pub(crate) enum Refused {
    /// Too many are waiting.
    Full(SaveCommand),
    /// The writer ended.
    Ended,
}

/// Clones share it.
#[derive(Clone, Default)]
pub(crate) struct CheckpointQueue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    added: Condvar,
}

#[derive(Default)]
struct Waiting {
    commands: VecDeque<Command>,
    /// The step of the checkpoint that is being written.
    writing: Option<u64>,
    ended: bool,
}

impl CheckpointQueue {
    pub(crate) fn save(&self, save: SaveCommand) -> Result<QueuePosition, Refused> {
        let mut waiting = self.waiting();
        let saves = waiting.commands.iter().filter(|waits| matches!(waits, Command::Save(_)));
        match (waiting.ended, saves.count()) {
            (true, _) => Err(Refused::Ended),
            (false, ROOM..) => Err(Refused::Full(save)),
            (false, _) => {
                waiting.commands.push_back(Command::Save(save));
                self.0.added.notify_one();
                Ok(waiting
                    .writing
                    .map_or(QueuePosition::First, |step| QueuePosition::Behind { step }))
            }
        }
    }

    /// Adds a command that holds no device memory. After the end it is dropped.
    pub(crate) fn add(&self, command: Command) {
        let mut waiting = self.waiting();
        if !waiting.ended {
            waiting.commands.push_back(command);
            self.0.added.notify_one();
        }
    }

    /// The next command. Waits for it: meant for the writer's thread, which is done with the command before.
    pub(crate) fn take(&self) -> Command {
        let mut waiting = self.waiting();
        waiting.writing = None;
        loop {
            let Some(command) = waiting.commands.pop_front() else {
                waiting = wait(&self.0.added, waiting);
                continue;
            };
            if let Command::Save(save) = &command {
                waiting.writing = Some(save.snapshot.step());
            }
            return command;
        }
    }

    /// Nothing is accepted any more, and what waits is dropped.
    pub(crate) fn end(&self) {
        let dropped = {
            let mut waiting = self.waiting();
            waiting.ended = true;
            std::mem::take(&mut waiting.commands)
        };
        drop(dropped);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait<'a>(added: &Condvar, waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
    added.wait(waiting).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::checkpoint::{CheckpointError, Contents};

    struct Empty(u64);

    impl CheckpointSource for Empty {
        fn step(&self) -> u64 {
            self.0
        }

        fn contents(&self) -> Result<Contents, CheckpointError> {
            Ok(Contents::new(self.0))
        }
    }

    fn save(step: u64) -> SaveCommand {
        SaveCommand { snapshot: Box::new(Empty(step)), why: "test", pin: Pin::No }
    }

    #[test]
    fn one_checkpoint_may_wait_behind_the_one_that_is_written() {
        let queue = CheckpointQueue::default();
        assert!(matches!(queue.save(save(1)), Ok(QueuePosition::First)));
        assert!(matches!(queue.take(), Command::Save(_)));
        // The writer is at the first one, as when the disk is slow.
        assert!(matches!(queue.save(save(2)), Ok(QueuePosition::Behind { step: 1 })));
        assert!(matches!(queue.save(save(3)), Err(Refused::Full(_))));
        // What holds no device memory is always accepted.
        queue.add(Command::NotValidated { step: 3 });
        assert!(matches!(queue.take(), Command::Save(_)));
        assert!(matches!(queue.save(save(4)), Ok(QueuePosition::Behind { step: 2 })));
        assert!(matches!(queue.take(), Command::NotValidated { step: 3 }));
        assert!(matches!(queue.save(save(5)), Err(Refused::Full(_))));
        assert!(matches!(queue.take(), Command::Save(_)));
    }

    #[test]
    fn after_the_end_nothing_is_accepted() {
        let queue = CheckpointQueue::default();
        assert!(queue.save(save(1)).is_ok());
        queue.end();
        assert!(matches!(queue.save(save(2)), Err(Refused::Ended)));
        queue.add(Command::End);
        assert!(queue.waiting().commands.is_empty());
    }
}
