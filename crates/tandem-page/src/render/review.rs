//! Rows of a corpus with a player, and a choice for each: keep, fix, drop.
//!
//! In: [`Review`]. Out: HTML with a small script, which writes the choices into a file that the browser saves. Nothing is
//! sent anywhere. Without the script the rows can still be heard.

use super::{facts_of, prose};
use crate::page::{Review, ReviewRow};
use maud::{Markup, PreEscaped, html};
use tandem_units::Lang;

/// Also read by the test of the page in a browser.
const SCRIPT: &str = include_str!("review.js");

pub fn review(review: &Review, lang: Lang) -> Markup {
    let saved = lang.say(
        format!("Save it into the corpus directory: `prepare` and `train` then leave out and correct these rows ({}).", review.file),
        format!("آن را در پوشهٔ پیکره ذخیره کنید: `prepare` و `train` این سطرها را کنار می‌گذارند و اصلاح می‌کنند ({}).", review.file),
    );
    html! {
        div.review data-file=(review.file) {
            @for row in &review.rows { (row_of(row, lang)) }
            div.save {
                button type="button" { (lang.say("Save decisions", "ذخیرهٔ تصمیم‌ها")) }
                output { "0" }
                span { (saved) }
            }
        }
        script { (PreEscaped(SCRIPT)) }
    }
}

fn row_of(row: &ReviewRow, lang: Lang) -> Markup {
    let choices = [
        ("keep", lang.say("keep", "نگه داشتن")),
        ("fix", lang.say("fix the text", "اصلاح متن")),
        ("drop", lang.say("drop", "کنار گذاشتن")),
    ];
    html! {
        article data-id=(row.id) {
            h3 { code dir="ltr" { (row.id) } }
            @match &row.sound {
                Ok(address) => audio controls preload="metadata" src=(address)
                    aria-label=(lang.say("the recording", "صدای ضبط‌شده")) {},
                Err(why) => p.bad { bdi { (why) } },
            }
            textarea dir="auto" rows="2" aria-label=(lang.say("text", "متن")) { (row.text) }
            @if !row.reasons.is_empty() { ul { @for reason in &row.reasons { li { (prose(reason)) } } } }
            (facts_of(&row.facts))
            fieldset {
                legend { (lang.say("Decision", "تصمیم")) }
                @for (value, name) in choices {
                    label {
                        input type="radio" name=(row.id) value=(value) checked[row.decided == Some(value)];
                        " " (name)
                    }
                }
            }
        }
    }
}
