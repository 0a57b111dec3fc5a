//! Prints a profile as tables and text.

use crate::counted::{count, parameters};
use crate::failure::Result;
use crate::printer::Printer;
use owo_colors::OwoColorize;
use tandem_insight::measured::DeviceFigures;
use tandem_insight::profile::{ProfileAnswer, Subject};
use tandem_telemetry::event::DeviceRole;
use tandem_units::{Bytes, Lang, Seconds, percent, signed_percent};

pub fn print(answer: &ProfileAnswer, out: &mut Printer) -> Result<()> {
    out.line(&subject(&answer.subject))?;
    out.line("")?;
    runs(answer, out)?;
    phases(answer, out)?;
    devices(&answer.devices, out)?;
    batch_sizes(answer, out)?;
    rules(answer, out)?;
    conclusions(answer, out)
}

fn subject(s: &Subject) -> String {
    let place = match s.data_device == s.model_device {
        true => s.model_device.clone(),
        false => format!("{} (data) and {} (model)", s.data_device, s.model_device),
    };
    let slowed = match s.slowed.is_empty() {
        true => String::new(),
        false => format!("; slowed on purpose: {}", s.slowed.join(", ")),
    };
    format!(
        "{:<9} {}, {} ({}), batch {}, {} loading, depth {}, on {place}{slowed}",
        "profile".bold(),
        s.corpus,
        s.model_size,
        parameters(s.parameters as usize),
        s.batch_size,
        count(s.setting.workers, "worker"),
        s.setting.depth,
    )
}

fn runs(answer: &ProfileAnswer, out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&[
        "run",
        "step",
        "std",
        "p95",
        "variation",
        "raw",
        "samples/s",
        "waits",
        "against as is",
    ]);
    for run in &answer.runs {
        table.add_row([
            run.run.name().to_string(),
            Seconds(run.step.mean).to_string(),
            Seconds(run.step.std).to_string(),
            Seconds(run.step.p95).to_string(),
            run.variation.as_ref().map_or("not judged".into(), |found| percent(found.by_shape)),
            percent(run.step.variation),
            format!("{:.1}", run.samples_per_second),
            percent(run.stall),
            signed_percent(run.ratio - 1.0),
        ]);
    }
    out.line(&table.trim_fmt())?;
    out.line("")
}

fn phases(answer: &ProfileAnswer, out: &mut Printer) -> Result<()> {
    let mut table =
        Printer::table(&["phase", "workers", "mean", "std", "p95", "work per step", "share"]);
    for phase in &answer.phases {
        let gaps = phase.phase == "gaps";
        table.add_row([
            phase.phase.clone(),
            if gaps { String::new() } else { phase.workers.to_string() },
            Seconds(phase.figures.mean).to_string(),
            Seconds(phase.figures.std).to_string(),
            Seconds(phase.figures.p95).to_string(),
            if gaps { String::new() } else { percent(phase.work) },
            percent(phase.share),
        ]);
    }
    out.line(&table.trim_fmt())?;
    out.line(
        "work per step: what the phase needs of every step, its workers together, where other work disturbed it least",
    )?;
    out.line("share: part of the step time of the model's thread; overlapped work has none")?;
    out.line("")
}

fn devices(devices: &[DeviceFigures], out: &mut Printer) -> Result<()> {
    if devices.is_empty() {
        return Ok(());
    }
    let mut table = Printer::table(&[
        "device",
        "used for",
        "busy (mean, std)",
        "memory (mean, std; peak of total)",
    ]);
    for device in devices {
        let role = match device.role {
            DeviceRole::Data => "data",
            DeviceRole::Model => "model",
            DeviceRole::Host => "host",
        };
        let none = || "not measured".to_string();
        let memory = device.memory.map_or_else(none, |memory| {
            let [mean, std, peak] =
                [memory.mean, memory.std, memory.max].map(|bytes| Bytes(bytes as u64));
            let total = device.memory_total.map(|total| format!(" of {total}")).unwrap_or_default();
            format!("{mean}, {std}; {peak}{total}")
        });
        let busy = device
            .utilisation
            .map_or_else(none, |busy| format!("{}, {}", percent(busy.mean), percent(busy.std)));
        table.add_row([device.device.as_str(), role, &busy, &memory]);
    }
    out.line(&table.trim_fmt())?;
    out.line("")
}

/// Short runs of other batch sizes.
fn batch_sizes(answer: &ProfileAnswer, out: &mut Printer) -> Result<()> {
    if answer.batch.points.is_empty() {
        return Ok(());
    }
    let mut table = Printer::table(&["batch", "steps", "step", "samples/s", "memory (peak)"]);
    for point in &answer.batch.points {
        table.add_row(point.cells());
    }
    out.line(&table.trim_fmt())?;
    out.line("")
}

fn rules(answer: &ProfileAnswer, out: &mut Printer) -> Result<()> {
    use tandem_insight::profile::RuleKind;
    let mut table = Printer::table(&["rule", "measured", "wanted", ""]);
    for rule in &answer.rules {
        let wanted = match rule.kind {
            RuleKind::AtMost => format!("at most {}", percent(rule.limit)),
            RuleKind::AtLeast => format!("at least {}", percent(rule.limit)),
        };
        let measured = rule.measured.map_or_else(|| "not measured".into(), percent);
        let status = match rule.broken {
            Some(true) => rule.means.yellow().to_string(),
            Some(false) => "ok".green().to_string(),
            None => String::new(),
        };
        table.add_row([rule.name.clone(), measured, wanted, status]);
    }
    out.line(&table.trim_fmt())?;
    out.line("")
}

fn conclusions(answer: &ProfileAnswer, out: &mut Printer) -> Result<()> {
    let verdict = &answer.verdict;
    // Other programs first: they explain the figures below.
    if let Some(crowd) = &answer.crowd {
        let words = crowd.words(Lang::En);
        out.line(&format!(
            "{:<9} {words}; profile again when it is idle",
            "machine".yellow().bold()
        ))?;
    }
    for doubt in &answer.doubts {
        out.line(&format!("{:<9} {doubt}", "doubt".yellow().bold()))?;
    }
    let word = match verdict.is_held_back() {
        false => format!("{}", "verdict".green().bold()),
        true => format!("{}", "verdict".yellow().bold()),
    };
    out.line(&format!("{word:<9}   {}", verdict.sentence))?;
    if answer.recommendations.is_empty() && answer.batch.better.is_none() {
        out.line(&format!(
            "{:<9} no change of workers, depth, cache or devices is predicted to gain 2 % or more",
            "change".bold()
        ))?;
    }
    for one in &answer.recommendations {
        let measured = match one.measured_gain {
            Some(gain) => format!(", measured {}", percent(gain)),
            None => String::new(),
        };
        out.line(&format!(
            "{:<9} {}: {}; predicted gain {} (step {}, {} to {}){measured}",
            "change".yellow().bold(),
            one.flag,
            one.why,
            percent(one.gain),
            Seconds(one.predicted.step),
            Seconds(one.predicted.low),
            Seconds(one.predicted.high),
        ))?;
    }
    if let Some(better) = &answer.batch.better {
        out.line(&format!(
            "{:<9} {}: {}; measured gain {} more utterances a second",
            "change".yellow().bold(),
            better.flag,
            better.why,
            percent(better.gain),
        ))?;
    }
    if let Some(memory) = &answer.batch.memory {
        out.line(&format!("{:<9} {}", "memory".bold(), memory.sentence))?;
    }
    for note in &answer.batch.notes {
        out.line(&format!("{:<9} {note}", "note".bold()))?;
    }
    if let Some(overhead) = &answer.overhead {
        out.line(&format!(
            "{:<9} {} events of {} each: {:.4} % of the run; the profile took {}",
            "overhead".bold(),
            overhead.events,
            Seconds(overhead.per_event),
            100.0 * overhead.share,
            Seconds(overhead.took),
        ))?;
    }
    Ok(())
}
