//! What the exit code means: part of the interface, the same for every command.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the list is the interface; not every command uses every value")]
pub enum ExitStatus {
    /// Success.
    Done = 0,
    /// The command finished and a check failed: faults found, a target missed, a regression.
    Negative = 1,
    /// An error; stderr has the message.
    Failed = 2,
    /// Stopped by the user; finished work is saved.
    Interrupted = 3,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

/// Help and version are answers, a wrong flag is a failure; clap prints either by itself.
pub fn from_usage(usage: &clap::Error) -> ExitCode {
    // If stdout is closed while help is printed, the error has no reader.
    let _ = usage.print();
    if usage.use_stderr() { ExitStatus::Failed.into() } else { ExitStatus::Done.into() }
}
