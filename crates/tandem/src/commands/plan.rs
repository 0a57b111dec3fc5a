//! `tandem plan`: predicts the best mode, workers, depth and batch size from a profile.

use crate::commands::compare;
use crate::commands::profile::ANSWER;
use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Failure, Result};
use crate::interrupt::cancel_on_signals;
use crate::plan_grid::Grid;
use crate::printer::Printer;
use crate::profiling::ProfilingArgs;
use crate::rank_check::{RankCheck, needs_mpi};
use crate::reduce_file;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tandem_device::inventory::{BackendReport, Inventory};
use tandem_device::memory::tuner_scratch_of;
use tandem_insight::plan::{PRESETS, PlanAnswer, PlanMode, PlanQuestion, Preset, plan};
use tandem_insight::plan_check::{CheckSummary, Tried};
use tandem_insight::plan_past::{PastRun, median_error};
use tandem_insight::profile::{ProfileAnswer, Sharing};
use tandem_insight::reduce_cost::ReduceCost;
use tandem_train::train_settings::TrainSettings;
use tandem_units::{Bytes, Seconds, percent, signed_percent};

const EXAMPLES: &str = "\
Examples:
  tandem profile --train-data my-corpus --record first && tandem plan first
  tandem plan first --num-workers 2,4,8 --pipeline-depth 2,4,8
  tandem plan first --batch-size 8,16,24 --mode single,dual
  tandem plan first --past runs/a runs/b compare predictions with finished runs
  mpirun -np 2 --bind-to none tandem bench reduce && tandem plan first    with two ranks
  tandem plan --preset 24                usual flags for a GPU with 24 GB
  tandem plan --check                    compare predictions with real runs, for some minutes
  tandem plan --check --mode data-parallel     the same with two ranks only; a build with MPI

Nothing is predicted that was not measured: the error names the measurement and the command that
makes it. Exit code 1, of --check alone: the predictions are not as good as they should be.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Profiles to predict from: directories of `tandem profile --record`, or their `profile.json`
    #[arg(value_name = "PROFILE")]
    profiles: Vec<PathBuf>,
    /// Modes to predict: single, dual, data-parallel [default: all that are possible]
    #[arg(long, value_name = "MODES", value_delimiter = ',', value_parser = mode)]
    mode: Vec<PlanMode>,
    /// Numbers of workers to predict [default: that of the profile, and twice as many]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = at_least_one)]
    num_workers: Vec<usize>,
    /// Depths to predict [default: that of the profile, and twice as many]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = at_least_one)]
    pipeline_depth: Vec<usize>,
    /// Batch sizes to predict [default: that of the profile]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = at_least_one)]
    batch_size: Vec<usize>,
    /// Cost of sums over two ranks, for data-parallel mode: a file of `tandem bench reduce --save`
    /// [default: what `tandem bench reduce` measured last]
    #[arg(long, value_name = "FILE")]
    reduce: Option<PathBuf>,
    /// Bandwidth between two devices in GB/s, instead of a measured cost
    #[arg(long, value_name = "GB/S", conflicts_with = "reduce")]
    link: Option<f64>,
    /// Finished runs: print the prediction error for each
    #[arg(long, value_name = "RUN", num_args = 1.., requires = "profiles")]
    past: Vec<PathBuf>,
    /// Print the usual flags for a GPU with so many GB: 12, 16 or 24
    #[arg(long, value_name = "GB", conflicts_with_all = ["profiles", "check"])]
    preset: Option<u64>,
    /// Run a grid of configurations on this machine, and print the prediction errors
    #[arg(long, conflicts_with = "profiles")]
    check: bool,
    /// With --check: measured steps of each run [default: 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(4..=100_000))]
    num_steps: Option<u64>,
    /// With --check: delay added to each stage in turn, in milliseconds [default: 400]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    slow: Option<u64>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

fn mode(text: &str) -> Result<PlanMode, String> {
    let names = PlanMode::ALL.map(PlanMode::name).join(", ");
    PlanMode::ALL
        .into_iter()
        .find(|mode| mode.name() == text)
        .ok_or_else(|| format!("expected one of {names}"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(count) if (1..=4096).contains(&count) => Ok(count),
        _ => Err("expected a whole number from 1 to 4096".into()),
    }
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    if let Some(gigabytes) = args.preset {
        return preset(gigabytes, args.json, out);
    }
    if args.check {
        return check(&args, out);
    }
    if args.num_steps.is_some() || args.slow.is_some() {
        let fact = "`--num-steps` and `--slow` have no effect without `--check`";
        return Err(Advised::new(fact, "add --check, or remove them").into());
    }
    let profiles: Vec<ProfileAnswer> =
        args.profiles.iter().map(|path| read(path)).collect::<Result<_>>()?;
    let answer = plan(&profiles, &question(&args, &profiles, out)?)?;
    let past = args.past.iter().map(|path| {
        let run = compare::read_record(path, out)?;
        Ok(PastRun::of(&profiles, &run)?)
    });
    let past: Vec<PastRun> = past.collect::<Result<_>>()?;
    match args.json {
        true => out.json(&Planned { answer: &answer, past: &past })?,
        false => {
            print(&answer, out)?;
            print_past(&past, out)?;
        }
    }
    Ok(ExitStatus::Done)
}

#[derive(Serialize)]
struct Planned<'a> {
    #[serde(flatten)]
    answer: &'a PlanAnswer,
    /// Predictions for finished runs.
    #[serde(skip_serializing_if = "<[PastRun]>::is_empty")]
    past: &'a [PastRun],
}

fn print_past(past: &[PastRun], out: &mut Printer) -> Result<()> {
    let Some(median) = median_error(past) else { return Ok(()) };
    let mut table = Printer::table(&[
        "past run",
        "batch",
        "workers",
        "depth",
        "predicted",
        "measured",
        "error",
    ]);
    for run in past {
        table.add_row([
            run.run.display().to_string(),
            run.batch_size.to_string(),
            run.workers.to_string(),
            run.depth.to_string(),
            Seconds(run.predicted).to_string(),
            Seconds(run.measured).to_string(),
            signed_percent(run.error),
        ]);
    }
    out.line("")?;
    out.line(&table.trim_fmt())?;
    out.line(&format!("{:<10} median of past runs: {}", "error".bold(), percent(median)))
}

/// What a sum over two ranks costs: the typed bandwidth, the named file, or what was measured last.
fn reduce_cost(args: &Args, out: &mut Printer) -> Result<Option<ReduceCost>> {
    if let Some(gigabytes) = args.link {
        if !(gigabytes > 0.0 && gigabytes.is_finite()) {
            let advice = "give gigabytes per second, such as 12";
            return Err(Advised::new("`--link` is not a bandwidth", advice).into());
        }
        return Ok(Some(ReduceCost::of_link(1e9 * gigabytes)));
    }
    let Some((path, cost)) = reduce_file::read(args.reduce.as_deref())? else { return Ok(None) };
    let hosts = cost.hosts.join(" and ");
    out.note(&format!("sums of gradients as measured on {hosts}: `{}`", path.display()));
    Ok(Some(cost))
}

/// GPUs of this machine; `None` where the profile was made on another one.
fn gpus_here(profiles: &[ProfileAnswer]) -> Option<usize> {
    let found = Inventory::detect();
    let of_backend = |backend: &BackendReport| {
        backend.devices.iter().filter(|device| device.kind.is_hardware_gpu()).count()
    };
    let gpus = found.backends.iter().map(of_backend).max().unwrap_or(0);
    let on_gpu = profiles.iter().any(|profile| profile.subject.sharing != Sharing::Cpu);
    (gpus > 0 || !on_gpu).then_some(gpus)
}

fn question(args: &Args, profiles: &[ProfileAnswer], out: &mut Printer) -> Result<PlanQuestion> {
    let named = !args.mode.is_empty();
    Ok(PlanQuestion {
        modes: if named { args.mode.clone() } else { PlanMode::ALL.to_vec() },
        named,
        workers: args.num_workers.clone(),
        depths: args.pipeline_depth.clone(),
        batches: args.batch_size.clone(),
        reduce: reduce_cost(args, out)?,
        gpus: gpus_here(profiles),
    })
}

fn read(path: &Path) -> Result<ProfileAnswer> {
    let file = if path.is_dir() { path.join(ANSWER) } else { path.to_path_buf() };
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let fact = format!("cannot read `{}`: {error}", file.display());
        Advised::new(fact, "make a profile: tandem profile --record DIR")
    })?;
    let answer: ProfileAnswer = serde_json::from_str(&text).map_err(|error| {
        let fact = format!("`{}` is not a profile: {error}", file.display());
        Advised::new(fact, "name a directory of `tandem profile --record DIR`, or its profile.json")
    })?;
    if answer.format != ProfileAnswer::FORMAT {
        let fact = format!("`{}` is a profile of another version", file.display());
        return Err(Advised::new(fact, "profile again with this program").into());
    }
    Ok(answer)
}

fn preset(gigabytes: u64, json: bool, out: &mut Printer) -> Result<ExitStatus> {
    let Some(preset) = Preset::of_size(gigabytes) else {
        let fact = format!("there is no preset for {gigabytes} GB");
        return Err(Advised::new(fact, "use --preset 12, 16 or 24").into());
    };
    match json {
        true => out.json(&preset)?,
        false => out.line(&preset.flags())?,
    }
    let scratch = tuner_scratch_of(Bytes::mib(gigabytes * 1024));
    out.note(&format!(
        "besides these budgets, the tuner takes {scratch} of a CUDA card for a moment, at its first start"
    ));
    Ok(ExitStatus::Done)
}

fn print(answer: &PlanAnswer, out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&[
        "",
        "mode",
        "batch",
        "workers",
        "depth",
        "step",
        "90 % interval",
        "samples/s",
        "model busy",
        "gain",
        "limited by",
        "memory",
    ]);
    for (place, row) in answer.rows.iter().enumerate() {
        table.add_row([
            if place == answer.choice { "*" } else { "" }.to_string(),
            row.mode.name().to_string(),
            row.batch_size.to_string(),
            row.setting.workers.to_string(),
            row.setting.depth.to_string(),
            Seconds(row.predicted.step).to_string(),
            format!("{} to {}", Seconds(row.predicted.low), Seconds(row.predicted.high)),
            format!("{:.1}", row.samples_per_second),
            percent(row.predicted.model_busy),
            signed_percent(row.gain),
            row.limit.clone(),
            row.memory.map_or_else(|| "not measured".into(), |memory| memory.to_string()),
        ]);
    }
    out.line(&table.trim_fmt())?;
    out.line("")?;
    out.line(&format!("{:<10} {}", "use".bold(), answer.advice))?;
    out.line(&format!(
        "{:<10} the profiled setting was predicted {} off the {:.1} samples/s that it measured; gains are against \
         its prediction",
        "error".bold(),
        signed_percent(answer.own_error),
        answer.measured,
    ))?;
    out.line("")?;
    print_modes(answer, out)?;
    for missing in &answer.missing {
        out.line(&format!("{:<10} {}", "missing".yellow().bold(), missing.what))?;
        out.line(&format!("{:<10} {}", "", missing.command))?;
    }
    out.line("")?;
    let mut table = Printer::table(&["card", "batch", "data MB", "model MB", "prefetch", ""]);
    let range = |(low, high): (usize, usize)| match low == high {
        true => low.to_string(),
        false => format!("{low}-{high}"),
    };
    for preset in PRESETS {
        let mine = if answer.preset == Some(preset) { "this card" } else { "" };
        table.add_row([
            format!("{} GB", preset.card_gb),
            range(preset.batch),
            preset.data_mb.to_string(),
            preset.model_mb.to_string(),
            range(preset.prefetch),
            mine.to_string(),
        ]);
    }
    out.line(&table.trim_fmt())
}

/// The modes side by side, each with its best setting.
fn print_modes(answer: &PlanAnswer, out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&[
        "mode",
        "flags",
        "step",
        "samples/s",
        "model busy",
        "against profile",
        "model memory",
        "times from",
    ]);
    for line in &answer.modes {
        let name = line.mode.name().to_string();
        let Some(best) = line.best.and_then(|place| answer.rows.get(place)) else {
            let none = || "-".to_string();
            let from = "not measured".to_string();
            table.add_row([name, line.flags.clone(), none(), none(), none(), none(), none(), from]);
            continue;
        };
        table.add_row([
            name,
            line.flags.clone(),
            Seconds(best.predicted.step).to_string(),
            format!("{:.1}", best.samples_per_second),
            percent(best.predicted.model_busy),
            signed_percent(best.gain),
            best.memory.map_or_else(|| "not measured".into(), |memory| memory.to_string()),
            if line.measured { "a run of this mode" } else { "separate runs" }.to_string(),
        ]);
    }
    out.line(&table.trim_fmt())
}

fn check(args: &Args, out: &mut Printer) -> Result<ExitStatus> {
    let cancel = cancel_on_signals()?;
    let or_usual = |list: &[usize], usual: &[usize]| match list {
        [] => usual.to_vec(),
        list => list.to_vec(),
    };
    let grid = Grid {
        args: ProfilingArgs {
            num_steps: args.num_steps.unwrap_or(12),
            skip_steps: 1,
            ..Default::default()
        },
        batches: or_usual(&args.batch_size, &[1, 2]),
        workers: or_usual(&args.num_workers, &[1, 2]),
        depths: or_usual(&args.pipeline_depth, &[2, 4]),
        slow: Duration::from_millis(args.slow.unwrap_or(400)),
    };
    let asks = |modes: &[PlanMode]| modes.iter().any(|mode| args.mode.contains(mode));
    let with_ranks = asks(&[PlanMode::DataParallel]);
    if with_ranks {
        needs_mpi()?;
    }
    let mut tried = Vec::new();
    if args.mode.is_empty() || asks(&[PlanMode::Single, PlanMode::Dual]) {
        tried = grid.run(&cancel, out).context("the grid could not be run")?;
    }
    if with_ranks || (args.mode.is_empty() && cfg!(feature = "mpi")) {
        let ranks = RankCheck {
            batches: grid.batches.clone(),
            steps: grid.args.num_steps,
            model_size: TrainSettings::default().model_size,
        };
        tried.extend(ranks.run(out).context("the runs of two ranks failed")?);
    } else if args.mode.is_empty() {
        out.note("runs of two ranks are left out: this build has no MPI");
    }
    let summary =
        CheckSummary::of(&tried).ok_or_else(|| Failure::bare("no configuration was tried"))?;
    match args.json {
        true => out.json(&serde_json::json!({ "tried": tried, "summary": summary }))?,
        false => print_check(&tried, &summary, out)?,
    }
    Ok(if summary.is_good() { ExitStatus::Done } else { ExitStatus::Negative })
}

fn print_check(tried: &[Tried], summary: &CheckSummary, out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&["configuration", "predicted", "measured", "error"]);
    for one in tried {
        table.add_row([
            one.what.clone(),
            Seconds(one.predicted).to_string(),
            Seconds(one.measured).to_string(),
            signed_percent(one.error()),
        ]);
    }
    out.line(&table.trim_fmt())?;
    out.line("")?;
    out.line(&format!(
        "{:<10} median {} (wanted at most {}), 95 of 100 within {} (wanted {}), of {} configurations; {} runs repeated because the machine was disturbed",
        "error".bold(),
        percent(summary.median),
        percent(CheckSummary::MEDIAN),
        percent(summary.p95),
        percent(CheckSummary::P95),
        summary.count,
        summary.repeated
    ))?;
    out.line(&format!(
        "{:<10} first by prediction was the fastest in {} of {} groups that differ by over 10 %; {} \
         of {} pairs in order",
        "ranking".bold(), summary.right, summary.groups, summary.in_order, summary.pairs
    ))
}
