//! `tandem bench pipeline`: the pipeline with simulated stages, against targets and the simulation.
//!
//! Without `--stage` it measures every target; with stages it runs those, and prints measured and
//! predicted step, stall and shares. Reads no corpus and opens no device.

mod checks; // the targets and their measurements
mod grid; // stall against the simulation, cell by cell
mod line; // stages from the command line

use crate::commands::bench::target::{self, Target};
use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::printer::Printer;
use checks::Size;
use grid::Cell;
use serde::Serialize;
use tandem_pipeline::rehearse::Spend;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A simulated stage: name, milliseconds, variation (0), workers (1); repeat in order
    #[arg(long = "stage", value_name = "NAME=MS[,CV[,WORKERS]]")]
    stages: Vec<line::StageArg>,
    /// Time of the consumer per item: milliseconds, variation
    #[arg(long, value_name = "MS[,CV]", default_value = "150", requires = "stages")]
    consumer: line::CostArg,
    /// Batch slots: prepared, ready and in training together
    #[arg(long = "pipeline-depth", value_name = "SLOTS", default_value_t = 3, requires = "stages")]
    depth: usize,
    /// Items to process
    #[arg(long, default_value_t = 100, requires = "stages")]
    items: usize,
    /// Stages keep a core busy instead of sleeping
    #[arg(long, requires = "stages")]
    busy: bool,
    /// Measure each target longer (about five minutes instead of one)
    #[arg(long, conflicts_with = "stages")]
    full: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem bench pipeline                  every target, with its verdict
  tandem bench pipeline --json > pipeline.json
  tandem bench pipeline --stage load=20 --stage prepare=10,0.5,2 --consumer 15,0.3

Exit code 1 if a target was missed.";

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    if args.stages.is_empty() { targets(&args, out) } else { own_line(&args, out) }
}

/// All targets, and the measurements behind the stall target.
#[derive(Serialize)]
struct Answer {
    targets: Vec<Target>,
    stall_grid: Vec<Cell>,
}

fn targets(args: &Args, out: &mut Printer) -> Result<ExitStatus> {
    let size = if args.full { Size::Full } else { Size::Short };
    let mut targets = Vec::new();
    out.note("four stages of 20, 10, 15 and 150 ms ...");
    targets.extend(checks::overlap(size)?);
    out.note("stall against the simulation, 48 lines ...");
    let (stall_grid, stall) = grid::measure(size)?;
    targets.push(stall);
    out.note("ten million items ...");
    targets.extend(checks::memory()?);
    out.note("overhead per item ...");
    targets.push(checks::overhead(size)?);
    targets.push(checks::telemetry(size)?);
    let status = target::status(&targets);
    if args.json {
        out.json(&Answer { targets, stall_grid })?;
    } else {
        target::print(&targets, out)?;
    }
    Ok(status)
}

fn own_line(args: &Args, out: &mut Printer) -> Result<ExitStatus> {
    let spend = if args.busy { Spend::Busy } else { Spend::Waiting };
    let outcome = line::run(&args.stages, args.consumer, args.depth, args.items, spend)?;
    if args.json {
        out.json(&outcome)?;
        return Ok(ExitStatus::Done);
    }
    let mut table = Printer::table(&["", "measured", "predicted"]);
    for (what, measured, predicted) in outcome.rows() {
        table.add_row([what, measured, predicted]);
    }
    out.line(&table.to_string())?;
    let (name, time) = (&outcome.slowest, outcome.slowest_ms);
    out.line(&format!("slowest: {name} at {:.2} ms; no step can be shorter", time))?;
    out.line(&format!("one after the other: {:.2} ms", outcome.in_line_ms))?;
    Ok(ExitStatus::Done)
}
