//! `tandem bench`: benchmarks of the parts of the program on this machine.

mod target; // a measured value and its target
mod data; // corpus to batches
mod pipeline; // stages and queues
mod profile; // whether a profile finds a slowed stage
mod step; // one training step
mod launches; // what a step asks of the CUDA driver
mod feed; // what the pipeline costs a step
mod reduce; // what a sum over all ranks costs
mod scale; // several ranks against one
mod learn; // whether a voice learns to speak a text

use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::printer::Printer;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Throughput of data preparation, against targets
    Data(data::Args),
    /// Overlap, stall, overhead and memory of the pipeline, against targets
    Pipeline(pipeline::Args),
    /// Whether `tandem profile` names a stage that is slowed on purpose (a test of Tandem itself)
    Profile(Box<profile::Args>),
    /// Duration of a training step and its parts
    Step(step::Args),
    /// Launches, copies, waits and allocations of a training step on CUDA, against limits (needs the
    /// stand-in driver)
    Launches(launches::Args),
    /// What the pipeline costs a step, against the model alone (a test of Tandem itself)
    Feed(Box<feed::Args>),
    /// Latency and bandwidth of sums over all ranks (started by mpirun)
    Reduce(reduce::Args),
    /// Throughput of several ranks against one (started by mpirun)
    Scale(Box<scale::Args>),
    /// Whether training learns the text, against a control with shuffled texts
    Learn(learn::Args),
}

impl Args {
    /// Whether several ranks can run this part together.
    pub fn knows_ranks(&self) -> bool {
        matches!(self.part, Part::Reduce(_) | Part::Scale(_))
    }
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    match args.part {
        Part::Data(args) => data::run(args, out),
        Part::Pipeline(args) => pipeline::run(args, out),
        Part::Profile(args) => profile::run(*args, out),
        Part::Step(args) => step::run(args, out),
        Part::Launches(args) => launches::run(args, out),
        Part::Feed(args) => feed::run(*args, out),
        Part::Reduce(args) => reduce::run(args, out),
        Part::Scale(args) => scale::run(*args, out),
        Part::Learn(args) => learn::run(args, out),
    }
}
