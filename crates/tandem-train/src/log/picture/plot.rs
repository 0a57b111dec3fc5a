//! A heat map with a time axis, the common part of all pictures.
//!
//! In: a function that returns the value of a row and a frame. Out: a [`Canvas`] with frame, time axis
//! and colour scale. The caller adds the labels of the rows.

use super::canvas::{Canvas, Colour, INK, LETTER};
use tandem_audio::mel::MelConfig;
use tandem_units::{Samples, Seconds};

/// Room around the plot: left, top, right, bottom.
pub(super) const MARGIN: [usize; 4] = [88, 56, 96, 56];
pub(super) const NARROWEST: usize = 640;
pub(super) const WIDEST: usize = 4000;
const TALLEST: usize = 480;
/// Five points of the perceptually uniform viridis colour map (van der Walt, Smith).
const MAP: [Colour; 5] =
    [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/// The values to draw.
pub(super) struct Table<'a> {
    pub(super) rows: usize,
    pub(super) frames: usize,
    /// Values of the darkest and the brightest colour.
    pub(super) range: Range,
    /// The value of a row and a frame; row 0 is at the bottom.
    pub(super) value: &'a dyn Fn(usize, usize) -> f32,
    /// Unit of the values.
    pub(super) unit: &'static str,
    /// Two lines above the plot.
    pub(super) title: [&'a str; 2],
}

/// A drawn plot, to which the caller adds labels.
pub(super) struct Plot {
    pub(super) canvas: Canvas,
    pub(super) rows: usize,
    pub(super) height: usize,
}

impl Plot {
    pub(super) fn draw(table: &Table<'_>, settings: &MelConfig) -> Plot {
        let [left, top, right, bottom] = MARGIN;
        let (frames, rows) = (table.frames, table.rows);
        // Frames of long recordings share pixel columns; those of short ones are several pixels wide.
        let width = if frames >= NARROWEST { frames.min(WIDEST) } else { NARROWEST };
        let height = (TALLEST / rows).max(1) * rows;
        let mut canvas = Canvas::new(left + width + right, top + height + bottom);
        for x in 0..width {
            let (from, to) = (x * frames / width, ((x + 1) * frames).div_ceil(width).min(frames));
            for y in 0..height {
                let row = (height - 1 - y) * rows / height;
                let sum = (from..to).map(|frame| (table.value)(row, frame)).sum::<f32>();
                canvas.set(left + x, top + y, colour(table.range.share(sum / (to - from) as f32)));
            }
        }
        canvas.frame(left, top, width, height);
        draw_seconds(&mut canvas, [width, height], frames, settings);
        draw_scale(&mut canvas, [width, height], &table.range, table.unit);
        canvas.text(left, 8, table.title[0]);
        canvas.text(left, 8 + LETTER + 4, table.title[1]);
        Plot { canvas, rows, height }
    }

    /// Draws about four ticks with row numbers. Returns the row and the y coordinate of each.
    pub(super) fn number_rows(&mut self, what: &str) -> Vec<(usize, usize)> {
        let [left, top, ..] = MARGIN;
        let mut ticks = Vec::new();
        for row in (0..self.rows).step_by((self.rows / 4).max(1)) {
            let y = top + self.height - 1 - (2 * row + 1) * self.height / (2 * self.rows);
            self.canvas.fill(left - 6, y, 6, 1, INK);
            let label = format!("{row}");
            let x = left - 10 - label.len() * LETTER;
            self.canvas.text(x, y.saturating_sub(LETTER / 2), &label);
            ticks.push((row, y));
        }
        self.canvas.small_text(4, top - 14, what);
        ticks
    }
}

fn draw_seconds(
    canvas: &mut Canvas,
    [width, height]: [usize; 2],
    frames: usize,
    settings: &MelConfig,
) {
    let [left, top, ..] = MARGIN;
    let Seconds(total) = settings.rate.seconds(Samples(frames * settings.hop.0));
    let step = tidy_step(total / 6.0);
    let ticks = (0..).map(|i| f64::from(i) * step).take_while(|second| *second <= total);
    for second in ticks {
        let x = left + (second / total * width as f64) as usize;
        canvas.fill(x, top + height, 1, 6, INK);
        let label = if step < 1.0 { format!("{second:.1}") } else { format!("{second:.0}") };
        canvas.text(x.saturating_sub(label.len() * LETTER / 2), top + height + 8, &label);
    }
    canvas.text(left + width / 2 - 7 * LETTER / 2, top + height + 8 + LETTER + 4, "seconds");
}

/// The colour scale at the right.
fn draw_scale(canvas: &mut Canvas, [width, height]: [usize; 2], range: &Range, unit: &str) {
    let x = MARGIN[0] + width + 16;
    let top = MARGIN[1];
    for y in 0..height {
        let share = 1.0 - y as f32 / height as f32;
        canvas.fill(x, top + y, 14, 1, colour(share));
    }
    canvas.frame(x, top, 14, height);
    for (y, value) in [(top, range.highest), (top + height - LETTER / 2, range.lowest)] {
        canvas.small_text(x + 20, y, &format!("{value:.1}"));
    }
    canvas.small_text(x + 20, top + height / 2, unit);
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn tidy_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(0.1).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|s| *s >= least)
        .unwrap_or(power)
}

pub(super) struct Range {
    pub(super) lowest: f32,
    pub(super) highest: f32,
}

impl Range {
    pub(super) fn of(values: &[f32]) -> Range {
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

fn colour(share: f32) -> Colour {
    let position = share.clamp(0.0, 1.0) * (MAP.len() - 1) as f32;
    let index = (position as usize).min(MAP.len() - 2);
    let part = position - index as f32;
    let (from, to) = (MAP[index], MAP[index + 1]);
    [0, 1, 2].map(|c| (f32::from(from[c]) * (1.0 - part) + f32::from(to[c]) * part).round() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick_steps_are_round_numbers() {
        for (least, step) in [(0.02, 0.1), (0.3, 0.5), (0.7, 1.0), (1.4, 2.0), (30.0, 50.0)] {
            assert!((tidy_step(least) - step).abs() < 1e-9, "{least}: {}", tidy_step(least));
        }
    }
}
