//! A recogniser outside of this program writes down what a voice says.
//!
//! In: recordings as WAV, and how the recogniser is reached: a command, or an address with OpenAI's transcription API. Out:
//! a text for each recording, or why there is none. Bounded in time and in what it reads. Starts no thread. Next:
//! [`crate::run::validator`], which compares the texts with what should have been said.

mod command; // a program that prints a line for each file
mod endpoint; // an address that answers with JSON
mod errors; // words and characters that differ

pub use errors::{HearingErrors, hearing_errors};

use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tandem_units::Hint;

/// The longest that a judge may take for the sentences of one validation.
pub const LONGEST: Duration = Duration::from_secs(120);
/// The most that is read of an answer.
const MOST_BYTES: u64 = 1 << 20;

/// How a recogniser is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judge {
    /// Gets the paths of WAV files behind its own arguments, prints one line for each.
    Command(String),
    /// `http://HOST[:PORT]/PATH`; gets each recording in a request of its own.
    Endpoint(Endpoint),
}

/// An address without encryption, as recognisers on this machine or network have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// With the port.
    host: String,
    path: String,
}

/// Why a judge has not said what it hears. Training continues without it.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    #[error(
        "`{address}` is not an address of the form http://HOST:PORT/PATH; use a command for other protocols"
    )]
    Address { address: String },
    #[error("it cannot be started: {source}")]
    Start { source: std::io::Error },
    #[error("it failed ({status}): {message}")]
    Failed { status: String, message: String },
    #[error("it had not finished after {} s", limit.as_secs())]
    Slow { limit: Duration },
    #[error("it printed {found} lines for {expected} recordings")]
    Lines { found: usize, expected: usize },
    #[error("its answer is not usable: {why}")]
    Garbage { why: String },
    #[error("{0}")]
    Exchange(#[from] std::io::Error),
    #[error("the run was stopped")]
    Stopped,
}

impl Hint for JudgeError {
    fn hint(&self) -> Option<String> {
        Some("try the judge by hand on a WAV file; docs/training.md has one that works".into())
    }
}

/// How long a judge may take, and who is asked meanwhile whether it is still wanted.
pub struct Patience<'a> {
    limit: Duration,
    started: Instant,
    watch: &'a mut dyn FnMut() -> ControlFlow<()>,
}

impl<'a> Patience<'a> {
    pub fn new(limit: Duration, watch: &'a mut dyn FnMut() -> ControlFlow<()>) -> Patience<'a> {
        Patience { limit, started: Instant::now(), watch }
    }

    /// What is left of the time.
    fn left(&mut self) -> Result<Duration, JudgeError> {
        if (self.watch)().is_break() {
            return Err(JudgeError::Stopped);
        }
        let left = self.limit.saturating_sub(self.started.elapsed());
        match left.is_zero() {
            true => Err(JudgeError::Slow { limit: self.limit }),
            false => Ok(left),
        }
    }
}

impl Judge {
    /// An address, where it looks like one, and otherwise a command.
    pub fn parse(given: &str) -> Result<Judge, JudgeError> {
        match given.contains("://") {
            true => Ok(Judge::Endpoint(Endpoint::parse(given)?)),
            false => Ok(Judge::Command(given.to_owned())),
        }
    }

    /// What it hears in each WAV file.
    pub fn hear(
        &self,
        wavs: &[Vec<u8>],
        patience: &mut Patience<'_>,
    ) -> Result<Vec<String>, JudgeError> {
        match self {
            Judge::Command(command) => command::hear(command, wavs, patience),
            Judge::Endpoint(endpoint) => {
                wavs.iter().map(|wav| endpoint.hear(wav, patience)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
