//! `tandem bench`: what the parts of the program can do on this machine.

mod target; // a measured figure beside what it must reach
mod data; // corpus to batches
mod pipeline; // stages and queues
mod profile; // whether a profile finds the slow stage
mod step; // one training step
mod feed; // a step with the pipeline beside it
mod learn; // whether a voice learns what a text says

use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::printer::Printer;

/// What was typed.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// How fast a corpus becomes batches, against the targets
    Data(data::Args),
    /// Overlap, stall, overhead and memory of the pipeline, against its targets
    Pipeline(pipeline::Args),
    /// Whether `tandem profile` names a stage that is slowed on purpose (a test of Tandem itself)
    #[command(hide = true)]
    Profile(Box<profile::Args>),
    /// How long a training step takes, and on what
    Step(step::Args),
    /// What the pipeline costs a step, against the model alone (a test of Tandem itself)
    #[command(hide = true)]
    Feed(Box<feed::Args>),
    /// Whether a voice learns what a text says, against a control with shuffled texts
    Learn(learn::Args),
}

/// Measures one part.
pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    match args.part {
        Part::Data(args) => data::run(args, out),
        Part::Pipeline(args) => pipeline::run(args, out),
        Part::Profile(args) => profile::run(*args, out),
        Part::Step(args) => step::run(args, out),
        Part::Feed(args) => feed::run(*args, out),
        Part::Learn(args) => learn::run(args, out),
    }
}
