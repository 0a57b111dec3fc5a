//! `tandem bench data`: throughput of data preparation on this machine, against targets.
//!
//! The two sides of a ratio are measured alternately in one run, so that other programs slow both. The
//! material is speech of the demo corpus, cut to clips of 3 to 6.4 s (4.7 s on average); nothing is
//! downloaded.

mod clips; // speech to measure with
mod mel; // samples to mel frames, by kernel
mod batches; // corpus to padded batch, on the fly and cached
mod text; // words to symbols
mod start; // warm start, and memory while preparing

use crate::commands::bench::target::{self, Target};
use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::printer::Printer;
use serde::Serialize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  tandem bench data                      about a minute
  tandem bench data --only mel,text
  tandem bench data --million            also a manifest of a million rows (half a minute more)
  tandem bench data --json > data.json

Exit code 1 if a target was missed. Targets hold for a machine with AVX-512 and two free cores.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Parts to measure
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<Part>,
    /// Rounds of each comparison, of which the median is used
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=1000))]
    rounds: u32,
    /// Also create and open a corpus of a million rows
    #[arg(long)]
    million: bool,
    /// Directory for the clips (about 1 GB) [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Mel,
    Batches,
    Text,
    Start,
}

#[derive(Serialize)]
struct Answer {
    targets: Vec<Target>,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let rounds = args.rounds as usize;
    let dir = match &args.dir {
        Some(dir) => tempfile::Builder::new().prefix("tandem-bench-").tempdir_in(dir)?,
        None => tempfile::Builder::new().prefix("tandem-bench-").tempdir()?,
    };
    out.note("cutting the demo corpus into clips");
    let clips = clips::cut()?;
    let mut targets = Vec::new();
    if wanted(Part::Mel) {
        out.note("mel frames in memory, by kernel");
        targets.extend(mel::measure(&clips, rounds)?);
    }
    if wanted(Part::Text) {
        out.note("text of 13,100 rows");
        targets.extend(text::measure(rounds)?);
    }
    if wanted(Part::Batches) {
        out.note("corpus to batches, on the fly and cached");
        targets.extend(batches::measure(&clips, dir.path(), rounds)?);
    }
    if wanted(Part::Start) {
        out.note("warm start of 13,100 rows, memory while preparing");
        targets.extend(start::measure(&clips, dir.path())?);
    }
    if args.million {
        out.note("a manifest of a million rows: created, prepared, then opened");
        targets.extend(start::measure_million(dir.path(), out)?);
    }
    if args.json {
        out.json(&Answer { targets: targets.clone() })?;
    } else {
        target::print(&targets, out)?;
    }
    Ok(target::status(&targets))
}
