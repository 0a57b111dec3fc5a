//! Load and preprocess on one thread: where mel frames are made on the host, handing the sound
//! to another thread only moves it out of this core's cache.
//!
//! In: [`Planned`]. Out: [`Ready`]. The two parts stay stages of their own, for routes that make
//! mel frames on a device.

use crate::feed::load::Load;
use crate::feed::mel::{Preprocess, Ready};
use crate::feed::schedule::Planned;
use tandem_pipeline::{Outlet, Stage, Trouble};

/// A loader and a mel kernel, one after the other.
pub struct Assemble {
    load: Load,
    preprocess: Preprocess,
    between: Vec<<Load as Stage>::Out>,
}

impl Assemble {
    /// A worker's own pair.
    pub fn new(load: Load, preprocess: Preprocess) -> Assemble {
        Assemble { load, preprocess, between: Vec::with_capacity(1) }
    }
}

impl Stage for Assemble {
    type In = Planned;
    type Out = Ready;

    fn name(&self) -> &'static str {
        "load"
    }

    fn step(&mut self, planned: Planned, out: &mut dyn Outlet<Ready>) -> Result<(), Trouble> {
        self.load.step(planned, &mut self.between)?;
        // Timed as a stage of its own, although it shares the thread.
        out.part(self.preprocess.name());
        self.between.drain(..).try_for_each(|loaded| self.preprocess.step(loaded, out))
    }
}
