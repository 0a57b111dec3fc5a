//! MP3, OGG Vorbis, the FLAC that [`super::flac`] leaves, and the telephone codecs inside WAV, through symphonia.
//!
//! In: bytes already known to be one of these. Out: mono samples at the file's own rate.
//! Never allocates by the length in a header: samples are counted while they are decoded, and decoding
//! stops at the limit, so that a small file cannot expand to hours of sound.
//! May panic on crafted files: the caller runs it inside [`tandem_units::panic_guard::catch_panic`].

use super::config::check_layout;
use super::sniff::AudioFormat;
use super::vorbis_setup::check_setup;
use super::{AudioConfig, AudioError};
use std::io::{Cursor, ErrorKind};
use symphonia::core::codecs::audio::well_known::{CODEC_ID_OPUS, CODEC_ID_VORBIS};
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream, ReadOnlySource};
use symphonia::default::formats::{FlacReader, MpaReader, OggReader, WavReader};
use tandem_units::{Bytes, SampleRate, Samples};

/// Scratch for one packet before its channels are mixed; one per worker.
#[derive(Debug, Default)]
pub struct CompressedReader {
    packet: Vec<f32>,
}

/// An opened stream and its header.
struct Stream<'a> {
    reader: Box<dyn FormatReader + 'a>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    rate: SampleRate,
    channels: usize,
    /// Frames by the header, if that is reliable.
    claimed: Option<u64>,
    size: Bytes,
}

impl CompressedReader {
    /// Decodes everything to mono, full scale at 1.0, and replaces the contents of `mono`.
    pub fn decode(
        &mut self,
        kind: AudioFormat,
        bytes: &[u8],
        limits: &AudioConfig,
        mono: &mut Vec<f32>,
    ) -> Result<SampleRate, AudioError> {
        let mut stream = Stream::open(kind, bytes)?;
        if let Some(frames) = stream.claimed {
            limits.check_length(frames, stream.rate)?;
        }
        mono.clear();
        let most = limits.max_frames(stream.rate);
        while self.next_packet(&mut stream, mono)? {
            if mono.len() > most {
                return Err(AudioError::Endless { limit: limits.max_length, size: stream.size });
            }
        }
        stream.check_complete(mono.len())?;
        Ok(stream.rate)
    }

    /// Decodes one packet onto the end of `mono`; false at the end of the stream.
    fn next_packet(&mut self, s: &mut Stream<'_>, mono: &mut Vec<f32>) -> Result<bool, AudioError> {
        let undecodable = |error: Error| AudioError::Undecodable {
            at: s.rate.seconds(Samples(mono.len())),
            source: Box::new(error),
        };
        let packet = match s.reader.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => return Ok(false),
            // The stream ended early: the check of the whole length reports what is missing.
            Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                return s.check_complete(mono.len()).and_then(|()| {
                    Err(AudioError::Malformed { reason: "the stream ends without its last page" })
                });
            }
            Err(Error::ResetRequired) => {
                return Err(AudioError::Unsupported { format: "several streams in a row".into() });
            }
            Err(error) => return Err(undecodable(error)),
        };
        if packet.track_id != s.track {
            return Ok(true);
        }
        let sound = s.decoder.decode(&packet).map_err(undecodable)?;
        let spec = sound.spec();
        if spec.rate() != s.rate.0 || spec.channels().count() != s.channels {
            return Err(AudioError::Malformed {
                reason: "rate or channels change within the file",
            });
        }
        sound.copy_to_vec_interleaved(&mut self.packet);
        if s.channels == 1 {
            mono.extend_from_slice(&self.packet);
        } else {
            let share = 1.0 / s.channels as f32;
            let frames = self.packet.chunks_exact(s.channels);
            mono.extend(frames.map(|frame| frame.iter().sum::<f32>() * share));
        }
        Ok(true)
    }
}

impl<'a> Stream<'a> {
    fn open(kind: AudioFormat, bytes: &'a [u8]) -> Result<Self, AudioError> {
        let reader = open_reader(kind, bytes).map_err(header_error)?;
        let track = reader.default_track(TrackType::Audio).ok_or(AudioError::NotAudio)?;
        let unknown = || AudioError::Unsupported { format: "the codec in this container".into() };
        let params = track.codec_params.as_ref().and_then(|p| p.audio()).ok_or_else(unknown)?;
        if params.codec == CODEC_ID_VORBIS {
            check_setup(params.extra_data.as_deref().unwrap_or(&[]))?;
        }
        let decoder = symphonia::default::get_codecs()
            .make_audio_decoder(params, &AudioDecoderOptions::default())
            .map_err(|error| match error {
                Error::Unsupported(_) if params.codec == CODEC_ID_OPUS => {
                    AudioError::Unsupported { format: "Opus".into() }
                }
                Error::Unsupported(_) => unknown(),
                error => header_error(error),
            })?;
        let channels = params.channels.as_ref().map_or(0, |channels| channels.count());
        let rate = check_layout(params.sample_rate.unwrap_or(0), channels)?;
        let (track, claimed) = (track.id, track.num_frames);
        Ok(Self { reader, decoder, track, rate, channels, claimed, size: Bytes::of_slice(bytes) })
    }

    /// Refuses a stream that is shorter than its header says.
    fn check_complete(&self, held: usize) -> Result<(), AudioError> {
        // Encoders differ by one frame (1152 samples) in the length of an MP3 header.
        const SLACK: u64 = 1152;
        match self.claimed {
            Some(claimed) if held as u64 + SLACK < claimed => Err(AudioError::TruncatedSound {
                claimed: self.rate.seconds(Samples(claimed as usize)),
                held: self.rate.seconds(Samples(held)),
            }),
            _ => Ok(()),
        }
    }
}

fn open_reader(kind: AudioFormat, bytes: &[u8]) -> Result<Box<dyn FormatReader + '_>, Error> {
    let options = FormatOptions::default();
    // Without a length tag, the length of an MP3 would be estimated from a seekable source, and the
    // sound would be cut at the estimate. FLAC needs no seeking either; Ogg seeks to its last page.
    let source: Box<dyn MediaSource + '_> = match kind {
        AudioFormat::Flac | AudioFormat::Mp3 => Box::new(ReadOnlySource::new(Cursor::new(bytes))),
        AudioFormat::Wav | AudioFormat::Ogg => Box::new(Cursor::new(bytes)),
    };
    let stream = MediaSourceStream::new(source, Default::default());
    Ok(match kind {
        AudioFormat::Wav => Box::new(WavReader::try_new(stream, options)?),
        AudioFormat::Flac => Box::new(FlacReader::try_new(stream, options)?),
        AudioFormat::Mp3 => Box::new(MpaReader::try_new(stream, options)?),
        AudioFormat::Ogg => Box::new(OggReader::try_new(stream, options)?),
    })
}

fn header_error(error: Error) -> AudioError {
    match error {
        Error::Unsupported(what) => AudioError::Unsupported { format: what.into() },
        Error::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            AudioError::Malformed { reason: "the file ends in its header" }
        }
        error => AudioError::Undecodable { at: Default::default(), source: Box::new(error) },
    }
}
