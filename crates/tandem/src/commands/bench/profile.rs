//! `tandem bench profile`: whether a profile names the stage that is slowed on purpose.
//!
//! Stages are slowed in turn with the hidden `--slow-stage`; the profile is that of `tandem profile`. In
//! balanced runs, in which transfer and training take equally long, no stage may be named.

use super::target::{Limit, Target, print};
use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::interrupt::cancel_on_signals;
use crate::printer::Printer;
use crate::profiling::{ProfilingArgs, Session};
use std::time::Duration;
use tandem_insight::measured::Phase;
use tandem_insight::profile::ProfileRules;
use tandem_pipeline::{Slowdown, Slowdowns};
use tandem_telemetry::verdict::Cause;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    profiling: ProfilingArgs,
    /// Profiles of a run with a slowed stage, stages in turn
    #[arg(long, value_name = "N", default_value_t = 20)]
    runs: usize,
    /// Profiles of a balanced run
    #[arg(long, value_name = "N", default_value_t = 4)]
    balanced: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Stages that must be found.
const SLOWED: [Phase; 4] = [Phase::Load, Phase::Preprocess, Phase::Transfer, Phase::Train];

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let cancel = cancel_on_signals()?;
    let mut session = Session::open(&args.profiling, &cancel, out)?;
    session.try_cached = false;
    session.try_batches = false;
    let mut found = 0;
    for turn in 0..args.runs {
        let stage = SLOWED[turn % SLOWED.len()];
        let workers = match stage {
            Phase::Load | Phase::Preprocess => session.feed.workers,
            _ => 1,
        };
        let [train, _] = usual_costs(&mut session, out)?;
        let named = name_with(&mut session, &[(stage, 4.0 * train * workers as f64)], out)?;
        found += usize::from(named == Some(stage));
        let (stage, named) = (stage.name(), word(named));
        out.note(&format!("{} of {}: slowed {stage}, named {named}", turn + 1, args.runs));
    }
    let mut none = 0;
    for turn in 0..args.balanced {
        // Most of both is waiting, so that they stay equal on a busy machine.
        let [train, copy] = usual_costs(&mut session, out)?;
        let slowed = [(Phase::Transfer, 11.0 * train - copy), (Phase::Train, 10.0 * train)];
        let named = name_with(&mut session, &slowed, out)?;
        none += usize::from(named.is_none());
        out.note(&format!("balanced {} of {}: named {}", turn + 1, args.balanced, word(named)));
    }
    let figure = |name: &str, right: usize, of: usize, how: &str| {
        let how = format!("{right} of {of}; {how}");
        Target::new(name, right as f64, "runs", Limit::AtLeast(of as f64), how)
    };
    let targets = [
        figure(
            "slowed stage is named",
            found,
            args.runs,
            "load, preprocess, transfer, train in turn",
        ),
        figure("none is named of a balanced run", none, args.balanced, "transfer as long as train"),
    ];
    match args.json {
        true => out.json(&targets)?,
        false => print(&targets, out)?,
    }
    Ok(match targets.iter().all(|target| target.met == Some(true)) {
        true => ExitStatus::Done,
        false => ExitStatus::Negative,
    })
}

/// Training and transfer time of a batch without delays, measured now: the speed of a shared machine
/// changes.
fn usual_costs(session: &mut Session, out: &mut Printer) -> Result<[f64; 2]> {
    session.feed.slow = Slowdowns::default();
    let plain = session.measure("without changes", &session.feed, out)?;
    Ok([plain.usual(Phase::Train).max(0.005), plain.usual(Phase::Transfer)])
}

fn name_with(
    session: &mut Session,
    slowed: &[(Phase, f64)],
    out: &mut Printer,
) -> Result<Option<Phase>> {
    let slowed = slowed
        .iter()
        .map(|(phase, by)| Slowdown::always(phase.name(), Duration::from_secs_f64(by.max(0.0))));
    session.feed.slow = Slowdowns::of(slowed);
    let verdict = session.profile(None, &ProfileRules::default(), out)?.verdict;
    out.note(&verdict.sentence);
    // Times that vary limit the run without a stage that is too slow.
    let limits = verdict.stage.filter(|_| verdict.cause != Cause::Variation);
    Ok(limits.and_then(|stage| Phase::of(&stage)))
}

fn word(named: Option<Phase>) -> &'static str {
    named.map_or("none", Phase::name)
}
