//! `tandem bench feed`: duration of a step with the pipeline, against the model only.
//!
//! Both train on the same batches with the trainer's own steps. They alternate every second or two, so
//! that other programs on a shared machine slow both.

use super::target::{Limit, Target, median, print, status};
use crate::exit::ExitStatus;
use crate::failure::{Result, ensure};
use crate::interrupt::cancel_on_signals;
use crate::printer::Printer;
use crate::profiling::{ProfilingArgs, Session};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    profiling: ProfilingArgs,
    /// Batches in one turn
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    turn: u32,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem bench feed --cache-dataset
  tandem bench feed --train-data my-corpus --batch-size 16 --num-steps 1000 --json

`--num-steps` batches are trained both ways. Exit code 1: the pipeline slows a step by more than 3 %.";

/// Steps per second with the pipeline, relative to the model only.
const AT_LEAST: f64 = 0.97;

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let cancel = cancel_on_signals()?;
    let session = Session::open(&args.profiling, &cancel, out)?;
    let turns = (args.profiling.num_steps as usize).div_ceil(args.turn as usize);
    let found = session.take_turns(turns, args.turn as usize, out)?;
    ensure(!found.is_empty(), "the corpus gives no batch")?;
    let mut ratios: Vec<f64> = found.iter().map(|turn| turn.alone / turn.with_pipeline).collect();
    ratios.sort_by(f64::total_cmp);
    let quarter = |part: usize| ratios[(ratios.len() * part / 4).min(ratios.len() - 1)];
    let how = format!(
        "median of {} turns, half of them from {:.3} to {:.3}; {:.1} ms against {:.1} ms",
        ratios.len(),
        quarter(1),
        quarter(3),
        1e3 * median(found.iter().map(|turn| turn.with_pipeline).collect()),
        1e3 * median(found.iter().map(|turn| turn.alone).collect()),
    );
    let name = "steps/s with the pipeline, model alone = 1";
    let targets = [Target::new(name, median(ratios.clone()), "", Limit::AtLeast(AT_LEAST), how)];
    match args.json {
        true => out.json(&targets)?,
        false => print(&targets, out)?,
    }
    Ok(status(&targets))
}
