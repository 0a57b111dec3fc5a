//! Charts of measured points, as SVG and as PNG.
//!
//! In: [`Panel`]s, one above the other. Out: the bytes of a file; the PNG is the same drawing ([`crate::picture`]).

use crate::axis::Axis;
use crate::picture::{FONT, PictureError, Pixels};
use crate::plot::Measure;
use maud::{Markup, html};
use std::fmt::Write;
use tandem_units::Lang;

/// Points of one measure over another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    pub title: String,
    /// What is measured, with its unit.
    pub measure: String,
    /// What it is measured over.
    pub over: String,
    /// The points, from left to right.
    pub points: Vec<Point>,
    /// A marked x value and its label.
    pub mark: Option<(f64, String)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// The interval around it.
    pub range: Option<(f64, f64)>,
}

/// Pixels across, and down for each panel.
const SIZE: (u32, u32) = (840, 360);
/// Room around the points: left, top, right, bottom.
const MARGIN: [f64; 4] = [90.0, 56.0, 24.0, 60.0];
const LINE: &str = "#2169b4";
const MARK: &str = "#c44e14";
const INK: &str = "#282828";
const GRID: &str = "#dddddd";

pub fn svg(panels: &[Panel]) -> Result<String, PictureError> {
    if panels.is_empty() || panels.iter().any(|panel| panel.points.is_empty()) {
        return Err(PictureError::Empty { what: "no points" });
    }
    let (width, height) = size_of(panels);
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) }
            font-family={ (FONT) ", sans-serif" } font-size="14" fill=(INK) {
            rect width=(width) height=(height) fill="white" {}
            @for (place, panel) in panels.iter().enumerate() {
                g transform={ "translate(0 " (SIZE.1 * place as u32) ")" } { (panel_of(panel)) }
            }
        }
    };
    Ok(drawing.into_string())
}

pub fn png(panels: &[Panel]) -> Result<Vec<u8>, PictureError> {
    let (width, height) = size_of(panels);
    let pixels = Pixels::white(width, height).draw(&svg(panels)?)?;
    Ok(pixels.picture()?.png)
}

fn size_of(panels: &[Panel]) -> (u32, u32) {
    (SIZE.0, SIZE.1 * panels.len().max(1) as u32)
}

fn panel_of(panel: &Panel) -> Markup {
    let [left, top, right, bottom] = MARGIN;
    let (width, height) = (f64::from(SIZE.0) - left - right, f64::from(SIZE.1) - top - bottom);
    let highs = panel.points.iter().map(|point| point.range.map_or(point.y, |range| range.1));
    let (first, last) = (panel.points.first(), panel.points.last());
    let [first, last] = [first, last].map(|point| point.map_or(0.0, |point| point.x));
    // Points at both ends keep clear of the frame.
    let room = ((last - first) * 0.06).max(1.0);
    let along = Axis::along((first - room).max(0.0), last + room, Measure::Count, Lang::En);
    let upright = Axis::upright(0.0, highs.fold(0.0, f64::max), Measure::Number, Lang::En);
    let x = |value: f64| short(left + width * along.place(value));
    let y = |value: f64| short(top + height * (1.0 - upright.place(value)));
    let (bottom, right) = (top + height, left + width);
    let mut line = String::new();
    for point in &panel.points {
        let _ = write!(line, "{},{} ", x(point.x), y(point.y));
    }
    html! {
        text x=(short(left + width / 2.0)) y="32" text-anchor="middle" font-size="18" { (panel.title) }
        @for (value, label) in &upright.ticks {
            path d={ "M" (left) " " (y(*value)) "H" (right) } stroke=(GRID) {}
            text x=(left - 8.0) y=(y(*value)) dy="5" text-anchor="end" { (label) }
        }
        @for (value, label) in &along.ticks {
            path d={ "M" (x(*value)) " " (bottom) "v6" } stroke=(INK) {}
            text x=(x(*value)) y=(bottom + 22.0) text-anchor="middle" { (label) }
        }
        path d={ "M" (left) " " (top) "V" (bottom) "H" (right) } fill="none" stroke=(INK) {}
        text x=(short(left + width / 2.0)) y=(bottom + 46.0) text-anchor="middle" { (panel.over) }
        text transform={ "translate(24 " (short(top + height / 2.0)) ") rotate(-90)" } text-anchor="middle" { (panel.measure) }
        @if let Some((value, label)) = &panel.mark {
            path d={ "M" (x(*value)) " " (top) "V" (bottom) } stroke=(MARK) stroke-width="1.5" {}
            text x=(x(*value)) dx="6" y=(bottom - 10.0) fill=(MARK) { (label) }
        }
        @for (point, (low, high)) in panel.points.iter().filter_map(|point| Some((point, point.range?))) {
            path d={ "M" (x(point.x)) " " (y(low)) "V" (y(high)) } stroke=(LINE) {}
        }
        polyline points=(line.trim_end()) fill="none" stroke=(LINE) stroke-width="2" {}
        @for point in &panel.points {
            circle cx=(x(point.x)) cy=(y(point.y)) r="4" fill=(LINE) {}
        }
    }
}

fn short(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panels() -> Vec<Panel> {
        let point = |(x, y): (f64, f64)| Point { x, y, range: Some((y * 0.9, y * 1.1)) };
        let points = [(4.0, 10.0), (8.0, 17.0), (16.0, 21.0)].map(point).to_vec();
        let (title, over) = ("Throughput".to_string(), "batch size".to_string());
        let mark = Some((8.0, "knee: 8 <".to_string()));
        vec![Panel { title, measure: "samples/s".into(), over, points, mark }]
    }

    #[test]
    fn the_svg_holds_its_words_as_words() {
        let text = svg(&panels()).unwrap();
        for word in ["<svg", "Throughput", "samples/s", "batch size", "knee: 8 &lt;", "circle"] {
            assert!(text.contains(word), "{word} in {text}");
        }
    }

    #[test]
    fn the_png_has_a_line_a_mark_and_letters() {
        let bytes = png(&panels()).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), SIZE);
        let count = |wanted: [u8; 3]| pixels.chunks(3).filter(|pixel| *pixel == wanted).count();
        assert!(count([33, 105, 180]) > 400, "the line: {}", count([33, 105, 180]));
        assert!(count([196, 78, 20]) > 200, "the mark: {}", count([196, 78, 20]));
        assert!(count([40, 40, 40]) > 300, "the letters: {}", count([40, 40, 40]));
    }

    #[test]
    fn nothing_is_refused() {
        assert!(matches!(svg(&[]), Err(PictureError::Empty { .. })));
        assert!(matches!(png(&[Panel::default()]), Err(PictureError::Empty { .. })));
    }

    #[test]
    fn a_single_point_and_zeros_can_be_drawn() {
        let points = vec![Point::default()];
        assert!(svg(&[Panel { points, ..Panel::default() }]).is_ok());
    }
}
