//! `tandem bench`: what the parts of the program can do on this machine.

mod pipeline;

use crate::exit::ExitStatus;
use crate::printer::Printer;

/// What was typed.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Overlap, stall, overhead and memory of the pipeline, against its targets
    Pipeline(pipeline::Args),
}

/// Measures one part.
pub fn run(args: Args, out: &mut Printer) -> anyhow::Result<ExitStatus> {
    match args.part {
        Part::Pipeline(args) => pipeline::run(args, out),
    }
}
