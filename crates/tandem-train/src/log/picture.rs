//! Plots of mel features and alignments: time on the x axis, bright is loud or likely.
//!
//! In: values from host memory. Out: [`Picture`]: the bytes of a PNG and its size. Writes no file and starts no thread.
//! Next: [`crate::log`].

use tandem_audio::mel::{MelConfig, hz_of_mel, mel_of_hz};
use tandem_plot::heat_map::{HeatMap, Range};
use tandem_plot::picture::Pixels;
use tandem_plot::{Picture, PictureError};
use tandem_units::{Samples, Seconds};

/// Which frames belong to which symbol.
#[derive(Clone, Debug, PartialEq)]
pub enum Alignment {
    /// A hard alignment: the number of frames of each symbol, in order.
    Path(Vec<u32>),
    /// A soft alignment: a weight from 0 up for each pair. Shape: `[symbols, frames]`.
    Soft { symbols: usize, weights: Vec<f32> },
}

/// Mel features, low bands at the bottom. Shape: `[frames, bands]`, frame after frame.
pub fn mel(title: &str, frames: &[f32], settings: &MelConfig) -> Result<Picture, PictureError> {
    draw_mel(title, frames, settings)?.picture()
}

/// An alignment, the first symbol at the bottom.
pub fn alignment(
    title: &str,
    alignment: &Alignment,
    settings: &MelConfig,
) -> Result<Picture, PictureError> {
    draw_alignment(title, alignment, settings)?.picture()
}

fn draw_mel(title: &str, values: &[f32], settings: &MelConfig) -> Result<Pixels, PictureError> {
    let bands = settings.bands;
    let frames = full_rows(values, bands)?;
    let (low, high) = (mel_of_hz(settings.low.into()), mel_of_hz(settings.high.into()));
    let hertz =
        |band: usize| hz_of_mel(low + (high - low) * (band + 1) as f64 / (bands + 1) as f64);
    let map = HeatMap {
        rows: bands,
        frames,
        duration: duration(frames, settings),
        range: Range::of(values),
        value: &|band, frame| values[frame * bands + band],
        unit: "ln",
        title: [title, &facts(settings)],
        row_name: "mel band, centre",
        row_label: &|band| format!("{band}, {:.0} Hz", hertz(band)),
    };
    map.draw()
}

fn duration(frames: usize, settings: &MelConfig) -> Seconds {
    settings.rate.seconds(Samples(frames * settings.hop.0))
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
) -> Result<Pixels, PictureError> {
    let draw = |rows, frames, highest, value: &dyn Fn(usize, usize) -> f32, kind: &str| {
        let map = HeatMap {
            rows,
            frames,
            duration: duration(frames, settings),
            range: Range { lowest: 0.0, highest },
            value,
            unit: "weight",
            title: [title, &format!("{rows} symbols x {frames} frames, {kind}")],
            row_name: "symbol",
            row_label: &|row| row.to_string(),
        };
        map.draw()
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
            draw(lengths.len(), frames, 1.0, &inside, "path")
        }
        Alignment::Soft { symbols, weights } => {
            let symbols = *symbols;
            if symbols == 0 {
                return Err(PictureError::Empty { what: "no symbols" });
            }
            let frames = full_rows(weights, symbols)?;
            let weight = |symbol: usize, frame: usize| weights[symbol * frames + frame];
            draw(symbols, frames, Range::of(weights).highest, &weight, "weights")
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

#[cfg(test)]
mod tests;
