//! What a browser is given: whole, escaped, alone.

use super::*;
use crate::page::{Review, ReviewRow};
use tandem_plot::plot::{Curve, Histogram, Lines, Measure, Plot};

fn page(lang: Lang) -> Page {
    let mut page = Page::new(lang, "<Title> & co");
    page.subtitle = Prose::code("runs/<b>");
    let curves = vec![
        Curve::line("total", vec![(1.0, 5.0), (2.0, 4.0), (3.0, 2.5)]),
        Curve::dotted("\"held\" out", vec![(2.0, 3.0)]),
    ];
    let lines = Lines { curves, x: Measure::Count, y: Measure::Number };
    let histogram = Histogram::of(&[0.1, 0.2, 0.2, 0.3], Measure::Seconds).unwrap();
    let table = Table::new(["loss", "last"]).row(["`total`".into(), lang.short(2.5)]);
    let figure = |plot| Figure { caption: "Loss".into(), plot, table: table.clone() };
    page.add(
        Section::new("one", "One")
            .with(Verdict::new(Tone::Bad, "`load` holds <it> back"))
            .with(vec![Fact::new("steps", lang.count(1234)).toned(Tone::Good)])
            .with(figure(Plot::Lines(lines)))
            .with(figure(Plot::Histogram(histogram)))
            .with(Block::Bars(vec![Bar::new("`a`", 2.0, "2"), Bar::new("`b`", 1.0, "1")]))
            .with(Block::Commands(vec!["tandem train --lr 1e-4 > log".into()]))
            .with(Prose::foreign("«<script>alert(1)</script>»")),
    );
    page.add(Section::new("none", "left out"));
    page
}

#[test]
fn a_page_is_rendered_as_reviewed() {
    let text = html(&page(Lang::En)).replace(STYLE, "STYLE");
    insta::assert_snapshot!(text.replace("><", ">\n<"));
}

#[test]
fn a_review_has_a_text_and_three_choices_for_each_row_and_the_only_script() {
    let row = |id: &str, decided| ReviewRow {
        id: id.into(),
        text: "one </textarea><script>".into(),
        sound: Err("no sound".into()),
        reasons: vec![Prose::of("the text of `b` fits better")],
        facts: vec![Fact::new("pace", "1.2")],
        decided,
    };
    let rows = vec![row("a", None), row("b\"", Some("drop"))];
    let mut page = Page::new(Lang::En, "Rows");
    page.add(Section::new("review", "Rows").with(Review { file: "decisions.tsv".into(), rows }));
    let text = html(&page);
    assert_eq!(text.matches("<script>").count(), 1, "{text}");
    assert_eq!(text.matches("type=\"radio\"").count(), 6);
    assert!(text.contains("value=\"drop\" checked") && text.contains("data-id=\"b&quot;\""));
    assert!(text.contains("no sound") && text.contains("one &lt;/textarea&gt;"));
}

#[test]
fn nothing_of_a_run_becomes_markup() {
    let text = html(&page(Lang::Fa));
    assert!(text.contains("&lt;script&gt;") && !text.contains("<script"), "{text}");
    assert!(text.contains("runs/&lt;b&gt;") && text.contains("&lt;Title&gt; &amp; co"));
}

#[test]
fn a_persian_page_runs_from_right_to_left_and_its_commands_do_not() {
    let text = html(&page(Lang::Fa));
    assert!(text.contains("<html lang=\"fa\" dir=\"rtl\">"));
    assert!(text.contains("<pre dir=\"ltr\">tandem train --lr 1e-4 &gt; log</pre>"));
    assert!(text.contains("<code dir=\"ltr\">load</code>") && text.contains("۱٬۲۳۴"));
    assert!(text.contains("<div class=\"frame\" dir=\"ltr\">"));
}

#[test]
fn a_page_asks_nobody_for_anything() {
    let text = html(&page(Lang::En));
    for outside in ["http:", "https:", "src=", "@import", "url(", "<link rel=\"stylesheet"] {
        assert!(!text.contains(outside), "{outside}");
    }
    // The style must not be able to end its element.
    assert!(!STYLE.contains("</"));
}

#[test]
fn a_plot_without_points_says_so() {
    let lines = Lines { curves: vec![], x: Measure::Count, y: Measure::Number };
    let drawn = plots::plot(&Plot::Lines(lines), "x", Lang::En).into_string();
    assert!(drawn.contains("nothing to draw yet"));
}
