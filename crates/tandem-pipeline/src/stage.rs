//! One kind of work on the way from the source to the consumer.
//!
//! In: an item. Out: any number of items through an [`Outlet`]. A stage knows no thread, queue
//! or clock; the runner adds all three, so a test calls `step` with a `Vec` as outlet.
//! Next: [`crate::route`], which strings stages together.

use crate::payload::Payload;
use std::fmt::Display;

/// Any error a stage may give as the cause of its trouble.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Work on one item after the other. Each worker has an instance, and so scratch, of its own.
pub trait Stage: Send + 'static {
    /// What comes in.
    type In: Payload;
    /// What goes out.
    type Out: Payload;

    /// A word for threads and reports, such as `load`.
    fn name(&self) -> &'static str;

    /// Works on one item. What is pushed into `out` leaves in the order of the items, however
    /// many workers the stage has.
    fn step(&mut self, item: Self::In, out: &mut dyn Outlet<Self::Out>) -> Result<(), Trouble>;

    /// After the last item: a collecting stage passes on its rest. Such a stage has one worker,
    /// for what it collects depends on who saw which item.
    fn finish(&mut self, _out: &mut dyn Outlet<Self::Out>) -> Result<(), Trouble> {
        Ok(())
    }
}

/// Where a stage puts its results.
pub trait Outlet<T> {
    /// Passes an item on, waiting for room if need be. Fails only when the run is being stopped;
    /// then the stage should return the trouble as it is.
    fn push(&mut self, item: T) -> Result<(), Trouble>;

    /// From here on the work on this item counts as this part of the stage: a stage that does two
    /// things one after the other is timed as two.
    fn part(&mut self, _name: &'static str) {}

    /// Names what the stage works on from here on, such as the path of the file that it reads: the
    /// watchdog names it if the work does not end. The next call or item replaces it.
    fn item(&mut self, _what: &dyn Display) {}

    /// The stage begins to wait for something that is no queue, such as the weights of a step. The
    /// time until [`Outlet::working`], or until the end of the step, counts as waiting.
    fn waiting(&mut self, _what: &dyn Display) {}

    /// The wait is over.
    fn working(&mut self) {}
}

/// Collects, for tests of a stage alone.
impl<T> Outlet<T> for Vec<T> {
    fn push(&mut self, item: T) -> Result<(), Trouble> {
        Vec::push(self, item);
        Ok(())
    }
}

/// A bad item and a broken run are different things.
#[derive(Debug)]
pub enum Trouble {
    /// Unusable: it is counted, named in the report and marked for the consumer; the run
    /// continues.
    SkipItem(BoxError),
    /// Nothing after this can be trusted.
    StopRun(BoxError),
}

impl Trouble {
    /// Leaves the item out.
    pub fn skip(cause: impl Into<BoxError>) -> Trouble {
        Trouble::SkipItem(cause.into())
    }

    /// Ends the run.
    pub fn stop(cause: impl Into<BoxError>) -> Trouble {
        Trouble::StopRun(cause.into())
    }
}
