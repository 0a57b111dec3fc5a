//! `tandem completions`: a completion script for a shell.

use crate::Cli;
use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::printer::Printer;
use clap::CommandFactory;
use clap_complete::Shell;

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  tandem completions bash > ~/.local/share/bash-completion/completions/tandem"
)]
pub struct Args {
    /// The shell to write for
    shell: Shell,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tandem", &mut script);
    out.line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitStatus::Done)
}
