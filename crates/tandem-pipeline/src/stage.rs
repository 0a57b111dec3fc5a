//! The trait of one processing stage between the source and the consumer.
//!
//! In: an item. Out: any number of items through an [`Emitter`]. A stage knows no thread, queue
//! or clock; the runner adds all three, so a test calls `step` with a `Vec` as emitter.
//! Next: [`crate::route`], which connects stages.

use crate::payload::Payload;
use std::fmt::Display;
use std::time::Duration;
use tandem_units::Hinted;

/// Any error that makes one item unusable.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Processes one item after the other. Each worker has its own instance, and so its own buffers.
pub trait Stage: Send + 'static {
    type In: Payload;
    type Out: Payload;

    /// The name in threads and reports, such as `load`.
    fn name(&self) -> &'static str;

    /// Processes one item. Results leave in the order of the items, however many workers the
    /// stage has.
    fn step(&mut self, item: Self::In, out: &mut dyn Emitter<Self::Out>) -> Result<(), StageError>;

    /// Called after the last item: a collecting stage pushes what it still has. Such a stage should
    /// have one worker, because what it collects depends on which worker received which item.
    fn finish(&mut self, _out: &mut dyn Emitter<Self::Out>) -> Result<(), StageError> {
        Ok(())
    }
}

/// Receives the results of a stage.
pub trait Emitter<T> {
    /// Passes an item on; waits for room if necessary. Fails only when the run is being stopped:
    /// the stage returns that error unchanged.
    fn push(&mut self, item: T) -> Result<(), StageError>;

    /// From here on the work on this item is timed under this name, and so is the last `done` of it: a
    /// stage that does two things, one after the other or in turns, is timed as two.
    fn part(&mut self, _name: &'static str, _done: Duration) {}

    /// Names what the stage works on from here on, such as the path of the file that it reads: the
    /// watchdog names it if the work does not end. Each call counts as progress, and replaces the
    /// text of the last one.
    fn item(&mut self, _what: &dyn Display) {}

    /// The stage begins to wait for something that is no queue, such as the weights of a step. The
    /// time until [`Emitter::working`], or until the end of the step, counts as waiting.
    fn waiting(&mut self, _what: &dyn Display) {}

    /// The wait is over.
    fn working(&mut self) {}
}

/// Collects, for tests of a stage alone.
impl<T> Emitter<T> for Vec<T> {
    fn push(&mut self, item: T) -> Result<(), StageError> {
        Vec::push(self, item);
        Ok(())
    }
}

/// Why a step failed: a bad item and a broken run are different.
#[derive(Debug)]
pub enum StageError {
    /// Unusable: it is counted, named in the report and marked for the consumer; the run
    /// continues.
    Skip(BoxError),
    /// Nothing after this can be trusted.
    Stop(Box<dyn Hinted>),
}

impl StageError {
    pub fn skip(cause: impl Into<BoxError>) -> StageError {
        StageError::Skip(cause.into())
    }

    pub fn stop(cause: impl Hinted) -> StageError {
        StageError::Stop(Box::new(cause))
    }
}
