//! The final report as text for people.
//!
//! In: [`Report`]. Out: plain lines without colour, the same for the same report. Empty parts are left out; figures that were not measured
//! are marked "not measured".

use crate::event::{
    CacheState, Data, Decision, DecisionOutcome, RunOutcome, StartReason, Started, Warning,
};
use crate::ranks::{RankLoad, RankRecord, RankReport};
use crate::report::{DeviceReport, QueueReport, RecordReport, Report, StepReport};
use crate::stats::Figures;
use crate::variation::Variation;
use crate::verdict::StageLoad;
use std::fmt::{self, Display, Formatter};
use tandem_units::{Bytes, Lang, Seconds, percent};

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        run(f, self)?;
        if let Some(found) = &self.data {
            writeln!(f, "data      {}", data(found))?;
        }
        if let Some(crowd) = &self.crowd {
            writeln!(f, "machine   {}", crowd.words(Lang::En))?;
        }
        writeln!(f, "verdict   {}", self.verdict.sentence)?;
        writeln!(f, "grade     {}", self.grading.sentence)?;
        for advice in &self.advice {
            writeln!(f, "advice    {advice}")?;
        }
        if let Some(warm_up) = &self.warm_up {
            let shapes = count_of(warm_up.shapes, "shape");
            writeln!(f, "warm-up   {shapes} compiled before the first step: {}", warm_up.took)?;
        }
        if let Some(kernels) = &self.kernels {
            writeln!(f, "kernels   {kernels}")?;
        }
        if let Some(graphs) = &self.graphs {
            writeln!(f, "graphs    {graphs}")?;
        }
        if let Some(start) = &self.start {
            writeln!(f, "start     {}", started(start))?;
        }
        if let Some(report) = &self.steps {
            steps(f, report)?;
        }
        ranks(f, self)?;
        stages(f, self)?;
        queues(f, &self.queues)?;
        devices(f, &self.devices)?;
        adaptation(f, self)?;
        skips(f, self)?;
        if self.empty_steps > 0 {
            let steps = count_of(self.empty_steps, "optimizer step");
            writeln!(f, "\nempty     {steps} without a usable batch: weights unchanged")?;
        }
        warnings(f, self)?;
        record(f, &self.record)
    }
}

/// How many examples of a kind the text shows; the JSON form has more.
const SHOWN: usize = 5;

fn run(f: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let run = &report.run;
    let ending = run.outcome.map_or("no end recorded: killed or still running", RunOutcome::name);
    let steps = report.steps.as_ref().map_or(0, |steps| steps.all.count);
    let steps = count_of(steps, "step");
    write!(f, "run       {}, {steps} in {}, {ending}", run.program, run.lasted)?;
    match &run.why {
        Some(why) => writeln!(f, ": {why}"),
        None => writeln!(f),
    }
}

fn data(data: &Data) -> String {
    let list = data.list.as_ref().map(|path| format!(" (list: {path})")).unwrap_or_default();
    let cache = match data.cache {
        CacheState::Read => "cache read".to_string(),
        CacheState::Updated => format!("cache updated, {} rebuilt", data.rebuilt),
        CacheState::Built => format!("cache built, {} new", data.rebuilt),
    };
    let Data { usable, rejected, eval, .. } = data;
    let rows = format!("{usable} usable rows, {eval} held out, {rejected} rejected{list}");
    let workers = count_of(data.workers.into(), "worker");
    format!("{rows}; {cache} in {} by {workers}", Seconds(data.seconds))
}

fn started(start: &Started) -> String {
    let why = match start.why {
        StartReason::EnoughReady => "enough batches were ready",
        StartReason::DelayOver => "the time limit was reached",
        StartReason::EndOfData => "the data ended",
        StartReason::Stopped => "the run was stopped",
    };
    let (waited, limit) = (start.waited, start.limit);
    format!("the model waited {waited} of at most {limit}: {why} ({} ready)", start.ready)
}

fn steps(f: &mut Formatter<'_>, steps: &StepReport) -> fmt::Result {
    writeln!(f, "\nsteps     {}", times(&steps.all))?;
    // Only where the first step is much slower, as when it compiles kernels.
    let apart = |steady: &&Figures| steps.first.seconds().0 > 2.0 * steady.p95;
    if let Some(steady) = steps.steady.as_ref().filter(apart) {
        writeln!(f, "  after the first ({}): {}", steps.first, times(steady))?;
    }
    write!(
        f,
        "  {:.2} steps/s, {:.1} samples/s, {:.0} frames/s; waited {}",
        steps.steps_per_second,
        steps.samples_per_second,
        steps.frames_per_second,
        percent(steps.stall)
    )?;
    match steps.shapes {
        Some(shapes) => writeln!(f, "; {}", count_of(shapes, "distinct shape"))?,
        None => writeln!(f)?,
    }
    if let Some(variation) = &steps.variation {
        writeln!(f, "  {}", judged_variation(variation))?;
    }
    if !steps.losses.is_empty() {
        let losses = steps.losses.iter().map(|(name, loss)| match loss.value() {
            Some(value) => format!("{name} {value:.4}"),
            None => format!("{name} missing"),
        });
        writeln!(f, "  last losses: {}", losses.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

/// How steps vary beyond their shapes, and how that was found.
pub fn judged_variation(variation: &Variation) -> String {
    let Variation { shapes, on_curve, .. } = variation;
    let curve = match on_curve {
        0 => String::new(),
        steps => format!("; {} of rare shapes against a curve", count_of(*steps, "step")),
    };
    format!(
        "{variation}: each step against the usual time of its shape ({}{curve})",
        count_of(*shapes, "shape")
    )
}

fn times(figures: &Figures) -> String {
    format!(
        "mean {}, std {}, min {}, p50 {}, p95 {}, max {}, variation {}",
        Seconds(figures.mean),
        Seconds(figures.std),
        Seconds(figures.min),
        Seconds(figures.p50),
        Seconds(figures.p95),
        Seconds(figures.max),
        percent(figures.variation)
    )
}

fn ranks(f: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let Some(RankReport { ranks, reduce, uneven }) = &report.ranks else { return Ok(()) };
    writeln!(
        f,
        "\nrank    host                   per step   without data   sum of gradients   slowest in"
    )?;
    for (rank, load) in ranks.iter().enumerate() {
        let RankLoad { host, starved, reduce, slowest_in, .. } = load;
        let [whole, starved, reduce] =
            [load.per_step(), *starved, *reduce].map(|time| Seconds(time).to_string());
        let slowest = percent(*slowest_in);
        writeln!(f, "  {rank:<5} {host:<20} {whole:>10} {starved:>14} {reduce:>18} {slowest:>12}")?;
    }
    let (reduce, uneven) = (percent(*reduce), percent(*uneven));
    writeln!(f, "  sum of gradients {reduce} of the time; uneven batches {uneven}")?;
    rank_records(f, ranks)
}

/// What the records of the ranks add, where they were read.
fn rank_records(f: &mut Formatter<'_>, ranks: &[RankLoad]) -> fmt::Result {
    if ranks.iter().all(|load| load.record.is_none()) {
        return Ok(());
    }
    writeln!(
        f,
        "\nrank    slowest stage before the model   device busy   skipped   warnings   ended"
    )?;
    for (rank, load) in ranks.iter().enumerate() {
        let Some(RankRecord { stage, utilisation, skipped, warnings, outcome }) = &load.record
        else {
            writeln!(f, "  {rank:<5} no record of this job in ranks/{rank}")?;
            continue;
        };
        let stage = stage.as_ref().map(|load| format!("{} {}", load.stage, Seconds(load.per_step)));
        let stage = stage.unwrap_or_else(|| "-".into());
        let busy = utilisation.map_or_else(|| "-".into(), percent);
        let ended = outcome.map_or("not yet", RunOutcome::name);
        writeln!(f, "  {rank:<5} {stage:<31} {busy:>12} {skipped:>9} {warnings:>10}   {ended}")?;
    }
    Ok(())
}

fn stages(f: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    if report.stages.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nstage             workers    per step      busy   starved   blocked")?;
    for StageLoad { stage, workers, per_step, busy, starved, blocked } in &report.stages {
        writeln!(
            f,
            "  {stage:<15} {workers:>7} {:>11} {:>9} {:>9} {:>9}",
            Seconds(*per_step).to_string(),
            percent(*busy),
            percent(*starved),
            percent(*blocked)
        )?;
    }
    match report.efficiency {
        Some(share) => writeln!(f, "  efficiency (slowest stage / step): {}", percent(share)),
        None => Ok(()),
    }
}

fn queues(f: &mut Formatter<'_>, queues: &[QueueReport]) -> fmt::Result {
    if queues.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nqueue                mean        peak       limit")?;
    for QueueReport { queue, mean, peak, limit } in queues {
        let [mean, peak, limit] = [mean, peak, limit].map(ToString::to_string);
        writeln!(f, "  {queue:<12} {mean:>11} {peak:>11} {limit:>11}")?;
    }
    Ok(())
}

fn devices(f: &mut Formatter<'_>, devices: &[DeviceReport]) -> fmt::Result {
    if devices.is_empty() {
        return writeln!(f, "\ndevices   not measured");
    }
    writeln!(
        f,
        "\ndevice            used for    busy (mean, std)   memory (mean, std; peak of total)"
    )?;
    for device in devices {
        let role = device.role.name();
        let none = || "not measured".to_string();
        let busy = device.utilisation.map_or_else(none, |figures| {
            format!("{}, {}", percent(figures.mean), percent(figures.std))
        });
        let memory = device.memory.map_or_else(none, |figures| {
            let [mean, std, peak] =
                [figures.mean, figures.std, figures.max].map(|bytes| Bytes(bytes as u64));
            let total = device.memory_total.map(|total| format!(" of {total}")).unwrap_or_default();
            format!("{mean}, {std}; {peak}{total}")
        });
        let more = optional_figures(device);
        writeln!(f, "  {:<15} {role:<11} {busy:<18} {memory}{more}", device.device)?;
    }
    Ok(())
}

/// Figures that only some devices report.
fn optional_figures(device: &DeviceReport) -> String {
    let activity = device.activity.map(|share| format!("; {} active", percent(share.mean)));
    let power = device.power.map(|watts| format!("; {:.0} W", watts.mean));
    let heat = device.temperature.map(|degrees| format!("; up to {:.0} C", degrees.max));
    [activity, power, heat].into_iter().flatten().collect()
}

fn adaptation(f: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let adaptation = &report.adaptation;
    if adaptation.kept + adaptation.reverted > 0 {
        let (kept, reverted) = (adaptation.kept, adaptation.reverted);
        writeln!(f, "\nadapted   {} kept, {reverted} reverted", count_of(kept, "change"))?;
        for decision in adaptation.decisions.iter().take(SHOWN) {
            writeln!(f, "  {}", decided(decision))?;
        }
        more(f, adaptation.kept + adaptation.reverted)?;
    }
    if adaptation.flags.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nsettings  {}", adaptation.flags.join(" "))
}

fn decided(decision: &Decision) -> String {
    let outcome = match decision.outcome {
        DecisionOutcome::Trying => "being tried",
        DecisionOutcome::Kept => "kept",
        DecisionOutcome::Reverted => "reverted",
    };
    let stage = decision.stage.as_ref().map(|s| format!(" of `{s}`")).unwrap_or_default();
    let after = decision.after.map_or("not measured".into(), |after| format!("{after:.1}"));
    let Decision { what, from, to, before, .. } = decision;
    format!("{what}{stage} {from} -> {to}: {before:.1} -> {after} items/s, {outcome}")
}

fn skips(f: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let skips = &report.skips;
    if skips.count == 0 {
        return Ok(());
    }
    let stages = skips.by_stage.iter().map(|(stage, count)| format!("{stage} {count}"));
    let stages = stages.collect::<Vec<_>>().join(", ");
    writeln!(f, "\nskipped   {} ({stages})", count_of(skips.count, "item"))?;
    for row in &skips.rows {
        let times = if row.times == 1 { String::new() } else { format!(" {} times", row.times) };
        writeln!(f, "  {} at {}{times}: {}", row.name(), row.stage, row.why)?;
    }
    match skips.others {
        0 => Ok(()),
        others => writeln!(f, "  and {} of other rows", count_of(others, "skip")),
    }
}

fn warnings(f: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    if report.warning_count == 0 {
        return Ok(());
    }
    writeln!(f, "\nwarnings  {}", report.warning_count)?;
    // The same sentence with other figures is shown once.
    let mut kinds: Vec<(&Warning, u64)> = Vec::new();
    for warning in &report.warnings {
        match kinds.iter_mut().find(|(first, _)| first.is_like(warning)) {
            Some((_, count)) => *count += 1,
            None => kinds.push((warning, 1)),
        }
    }
    for (warning, count) in kinds.iter().take(SHOWN) {
        let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
        writeln!(f, "  {}{times}: {}", warning.code, warning.text)?;
    }
    let shown: u64 = kinds.iter().take(SHOWN).map(|(_, count)| count).sum();
    match report.warning_count.saturating_sub(shown) {
        0 => Ok(()),
        rest => writeln!(f, "  and {rest} more"),
    }
}

fn more(f: &mut Formatter<'_>, count: u64) -> fmt::Result {
    match count.saturating_sub(SHOWN as u64) {
        0 => Ok(()),
        rest => writeln!(f, "  and {rest} more"),
    }
}

fn count_of(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// A record without loss is not mentioned.
fn record(f: &mut Formatter<'_>, record: &RecordReport) -> fmt::Result {
    let health = &record.health;
    let mut said = Vec::new();
    if health.total_lost() > 0 {
        let lost = health.lost.iter().map(|(kind, count)| format!("{kind} {count}"));
        let lost = lost.collect::<Vec<_>>().join(", ");
        said.push(format!(
            "{} dropped because the queue was full ({lost})",
            count_of(health.total_lost(), "event")
        ));
    }
    if health.write_errors > 0 {
        let first = health.first_error.as_deref().unwrap_or("no reason given");
        let writes = count_of(health.write_errors, "write");
        said.push(format!("{writes} failed, first: {first}"));
    }
    if health.late_losses > 0 {
        said.push(format!(
            "{} without losses: they arrived too late",
            count_of(health.late_losses, "step")
        ));
    }
    if let Some(notes) = &record.notes {
        if let Some(bytes) = notes.torn {
            said.push(format!("the last line was truncated after {bytes} bytes"));
        }
        if notes.broken > 0 {
            let first = notes.first_broken.unwrap_or_default();
            said.push(format!("{}, first: line {first}", count_of(notes.broken, "damaged line")));
        }
        let unknown: u64 = notes.unknown.values().sum();
        if unknown > 0 {
            said.push(format!("{} of a newer version ignored", count_of(unknown, "event")));
        }
    }
    if said.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nrecord    incomplete:")?;
    said.iter().try_for_each(|line| writeln!(f, "  {line}"))
}
