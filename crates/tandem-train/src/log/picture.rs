//! Plots of mel features and alignments: time on the x axis, bright is loud or likely.
//!
//! In: values from host memory. Out: [`Picture`]: the bytes of a PNG and its size. Draws with its own
//! canvas; writes no file and starts no thread. Next: [`crate::log`].

mod canvas;
mod plot;

use plot::{MARGIN, Plot, Range, Table};
use tandem_audio::mel::{MelConfig, hz_of_mel, mel_of_hz};
use tandem_units::Hint;

/// An RGB image as PNG.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub png: Vec<u8>,
}

/// Which frames belong to which symbol.
#[derive(Clone, Debug, PartialEq)]
pub enum Alignment {
    /// A hard alignment: the number of frames of each symbol, in order.
    Path(Vec<u32>),
    /// A soft alignment: a weight from 0 up for each pair. Shape: `[symbols, frames]`.
    Soft { symbols: usize, weights: Vec<f32> },
}

/// Values that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    #[error("there is nothing to draw: {what}")]
    Empty { what: &'static str },
    #[error("{found} values cannot be divided into rows of {row}")]
    Shape { found: usize, row: usize },
    #[error("cannot encode the picture")]
    Encode(#[source] png::EncodingError),
}

impl Hint for PictureError {}

/// Mel features, low bands at the bottom. Shape: `[frames, bands]`, frame after frame.
pub fn mel(title: &str, frames: &[f32], settings: &MelConfig) -> Result<Picture, PictureError> {
    finish(&draw_mel(title, frames, settings)?)
}

/// An alignment, the first symbol at the bottom.
pub fn alignment(
    title: &str,
    alignment: &Alignment,
    settings: &MelConfig,
) -> Result<Picture, PictureError> {
    finish(&draw_alignment(title, alignment, settings)?)
}

fn draw_mel(title: &str, values: &[f32], settings: &MelConfig) -> Result<Plot, PictureError> {
    let bands = settings.bands;
    let table = Table {
        rows: bands,
        frames: full_rows(values, bands)?,
        range: Range::of(values),
        value: &|band, frame| values[frame * bands + band],
        unit: "ln",
        title: [title, &facts(settings)],
    };
    let mut plot = Plot::draw(&table, settings);
    let (low, high) = (mel_of_hz(settings.low.into()), mel_of_hz(settings.high.into()));
    for (band, y) in plot.number_rows("mel band") {
        let centre = low + (high - low) * (band + 1) as f64 / (bands + 1) as f64;
        let hertz = format!("{:.0}Hz", hz_of_mel(centre));
        let half = canvas::LETTER / 2;
        let x = MARGIN[0] - 10 - hertz.len() * half;
        plot.canvas.small_text(x, y.saturating_sub(half + 11), &hertz);
    }
    Ok(plot)
}

fn facts(settings: &MelConfig) -> String {
    format!(
        "{} Hz, n_fft {}, hop {}, {} bands",
        settings.rate.0, settings.n_fft, settings.hop.0, settings.bands
    )
}

fn draw_alignment(
    title: &str,
    alignment: &Alignment,
    settings: &MelConfig,
) -> Result<Plot, PictureError> {
    let draw = |rows, frames, highest, value: &dyn Fn(usize, usize) -> f32, kind: &str| {
        let facts = format!("{rows} symbols x {frames} frames, {kind}");
        let range = Range { lowest: 0.0, highest };
        let table = Table { rows, frames, range, value, unit: "weight", title: [title, &facts] };
        let mut plot = Plot::draw(&table, settings);
        plot.number_rows("symbol");
        plot
    };
    match alignment {
        Alignment::Path(lengths) => {
            let ends: Vec<usize> = lengths
                .iter()
                .scan(0, |end, &length| {
                    *end += length as usize;
                    Some(*end)
                })
                .collect();
            let frames = ends.last().copied().ok_or(PictureError::Empty { what: "no symbols" })?;
            if frames == 0 {
                return Err(PictureError::Empty { what: "no frames" });
            }
            let inside = |symbol: usize, frame: usize| {
                let begin = if symbol == 0 { 0 } else { ends[symbol - 1] };
                if (begin..ends[symbol]).contains(&frame) { 1.0 } else { 0.0 }
            };
            Ok(draw(lengths.len(), frames, 1.0, &inside, "path"))
        }
        Alignment::Soft { symbols, weights } => {
            let symbols = *symbols;
            if symbols == 0 {
                return Err(PictureError::Empty { what: "no symbols" });
            }
            let frames = full_rows(weights, symbols)?;
            let weight = |symbol: usize, frame: usize| weights[symbol * frames + frame];
            Ok(draw(symbols, frames, Range::of(weights).highest, &weight, "weights"))
        }
    }
}

/// The number of rows; fails where the last row is not full.
fn full_rows(values: &[f32], row: usize) -> Result<usize, PictureError> {
    if row == 0 || values.is_empty() {
        return Err(PictureError::Empty { what: "no frames" });
    }
    if !values.len().is_multiple_of(row) {
        return Err(PictureError::Shape { found: values.len(), row });
    }
    Ok(values.len() / row)
}

fn finish(plot: &Plot) -> Result<Picture, PictureError> {
    let canvas = &plot.canvas;
    let png = canvas.png().map_err(PictureError::Encode)?;
    Ok(Picture { width: canvas.width as u32, height: canvas.height as u32, png })
}

#[cfg(test)]
mod tests;
