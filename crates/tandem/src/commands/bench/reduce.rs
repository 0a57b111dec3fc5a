//! `tandem bench reduce`: what a sum over all ranks costs, by its size. Started by `mpirun`.
//!
//! As in training, the values are gradients that are no longer in the processor's cache. The result is saved for
//! `tandem plan`.

use super::target::median;
use crate::exit::ExitStatus;
use crate::failure::{Advised, Result};
use crate::printer::Printer;
use crate::ranks::{self, RankArgs};
use crate::reduce_file;
use std::path::PathBuf;
use std::time::Instant;
use tandem_cluster::Cluster;
use tandem_insight::reduce_cost::{ReduceCost, SizeCost};
use tandem_units::Bytes;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Sums of each size
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: u32,
    /// Largest size in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1024))]
    largest: u64,
    /// File for the result, which `tandem plan` reads [default: reduce.json in the user's data directory]
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    #[command(flatten)]
    ranks: RankArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mpirun -np 2 --bind-to none tandem bench reduce
  mpirun -np 2 --host node-a:1,node-b:1 tandem bench reduce --json
  mpirun -np 2 --bind-to none tandem bench reduce --save near.json && tandem plan first --reduce near.json

The gradients of a model are as large as its weights: 4 bytes for each parameter.";

/// The smallest sum, in values: its time is the latency.
const SMALLEST: usize = 1;
/// Values that a training step touches between two sums: 64 MiB, more than the cache of one rank.
const OTHER: usize = 1 << 24;

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let cluster = ranks::join(&args.ranks, out)?;
    let Some(cluster) = cluster else { return Err(started_alone("bench reduce").into()) };
    let done = measure(&args, &cluster, out);
    ranks::leave(Some(&cluster), done)
}

/// The error of a command that needs several ranks.
pub fn started_alone(command: &str) -> Advised {
    Advised::new(
        "this process was started alone: there are no other ranks to measure",
        format!("start it with `mpirun -np 2 --bind-to none tandem {command}`; docs/scale-out.md"),
    )
}

fn measure(args: &Args, cluster: &Cluster, out: &mut Printer) -> Result<ExitStatus> {
    let largest = (args.largest << 20) as usize / 4;
    let sizes = std::iter::successors(Some(SMALLEST), |size| Some(size * 8));
    let (mut found, mut other) = (Vec::new(), vec![0.0_f32; OTHER]);
    for values in sizes.take_while(|size| *size < largest).chain([largest]) {
        let mut times = Vec::new();
        let gradients = vec![1.0_f32; values];
        // The first sum of a size allocates memory.
        for turn in 0..=args.repeats {
            let gradients = gradients.clone();
            // A training step fills the cache with other values.
            other.iter_mut().for_each(|value| *value += 1.0);
            cluster.barrier()?;
            let from = Instant::now();
            cluster.queue_sum(gradients).wait()?;
            if turn > 0 {
                times.push(from.elapsed().as_secs_f64());
            }
        }
        let (bytes, seconds) = (4 * values as u64, median(times));
        found.push(SizeCost { bytes, seconds, bytes_per_second: bytes as f64 / seconds });
    }
    let figures = ReduceCost {
        ranks: cluster.ranks(),
        hosts: (0..cluster.ranks()).map(|rank| cluster.host(rank).to_string()).collect(),
        latency_seconds: found.first().map_or(0.0, |size| size.seconds),
        sizes: found,
    };
    if cluster.is_first() {
        let path = reduce_file::path(args.save.as_deref())?;
        reduce_file::save(&figures, &path)?;
        out.note(&format!("saved in `{}`; `tandem plan` predicts with it", path.display()));
    }
    if args.json {
        out.json(&figures)?;
        return Ok(ExitStatus::Done);
    }
    let mut table = Printer::table(&["size", "time", "bandwidth"]);
    for size in &figures.sizes {
        let bandwidth = format!("{}/s", Bytes(size.bytes_per_second as u64));
        let time = format!("{:.3} ms", 1e3 * size.seconds);
        table.add_row([Bytes(size.bytes).to_string(), time, bandwidth]);
    }
    out.line(&table.trim_fmt())?;
    Ok(ExitStatus::Done)
}
