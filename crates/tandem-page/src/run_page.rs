//! The page of a run: the same sections for the HTML report and for the live page.
//!
//! In: [`RunView`] and a language. Out: [`Page`]. A pure function: the same view gives the same
//! page. Empty parts are left out; what was not measured is marked so.

mod curves; // losses, step times
mod machine; // stages, slots, devices, queues
mod ranks; // the ranks of a data-parallel run
mod remarks; // other events, and the settings
mod summary; // verdict, grade and key figures
mod verdict; // verdict and grade in words

use crate::page::Page;
use crate::prose::{Piece, Prose};
use crate::view::RunView;
use tandem_telemetry::Report;
use tandem_telemetry::event::RunHeader;
use tandem_units::Lang;

pub(crate) use machine::state_name;
pub use verdict::{as_sentence, grade_words, verdict_words};

/// Builds the page of a run; `name` says which, such as its directory.
pub fn run_page(view: &RunView, name: &str, lang: Lang) -> Page {
    let report = view.report();
    let mut page = Page::new(lang, lang.say("Run report", "گزارش اجرا"));
    page.subtitle = subtitle(view, name, lang);
    add_sections(&mut page, view, &report);
    page
}

/// Adds all sections of a run to a page.
pub fn add_sections(page: &mut Page, view: &RunView, report: &Report) {
    let lang = page.lang;
    page.add(summary::section(view, report, lang));
    page.add(curves::losses(view, lang));
    page.add(ranks::section(report, lang));
    page.add(machine::stages(view, report, lang));
    page.add(curves::step_times(view, report, lang));
    page.add(machine::slots(view, lang));
    page.add(machine::devices(view, report, lang));
    page.add(machine::queues(report, lang));
    page.add(curves::learning(view, lang));
    page.add(remarks::section(report, lang));
    page.add(remarks::settings(view, report, lang));
}

/// Which run, by which program, when.
pub fn subtitle(view: &RunView, name: &str, lang: Lang) -> Prose {
    let mut pieces = vec![Piece::Code(name.to_string())];
    if let Some(header) = &view.summary.header {
        let RunHeader { program, version, .. } = header;
        pieces.push(Piece::Words(" · ".into()));
        pieces.push(Piece::Code(format!("{program} {version}")));
        pieces.push(Piece::Words(lang.say(" · started ", " · شروع: ").into()));
        pieces.push(Piece::Code(utc(header.started_unix_ms)));
    }
    Prose(pieces)
}

/// A moment as `2026-11-16 02:39 UTC`. Days to dates after Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms".
fn utc(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let days = (minutes / 1440) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
pub(crate) mod tests;
