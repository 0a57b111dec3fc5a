//! FLAC in parts: a stream header with an unknown length, then frames as samples arrive.
//!
//! In: 16-bit levels of each part. Out: whole frames. All frames except the last have the same length,
//! as the format demands, so up to one frame of a part waits for the next part.

use crate::Sound;
use flacenc::bitsink::ByteSink;
use flacenc::component::{BitRepr, Stream, StreamInfo};
use flacenc::config;
use flacenc::error::{Verified, Verify};
use flacenc::source::{Fill, FrameBuf, MemSource};
use tandem_units::SampleRate;

/// Samples of a frame.
const BLOCK: usize = 4096;
const BITS: usize = 16;

/// Whether more parts follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPosition {
    More,
    Last,
}

/// One stream.
pub struct FlacStream {
    rate: usize,
    frames: usize,
    began: bool,
    waiting: Vec<i32>,
}

impl FlacStream {
    pub fn new(rate: SampleRate) -> FlacStream {
        FlacStream { rate: rate.0 as usize, frames: 0, began: false, waiting: Vec::new() }
    }

    /// The bytes of the frames that are complete. Errors are those of the library.
    pub fn encode(&mut self, levels: &[i32], place: BlockPosition) -> Result<Vec<u8>, String> {
        let failed = |error: &dyn std::fmt::Debug| format!("cannot encode FLAC: {error:?}");
        let config =
            config::Encoder::default().into_verified().map_err(|(_, error)| failed(&error))?;
        let first = !std::mem::replace(&mut self.began, true);
        let mut sink = ByteSink::new();
        if first && place == BlockPosition::Last {
            // All of it is known: with length and checksum.
            let source = MemSource::from_samples(levels, 1, BITS, self.rate);
            let stream = flacenc::encode_with_fixed_block_size(&config, source, BLOCK);
            let mut stream = stream.map_err(|error| failed(&error))?;
            // The library counts the last frame, which the format leaves out of the least length.
            let info = stream.stream_info_mut();
            info.set_block_sizes(BLOCK, BLOCK).map_err(|error| failed(&error))?;
            stream.write(&mut sink).map_err(|error| failed(&error))?;
            return Ok(sink.into_inner());
        }
        let mut info = StreamInfo::new(self.rate, 1, BITS).map_err(|error| failed(&error))?;
        info.set_block_sizes(BLOCK, BLOCK).map_err(|error| failed(&error))?;
        // Zero means unknown.
        info.set_frame_sizes(0, 0).map_err(|error| failed(&error))?;
        if first {
            let header = Stream::with_stream_info(info.clone());
            header.write(&mut sink).map_err(|error| failed(&error))?;
        }
        self.waiting.extend_from_slice(levels);
        let whole = self.waiting.len() / BLOCK * BLOCK;
        let end = if place == BlockPosition::Last { self.waiting.len() } else { whole };
        let ready: Vec<i32> = self.waiting.drain(..end).collect();
        for block in ready.chunks(BLOCK) {
            self.frame(block, &config, &info, &mut sink).map_err(|error| failed(&error))?;
        }
        Ok(sink.into_inner())
    }

    fn frame(
        &mut self,
        block: &[i32],
        config: &Verified<config::Encoder>,
        info: &StreamInfo,
        sink: &mut ByteSink,
    ) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Debug| format!("{error:?}");
        let mut buffer = FrameBuf::with_size(1, BLOCK).map_err(|error| text(&error))?;
        buffer.fill_interleaved(block).map_err(|error| text(&error))?;
        let frame = flacenc::encode_fixed_size_frame(config, &buffer, self.frames, info);
        frame.map_err(|error| text(&error))?.write(sink).map_err(|error| text(&error))?;
        self.frames += 1;
        Ok(())
    }
}

/// The bytes of a whole file with 16 bits. Samples of 16 bits are kept exactly; others are rounded, and cut at full scale.
pub fn flac_file(sound: Sound<'_>, rate: SampleRate) -> Result<Vec<u8>, String> {
    let rounded = |sample: &f32| (sample * 32768.0).round().clamp(-32768.0, 32767.0) as i32;
    let levels: Vec<i32> = match sound {
        Sound::I16(samples) => samples.iter().map(|sample| i32::from(*sample)).collect(),
        Sound::F32(samples) => samples.iter().map(rounded).collect(),
    };
    FlacStream::new(rate).encode(&levels, BlockPosition::Last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AudioConfig, Decoder};

    #[test]
    fn a_file_holds_the_samples_it_was_made_of() {
        let rate = SampleRate(22_050);
        let samples: Vec<i16> = (0..9000).map(|i| (i * 37 % 20_000 - 10_000) as i16).collect();
        let bytes = flac_file(Sound::I16(&samples), rate).unwrap();
        let mut decoder = Decoder::new(rate, AudioConfig::default());
        let found = decoder.decode(&bytes, Some("flac")).unwrap().to_f32();
        let expected: Vec<f32> =
            samples.iter().map(|&sample| f32::from(sample) / 32768.0).collect();
        assert_eq!(found, expected);
        let again = flac_file(Sound::F32(&expected), rate).unwrap();
        assert_eq!(again, bytes, "floats of 16 bits are not changed either");
    }
}
