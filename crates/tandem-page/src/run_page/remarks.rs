//! Other events of a run, and its settings.

use crate::page::{Block, Section, Table, Tone, Verdict};
use crate::prose::{Piece, Prose};
use crate::view::RunView;
use tandem_telemetry::Report;
use tandem_telemetry::event::{DecisionOutcome, StartReason};
use tandem_units::Lang;

/// How many examples of a kind are shown.
const SHOWN: usize = 10;

/// Start, checkpoints, changes of the controller, skipped rows, warnings, damage of the record.
pub(super) fn section(report: &Report, lang: Lang) -> Section {
    let section = Section::new("remarks", lang.say("Other events", "رویدادهای دیگر"));
    let failure = report
        .run
        .why
        .clone()
        .map(|why| Block::Verdict(Verdict { tone: Tone::Bad, sentence: Prose::foreign(why) }));
    section
        .with_some(failure)
        .with_some(start(report, lang).map(Block::Text))
        .with_some(checkpoints(report, lang).map(Block::Text))
        .with_some(warnings(report, lang))
        .with_some(decisions(report, lang))
        .with_some(skips(report, lang))
        .with_some(empty_steps(report, lang).map(Block::Text))
        .with_some(damage(report, lang).map(|damage| Verdict::new(Tone::Fair, damage)))
}

fn start(report: &Report, lang: Lang) -> Option<Prose> {
    let start = report.start.as_ref()?;
    let why = match start.why {
        StartReason::EnoughReady => {
            lang.say("enough batches were ready", "به‌اندازهٔ کافی دستهٔ آماده وجود داشت")
        }
        StartReason::DelayOver => lang.say("the time limit was reached", "مهلت انتظار تمام شد"),
        StartReason::EndOfData => lang.say("the data ended", "داده‌ها تمام شد"),
        StartReason::Stopped => lang.say("the run was stopped", "اجرا متوقف شد"),
    };
    let [waited, limit] = [start.waited, start.limit].map(|time| lang.seconds(time.seconds().0));
    let ready = lang.count(start.ready.into());
    Some(match lang {
        Lang::En => format!("The model waited {waited} of at most {limit} before its first step: {why} ({ready} ready).").into(),
        Lang::Fa => format!("مدل پیش از نخستین گام {waited} (از حداکثر {limit}) منتظر ماند: {why} ({ready} دسته).").into(),
    })
}

fn checkpoints(report: &Report, lang: Lang) -> Option<Prose> {
    let step = lang.count(report.last_checkpoint?);
    let count = lang.count(report.checkpoints);
    Some(match lang {
        Lang::En if report.checkpoints == 1 => {
            format!("1 checkpoint was written, after step {step}.").into()
        }
        Lang::En => format!("{count} checkpoints were written, the last after step {step}.").into(),
        Lang::Fa => format!("{count} چک‌پوینت نوشته شد؛ آخرین آن‌ها پس از گام {step}.").into(),
    })
}

fn warnings(report: &Report, lang: Lang) -> Option<Table> {
    let mut table = Table::new([lang.say("warning", "هشدار"), lang.say("text", "متن")]).of_words();
    for warning in report.warnings.iter().take(SHOWN) {
        table = table.row_of(vec![Prose::code(&*warning.code), Prose::foreign(&warning.text)]);
    }
    more(&mut table, report.warning_count, lang);
    table.some()
}

fn decisions(report: &Report, lang: Lang) -> Option<Table> {
    let adaptation = &report.adaptation;
    let mut table = Table::new([
        lang.say("change", "تغییر"),
        lang.say("from", "از"),
        lang.say("to", "به"),
        lang.say("items/s before", "مورد در ثانیه، پیش"),
        lang.say("after", "پس"),
        lang.say("outcome", "نتیجه"),
    ]);
    for decision in adaptation.decisions.iter().take(SHOWN) {
        let outcome = match decision.outcome {
            DecisionOutcome::Trying => lang.say("being tried", "در حال آزمایش"),
            DecisionOutcome::Kept => lang.say("kept", "نگه داشته شد"),
            DecisionOutcome::Reverted => lang.say("reverted", "برگردانده شد"),
        };
        let stage = decision.stage.as_ref().map(|stage| format!(" ({stage})")).unwrap_or_default();
        let after = decision.after.map_or_else(|| "-".into(), |after| lang.number(after, 1));
        table = table.row_of(vec![
            Prose::code(format!("{}{stage}", decision.what)),
            lang.count(decision.from).into(),
            lang.count(decision.to).into(),
            lang.number(decision.before, 1).into(),
            after.into(),
            outcome.into(),
        ]);
    }
    more(&mut table, adaptation.kept + adaptation.reverted, lang);
    table.some()
}

fn skips(report: &Report, lang: Lang) -> Option<Table> {
    let mut table = Table::new([
        lang.say("skipped row", "ردیف نادیده‌گرفته"),
        lang.say("stage", "مرحله"),
        lang.say("times", "دفعات"),
        lang.say("reason", "دلیل"),
    ])
    .of_words();
    for row in &report.skips.rows {
        let (name, stage) = (Prose::foreign(row.name()), Prose::code(&*row.stage));
        let times = lang.count(row.times).into();
        table = table.row_of(vec![name, stage, times, Prose::foreign(&row.why)]);
    }
    let listed = table.rows.len() as u64;
    more(&mut table, listed + report.skips.others, lang);
    table.some()
}

fn empty_steps(report: &Report, lang: Lang) -> Option<Prose> {
    let count = lang.count(Some(report.empty_steps).filter(|count| *count > 0)?);
    Some(match lang {
        Lang::En => format!(
            "Optimizer steps without a usable batch: {count}. They did not change the weights."
        )
        .into(),
        Lang::Fa => format!(
            "گام‌های بهینه‌ساز بدون دستهٔ قابل‌استفاده: {count}. این گام‌ها وزن‌ها را تغییر ندادند."
        )
        .into(),
    })
}

/// A last row that says how many are not shown.
fn more(table: &mut Table, count: u64, lang: Lang) {
    let rest = count.saturating_sub(table.rows.len() as u64);
    if rest > 0 && !table.rows.is_empty() {
        let rest = lang.count(rest);
        let words = lang.say(format!("and {rest} more"), format!("و {rest} مورد دیگر"));
        let mut row = vec![Prose::from(words)];
        row.resize(table.header.len(), Prose::default());
        table.rows.push(row);
    }
}

/// What the record lost; a complete record is not mentioned.
fn damage(report: &Report, lang: Lang) -> Option<String> {
    let (health, notes) = (&report.record.health, report.record.notes.clone().unwrap_or_default());
    let mut said = Vec::new();
    let mut say = |count: u64, english: &str, persian: &str| {
        if count > 0 {
            said.push(format!("{} {}", lang.count(count), lang.say(english, persian)));
        }
    };
    say(
        health.total_lost(),
        "events dropped because the queue was full",
        "رویداد به‌علت پر بودن صف حذف شد",
    );
    say(health.write_errors, "writes failed", "نوشتن ناموفق");
    say(health.late_losses, "losses arrived too late", "زیان دیر رسید");
    say(notes.broken, "damaged lines", "خط خراب");
    say(notes.torn.unwrap_or(0), "bytes of a truncated last line", "بایت از خط آخرِ ناتمام");
    say(notes.unknown.values().sum(), "events of a newer version", "رویداد از نسخهٔ تازه‌تر برنامه");
    let said = (!said.is_empty()).then(|| said.join(lang.say(", ", "، ")))?;
    Some(lang.say(
        format!("The record is incomplete: {said}."),
        format!("پروندهٔ اجرا کامل نیست: {said}."),
    ))
}

/// The machine and the settings, as far as they are known.
pub(super) fn settings(view: &RunView, report: &Report, lang: Lang) -> Section {
    let mut section = Section::new("settings", lang.say("Machine and settings", "ماشین و تنظیمات"));
    if let Some(header) = &view.summary.header {
        let host = &header.host;
        let mut pieces = vec![Piece::Code(format!("{} {}", host.os, host.arch))];
        if let Some(threads) = host.threads {
            let words = lang.say("threads", "رشتهٔ پردازشی");
            pieces.push(Piece::Words(format!(" · {} {words}", lang.count(threads.into()))));
        }
        if let Some(memory) = host.memory {
            pieces.push(Piece::Words(format!(" · {}", lang.bytes(memory))));
        }
        if let Some(cpu) = &host.cpu {
            pieces.push(Piece::Words(" · ".into()));
            pieces.push(Piece::Code(cpu.clone()));
        }
        let title = lang.say("All settings", "همهٔ تنظیمات");
        let table = leaves(&header.settings, lang).some();
        let fold = table.map(|table| Block::Fold(title.into(), table));
        section = section.with(Prose(pieces)).with_some(fold);
    }
    if !report.adaptation.flags.is_empty() {
        let words = lang.say("Final settings of this run:", "تنظیمات پایانی این اجرا:");
        section = section
            .with(Prose::from(words))
            .with(Block::Commands(vec![report.adaptation.flags.join(" ")]));
    }
    section
}

/// Every setting with its whole name, at most this many.
const SETTINGS: usize = 200;

fn leaves(settings: &serde_json::Value, lang: Lang) -> Table {
    let header = [lang.say("setting", "تنظیم"), lang.say("value", "مقدار")];
    let mut table = Table::new(header).of_words();
    let mut open = vec![(String::new(), settings)];
    while let Some((name, value)) = open.pop() {
        if table.rows.len() >= SETTINGS {
            break;
        }
        match value {
            serde_json::Value::Object(fields) => {
                open.extend(fields.iter().rev().map(|(key, value)| {
                    (if name.is_empty() { key.clone() } else { format!("{name}.{key}") }, value)
                }))
            }
            serde_json::Value::Null => {}
            serde_json::Value::String(text) => {
                table = table.row_of(vec![Prose::code(name), Prose::code(text)]);
            }
            other => table = table.row_of(vec![Prose::code(name), Prose::code(other.to_string())]),
        }
    }
    table
}
