//! What the exit code means: part of the interface, the same for every command.

use crate::printer::Printer;
use crate::usage::explain_usage;
use clap::error::ErrorKind;
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

/// Help and version are answers, a wrong flag is a failure.
pub fn from_usage(usage: &clap::Error, program: &clap::Command, out: &mut Printer) -> ExitCode {
    let help_asked = !usage.use_stderr();
    if help_asked || usage.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // If stdout is closed while help is printed, the error has no reader.
        let _ = usage.print();
        return if help_asked { ExitStatus::Done.into() } else { ExitStatus::Failed.into() };
    }
    let typed: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    out.error(&explain_usage(usage, program, &typed));
    ExitStatus::Failed.into()
}
