//! Rows of values over time as colours, with labelled axes and a colour scale.
//!
//! In: a function that returns the value of a row and a frame. Out: [`Pixels`]: the colours, with the axes drawn over them as SVG.

use crate::axis::Axis;
use crate::picture::{FONT, PictureError, Pixels};
use crate::plot::Measure;
use maud::{Markup, html};
use tandem_units::{Lang, Seconds};

/// Room around the colours: left, top, right, bottom.
pub const MARGIN: [usize; 4] = [104, 60, 84, 52];
pub const NARROWEST: usize = 640;
pub const WIDEST: usize = 4000;
const TALLEST: usize = 480;
/// Five points of the perceptually uniform viridis colour map (van der Walt, Smith).
const MAP: [[u8; 3]; 5] =
    [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const INK: &str = "#282828";
/// Width of the colour scale, and its distance from the colours.
const SCALE: [usize; 2] = [14, 16];

/// The values to draw.
pub struct HeatMap<'a> {
    pub rows: usize,
    pub frames: usize,
    /// What all frames take.
    pub duration: Seconds,
    /// Values of the darkest and the brightest colour.
    pub range: Range,
    /// The value of a row and a frame; row 0 is at the bottom.
    pub value: &'a dyn Fn(usize, usize) -> f32,
    /// Unit of the values.
    pub unit: &'static str,
    /// Two lines above the colours.
    pub title: [&'a str; 2],
    /// What the rows are.
    pub row_name: &'static str,
    /// The label of a row.
    pub row_label: &'a dyn Fn(usize) -> String,
}

impl HeatMap<'_> {
    pub fn draw(&self) -> Result<Pixels, PictureError> {
        let [left, top, right, bottom] = MARGIN;
        // Frames of long recordings share pixel columns; those of short ones are several pixels wide.
        let width = if self.frames >= NARROWEST { self.frames.min(WIDEST) } else { NARROWEST };
        let height = (TALLEST / self.rows).max(1) * self.rows;
        let mut pixels =
            Pixels::white((left + width + right) as u32, (top + height + bottom) as u32);
        self.paint(&mut pixels, width, height);
        let svg = self.axes(width, height).into_string();
        pixels.draw(&svg)
    }

    fn paint(&self, pixels: &mut Pixels, width: usize, height: usize) {
        let [left, top, ..] = MARGIN;
        let across = pixels.width as usize;
        let rows = (0..height).map(|y| (height - 1 - y) * self.rows / height);
        for (y, row) in rows.enumerate() {
            let line = &mut pixels.rgb[(top + y) * across..][..across];
            for (x, pixel) in line[left..left + width].iter_mut().enumerate() {
                let from = x * self.frames / width;
                let to = ((x + 1) * self.frames).div_ceil(width).min(self.frames);
                let sum: f32 = (from..to).map(|frame| (self.value)(row, frame)).sum();
                *pixel = colour(self.range.share(sum / (to - from) as f32));
            }
            let [scale_width, distance] = SCALE;
            let bright = colour(1.0 - y as f32 / height as f32);
            line[left + width + distance..][..scale_width].fill(bright);
        }
    }

    fn axes(&self, width: usize, height: usize) -> Markup {
        let [left, top, right, bottom] = MARGIN;
        let (all_width, all_height) = (left + width + right, top + height + bottom);
        let along = Axis::along(0.0, self.duration.0, Measure::Seconds, Lang::En);
        let name = format!("time ({})", along.unit);
        let scale = left + width + SCALE[1];
        let beside = scale + SCALE[0] + 6;
        html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(all_width) height=(all_height) font-family=(FONT) font-size="14" fill=(INK) {
                text x=(left) y="22" font-size="16" { (self.title[0]) }
                text x=(left) y="44" { (self.title[1]) }
                (frame([left, top], [width, height]))
                (frame([scale, top], [SCALE[0], height]))
                @for (second, label) in &along.ticks {
                    @let x = left as f64 + along.place(*second) * width as f64;
                    path d={ "M" (x) " " (top + height) "v6" } stroke=(INK) {}
                    text x=(x) y=(top + height + 21) text-anchor="middle" { (label) }
                }
                text x=(left + width / 2) y=(top + height + 42) text-anchor="middle" { (name) }
                @for row in (0..self.rows).step_by((self.rows / 4).max(1)) {
                    @let y = top as f64 + height as f64 * (1.0 - (row as f64 + 0.5) / self.rows as f64);
                    path d={ "M" (left) " " (y) "h-6" } stroke=(INK) {}
                    text x=(left - 10) y=(y) dy="5" text-anchor="end" { ((self.row_label)(row)) }
                }
                text transform={ "translate(18 " (top + height / 2) ") rotate(-90)" } text-anchor="middle" { (self.row_name) }
                text x=(beside) y=(top + 10) { (number(self.range.highest)) }
                text x=(beside) y=(top + height / 2) { (self.unit) }
                text x=(beside) y=(top + height) { (number(self.range.lowest)) }
            }
        }
    }
}

fn frame([x, y]: [usize; 2], [width, height]: [usize; 2]) -> Markup {
    html! {
        rect x=(x as f64 - 0.5) y=(y as f64 - 0.5) width=(width + 1) height=(height + 1) fill="none" stroke=(INK) {}
    }
}

fn number(value: f32) -> String {
    format!("{value:.1}")
}

pub struct Range {
    pub lowest: f32,
    pub highest: f32,
}

impl Range {
    pub fn of(values: &[f32]) -> Range {
        let values = values.iter().copied();
        let lowest = values.clone().fold(f32::INFINITY, f32::min);
        Range { lowest, highest: values.fold(f32::NEG_INFINITY, f32::max) }
    }

    /// 0 for the lowest value, 1 for the highest.
    fn share(&self, value: f32) -> f32 {
        let width = self.highest - self.lowest;
        if width > 0.0 { (value - self.lowest) / width } else { 0.0 }
    }
}

fn colour(share: f32) -> [u8; 3] {
    let position = share.clamp(0.0, 1.0) * (MAP.len() - 1) as f32;
    let index = (position as usize).min(MAP.len() - 2);
    let part = position - index as f32;
    let (from, to) = (MAP[index], MAP[index + 1]);
    [0, 1, 2].map(|c| (f32::from(from[c]) * (1.0 - part) + f32::from(to[c]) * part).round() as u8)
}
