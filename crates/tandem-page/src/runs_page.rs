//! The page of several runs: two compared, or many by batch size.
//!
//! In: answers of `tandem-insight`. Out: [`Page`]. Decides nothing itself. Next: [`crate::render`].

use crate::page::{Bar, Block, Fact, Page, Section, Table, Tone, Verdict};
use crate::prose::Prose;
use tandem_insight::compare::{Comparison, Judgement, Measure, Row};
use tandem_insight::scaling::Scaling;
use tandem_units::Bytes;
use tandem_units::Lang;

/// Two runs side by side.
pub fn compare_page(found: &Comparison, lang: Lang) -> Page {
    let mut page = Page::new(lang, lang.say("Two runs compared", "مقایسهٔ دو اجرا"));
    let (a, b) = (found.a.run.display(), found.b.run.display());
    page.subtitle = Prose::of(&format!("A: `{a}` · B: `{b}`"));
    let persian = match found.verdict {
        Judgement::Better => "اجرای B بهتر است.",
        Judgement::Worse => "اجرای B بدتر است.",
        Judgement::NoDifference => "تفاوتی بیش از نویز نیست.",
        Judgement::Different => "دو اجرا متفاوت‌اند، ولی نه بهتر و نه بدتر.",
        Judgement::NotComparable => "این دو اجرا را نمی‌توان با هم مقایسه کرد.",
    };
    let tone = tone(found.verdict);
    let sentence = lang.say(found.sentence.as_str(), persian);
    let mut summary =
        Section::new("summary", lang.say("Summary", "خلاصه")).with(Verdict::new(tone, sentence));
    if lang == Lang::En {
        for note in &found.notes {
            summary = summary.with(Block::Text(Prose::of(note)));
        }
    }
    page.add(summary);
    let mut table = Table::new([
        lang.say("measure", "سنجه"),
        "A",
        "B",
        "B / A",
        lang.say("interval", "بازه"),
        lang.say("result", "نتیجه"),
    ]);
    for row in &found.rows {
        let ratio = row.ratio.map_or("-".into(), |ratio| lang.number(ratio, 3));
        let interval = row.interval_in_words().map_or("-".into(), |words| lang.digits(&words));
        let value = |value| shown(row.measure, value, lang);
        let name = measure_name(row, lang);
        table = table.row([
            name,
            value(row.a),
            value(row.b),
            ratio,
            interval,
            judgement(row.judgement, lang).into(),
        ]);
    }
    page.add(Section::new("measures", lang.say("Measures", "سنجه‌ها")).with(table));
    page
}

/// Throughput and memory by batch size.
pub fn scaling_page(found: &Scaling, lang: Lang) -> Page {
    let mut page = Page::new(lang, lang.say("Batch sizes", "اندازهٔ دسته"));
    let knee = lang.count(u64::from(found.knee));
    let persian = format!("از دستهٔ {knee}تایی به بعد، دستهٔ بزرگ‌تر دیگر سودی ندارد.");
    let sentence = lang.say(found.sentence.as_str(), persian.as_str());
    page.add(
        Section::new("summary", lang.say("Summary", "خلاصه"))
            .with(Verdict::new(Tone::Good, sentence))
            .with(Block::Facts(vec![Fact::new(lang.say("knee", "نقطهٔ اشباع"), knee.clone())])),
    );
    let mut table = Table::new([
        lang.say("batch", "دسته"),
        lang.say("steps", "گام‌ها"),
        lang.say("step", "گام"),
        lang.say("samples/s", "نمونه در ثانیه"),
        lang.say("efficiency", "بازده"),
        lang.say("memory", "حافظه"),
    ]);
    let mut bars = Vec::new();
    for point in &found.points {
        let size = lang.count(u64::from(point.batch_size));
        let rate = lang.number(point.samples_per_second, 1);
        let memory = point.memory.map_or("-".into(), |memory| lang.bytes(Bytes(memory as u64)));
        let tone = if point.batch_size == found.knee { Tone::Good } else { Tone::Neutral };
        bars.push(Bar::new(size.as_str(), point.samples_per_second, rate.clone()).toned(tone));
        table = table.row([
            size,
            lang.count(point.steps as u64),
            lang.seconds(point.step_time),
            rate,
            lang.percent(point.efficiency),
            memory,
        ]);
    }
    let title = lang.say("Utterances per second", "جمله در ثانیه");
    page.add(Section::new("sizes", title).with(Block::Bars(bars)).with(table));
    page
}

fn tone(judgement: Judgement) -> Tone {
    match judgement {
        Judgement::Better | Judgement::NoDifference => Tone::Good,
        Judgement::Worse => Tone::Bad,
        Judgement::Different => Tone::Fair,
        Judgement::NotComparable => Tone::Neutral,
    }
}

fn judgement(judgement: Judgement, lang: Lang) -> &'static str {
    match judgement {
        Judgement::Better => lang.say("better", "بهتر"),
        Judgement::Worse => lang.say("worse", "بدتر"),
        Judgement::Different => lang.say("different", "متفاوت"),
        Judgement::NoDifference => lang.say("same", "یکسان"),
        Judgement::NotComparable => lang.say("not comparable", "مقایسه‌ناپذیر"),
    }
}

/// Devices have names of their own: those stay as they are.
fn measure_name(row: &Row, lang: Lang) -> String {
    let persian = match row.measure {
        Measure::MeanStep => "میانگین گام",
        Measure::MedianStep => "میانهٔ گام",
        Measure::SameShapes => "میانگین گام با شکل‌های یکسان",
        Measure::SameShapesMedian => "میانهٔ گام با شکل‌های یکسان",
        Measure::Throughput => "نمونه در ثانیه",
        Measure::Stability => "انحراف معیار به میانگین",
        Measure::Reduce => "جمع گرادیان‌ها در هر گام",
        _ => return row.name.clone(),
    };
    lang.say(row.name.clone(), persian.to_owned())
}

fn shown(measure: Measure, value: f64, lang: Lang) -> String {
    match measure {
        Measure::Throughput => lang.number(value, 1),
        Measure::Stability | Measure::Utilisation => lang.percent(value),
        Measure::Memory => lang.bytes(Bytes(value as u64)),
        _ => lang.seconds(value),
    }
}
