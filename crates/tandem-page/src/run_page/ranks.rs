//! The ranks of a data-parallel run, side by side.

use crate::page::{Bar, Section, Table, Tone, Verdict};
use crate::prose::Prose;
use tandem_telemetry::Report;
use tandem_telemetry::ranks::{RankLoad, RankRecord, RankReport};
use tandem_telemetry::verdict::Cause;
use tandem_units::Lang;

/// Time of each rank, the sum of gradients, and who is the slowest. Empty for a run of one process.
pub(super) fn section(report: &Report, lang: Lang) -> Section {
    let section = Section::new("ranks", lang.say("Ranks", "پردازه‌ها (rank)"));
    let Some(RankReport { ranks, reduce, uneven }) = &report.ranks else { return section };
    let mut table = Table::new([
        lang.say("rank", "پردازه"),
        lang.say("host", "میزبان"),
        lang.say("per step", "در هر گام"),
        lang.say("without data", "بدون داده"),
        lang.say("sum of gradients", "جمع گرادیان‌ها"),
        lang.say("slowest in", "کندترین در"),
    ]);
    let with_records = ranks.iter().any(|load| load.record.is_some());
    if with_records {
        table.header.extend([
            lang.say("slowest stage", "کندترین مرحله").to_string(),
            lang.say("device busy", "کار دستگاه").to_string(),
            lang.say("skipped", "کنارگذاشته").to_string(),
            lang.say("warnings", "هشدارها").to_string(),
        ]);
    }
    for (rank, load) in ranks.iter().enumerate() {
        let mut row = vec![
            lang.count(rank as u64).into(),
            Prose::code(&*load.host),
            lang.seconds(load.per_step()).into(),
            lang.seconds(load.starved).into(),
            lang.seconds(load.reduce).into(),
            lang.percent(load.slowest_in).into(),
        ];
        if with_records {
            row.extend(record(load.record.as_ref(), lang));
        }
        table.rows.push(row);
    }
    section
        .with(costs(*reduce, *uneven, report.verdict.cause, lang))
        .with(bars(ranks, report.verdict.cause, lang))
        .with(table)
}

/// What the record of a rank adds; dashes where it is missing.
fn record(record: Option<&RankRecord>, lang: Lang) -> [Prose; 4] {
    let Some(RankRecord { stage, utilisation, skipped, warnings, .. }) = record else {
        return [(); 4].map(|()| "–".to_string().into());
    };
    let stage =
        stage.as_ref().map(|load| format!("{} {}", load.stage, lang.seconds(load.per_step)));
    [
        stage.unwrap_or_else(|| "–".into()).into(),
        utilisation.map_or_else(|| "–".into(), |share| lang.percent(share)).into(),
        lang.count(*skipped).into(),
        lang.count(*warnings).into(),
    ]
}

/// What several ranks lose against as many single ones.
fn costs(reduce: f64, uneven: f64, cause: Cause, lang: Lang) -> Verdict {
    let (reduce, uneven) = (lang.percent(reduce), lang.percent(uneven));
    let sentence = lang.say(
        format!(
            "Gradients are summed {reduce} of the time; ranks wait {uneven} of it for the slowest \
             rank of a step."
        ),
        format!(
            "جمع گرادیان‌ها {reduce} از زمان را می‌گیرد و پردازه‌ها {uneven} از زمان را منتظر کندترین پردازهٔ هر گام می‌مانند."
        ),
    );
    let tone = match cause {
        Cause::Communication | Cause::Rank => Tone::Bad,
        _ => Tone::Good,
    };
    Verdict::new(tone, sentence)
}

fn bars(ranks: &[RankLoad], cause: Cause, lang: Lang) -> Vec<Bar> {
    let slowest = ranks.iter().map(RankLoad::per_step).fold(0.0, f64::max);
    let bar = |(rank, load): (usize, &RankLoad)| {
        let label = format!("{} · `{}`", lang.count(rank as u64), load.host);
        let straggles = cause == Cause::Rank && load.per_step() >= slowest;
        let tone = if straggles { Tone::Bad } else { Tone::Neutral };
        Bar::new(label, load.per_step(), lang.seconds(load.per_step())).toned(tone)
    };
    ranks.iter().enumerate().map(bar).collect()
}
