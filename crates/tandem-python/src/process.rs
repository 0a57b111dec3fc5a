//! Objects that own threads belong to the process that created them.
//!
//! A forked process has the memory of these objects and none of their threads: a wait would never end, and
//! dropping them would wait too. So every use is refused there, and nothing is dropped.

use crate::errors::Class;
use pyo3::prelude::*;

/// The process that created an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    pub fn current() -> Process {
        Process(std::process::id())
    }

    pub fn is_current(self) -> bool {
        self == Process::current()
    }

    /// Refuses a use in a forked process.
    pub fn check(self, py: Python<'_>, what: &str) -> PyResult<()> {
        if self.is_current() {
            return Ok(());
        }
        let fact = format!(
            "this {what} belongs to process {}, and its threads do not exist in process {}",
            self.0,
            Process::current().0
        );
        let hint = format!(
            "create the {what} after the fork, in the process that uses it; a {what} needs no worker \
             processes, its workers are threads"
        );
        Err(Class::Fork.error(py, &fact, &hint))
    }
}
