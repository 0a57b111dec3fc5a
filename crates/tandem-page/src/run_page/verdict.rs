//! The verdict and the grade in words of the page's language.
//!
//! In: a report with English sentences. Out: the same verdict in the page's language, from the
//! same figures. Nothing is decided here.

use crate::lang::Lang;
use tandem_telemetry::Report;
use tandem_telemetry::grade::{Criterion, Grade};
use tandem_telemetry::verdict::{Cause, StageLoad, slowest_stage};

/// The verdict in one sentence. Names of stages are in backticks.
pub fn verdict_words(report: &Report, lang: Lang) -> String {
    match lang {
        Lang::En => sentence(&report.verdict.sentence),
        Lang::Fa => persian_verdict(report),
    }
}

/// A sentence on a page begins with a capital and ends with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn persian_verdict(report: &Report) -> String {
    let fa = Lang::Fa;
    let verdict = &report.verdict;
    let stall = fa.percent(report.steps.as_ref().map_or(0.0, |steps| steps.stall));
    let feed = report.stages.split_last().map_or(&[][..], |(_, feed)| feed);
    let named =
        verdict.stage.as_ref().and_then(|name| feed.iter().find(|load| load.stage == *name));
    let worst: Option<&StageLoad> = named.or_else(|| slowest_stage(feed));
    let stage = worst.map_or("?", |load| &*load.stage);
    let slack = fa.percent(verdict.slack.unwrap_or(0.0));
    match verdict.cause {
        Cause::NoSteps => "هنوز هیچ گامی کامل نشده است و چیزی برای قضاوت وجود ندارد.".into(),
        Cause::Unknown => format!(
            "مدل {stall} از زمان را منتظر داده می‌ماند؛ در پروندهٔ اجرا مرحله‌ای ثبت نشده، پس علت معلوم نیست."
        ),
        Cause::Model if verdict.slack.is_none() => format!(
            "گلوگاه اجرا خود مدل است و فقط {stall} از زمان منتظر می‌ماند؛ در پروندهٔ اجرا مرحله‌ای پیش از مدل ثبت نشده، پس ظرفیت خالی آن‌ها معلوم نیست."
        ),
        Cause::Model => format!(
            "گلوگاه اجرا، همان‌طور که باید، خود مدل است: فقط {stall} از زمان منتظر می‌ماند و کندترین مرحلهٔ پیش از آن، `{stage}`، هنوز {slack} ظرفیت خالی دارد."
        ),
        Cause::Balanced => format!(
            "خط لوله متعادل است و گلوگاهی ندارد: مدل {stall} از زمان منتظر می‌ماند و مرحلهٔ `{stage}` تقریباً به‌اندازهٔ یک گام زمان می‌برد (ظرفیت خالی: {slack})."
        ),
        Cause::Feed => format!(
            "گلوگاه اجرا مرحلهٔ `{stage}` است: مدل {stall} از زمان را منتظر می‌ماند و بدون این گلوگاه، اجرا تا {} کوتاه‌تر می‌شد.",
            fa.percent(verdict.cost)
        ),
        Cause::Communication => format!(
            "گلوگاه اجرا ارتباط میان پردازه‌هاست: جمع‌کردن گرادیان‌ها {} از زمان را می‌گیرد. شبکهٔ سریع‌تر یا `--grad-accum` بزرگ‌تر، که کمتر جمع می‌کند، اجرا را تا همین اندازه کوتاه می‌کند.",
            fa.percent(verdict.cost)
        ),
        Cause::Rank => format!(
            "گلوگاه اجرا `{}` است که از همهٔ پردازه‌های دیگر کندتر است؛ بدون آن، اجرا تا {} کوتاه‌تر می‌شد.",
            verdict.stage.as_deref().unwrap_or("?"),
            fa.percent(verdict.cost)
        ),
        Cause::Variation => format!(
            "زمان مرحله‌ها بیش از ظرفیت بافر نوسان دارد: هیچ مرحله‌ای به‌طور میانگین کند نیست، ولی مدل {stall} از زمان را منتظر می‌ماند. کندترین مرحله `{stage}` است با {slack} ظرفیت خالی؛ از بافر عمیق‌تر استفاده کنید."
        ),
    }
}

/// The grade of the run, in one sentence.
pub fn grade_words(report: &Report, lang: Lang) -> String {
    match lang {
        Lang::En => format!("Grade: {}.", report.grading.sentence),
        Lang::Fa => persian_grade(report),
    }
}

fn persian_grade(report: &Report) -> String {
    let grading = &report.grading;
    let named = |found: &dyn Fn(&&Criterion) -> bool| -> Vec<String> {
        grading.criteria.iter().filter(found).map(|one| criterion(one).to_string()).collect()
    };
    let missing = named(&|one| one.measured.is_none());
    let unmeasured = if missing.is_empty() {
        String::new()
    } else {
        format!(" اندازه‌گیری نشده: {}.", missing.join("، "))
    };
    let Some(grade) = grading.grade else {
        return format!("رتبه‌ای داده نشد.{unmeasured}");
    };
    let basis = if missing.is_empty() {
        String::new()
    } else {
        format!(" (فقط بر پایهٔ {})", named(&|one| one.measured.is_some()).join(" و "))
    };
    let short: Vec<String> = grading
        .criteria
        .iter()
        .filter(|one| one.grade == Some(grade))
        .filter_map(|one| Some((one, one.measured?, wanted(one.wanted.as_deref()?))))
        .map(|(one, measured, wanted)| {
            format!("{} {} است، {wanted}", criterion(one), Lang::Fa.percent(measured))
        })
        .collect();
    let because =
        if short.is_empty() { String::new() } else { format!(" دلیل: {}.", short.join("؛ ")) };
    format!("رتبه: {}{basis}.{because}{unmeasured}", grade_word(grade))
}

/// What the next better grade requires: "below 40.0 %", "at least 50.0 %".
fn wanted(requirement: &str) -> String {
    let number = requirement.trim_matches(|letter: char| !letter.is_ascii_digit());
    let number = format!("{}٪", Lang::Fa.digits(number));
    if requirement.starts_with("below") {
        format!("در حالی که باید کمتر از {number} باشد")
    } else {
        format!("در حالی که باید دست‌کم {number} باشد")
    }
}

fn grade_word(grade: Grade) -> &'static str {
    match grade {
        Grade::Below => "پایین‌تر از حداقل",
        Grade::Minimum => "حداقل قابل‌قبول",
        Grade::Good => "خوب",
        Grade::Excellent => "عالی",
    }
}

fn criterion(one: &Criterion) -> &str {
    match one.name.as_str() {
        "data GPU" => "پردازندهٔ گرافیکی داده",
        "model GPU" => "پردازندهٔ گرافیکی مدل",
        "variation" => "نوسان زمان گام",
        other => other,
    }
}
