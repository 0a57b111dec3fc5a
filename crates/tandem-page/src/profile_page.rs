//! The page of a profile: bottleneck and recommended changes.
//!
//! In: [`ProfileAnswer`]. Out: [`Page`]. Every figure and rule comes from the
//! answer. Next: [`crate::render`].

use crate::page::{Bar, Block, Fact, Page, Section, Table, Tone, Verdict};
use crate::prose::Prose;
use crate::run_page::as_sentence;
use tandem_insight::measured::DeviceFigures;
use tandem_insight::profile::{ProfileAnswer, Recommendation, RuleKind, RunKind, Subject};
use tandem_telemetry::event::DeviceRole;
use tandem_units::Bytes;
use tandem_units::Lang;

pub fn profile_page(answer: &ProfileAnswer, lang: Lang) -> Page {
    let mut page = Page::new(lang, lang.say("Profile", "پروفایل اجرا"));
    page.subtitle = Prose::of(&subject(&answer.subject, lang));
    page.add(summary(answer, lang));
    page.add(runs(answer, lang));
    page.add(phases(answer, lang));
    page.add(rules(answer, lang));
    page.add(changes(answer, lang));
    page.add(devices(answer, lang));
    page.add(batch_sizes(answer, lang));
    page
}

fn subject(s: &Subject, lang: Lang) -> String {
    let (batch, workers, depth) = (
        lang.count(s.batch_size as u64),
        lang.count(s.setting.workers as u64),
        lang.count(s.setting.depth as u64),
    );
    let (corpus, size, device) = (&s.corpus, &s.model_size, &s.model_device);
    lang.say(
        format!(
            "`{corpus}` · {size} · batch {batch} · workers {workers} · depth {depth} · `{device}`"
        ),
        format!(
            "`{corpus}` · {size} · دستهٔ {batch}تایی · کارگر: {workers} · عمق: {depth} · `{device}`"
        ),
    )
}

fn summary(answer: &ProfileAnswer, lang: Lang) -> Section {
    let verdict = &answer.verdict;
    let tone = if verdict.is_held_back() { Tone::Bad } else { Tone::Good };
    let sentence = as_sentence(verdict.words(lang));
    let mut facts = Vec::new();
    if let Some(run) = answer.runs.iter().find(|run| run.run == RunKind::AsIs) {
        let fact = |english, persian, value: String| Fact::new(lang.say(english, persian), value);
        facts.push(fact("step", "گام", lang.seconds(run.step.mean)));
        facts.push(fact("samples/s", "نمونه در ثانیه", lang.number(run.samples_per_second, 1)));
        facts.push(fact("model waits", "انتظار مدل", lang.percent(run.stall)));
        if let Some(found) = &run.variation {
            let words = ("variation by shape", "نوسان در شکل یکسان");
            facts.push(fact(words.0, words.1, lang.percent(found.by_shape)));
        }
        facts.push(fact("raw variation", "نوسان خام", lang.percent(run.step.variation)));
    }
    let doubts = answer.doubts.iter().map(|doubt| {
        let warning = lang.say(
            doubt.clone(),
            "دو اندازه‌گیری با هم سازگار نیستند: برنامه‌های دیگر از ماشین استفاده می‌کردند؛ وقتی ماشین بیکار است دوباره اندازه بگیرید".into(),
        );
        Block::from(Verdict::new(Tone::Fair, warning.as_str()))
    });
    let crowd = answer.crowd.as_ref().map(|crowd| as_sentence(crowd.words(lang)));
    let section = Section::new("summary", lang.say("Summary", "خلاصه"))
        .with_some(crowd.map(|crowd| Verdict::new(Tone::Fair, crowd.as_str())));
    doubts
        .fold(section, Section::with)
        .with(Verdict::new(tone, sentence.as_str()))
        .with(Block::Facts(facts))
}

fn runs(answer: &ProfileAnswer, lang: Lang) -> Section {
    let mut table = Table::new([
        lang.say("run", "اجرا"),
        lang.say("step", "گام"),
        lang.say("std", "انحراف معیار"),
        lang.say("p95", "صدک ۹۵"),
        lang.say("samples/s", "نمونه در ثانیه"),
        lang.say("waits", "انتظار"),
    ]);
    let name = |run: RunKind| {
        let persian = match run {
            RunKind::AsIs => "همان‌گونه که هست",
            RunKind::Cached => "ویژگی‌ها از کش",
            RunKind::ModelAlone => "تنها مدل",
            RunKind::DataAlone => "تنها داده",
        };
        lang.say(run.name(), persian)
    };
    let mut bars = Vec::new();
    for run in &answer.runs {
        table = table.row([
            name(run.run).into(),
            lang.seconds(run.step.mean),
            lang.seconds(run.step.std),
            lang.seconds(run.step.p95),
            lang.number(run.samples_per_second, 1),
            lang.percent(run.stall),
        ]);
        bars.push(Bar::new(name(run.run), run.step.mean, lang.seconds(run.step.mean)));
    }
    let title = lang.say("Runs with parts disabled", "اجرا با غیرفعال‌کردن بخش‌ها");
    Section::new("runs", title).with(Block::Bars(bars)).with(table)
}

fn phases(answer: &ProfileAnswer, lang: Lang) -> Section {
    let mut table = Table::new([
        lang.say("phase", "مرحله"),
        lang.say("workers", "کارگر"),
        lang.say("mean", "میانگین"),
        lang.say("std", "انحراف معیار"),
        lang.say("p95", "صدک ۹۵"),
        lang.say("work per step", "کار در هر گام"),
        lang.say("share", "سهم"),
    ]);
    let mut bars = Vec::new();
    for phase in &answer.phases {
        let label = format!("`{}`", phase.phase);
        table = table.row([
            label.clone(),
            lang.count(phase.workers as u64),
            lang.seconds(phase.figures.mean),
            lang.seconds(phase.figures.std),
            lang.seconds(phase.figures.p95),
            lang.percent(phase.work),
            lang.percent(phase.share),
        ]);
        bars.push(Bar::share(label.as_str(), phase.work, lang.percent(phase.work)));
    }
    let note = lang.say(
        "Bars: time that the phase needs, as a share of a step, overlapped or not. Share: what the training thread works on or waits for.",
        "میله‌ها: زمانی که هر مرحله لازم دارد، به‌صورت سهمی از گام، هم‌پوشان یا نه. سهم: رشتهٔ آموزش روی چه کار می‌کند یا منتظر چیست.",
    );
    Section::new("phases", lang.say("Phases", "مرحله‌ها"))
        .with(Block::Bars(bars))
        .with(table)
        .with(Block::Text(Prose::of(note)))
}

fn rules(answer: &ProfileAnswer, lang: Lang) -> Section {
    let mut table = Table::new([
        lang.say("rule", "قاعده"),
        lang.say("measured", "اندازه"),
        lang.say("target", "هدف"),
        lang.say("state", "وضعیت"),
    ]);
    for rule in &answer.rules {
        let limit = lang.percent(rule.limit);
        let wanted = match rule.kind {
            RuleKind::AtMost => lang.say(format!("at most {limit}"), format!("حداکثر {limit}")),
            RuleKind::AtLeast => lang.say(format!("at least {limit}"), format!("حداقل {limit}")),
        };
        let unknown = lang.say("not measured", "اندازه‌گیری نشده");
        let state = match rule.broken {
            Some(true) => lang.say(rule.means.clone(), "نقض شده".into()),
            Some(false) => lang.say("ok".into(), "خوب".into()),
            None => String::new(),
        };
        let measured = rule.measured.map_or(unknown.into(), |share| lang.percent(share));
        table = table.row([format!("`{}`", rule.name), measured, wanted, state]);
    }
    Section::new("rules", lang.say("Rules", "قاعده‌ها")).with(table)
}

fn changes(answer: &ProfileAnswer, lang: Lang) -> Section {
    let section = Section::new("changes", lang.say("What to change", "چه چیز را تغییر دهیم"));
    if answer.recommendations.is_empty() && answer.batch.better.is_none() {
        let nothing = lang.say(
            "No change of workers, depth, cache or devices is predicted to gain 2 % or more.",
            "پیش‌بینی نمی‌شود که تغییر کارگرها، عمق، کش یا دستگاه‌ها ۲٪ یا بیشتر سود دهد.",
        );
        return section.with(Verdict::new(Tone::Neutral, nothing));
    }
    let mut table = Table::new([
        lang.say("change", "تغییر"),
        lang.say("predicted gain", "سود پیش‌بینی‌شده"),
        lang.say("step", "گام"),
        lang.say("measured gain", "سود اندازه‌گیری‌شده"),
    ]);
    for one in &answer.recommendations {
        table = table.row([
            format!("`{}`", one.flag),
            lang.percent(one.gain),
            lang.seconds(one.predicted.step),
            measured_gain(one, lang),
        ]);
    }
    if let Some(better) = &answer.batch.better {
        table = table.row([
            format!("`{}`", better.flag),
            lang.say("not predicted", "پیش‌بینی نشده").to_owned(),
            String::new(),
            lang.percent(better.gain),
        ]);
    }
    section.with(table)
}

/// Short runs of other batch sizes, and the memory of this one.
fn batch_sizes(answer: &ProfileAnswer, lang: Lang) -> Section {
    let mut table = Table::new([
        lang.say("batch size", "اندازهٔ دسته"),
        lang.say("step", "گام"),
        lang.say("samples/s", "نمونه در ثانیه"),
        lang.say("memory, peak", "بیشینهٔ حافظه"),
    ]);
    let unknown = || lang.say("not measured", "اندازه‌گیری نشده").to_owned();
    for point in &answer.batch.points {
        table = table.row([
            lang.count(point.batch_size as u64),
            lang.seconds(point.step),
            lang.number(point.samples_per_second, 1),
            point.memory.map_or_else(unknown, |memory| lang.bytes(memory)),
        ]);
    }
    let title = lang.say("Batch sizes, measured", "اندازه‌های دسته، اندازه‌گیری‌شده");
    Section::new("batches", title).with_some(table.some())
}

fn measured_gain(one: &Recommendation, lang: Lang) -> String {
    let untried = lang.say("not measured (`--apply`)", "اندازه‌گیری نشد (`--apply`)");
    one.measured_gain.map_or(untried.into(), |gain| lang.percent(gain))
}

fn devices(answer: &ProfileAnswer, lang: Lang) -> Section {
    let mut table = Table::new([
        lang.say("device", "دستگاه"),
        lang.say("used for", "برای"),
        lang.say("busy (mean, std)", "مشغول (میانگین، انحراف معیار)"),
        lang.say("memory (mean, std; peak)", "حافظه (میانگین، انحراف معیار؛ بیشینه)"),
    ]);
    for device in &answer.devices {
        table = table.row(device_row(device, lang));
    }
    Section::new("devices", lang.say("Devices", "دستگاه‌ها")).with_some(table.some())
}

fn device_row(device: &DeviceFigures, lang: Lang) -> [String; 4] {
    let role = match device.role {
        DeviceRole::Data => lang.say("data", "داده"),
        DeviceRole::Model => lang.say("model", "مدل"),
        DeviceRole::Host => lang.say("host", "میزبان"),
    };
    let unknown = || lang.say("not measured", "اندازه‌گیری نشده").to_owned();
    [
        format!("`{}`", device.device),
        role.to_owned(),
        device.utilisation.map_or_else(unknown, |busy| {
            format!("{}, {}", lang.percent(busy.mean), lang.percent(busy.std))
        }),
        device.memory.map_or_else(unknown, |memory| {
            let [mean, std, peak] =
                [memory.mean, memory.std, memory.max].map(|bytes| lang.bytes(Bytes(bytes as u64)));
            format!("{mean}, {std}; {peak}")
        }),
    ]
}
