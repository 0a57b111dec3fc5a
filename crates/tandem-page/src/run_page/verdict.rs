//! The verdict and the grade as sentences of a page.
//!
//! In: a report. Out: its verdict, whose words are [`tandem_telemetry::verdict::Verdict::words`], and its grade in
//! the page's language. Nothing is decided here.

use tandem_telemetry::Report;
use tandem_telemetry::grade::{Criterion, Grade};
use tandem_units::Lang;

/// The verdict in one sentence. Names of stages are in backticks.
pub fn verdict_words(report: &Report, lang: Lang) -> String {
    as_sentence(report.verdict.words(lang))
}

/// A sentence on a page begins with a capital and ends with a full stop.
pub fn as_sentence(text: String) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
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
