//! The analysis as an HTML page: its own section, then the run of the consumer.

use tandem_page::page::{Bar, Block, Fact, Page, Section, Table, Tone, Verdict};
use tandem_page::run_page::{add_sections, subtitle};
use tandem_page::{Lang, RunView};
use tandem_telemetry::rules::UNEVEN_LOADING;
use tandem_telemetry::stats::Figures;
use tandem_train::measure::analyze::Analysis;
use tandem_train::measure::feed_benchmark::LATE;

/// The page of an analysis and its run; `name` is the corpus.
pub fn page(analysis: &Analysis, view: &RunView, name: &str, lang: Lang) -> Page {
    let mut page = Page::new(lang, lang.say("Analysis of loading", "تحلیل بارگذاری داده‌ها"));
    page.subtitle = subtitle(view, name, lang);
    page.add(section(analysis, lang));
    add_sections(&mut page, view, &view.report());
    page
}

fn section(analysis: &Analysis, lang: Lang) -> Section {
    let Analysis { audio, cache, batches, .. } = analysis;
    let bars = [
        (lang.say("read a recording", "خواندن فایل صوتی"), &audio.read),
        (lang.say("decode it", "رمزگشایی"), &audio.decode),
        (lang.say("compute mel frames", "فریم‌های مل"), &audio.mel),
        (lang.say("wait for a batch", "انتظار برای هر دسته"), &batches.wait),
    ];
    let bars = bars.map(|(what, times)| Bar::new(what, times.mean, lang.seconds(times.mean)));
    let cold = Bar::new(lang.say("cold", "سرد"), cache.cold.0, lang.seconds(cache.cold.0));
    let warm = Bar::new(lang.say("warm", "گرم"), cache.warm.0, lang.seconds(cache.warm.0));
    Section::new("analysis", lang.say("Cost of data loading", "هزینهٔ بارگذاری"))
        .with(verdict(analysis, lang))
        .with(facts(analysis, lang))
        .with_some(findings(analysis, lang).some())
        .with(Block::Text(
            lang.say("Mean time, on one thread:", "میانگین زمان، روی یک رشته:").into(),
        ))
        .with(Block::Bars(bars.into()))
        .with(times(analysis, lang))
        .with(Block::Text(
            lang.say("Start with and without the cache:", "شروع با کش و بدون کش:").into(),
        ))
        .with(Block::Bars(vec![cold.toned(Tone::Fair), warm.toned(Tone::Good)]))
}

/// The sentence is translated; the findings are in English in both languages.
fn verdict(analysis: &Analysis, lang: Lang) -> Verdict {
    let tone = if analysis.findings.is_empty() { Tone::Good } else { Tone::Bad };
    Verdict::new(tone, analysis.words(lang))
}

fn facts(analysis: &Analysis, lang: Lang) -> Vec<Fact> {
    let Analysis { text, audio, cache, batches, .. } = analysis;
    let judged = |fact: Fact, bad: bool| fact.toned(if bad { Tone::Bad } else { Tone::Good });
    let idle = Fact::new(lang.say("consumer idle", "بیکاری مصرف‌کننده"), lang.percent(batches.idle));
    let late = format!(
        "{} {} {}",
        lang.count(batches.late as u64),
        lang.say("of", "از"),
        lang.count(batches.count as u64)
    );
    let after = lang.count(LATE.as_millis() as u64);
    let late_label = lang.say(
        format!("batches later than {after} ms"),
        format!("دسته‌های دیرتر از {after} میلی‌ثانیه"),
    );
    let even = Fact::new(
        lang.say("loading varies, per second of audio", "نوسان بارگذاری، بر ثانیهٔ صدا"),
        lang.percent(audio.variation),
    );
    vec![
        judged(idle, batches.idle > 0.02),
        Fact::new(late_label, late),
        Fact::new(
            lang.say("batches/s possible", "حداکثر دسته در ثانیه"),
            lang.number(batches.deliverable, 0),
        ),
        judged(even, audio.variation > UNEVEN_LOADING),
        Fact::new(
            lang.say("times real time", "برابر سرعت گفتار"),
            lang.number(audio.times_real_time, 0),
        ),
        Fact::new(lang.say("text of a row", "کار متنی هر سطر"), lang.seconds(text.per_row.0)),
        Fact::new(lang.say("cache gain", "سود کش"), format!("{}×", lang.number(cache.gain, 0))),
        Fact::new(lang.say("rows", "سطرها"), lang.count(analysis.rows as u64)),
    ]
}

fn findings(analysis: &Analysis, lang: Lang) -> Table {
    let header = [lang.say("found", "یافته"), lang.say("what to change", "چه باید کرد")];
    let table = Table::new(header).of_words();
    let rows = analysis.findings.iter();
    rows.fold(table, |table, found| table.row([found.fact.clone(), found.advice.clone()]))
}

fn times(analysis: &Analysis, lang: Lang) -> Table {
    let Analysis { audio, batches, .. } = analysis;
    let mut table = Table::new([
        lang.say("what", "چه"),
        lang.say("mean", "میانگین"),
        lang.say("std", "انحراف معیار"),
        lang.say("95th percentile", "صدک ۹۵"),
        lang.say("max", "بیشینه"),
    ]);
    let mut row = |what: &str, times: &Figures| {
        let [mean, std, p95, max] =
            [times.mean, times.std, times.p95, times.max].map(|time| lang.seconds(time));
        let cells = [what.into(), mean, std, p95, max];
        table = std::mem::take(&mut table).row(cells);
    };
    row(lang.say("read a recording", "خواندن فایل صوتی"), &audio.read);
    row(lang.say("decode it", "رمزگشایی"), &audio.decode);
    row(lang.say("compute mel frames", "فریم‌های مل"), &audio.mel);
    row(lang.say("wait for a batch", "انتظار برای هر دسته"), &batches.wait);
    table
}
