//! The program: parses the command line, runs one command, prints an error once.
//!
//! Each command is one file under `commands`; the work is done by the libraries. A library, so that the
//! Python package resolves settings with the same code; `bin/tandem` only adds the allocator.

mod commands; // one file per subcommand
pub mod config; // the configuration file
pub mod corpus_args; // flags that several commands share
pub mod data_report; // a corpus prepared, and what it holds
pub mod demo_files; // the built-in corpora and vocoder, unpacked where they can be read
mod injected_failure; // disk errors injected by tests
mod environment; // misspelt environment variables
mod named_pipe; // files that would never end
mod exit; // what the exit code means
mod help_layers; // `-h` is a screen, `--help` has everything
mod usage; // errors of the command line, with what to type
pub mod advised; // an error of the program with its hint
pub mod failure; // an error, its causes and its hint, as a user sees them
mod frozen_run; // a training step that does not end
mod interrupt; // Ctrl-C
mod memory_check; // whether the largest batch fits into memory
mod length_report; // rows beyond the length limits, and what keeps them
mod counted; // numbers with their nouns
pub mod notices; // licences of the program and of everything in it
mod next_command; // what to run after training
mod plan_grid; // predictions compared with real runs
mod rank_check; // the same for runs of two ranks
mod reduce_file; // where the cost of sums over ranks is saved
mod profiling; // flags and runs of commands that profile
mod profile_text; // a profile as text
mod ranks; // one of several processes, started by mpirun
mod progress; // progress of a training run on stderr
mod page_args; // flags of commands that write an HTML page
mod results; // the results template, filled
mod run_directory; // the directory of a training run
pub mod setting_flags; // flags of declared settings
pub mod train_args; // flags of a training run
pub mod train_plan; // the resolved settings of a training run
mod train_advice; // advice before a run starts
mod npy; // mel frames as NumPy files
mod printer; // results to stdout, messages and progress to stderr
mod terminal; // whether stdout and stderr reach a terminal
pub mod speaking_args; // flags of commands that synthesize speech

#[cfg(test)]
mod flag_walk; // every flag of a run changes its settings, or is refused

use crate::failure::Result;
use clap::{CommandFactory, FromArgMatches, Parser};
use commands::Command;
use etcetera::BaseStrategy;
use exit::ExitStatus;
use injected_failure::InjectedFailure;
use printer::Printer;
use std::process::ExitCode;
use tandem_cluster::Launch;

/// Trains text-to-speech voices with a pipeline that keeps the GPU busy
#[derive(Parser)]
#[command(name = "tandem", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Disk error to inject before a change, for tests
    #[arg(long, value_name = "WHAT:CHANGE", hide = true, global = true)]
    inject_failure: Option<InjectedFailure>,
}

const EXAMPLES: &str = "\
Examples:
  tandem demo                          prepare, train and synthesize with the built-in corpus
  tandem prepare corpora/ljspeech      read, check and cache a corpus
  tandem analyze corpora/ljspeech      measure data loading, and what to change
  tandem train --train-data demo --checkpoint-dir runs/first     train a voice
  tandem profile --train-data demo     find the bottleneck of training, and what to change
  tandem watch runs/first              follow a run in a browser or the terminal
  tandem synth --checkpoint runs/first --text \"Hello\" -o hello.wav
  tandem serve --checkpoint runs/first speak through OpenAI's speech API, or in a browser
  tandem text \"سلام دنیا\"               show language, normalized text and symbols

CORPUS is a directory in any known layout, or the word `demo` or `demo-human` for a built-in corpus: a small synthetic one, \
or one with a human English speaker and synthetic Persian.
Exit codes: 0 success, 1 a check failed, 2 error, 3 stopped by the user.";

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    set_library_paths();
    let mut out = Printer::new();
    let program = help_layers::layered(Cli::command(), std::env::args_os());
    let cli = program.try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    let cli = match cli {
        Ok(cli) => cli,
        Err(usage) => return exit::from_usage(&usage, &Cli::command(), &mut out),
    };
    match run(cli, &mut out) {
        Ok(status) => status.into(),
        Err(error) if failure::is_closed_pipe(&error) => ExitStatus::Done.into(),
        Err(error) if failure::is_cancelled(&error) => {
            out.note("stopped; finished work is saved: run the same command again to continue");
            ExitStatus::Interrupted.into()
        }
        Err(error) => {
            if !(out.is_silenced() && ranks::is_told_by_rank_0(&error)) {
                out.error(&failure::explain(&error));
            }
            ExitStatus::Failed.into()
        }
    }
}

fn set_library_paths() {
    if let Ok(base) = etcetera::choose_base_strategy() {
        let cache = base.cache_dir().join("tandem");
        // SAFETY: called first in `main`, before any thread is started.
        unsafe { tandem_device::backend::set_library_paths(&cache) };
        tandem_device::backend::store_kernels_in(&cache.join("kernels"));
    }
}

fn run(cli: Cli, out: &mut Printer) -> Result<ExitStatus> {
    let launch = Launch::of_this_process();
    ranks::refuse_copies(launch.as_ref(), cli.command.knows_ranks())?;
    environment::refuse_near_misses(&Cli::command(), std::env::vars_os())?;
    named_pipe::refuse_named_pipes(std::env::args_os().skip(1))?;
    let _injected = cli.inject_failure.map(InjectedFailure::begin).transpose()?;
    cli.command.run(out)
}
