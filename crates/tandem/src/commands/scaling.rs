//! `tandem scaling`: throughput, memory and efficiency by batch size, and the largest size that still
//! pays.
//!
//! Reads run records or text logs, or trains first (`sweep`): one training run for each batch size.

mod sweep;

use crate::commands::compare::read;
use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::page_args::PageArgs;
use crate::printer::Printer;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::path::{Path, PathBuf};
use sweep::{Sweep, TooLarge};
use tandem_disk::replace_file::replace_file;
use tandem_insight::run_source::RunSource;
use tandem_insight::scaling::{Scaling, ScalingRules, panels, scaling_of};
use tandem_page::runs_page::scaling_page;
use tandem_plot::chart;
use tandem_units::{Bytes, Seconds};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Runs of different batch sizes: run directories, records or redirected output
    #[arg(value_name = "RUN", required_unless_present = "sweep", conflicts_with = "sweep")]
    runs: Vec<PathBuf>,
    /// Train first, one run for each of these batch sizes
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    sweep: Vec<u32>,
    /// The corpus of the sweep, or `demo`
    #[arg(long, value_name = "CORPUS", requires = "sweep", default_value = "demo")]
    train_data: PathBuf,
    /// Steps of each run of the sweep
    #[arg(long, value_name = "N", requires = "sweep", default_value_t = 30)]
    steps: u64,
    /// Keep the runs of the sweep in this new directory [default: they are removed]
    #[arg(long, value_name = "DIR", requires = "sweep")]
    keep: Option<PathBuf>,
    /// Write a chart (.png or .svg); can be given twice
    #[arg(long, value_name = "FILE", value_parser = picture)]
    plot: Vec<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// After `--`: more flags for the training runs of the sweep
    #[arg(last = true, value_name = "TRAIN FLAGS", requires = "sweep")]
    train: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  tandem scaling runs/batch-8 runs/batch-16 runs/batch-32
  tandem scaling test_batch_*.log             output of `tandem train ... > test_batch_16.log 2>&1`
  tandem scaling --sweep 8,12,16,20,24,28,32 --train-data my_corpus --plot scaling.png
  tandem scaling --sweep 8,16 --steps 50 -- --model-size small --cache-dataset

A sweep starts a fresh process for each batch size, smallest first, and stops at the first that does \
not fit into memory. The knee is the smallest size with 95 % of the best throughput.";

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    found: &'a Scaling,
    /// The size at which the sweep stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    does_not_fit: Option<&'a TooLarge>,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    args.page.check()?;
    let (runs, too_large) = if args.sweep.is_empty() {
        let runs = args.runs.iter().map(|path| read(path, out));
        (runs.collect::<Result<Vec<_>>>()?, None)
    } else {
        swept(&args, out)?
    };
    let found = scaling_of(&runs, &ScalingRules::default()).with_context(|| match &too_large {
        Some(too_large) => format!("too few sizes were measured: {too_large}"),
        None => "these runs cannot be compared by batch size".into(),
    })?;
    args.page.write(out, |lang| Ok(scaling_page(&found, lang)))?;
    if args.json {
        out.json(&Answer { found: &found, does_not_fit: too_large.as_ref() })?;
    } else {
        print(&found, too_large.as_ref(), out)?;
    }
    args.plot.iter().try_for_each(|path| draw(&found, path, out))?;
    Ok(ExitStatus::Done)
}

fn swept(args: &Args, out: &mut Printer) -> Result<(Vec<RunSource>, Option<TooLarge>)> {
    let mut sizes = args.sweep.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        let fact = format!("a sweep over {} alone compares nothing", sizes[0]);
        return Err(Advised::new(fact, "name two or more sizes, such as `--sweep 8,16,32`").into());
    }
    let kept = args.keep.as_deref().map(new_directory).transpose()?;
    let passing =
        tempfile::tempdir().context("cannot create a temporary directory for the runs")?;
    let sweep = Sweep {
        place: kept.unwrap_or_else(|| passing.path().to_path_buf()),
        corpus: args.train_data.clone(),
        steps: args.steps,
        more: args.train.clone(),
    };
    let directories = sweep.run(&sizes, &cancel_on_signals()?, out)?;
    let runs = directories.done.iter().map(|path| read(path, out));
    Ok((runs.collect::<Result<_>>()?, directories.too_large))
}

fn new_directory(path: &Path) -> Result<PathBuf> {
    std::fs::create_dir(path).map_err(|cause| {
        let fact = format!("cannot make the directory `{}`: {cause}", path.display());
        Advised::new(fact, "name one that does not exist yet, in a directory that does")
    })?;
    Ok(path.to_path_buf())
}

fn print(found: &Scaling, stop: Option<&TooLarge>, out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&[
        "batch",
        "steps",
        "step time",
        "samples/s",
        "95 % interval",
        "frames/s",
        "memory",
        "efficiency",
        "",
    ]);
    for point in &found.points {
        let interval =
            point.interval.map_or("-".into(), |i| format!("{:.1} to {:.1}", i.low, i.high));
        let memory = point.memory.map_or("-".into(), |bytes| Bytes(bytes as u64).to_string());
        let knee = if point.batch_size == found.knee { "<- knee" } else { "" };
        table.add_row([
            point.batch_size.to_string(),
            point.steps.to_string(),
            Seconds(point.step_time).to_string(),
            format!("{:.1}", point.samples_per_second),
            interval,
            point.frames_per_second.map_or("-".into(), |rate| format!("{rate:.0}")),
            memory,
            format!("{:.0} %", 100.0 * point.efficiency),
            knee.to_string(),
        ]);
    }
    out.line(&table.trim_fmt())?;
    let of = found.points.iter().find_map(|point| point.memory_of.as_deref());
    let of = of.map(|name| format!("memory: the most of {name}; ")).unwrap_or_default();
    let smallest = found.points.first().map_or(0, |point| point.batch_size);
    out.line(&format!("{of}efficiency: throughput over that of batch {smallest} in proportion\n"))?;
    for note in &found.notes {
        out.line(&format!("{:<8} {note}", "note".bold()))?;
    }
    if let Some(stop) = stop {
        out.line(&format!("{:<8} {stop}", "stopped".bold()))?;
    }
    out.line(&format!("{:<8} {}", "verdict".bold(), found.sentence))
}

fn draw(found: &Scaling, path: &Path, out: &mut Printer) -> Result<()> {
    let panels = panels(found);
    let bytes = match ending(path).as_str() {
        "svg" => chart::svg(&panels)?.into_bytes(),
        _ => chart::png(&panels)?,
    };
    replace_file(path, &bytes).map_err(|cause| {
        let fact = format!("cannot write the chart `{}`: {cause}", path.display());
        Advised::new(fact, "name a file in a directory that exists and may be written to")
    })?;
    out.note(&format!("chart: {}", path.display()));
    Ok(())
}

fn ending(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn size(text: &str) -> Result<u32, String> {
    match text.trim().parse::<u32>() {
        Ok(size) if size > 0 => Ok(size),
        _ => Err("expected batch sizes of 1 or more, such as 8,16,32".into()),
    }
}

fn picture(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match ending(&path).as_str() {
        "png" | "svg" => Ok(path),
        _ => Err("expected a name that ends in .png or .svg".into()),
    }
}
