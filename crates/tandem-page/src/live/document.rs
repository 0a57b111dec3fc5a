//! The live page: the sections of the report, samples of the voice, and the state of the run.
//!
//! In: the newest view of a run. Out: the document, and the parts that changed for connected
//! clients. Parts are rendered here; the script of the page only inserts them.

use crate::live::board::{Board, Newest, State};
use crate::page::{Page, Sample, Section};
use crate::render;
use crate::run_page::{add_sections, subtitle};
use crate::samples::Spoken;
use maud::{DOCTYPE, Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use std::collections::BTreeMap;
use tandem_telemetry::event::RunOutcome;
use tandem_units::Lang;

/// The script that inserts changed parts.
pub(super) const SCRIPT: &str = include_str!("live.js");

/// The whole document, for the first request.
pub(super) fn document(board: &Board, newest: &Newest, lang: Lang) -> String {
    let page = page(board, newest, lang);
    let other = lang.say(Lang::Fa, Lang::En);
    let controls = html! {
        span.side {
            (badge(newest, lang))
            a href={ "/?lang=" (other.code()) } lang=(other.code()) { (other.say("English", "فارسی")) }
        }
    };
    let document = html! {
        (DOCTYPE)
        html lang=(lang.code()) dir=(lang.direction()) {
            head {
                (render::head(&format!("{} · {}", page.title, board.name)))
                link rel="stylesheet" href="/page.css";
                script src="/live.js" defer {}
            }
            body data-events={ "/events?lang=" (lang.code()) }
                data-lost=(lang.say("connection lost, reconnecting", "ارتباط قطع شد؛ در حال اتصال دوباره")) {
                (render::header(&page, &controls))
                main { @for section in &page.sections { (render::section_of(section, lang)) } }
                footer { (render::footer(lang)) }
            }
        }
    };
    document.into_string()
}

fn page(board: &Board, newest: &Newest, lang: Lang) -> Page {
    let view = &newest.view;
    let mut page = Page::new(lang, lang.say("Live run", "نمایش زندهٔ اجرا"));
    page.subtitle = subtitle(view, &board.name, lang);
    add_sections(&mut page, view, &view.report());
    let samples = newest.spoken.iter().map(|spoken| sample(spoken, lang)).collect::<Vec<_>>();
    if !samples.is_empty() {
        let section =
            Section::new("samples", lang.say("Latest samples", "تازه‌ترین نمونه‌ها")).with(samples);
        page.sections.insert(page.sections.len().min(2), section);
    }
    page
}

fn sample(spoken: &Spoken, lang: Lang) -> Sample {
    let address =
        |file: &String| format!("/samples/{}", utf8_percent_encode(file, NON_ALPHANUMERIC));
    let alignment = lang.say(
        "alignment: which frames belong to which symbol",
        "هم‌ترازی: هر فریم متعلق به کدام نماد است",
    );
    let mel = lang.say("mel spectrogram of the generated speech", "طیف‌نگارهٔ مل گفتار تولیدشده");
    let pictures = [(&spoken.alignment, alignment), (&spoken.mel, mel)];
    let pictures = pictures
        .into_iter()
        .filter_map(|(file, shows)| Some((address(file.as_ref()?), shows.to_string())));
    Sample {
        name: spoken.name.clone(),
        step: format!("{} {}", lang.say("step", "گام"), lang.count(spoken.step)),
        text: spoken.text.clone(),
        sound: spoken.sound.as_ref().map(address),
        pictures: pictures.collect(),
    }
}

/// State of the run, in a word.
fn badge(newest: &Newest, lang: Lang) -> Markup {
    let (tone, word) = match newest.state() {
        State::Running => ("good", lang.say("running", "در حال اجرا")),
        State::Quiet => ("fair", lang.say("no updates", "بدون به‌روزرسانی")),
        State::Over(RunOutcome::Done) => ("plain", lang.say("done", "پایان یافته")),
        State::Over(RunOutcome::Interrupted) => ("fair", lang.say("interrupted", "متوقف‌شده")),
        State::Over(RunOutcome::Failed) => ("bad", lang.say("failed", "ناموفق")),
        State::StageError => ("bad", lang.say("record unreadable", "پرونده خوانده نمی‌شود")),
    };
    html! { strong #state class={ "badge " (tone) } title=[newest.fault.as_ref()] { (word) } }
}

/// What a client has received.
#[derive(Default)]
pub(super) struct Sent {
    parts: BTreeMap<String, String>,
}

impl Sent {
    /// Everything that changed since the last time, as JSON in one line; none where nothing did.
    pub(super) fn update(&mut self, board: &Board, newest: &Newest, lang: Lang) -> Option<String> {
        let page = page(board, newest, lang);
        let order: Vec<&str> = page.sections.iter().map(|section| &*section.id).collect();
        let mut changed = BTreeMap::new();
        for section in &page.sections {
            self.note(&section.id, render::section_of(section, lang), &mut changed);
        }
        let mut parts = BTreeMap::new();
        self.note(".state", badge(newest, lang), &mut parts);
        let subtitle = html! { p #subtitle { (render::prose(&page.subtitle)) } };
        self.note(".subtitle", subtitle, &mut parts);
        self.note(".nav", render::nav(&page), &mut parts);
        if changed.is_empty() && parts.is_empty() {
            return None;
        }
        let parts: Vec<String> = parts.into_values().collect();
        Some(json!({ "order": order, "sections": changed, "parts": parts }).to_string())
    }

    fn note(&mut self, id: &str, drawn: Markup, changed: &mut BTreeMap<String, String>) {
        let drawn = drawn.into_string();
        if self.parts.get(id) != Some(&drawn) {
            changed.insert(id.to_string(), drawn.clone());
            self.parts.insert(id.to_string(), drawn);
        }
    }
}
