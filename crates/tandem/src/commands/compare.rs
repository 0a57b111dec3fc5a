//! `tandem compare`: compares two runs, with significance tests.
//!
//! In: two runs: records, run directories or redirected output. Out: the result on stdout, notes about incomplete records on stderr.

use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Result};
use crate::page_args::PageArgs;
use crate::printer::Printer;
use owo_colors::OwoColorize;
use std::path::{Path, PathBuf};
use tandem_insight::compare::{CompareRules, Comparison, Judgement, Measure, Row, compare_sources};
use tandem_insight::measured_run::MeasuredRun;
use tandem_insight::run_source::RunSource;
use tandem_page::runs_page::compare_page;
use tandem_telemetry::ReadNotes;
use tandem_telemetry::run_parts::{main_part, parts};
use tandem_units::{Bytes, Seconds};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The reference run: its directory, its record (`run.jsonl`) or its redirected output
    a: PathBuf,
    /// The run to compare with it
    b: PathBuf,
    /// Fail only if B is worse by more than this, such as 5%
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    fail_over: Option<f64>,
    /// Random seed of the confidence intervals
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    page: PageArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem compare runs/before runs/after
  tandem compare before.jsonl after.jsonl --fail-over 5%     for CI
  tandem compare baseline.log optimized.log      output of `tandem train ... > baseline.log 2>&1`
  tandem compare runs/before runs/after --json

The first step of each run is left out, as in `tandem report`. A difference counts if its 99 % \
confidence interval excludes zero and it is large enough to matter. A log is followed to the record \
that it names; where that is gone, its printed figures are compared. Exit code 1: B is worse.";

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    args.page.check()?;
    let [a, b] = [read(&args.a, out)?, read(&args.b, out)?];
    let usual = CompareRules { seed: args.seed, ..CompareRules::default() };
    let rules = args.fail_over.map_or(usual, |share| usual.failing_over(share));
    let found = compare_sources(&a, &b, &rules).context("the two runs cannot be compared")?;
    args.page.write(out, |lang| Ok(compare_page(&found, lang)))?;
    if args.json {
        out.json(&found)?;
    } else {
        print(&found, out)?;
    }
    Ok(if found.verdict == Judgement::Worse { ExitStatus::Negative } else { ExitStatus::Done })
}

/// Reads a run by its record, its directory or its output, and reports what is missing.
pub fn read(path: &Path, out: &mut Printer) -> Result<RunSource> {
    let source = RunSource::read(path)
        .with_context(|| format!("cannot read the run `{}`", path.display()))?;
    match &source {
        RunSource::Record(run) => note_gaps(run, path, out)?,
        RunSource::Log(log) => out.note(&format!(
            "`{}`: {}; the figures of its lines are used",
            path.display(),
            match &log.record {
                Some(record) => format!("the record `{}` is gone", record.display()),
                None => "the log names no record".into(),
            }
        )),
    }
    Ok(source)
}

/// The same where every step is needed.
pub fn read_record(path: &Path, out: &mut Printer) -> Result<MeasuredRun> {
    match read(path, out)? {
        RunSource::Record(run) => Ok(*run),
        RunSource::Log(_) => {
            let fact = format!("`{}` has no record, and single steps are needed", path.display());
            Err(Advised::new(fact, "name the run directory or its `run.jsonl`").into())
        }
    }
}

fn note_gaps(run: &MeasuredRun, path: &Path, out: &mut Printer) -> Result<()> {
    if let Some(missing) = missing(&run.notes) {
        out.note(&format!("`{}` is incomplete: {missing}; the rest is used", path.display()));
    }
    if run.outcome.is_none() {
        let end = "has no final event: the run was killed or is still running";
        out.note(&format!("`{}` {end}", path.display()));
    }
    note_parts(path, out)
}

fn missing(notes: &ReadNotes) -> Option<String> {
    let torn = notes.torn.map(|_| "its last line was cut off".to_string());
    let broken = (notes.broken > 0).then(|| format!("{} damaged lines", notes.broken));
    let said: Vec<String> = torn.into_iter().chain(broken).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Names the part that is used if the directory has several parts.
pub fn note_parts(path: &Path, out: &mut Printer) -> Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    let parts = parts(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let speaking = main_part(path)?;
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let others = parts.iter().filter(|part| part.path != speaking);
    let others: Vec<String> = others.map(|part| format!("`{}`", name(&part.path))).collect();
    if !others.is_empty() {
        out.note(&format!(
            "`{}` was resumed: these are the figures of its last part, `{}`; name {} to see the others",
            path.display(),
            name(&speaking),
            others.join(" or ")
        ));
    }
    Ok(())
}

fn print(found: &Comparison, out: &mut Printer) -> Result<()> {
    for (name, side) in [("A", &found.a), ("B", &found.b)] {
        let batch = side.batch_size.map(|size| format!(", batch size {size}")).unwrap_or_default();
        out.line(&format!("{name}  {}: {} steps{batch}", side.run.display(), side.steps))?;
    }
    out.line("")?;
    let certain = format!("{:.0} % interval", 100.0 * found.rules.level);
    let mut table = Printer::table(&["", "A", "B", "B / A", &certain, ""]);
    for row in &found.rows {
        let ratio = row.ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"));
        let interval = row.interval_in_words().unwrap_or_else(|| "-".into());
        let name = if row.decides { format!("{} *", row.name) } else { row.name.clone() };
        let (a, b) = (shown(row.measure, row.a), shown(row.measure, row.b));
        table.add_row([name, a, b, ratio, interval, judged(row)]);
    }
    out.line(&table.trim_fmt())?;
    out.line("* decides the verdict; the others are for information\n")?;
    for note in &found.notes {
        out.line(&format!("{:<8} {note}", "note".bold()))?;
    }
    out.line(&format!("{:<8} {}", "verdict".bold(), found.sentence))
}

fn shown(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Throughput => format!("{value:.1}"),
        Measure::Stability | Measure::Utilisation => format!("{:.1} %", 100.0 * value),
        Measure::Memory => Bytes(value as u64).to_string(),
        _ => Seconds(value).to_string(),
    }
}

fn judged(row: &Row) -> String {
    match row.judgement {
        Judgement::Better => "better".green().to_string(),
        Judgement::Worse => "worse".red().to_string(),
        Judgement::Different => "different".into(),
        Judgement::NoDifference => "same".into(),
        Judgement::NotComparable => "not comparable".into(),
    }
}

/// `5%`, `5 %` and `5` all mean 0.05.
fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>();
    match number {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage such as 5%".into()),
    }
}
