//! Encodes sound as a WAV file: one channel, 16 bits.
//!
//! In: samples. Out: bytes. Writes no file.

use std::io::Cursor;
use tandem_units::SampleRate;

/// Full scale is 1.0. Louder samples are clipped, NaN becomes silence.
pub(super) fn wav(samples: &[f32], rate: SampleRate) -> Result<Vec<u8>, hound::Error> {
    let format = hound::WavSpec {
        channels: 1,
        sample_rate: rate.0,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = Vec::new();
    let mut writer = hound::WavWriter::new(Cursor::new(&mut bytes), format)?;
    for sample in samples {
        // The cast saturates and converts NaN to 0.
        writer.write_sample((sample * f32::from(i16::MAX)).round() as i16)?;
    }
    writer.finalize()?;
    Ok(bytes)
}
