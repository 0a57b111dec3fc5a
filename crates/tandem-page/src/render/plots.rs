//! Plots as SVG.
//!
//! In: [`Plot`]. Out: an SVG of any width. The drawing is scaled without fixed proportions;
//! labels are in a second SVG, placed by percent, so letters and lines keep their size on a phone
//! and in print. Plots run from left to right in every
//! language. Colours are classes of the style sheet; lines differ in their dashes too.

use maud::{Markup, html};
use std::fmt::Write;
use tandem_plot::axis::Axis;
use tandem_plot::plot::{Curve, Histogram, Lanes, Lines, Marks, Measure, Plot, Strips};
use tandem_units::Lang;

/// Units of a drawing in both directions.
const SIZE: f64 = 1000.0;

/// Draws a plot; `name` is for people who cannot see it.
pub(super) fn plot(plot: &Plot, name: &str, lang: Lang) -> Markup {
    match plot {
        Plot::Lines(lines) => lines_of(lines, name, lang),
        Plot::Histogram(histogram) => histogram_of(histogram, name, lang),
        Plot::Strips(strips) => strips_of(strips, name, lang),
        Plot::Lanes(lanes) => lanes_of(lanes, name, lang),
    }
}

fn lines_of(lines: &Lines, name: &str, lang: Lang) -> Markup {
    let points = || lines.curves.iter().flat_map(|curve| &curve.points);
    let Some((x, y)) = extent(points()) else {
        return html! { p.empty { (lang.say("nothing to draw yet", "هنوز چیزی برای رسم نیست")) } };
    };
    let along = Axis::along(x.0, x.1, lines.x, lang);
    let upright = Axis::upright(y.0, y.1, lines.y, lang);
    let x_name = match lines.x {
        Measure::Seconds => lang.say("time", "زمان"),
        _ => lang.say("step", "گام"),
    };
    let drawing = html! { @for (place, curve) in lines.curves.iter().enumerate() {
        (curve_of(curve, place, &along, &upright))
    } };
    html! {
        div.plot {
            (legend(lines.curves.iter().enumerate().map(|(place, curve)| {
                (format!("line c{}", place % 6), curve.name.clone())
            })))
            (framed(&drawing, &along, &upright, x_name, name))
        }
    }
}

fn extent<'a>(points: impl Iterator<Item = &'a (f64, f64)>) -> Option<((f64, f64), (f64, f64))> {
    points.fold(None, |found, &(x, y)| {
        let (along, upright) = found.unwrap_or(((x, x), (y, y)));
        Some(((along.0.min(x), along.1.max(x)), (upright.0.min(y), upright.1.max(y))))
    })
}

fn curve_of(curve: &Curve, place: usize, along: &Axis, upright: &Axis) -> Markup {
    let spots: Vec<(f64, f64)> = curve
        .points
        .iter()
        .map(|&(x, y)| (SIZE * along.place(x), SIZE * (1.0 - upright.place(y))))
        .collect();
    let mut line = String::new();
    for (x, y) in &spots {
        let _ = write!(line, "{},{} ", short(*x), short(*y));
    }
    let class = format!("curve c{}", place % 6);
    html! {
        polyline class=(class) points=(line.trim_end()) {}
        @if curve.marks == Marks::Dots || spots.len() == 1 {
            // A line of zero length with round ends is a dot that scaling does not distort.
            @for (x, y) in &spots {
                path class={ (class) " dot" } d={ "M" (short(*x)) " " (short(*y)) "h0" } {}
            }
        }
    }
}

fn histogram_of(histogram: &Histogram, name: &str, lang: Lang) -> Markup {
    let Histogram { from, width, counts, x } = histogram;
    let to = from + width * counts.len() as f64;
    let along = Axis::along(*from, to, *x, lang);
    let most = counts.iter().copied().max().unwrap_or(0);
    let upright = Axis::upright(0.0, most.max(1) as f64, Measure::Count, lang);
    let one = SIZE / counts.len() as f64;
    let drawing = html! { @for (place, count) in counts.iter().enumerate() {
        @let height = SIZE * upright.place(*count as f64);
        rect.count x=(short(one * place as f64)) y=(short(SIZE - height))
            width=(short(one * 0.92)) height=(short(height)) {
            title { (lang.seconds(from + width * (place as f64 + 0.5))) ": " (lang.count(*count)) }
        }
    } };
    let what = lang.say("step time", "زمان گام");
    html! { div.plot { (framed(&drawing, &along, &upright, what, name)) } }
}

/// A drawing with its axes.
fn framed(drawing: &Markup, along: &Axis, upright: &Axis, x_name: &str, name: &str) -> Markup {
    let x_label = if along.unit.is_empty() {
        x_name.to_string()
    } else {
        format!("{x_name} ({})", along.unit)
    };
    html! {
        div.frame dir="ltr" {
            @if !upright.unit.is_empty() { span.unit { (upright.unit) } }
            svg.ylabels aria-hidden="true" { @for (value, label) in &upright.ticks {
                text x="100%" y=(percent(1.0 - upright.place(*value))) { (label) }
            } }
            svg.drawing viewBox={ "0 0 " (SIZE) " " (SIZE) } preserveAspectRatio="none"
                role="img" aria-label=(name) {
                @for (value, _) in &upright.ticks {
                    @let y = short(SIZE * (1.0 - upright.place(*value)));
                    path.grid d={ "M0 " (y) "H" (SIZE) } {}
                }
                (drawing)
            }
            (x_labels(along))
            span.xname dir="auto" { (x_label) }
        }
    }
}

fn x_labels(along: &Axis) -> Markup {
    html! { svg.xlabels aria-hidden="true" { @for (value, label) in &along.ticks {
        @let place = along.place(*value);
        @let anchor = if place < 0.04 { "start" } else if place > 0.96 { "end" } else { "middle" };
        text x=(percent(place)) y="0.9em" text-anchor=(anchor) { (label) }
    } } }
}

fn strips_of(strips: &Strips, name: &str, lang: Lang) -> Markup {
    let along = Axis::along(strips.span.0, strips.span.1, Measure::Seconds, lang);
    let rows = strips.rows.iter().map(|row| {
        let mut paths = [String::new(), String::new(), String::new()];
        for (begin, end, shares) in &row.columns {
            let (left, right) = (SIZE * along.place(*begin), SIZE * along.place(*end));
            let mut top = 100.0;
            for (path, share) in paths.iter_mut().zip(shares) {
                let height = 100.0 * share.clamp(0.0, 1.0);
                top -= height;
                rectangle(path, left, top, right - left, height);
            }
        }
        (row.name.clone(), paths)
    });
    rows_of(rows.collect(), &strips.parts, "part", &along, name, lang)
}

fn lanes_of(lanes: &Lanes, name: &str, lang: Lang) -> Markup {
    let along = Axis::along(lanes.span.0, lanes.span.1, Measure::Seconds, lang);
    let rows = lanes.rows.iter().map(|lane| {
        let mut paths = [String::new(), String::new(), String::new()];
        for (begin, end, state) in &lane.spans {
            let (left, right) = (SIZE * along.place(*begin), SIZE * along.place(*end));
            // Thinner than a hair would not be drawn at all.
            let width = (right - left).max(0.5);
            rectangle(&mut paths[(*state).min(2)], left, 0.0, width, 100.0);
        }
        (lane.name.clone(), paths)
    });
    rows_of(rows.collect(), &lanes.states, "state", &along, name, lang)
}

fn rectangle(path: &mut String, x: f64, y: f64, width: f64, height: f64) {
    if width <= 0.0 || height <= 0.05 {
        return;
    }
    let (x, y, width, height) = (short(x), short(y), short(width), short(height));
    let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
}

fn rows_of(
    rows: Vec<(String, [String; 3])>,
    parts: &[String],
    kind: &str,
    along: &Axis,
    name: &str,
    lang: Lang,
) -> Markup {
    html! {
        div.plot {
            (legend(parts.iter().enumerate().map(|(place, part)| {
                (format!("{kind} p{place}"), part.clone())
            })))
            div.rows dir="ltr" role="img" aria-label=(name) {
                @for (row, paths) in &rows {
                    span.name { (row) }
                    svg.row viewBox={ "0 0 " (SIZE) " 100" } preserveAspectRatio="none" {
                        @for (place, path) in paths.iter().enumerate().filter(|(_, d)| !d.is_empty()) {
                            path class={ (kind) " p" (place) } d=(path) {}
                        }
                    }
                }
                (x_labels(along))
                span.xname dir="auto" { (lang.say("time", "زمان")) " (" (along.unit) ")" }
            }
        }
    }
}

fn legend(entries: impl Iterator<Item = (String, String)>) -> Markup {
    html! { ul.legend { @for (class, name) in entries {
        li {
            svg.key viewBox="0 0 20 10" aria-hidden="true" {
                @if class.starts_with("line") {
                    path class=(class.replace("line", "curve")) d="M0 5H20" {}
                } @else {
                    rect class=(class) width="20" height="10" {}
                }
            }
            bdi { (name) }
        }
    } } }
}

/// A coordinate with one decimal, and none where it is whole.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(String::from).unwrap_or(text)
}

fn percent(share: f64) -> String {
    format!("{}%", short(share * 100.0))
}
