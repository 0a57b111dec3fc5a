//! Load and mel on one thread: where mel frames are computed on the host, passing the sound to another
//! thread only moves it out of this core's cache.
//!
//! In: [`Planned`]. Out: [`Ready`]. The two parts stay stages of their own, for routes that compute mel
//! frames on a device.

use crate::feed::load::{Load, Loaded};
use crate::feed::mel::{Preprocess, Ready};
use crate::feed::schedule::Planned;
use std::fmt::Display;
use tandem_pipeline::{Outlet, Stage, Trouble};

/// A loader and a mel kernel, one after the other.
pub struct Assemble {
    load: Load,
    preprocess: Preprocess,
    between: Vec<Loaded>,
}

impl Assemble {
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
        self.load.step(planned, &mut Between { loaded: &mut self.between, out })?;
        // Timed as a stage of its own, although it shares the thread.
        out.part(self.preprocess.name());
        self.between.drain(..).try_for_each(|loaded| self.preprocess.step(loaded, out))
    }
}

/// Collects what is loaded, and passes on which file is being read.
struct Between<'a> {
    loaded: &'a mut Vec<Loaded>,
    out: &'a mut dyn Outlet<Ready>,
}

impl Outlet<Loaded> for Between<'_> {
    fn push(&mut self, loaded: Loaded) -> Result<(), Trouble> {
        self.loaded.push(loaded);
        Ok(())
    }

    fn item(&mut self, what: &dyn Display) {
        self.out.item(what);
    }
}
