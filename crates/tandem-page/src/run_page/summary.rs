//! Corpus, bottleneck, grade and key figures of a run.

use crate::page::{Block, Fact, Section, Tone, Verdict};
use crate::prose::{Piece, Prose};
use crate::run_page::verdict::{as_sentence, grade_words, verdict_words};
use crate::view::RunView;
use tandem_telemetry::Report;
use tandem_telemetry::advice::Advice;
use tandem_telemetry::event::{CacheState, Data, RunOutcome};
use tandem_telemetry::grade::Grade;
use tandem_telemetry::verdict::Cause;
use tandem_units::Lang;

pub(super) fn section(view: &RunView, report: &Report, lang: Lang) -> Section {
    let tone = match report.verdict.cause {
        Cause::Model | Cause::Balanced => Tone::Good,
        Cause::Feed | Cause::Variation | Cause::Communication | Cause::Rank => Tone::Bad,
        Cause::Unknown => Tone::Fair,
        Cause::NoSteps => Tone::Neutral,
    };
    let grade = match report.grading.grade {
        Some(Grade::Excellent | Grade::Good) => Tone::Good,
        Some(Grade::Minimum) => Tone::Fair,
        Some(Grade::Below) => Tone::Bad,
        None => Tone::Neutral,
    };
    let section = Section::new("summary", lang.say("Summary", "خلاصه"))
        .with_some(report.data.as_ref().map(|found| Block::Text(data(found, lang))));
    let advice = report.advice.iter().map(|one| Block::Text(advice_words(one, lang)));
    let crowd = report.crowd.as_ref().map(|crowd| as_sentence(crowd.words(lang)));
    let section = section
        .with_some(crowd.map(|crowd| Verdict::new(Tone::Fair, crowd)))
        .with(Verdict::new(tone, verdict_words(report, lang)));
    advice
        .fold(section, Section::with)
        .with(facts(view, report, lang))
        .with(Verdict::new(grade, grade_words(report, lang)))
}

/// What to type, and what it should save.
fn advice_words(advice: &Advice, lang: Lang) -> Prose {
    let words = advice.words(lang);
    Prose::of(&lang.say(format!("Advice: {words}."), format!("پیشنهاد: {words}")))
}

/// What the run found in its corpus.
fn data(data: &Data, lang: Lang) -> Prose {
    let [usable, rejected, eval, rebuilt, workers] =
        [data.usable, data.rejected, data.eval, data.rebuilt, data.workers.into()]
            .map(|count| lang.count(count));
    let seconds = lang.seconds(data.seconds);
    let cache = match (data.cache, lang) {
        (CacheState::Read, Lang::En) => "cache read".to_string(),
        (CacheState::Read, Lang::Fa) => "کش خوانده شد".to_string(),
        (CacheState::Updated, Lang::En) => format!("cache updated, {rebuilt} rebuilt"),
        (CacheState::Updated, Lang::Fa) => format!("کش به‌روز شد، {rebuilt} مورد بازسازی شد"),
        (CacheState::Built, Lang::En) => format!("cache built, {rebuilt} new"),
        (CacheState::Built, Lang::Fa) => format!("کش ساخته شد، {rebuilt} مورد تازه"),
    };
    let rows = lang.say(
        format!("Data: {usable} usable rows, {eval} held out, {rejected} rejected"),
        format!("داده: {usable} ردیف قابل‌استفاده، {eval} ردیف کنارگذاشته برای اعتبارسنجی، {rejected} ردیف ردشده"),
    );
    let mut pieces = vec![Piece::Words(rows)];
    if let Some(path) = &data.list {
        pieces.push(Piece::Words(lang.say(" (list: ", " (فهرست: ").into()));
        pieces.push(Piece::Code(path.clone()));
        pieces.push(Piece::Words(")".into()));
    }
    pieces.push(Piece::Words(match lang {
        Lang::En => format!("; {cache} in {seconds}, workers: {workers}."),
        Lang::Fa => format!("؛ {cache} در {seconds}، تعداد کارگر: {workers}."),
    }));
    Prose(pieces)
}

fn facts(view: &RunView, report: &Report, lang: Lang) -> Vec<Fact> {
    let mut facts = vec![ending(report, lang)];
    if let Some(steps) = &report.steps {
        let times = steps.steady.as_ref().unwrap_or(&steps.all);
        let of = total_steps(report, view);
        let last = match of {
            Some(of) => lang.say(
                format!("{} of {}", lang.count(steps.last), lang.count(of)),
                format!("{} از {}", lang.count(steps.last), lang.count(of)),
            ),
            None => lang.count(steps.last),
        };
        facts.push(Fact::new(lang.say("last step", "آخرین گام"), last));
        if let Some(left) = of.and_then(|of| time_left(report, of, times.mean)) {
            facts.push(Fact::new(lang.say("time left", "زمان باقی‌مانده"), lang.seconds(left)));
        }
        facts.push(Fact::new(
            lang.say("median step time", "میانهٔ زمان گام"),
            lang.seconds(times.p50),
        ));
        let pace = lang.number(steps.steps_per_second, 2);
        facts.push(Fact::new(lang.say("steps/s", "گام در ثانیه"), pace));
        let samples = lang.number(steps.samples_per_second, 1);
        facts.push(Fact::new(lang.say("samples/s", "نمونه در ثانیه"), samples));
        let waits = Fact::new(lang.say("model waits", "انتظار مدل"), lang.percent(steps.stall));
        facts.push(waits.toned(if steps.stall > 0.02 { Tone::Bad } else { Tone::Good }));
    }
    if let Some(share) = report.efficiency {
        facts.push(Fact::new(lang.say("efficiency", "کارایی خط لوله"), lang.percent(share)));
    }
    let total = view.losses.iter().find(|(name, _)| name == "total");
    if let Some(extent) = total.and_then(|(_, series)| series.extent) {
        facts.push(Fact::new(lang.say("last loss", "آخرین زیان"), lang.short(extent.last)));
    }
    let lasted = report.run.lasted.seconds().0;
    facts.push(Fact::new(lang.say("duration", "مدت اجرا"), lang.seconds(lasted)));
    facts
}

/// The steps that the run was started for; none where epochs or a hand end it.
fn total_steps(report: &Report, view: &RunView) -> Option<u64> {
    let settings = &view.summary.header.as_ref()?.settings;
    let total = settings.pointer("/config/train/max_steps")?.as_u64()?;
    (report.steps.as_ref()?.last <= total).then_some(total)
}

/// Seconds until the last step, of a run that has not ended.
fn time_left(report: &Report, total: u64, step: f64) -> Option<f64> {
    let last = report.steps.as_ref()?.last;
    (report.run.outcome.is_none() && last < total).then(|| (total - last) as f64 * step)
}

/// How the run ended, or that it has not.
fn ending(report: &Report, lang: Lang) -> Fact {
    let (tone, word) = match report.run.outcome {
        Some(RunOutcome::Done) => (Tone::Good, lang.say("done", "پایان یافته")),
        Some(RunOutcome::Interrupted) => (Tone::Fair, lang.say("interrupted", "متوقف‌شده")),
        Some(RunOutcome::Failed) => (Tone::Bad, lang.say("failed", "ناموفق")),
        None => (Tone::Neutral, lang.say("not finished", "پایان‌نیافته")),
    };
    Fact::new(lang.say("state", "وضعیت"), word).toned(tone)
}
