//! The program: reads what was typed, runs one command, shows an error once and whole.
//!
//! Each command lives in one file under `commands`; everything it does is in the libraries.

mod allocator; // where memory comes from
mod commands; // one file per subcommand
mod config; // the configuration file
mod corpus_args; // flags that several commands share
mod device_args; // flags that say where the work happens
mod data_report; // a corpus prepared, and what it holds
mod demo_corpus; // the built-in corpus, unpacked where it can be read
mod disk_trouble; // a disk that fails where a test wants it to
mod environment; // variables that nearly are ours
mod exit; // what the exit code means
mod advised; // a fact with its way out
mod failure; // an error, its causes and the way out, as a user sees it
mod interrupt; // Ctrl-C
mod plan_grid; // predictions tried on this machine
mod profiling; // flags and runs of commands that profile
mod profile_text; // a profile for people
mod progress; // what a person sees of a training run
mod page_args; // flags of commands that write a page
mod train_args; // flags of a training run
mod train_plan; // what was decided about one
mod train_advice; // what to change before it starts
mod watched; // which GPUs of a run are looked at
mod npy; // mel frames for NumPy
mod printer; // data to stdout, words for people to stderr, progress in between
mod speaking_args; // flags of commands that speak

use crate::failure::Result;
use clap::{CommandFactory, Parser};
use commands::Command;
use disk_trouble::DiskTrouble;
use exit::ExitStatus;
use printer::Printer;
use std::process::ExitCode;

/// Trains text-to-speech voices so that the GPU never waits.
#[derive(Parser)]
#[command(name = "tandem", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// What the disk does before which change, for tests
    #[arg(long, value_name = "WHAT:CHANGE", hide = true, global = true)]
    disk_trouble: Option<DiskTrouble>,
}

const EXAMPLES: &str = "\
Examples:
  tandem demo                          the whole path on the built-in corpus
  tandem prepare corpora/ljspeech      read, check and cache a corpus
  tandem analyze corpora/ljspeech      what loading costs, and what to change
  tandem train --train-data demo       train a voice
  tandem profile --train-data demo     what holds training back, and what to change
  tandem watch run                     see it learn, in a browser or the terminal
  tandem synth --checkpoint run --text \"Hello\" -o hello.wav
  tandem text \"سلام دنیا\"               what the model will read

CORPUS is a directory in LJSpeech layout, or the word `demo` for the built-in one.
Exit codes: 0 done, 1 the answer is no, 2 could not be done, 3 stopped by the user.";

fn main() -> ExitCode {
    allocator::keep_memory();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return exit::from_usage(&usage),
    };
    let mut out = Printer::new();
    match run(cli, &mut out) {
        Ok(status) => status.into(),
        Err(error) if failure::is_closed_pipe(&error) => ExitStatus::Done.into(),
        Err(error) if failure::is_cancelled(&error) => {
            out.note("stopped; what was finished is kept: run the same command to go on");
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
