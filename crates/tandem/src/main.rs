//! The program: parses the command line, runs one command, prints an error once.
//!
//! Each command is one file under `commands`; the work is done by the libraries.

mod allocator; // the global allocator and its settings
mod commands; // one file per subcommand
mod config; // the configuration file
mod corpus_args; // flags that several commands share
mod device_args; // flags that choose devices
mod data_report; // a corpus prepared, and what it holds
mod demo_corpus; // the built-in corpus, unpacked where it can be read
mod disk_trouble; // disk errors injected by tests
mod environment; // misspelt environment variables
mod exit; // what the exit code means
mod advised; // an error of the program with its hint
mod failure; // an error, its causes and its hint, as a user sees them
mod interrupt; // Ctrl-C
mod plan_grid; // predictions compared with real runs
mod profiling; // flags and runs of commands that profile
mod profile_text; // a profile as text
mod progress; // progress of a training run on stderr
mod page_args; // flags of commands that write an HTML page
mod train_args; // flags of a training run
mod train_plan; // the resolved settings of a training run
mod train_advice; // advice before a run starts
mod npy; // mel frames as NumPy files
mod printer; // results to stdout, messages and progress to stderr
mod speaking_args; // flags of commands that synthesize speech

use crate::failure::Result;
use clap::{CommandFactory, Parser};
use commands::Command;
use disk_trouble::DiskTrouble;
use exit::ExitStatus;
use printer::Printer;
use std::process::ExitCode;

/// Trains text-to-speech voices with a pipeline that keeps the GPU busy
#[derive(Parser)]
#[command(name = "tandem", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Disk error to inject before a change, for tests
    #[arg(long, value_name = "WHAT:CHANGE", hide = true, global = true)]
    disk_trouble: Option<DiskTrouble>,
}

const EXAMPLES: &str = "\
Examples:
  tandem demo                          prepare, train and synthesize with the built-in corpus
  tandem prepare corpora/ljspeech      read, check and cache a corpus
  tandem analyze corpora/ljspeech      measure data loading, and what to change
  tandem train --train-data demo       train a voice
  tandem profile --train-data demo     find the bottleneck of training, and what to change
  tandem watch run                     follow a run in a browser or the terminal
  tandem synth --checkpoint run --text \"Hello\" -o hello.wav
  tandem text \"سلام دنیا\"               show language, normalized text and symbols

CORPUS is a directory in LJSpeech layout, or the word `demo` for the built-in one.
Exit codes: 0 success, 1 a check failed, 2 error, 3 stopped by the user.";

fn main() -> ExitCode {
    allocator::keep_freed_memory();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return exit::from_usage(&usage),
    };
    let mut out = Printer::new();
    match run(cli, &mut out) {
        Ok(status) => status.into(),
        Err(error) if failure::is_closed_pipe(&error) => ExitStatus::Done.into(),
        Err(error) if failure::is_cancelled(&error) => {
            out.note("stopped; finished work is saved: run the same command again to continue");
            ExitStatus::Interrupted.into()
        }
        Err(error) => {
            out.note(&failure::explain(&error));
            ExitStatus::Failed.into()
        }
    }
}

fn run(cli: Cli, out: &mut Printer) -> Result<ExitStatus> {
    environment::refuse_near_misses(&Cli::command(), std::env::vars_os())?;
    let _trouble = cli.disk_trouble.map(DiskTrouble::begin).transpose()?;
    cli.command.run(out)
}
