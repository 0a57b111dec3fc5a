//! Mel frames and alignments as PNG. (Signatures; bodies follow.)

use tandem_data::audio::mel::MelConfig;

/// A PNG and its size.
#[derive(Clone, Debug)]
pub struct Picture { pub width: u32, pub height: u32, pub png: Vec<u8> }

/// Which frames belong to which symbol.
#[derive(Clone, Debug, PartialEq)]
pub enum Alignment {
    /// Frames of each symbol, in order.
    Path(Vec<u32>),
    /// A weight for each pair, `[symbols, frames]`.
    Soft { symbols: usize, weights: Vec<f32> },
}

/// Mel frames, `[frames, bands]`: seconds to the right, low bands at the bottom, bright is loud.
pub fn mel(title: &str, frames: &[f32], settings: &MelConfig) -> Result<Picture, PictureError> { todo!() }
/// An alignment: seconds to the right, the first symbol at the bottom.
pub fn alignment(title: &str, alignment: &Alignment, settings: &MelConfig) -> Result<Picture, PictureError> { todo!() }
