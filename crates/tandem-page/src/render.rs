//! Draws a page: HTML that needs nothing else.
//!
//! In: [`Page`]. Out: one document with its style inside, no script, no address of another host.
//! Every text is escaped by the template. Plots are SVG that stretches to any width while letters
//! keep their size ([`plots`]). Next: a file, or the live page.

mod plots; // curves, bars, strips, lanes

use crate::lang::Lang;
use crate::page::{
    Bar, Block, Fact, Figure, Page, Sample, Section, Table, TableKind, Tone, Verdict,
};
use crate::prose::{Piece, Prose};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style of every page.
pub const STYLE: &str = include_str!("render/page.css");

/// The whole document, its style inside.
pub fn html(page: &Page) -> String {
    let lang = page.lang;
    let document = html! {
        (DOCTYPE)
        html lang=(lang.code()) dir=(lang.direction()) {
            head {
                (head(&page.title))
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(page, &html! {}))
                main { @for section in &page.sections { (section_of(section, lang)) } }
                footer { (footer(lang)) }
            }
        }
    };
    document.into_string()
}

/// What every document's head says, but for its style.
pub(crate) fn head(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        title { (title) }
        // An empty picture: browsers otherwise ask for one.
        link rel="icon" href="data:,";
    }
}

pub(crate) fn header(page: &Page, beside: &Markup) -> Markup {
    html! {
        header {
            div.title { h1 { (page.title) } (beside) }
            p #subtitle { (prose(&page.subtitle)) }
            (nav(page))
        }
    }
}

/// Where to go on the page.
pub(crate) fn nav(page: &Page) -> Markup {
    html! { nav #nav { @for section in &page.sections {
        a href={ "#" (section.id) } { (section.title) } " "
    } } }
}

pub(crate) fn footer(lang: Lang) -> &'static str {
    lang.say(
        "Made by Tandem from the run record alone. What was not measured is not shown.",
        "ساختهٔ Tandem، تنها از روی پروندهٔ اجرا. آنچه اندازه‌گیری نشده، نمایش داده نمی‌شود.",
    )
}

/// A section with its heading.
pub(crate) fn section_of(section: &Section, lang: Lang) -> Markup {
    html! {
        section id=(section.id) {
            h2 { (section.title) }
            (blocks(section, lang))
        }
    }
}

/// What a section holds, without its heading.
pub(crate) fn blocks(section: &Section, lang: Lang) -> Markup {
    html! { @for block in &section.blocks { (block_of(block, lang)) } }
}

fn block_of(block: &Block, lang: Lang) -> Markup {
    match block {
        Block::Verdict(verdict) => verdict_of(verdict),
        Block::Facts(facts) => facts_of(facts),
        Block::Text(text) => html! { p { (prose(text)) } },
        Block::Table(table) => table_of(table),
        Block::Figure(figure) => figure_of(figure, lang),
        Block::Bars(bars) => bars_of(bars),
        Block::Fold(title, table) => html! { details { summary { (title) } (table_of(table)) } },
        Block::Commands(lines) => html! { pre dir="ltr" { (lines.join("\n")) } },
        Block::Samples(samples) => samples_of(samples, lang),
    }
}

fn verdict_of(verdict: &Verdict) -> Markup {
    html! { p class={ "verdict " (tone(verdict.tone)) } { (prose(&verdict.sentence)) } }
}

fn facts_of(facts: &[Fact]) -> Markup {
    html! { dl.facts { @for fact in facts {
        div class=(tone(fact.tone)) { dt { (fact.label) } dd { (fact.value) } }
    } } }
}

fn table_of(table: &Table) -> Markup {
    let figures = |column: usize| table.kind == TableKind::Figures && column > 0;
    html! {
        div.scroll { table {
            thead { tr { @for (column, name) in table.header.iter().enumerate() {
                th scope="col" class=[figures(column).then_some("n")] { (name) }
            } } }
            tbody { @for row in &table.rows { tr { @for (column, cell) in row.iter().enumerate() {
                td class=[figures(column).then_some("n")] { (prose(cell)) }
            } } } }
        } }
    }
}

fn figure_of(figure: &Figure, lang: Lang) -> Markup {
    html! {
        figure {
            figcaption { (figure.caption) }
            div.beside {
                (plots::plot(&figure.plot, &figure.caption, lang))
                (table_of(&figure.table))
            }
        }
    }
}

fn bars_of(bars: &[Bar]) -> Markup {
    let most = bars.iter().map(|bar| bar.length).fold(0.0, f64::max);
    html! { div.bars { @for bar in bars {
        @let width = if most > 0.0 { (100.0 * bar.length / most).clamp(0.0, 100.0) } else { 0.0 };
        span.name { (prose(&bar.label)) }
        svg.bar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            rect class=(tone(bar.tone)) width=(plots::short(width)) height="10" {}
        }
        span.value { (bar.value) }
    } } }
}

fn samples_of(samples: &[Sample], lang: Lang) -> Markup {
    html! { div.samples { @for sample in samples {
        article {
            h3 { code dir="ltr" { (sample.name) } " · " (sample.step) }
            @if let Some(sound) = &sample.sound {
                audio controls preload="metadata" src=(sound)
                    aria-label=(lang.say("what the voice said", "آنچه صدا گفت")) {}
            }
            @for (address, shows) in &sample.pictures {
                img src=(address) alt=(shows) loading="lazy";
            }
        }
    } } }
}

/// Words in the page's direction, code always from left to right.
pub(crate) fn prose(text: &Prose) -> Markup {
    html! { @for piece in &text.0 {
        @match piece {
            Piece::Words(words) => (words),
            Piece::Code(code) => code dir="ltr" { (code) },
            Piece::Foreign(words) => bdi { (words) },
        }
    } }
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Fair => "fair",
        Tone::Bad => "bad",
        Tone::Neutral => "plain",
    }
}

#[cfg(test)]
mod tests;
