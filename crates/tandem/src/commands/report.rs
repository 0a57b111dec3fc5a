//! `tandem report`: throughput, bottleneck and grade of a run.

use crate::commands::compare::note_parts;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::page_args::PageArgs;
use crate::printer::Printer;
use std::path::{Path, PathBuf};
use tandem_page::{RunView, run_page};
use tandem_telemetry::event::Event;
use tandem_telemetry::reader::visit;
use tandem_telemetry::{Report, Rules, Summary, Trace};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The run: its record (`run.jsonl`) or its directory
    run: PathBuf,
    /// Print the report as JSON, for scripts
    #[arg(long)]
    json: bool,
    /// Also write a trace for the Perfetto UI (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
}

const EXAMPLES: &str = "\
Examples:
  tandem report runs/persian              verdict, grade and figures of a run
  tandem report run.jsonl --json          the same for a script
  tandem report run.jsonl --trace run.pftrace
  tandem report runs/persian --html report.html --lang fa

The run may be running or have been killed: the report covers the events recorded so far.";

/// Reads the record once and prints the report.
pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    args.page.check()?;
    let (summary, notes) = Summary::read(&args.run)
        .with_context(|| format!("cannot report on `{}`", args.run.display()))?;
    note_parts(&args.run, out)?;
    let report = Report::from_summary(&summary, Some(notes), &Rules::default());
    if args.json {
        out.json(&report)?;
    } else {
        out.line(report.to_string().trim_end())?;
    }
    args.page.write(out, |lang| {
        let view = RunView::read(&args.run)?;
        Ok(run_page(&view, &args.run.to_string_lossy(), lang))
    })?;
    match args.trace {
        Some(path) => draw(&args.run, &path, out),
        None => Ok(ExitStatus::Done),
    }
}

fn draw(run: &Path, path: &Path, out: &mut Printer) -> Result<ExitStatus> {
    let mut trace = Trace::new(Trace::LIMIT);
    let mut spans = 0u64;
    visit(run, |stamped| {
        spans += u64::from(matches!(stamped.event, Event::Span(_)));
        trace.add(&stamped);
    })?;
    let extent = trace.write(path)?;
    out.note(&format!("trace: {} in `{}`", extent.bytes, path.display()));
    if extent.dropped > 0 {
        out.note(&format!("the oldest {} events were dropped to limit the size", extent.dropped));
    }
    if spans == 0 {
        out.note("the record has no spans: the trace shows only steps, slots and counters");
    }
    Ok(ExitStatus::Done)
}
