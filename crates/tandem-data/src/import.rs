//! One row of any corpus as a FLAC file of a clean one.
//!
//! In: an [`Utterance`], and how its sound is prepared. Out: the bytes of a FLAC file, mono, at one rate. Of a row that is a
//! part of a longer recording, only that part. Writes nothing and starts no thread: the caller does both.

use crate::corpus::{Part, Utterance};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tandem_audio::flac_stream::flac_file;
use tandem_audio::{AudioConfig, AudioError, Decoder, FileReader, Sound};
use tandem_units::{Bytes, Hint, SampleRate, Seconds};
use xxhash_rust::xxh3::xxh3_64;

/// The longest recording that rows may be parts of: 635 MB of samples at 22 kHz, for each worker.
const LONGEST_WHOLE: Seconds = Seconds(7200.0);
const LARGEST_WHOLE: Bytes = Bytes::mib(2048);

/// Why a row cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Audio(#[from] AudioError),
    #[error("the part from {:.2} s is outside the recording of {length}", start.as_secs_f64())]
    OutsideRecording { start: Duration, length: Seconds },
    #[error("{message}")]
    Encode { message: String },
}

impl Hint for ImportError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Audio(error) => error.hint(),
            Self::OutsideRecording { .. } => {
                Some("correct the times of the row, or delete it".into())
            }
            Self::Encode { .. } => Some("choose another rate with `--rate`".into()),
        }
    }
}

/// Owns the buffers; one per worker.
pub struct Importer {
    root: PathBuf,
    file: FileReader,
    decoder: Decoder,
    /// For recordings that rows are parts of: longer, and not conditioned as a whole.
    whole_decoder: Decoder,
    /// The last one of those; its parts mostly follow each other.
    whole: Option<(PathBuf, Vec<f32>)>,
}

impl Importer {
    pub fn new(root: &Path, rate: SampleRate, audio: AudioConfig) -> Importer {
        let whole = AudioConfig {
            max_length: LONGEST_WHOLE,
            max_file: LARGEST_WHOLE,
            trim_silence: None,
            loudness: None,
            ..audio
        };
        Importer {
            root: root.into(),
            file: FileReader::default(),
            decoder: Decoder::new(rate, audio),
            whole_decoder: Decoder::new(rate, whole),
            whole: None,
        }
    }

    /// The FLAC file of a row, and its length.
    pub fn flac(&mut self, row: &Utterance) -> Result<(Vec<u8>, Seconds), ImportError> {
        let rate = self.decoder.rate();
        let sound = match row.part {
            Some(part) => self.part(&row.audio, part)?,
            None => {
                let bytes = self.file.read(&self.root.join(&row.audio), self.decoder.config())?;
                self.decoder.decode(bytes, extension(&row.audio))?
            }
        };
        let bytes = flac_file(sound, rate).map_err(|message| ImportError::Encode { message })?;
        Ok((bytes, rate.seconds(sound.len())))
    }

    /// The samples of a recording of up to two hours.
    pub fn whole(&mut self, audio: &Path) -> Result<&[f32], ImportError> {
        if self.whole.as_ref().is_none_or(|(known, _)| known != audio) {
            self.whole = None;
            let limits = *self.whole_decoder.config();
            let bytes = self.file.read(&self.root.join(audio), &limits)?;
            let sound = self.whole_decoder.decode(bytes, extension(audio))?.to_f32();
            self.whole = Some((audio.to_owned(), sound));
        }
        Ok(self.whole.as_ref().map_or(&[], |(_, samples)| samples))
    }

    fn part(&mut self, audio: &Path, part: Part) -> Result<Sound<'_>, ImportError> {
        self.whole(audio)?;
        let samples = self.whole.as_ref().map_or(&[][..], |(_, samples)| samples);
        let rate = f64::from(self.decoder.rate().0);
        let at = |time: Duration| (time.as_secs_f64() * rate).round() as usize;
        let start = at(part.start);
        let end = part.length.map_or(samples.len(), |length| start.saturating_add(at(length)));
        // The length of a recording is rounded in most manifests.
        let end = if end <= samples.len() + at(Duration::from_millis(20)) {
            end.min(samples.len())
        } else {
            end
        };
        let Some(inside) = samples.get(start..end).filter(|inside| !inside.is_empty()) else {
            let length = Seconds(samples.len() as f64 / rate);
            return Err(ImportError::OutsideRecording { start: part.start, length });
        };
        Ok(self.decoder.decode_part(inside)?)
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// The id of an imported row: that of its source, unless it has what a column or a file name cannot have.
pub fn imported_id(id: &str) -> String {
    let unusable = |c: char| c == '|' || c == '\\' || c.is_control();
    if !id.contains(unusable) {
        return id.to_owned();
    }
    format!("{}-{:08x}", id.replace(unusable, "-"), xxh3_64(id.as_bytes()) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Split;

    const RATE: SampleRate = SampleRate(8000);

    /// A recording of two seconds in which each sample is its own number.
    fn ramp(folder: &Path) {
        let samples: Vec<i16> = (0..16_000).map(|i| i as i16).collect();
        let bytes = flac_file(Sound::I16(&samples), RATE).unwrap();
        tandem_disk::write(&folder.join("long.flac"), &bytes).unwrap();
    }

    fn row(part: Option<Part>) -> Utterance {
        Utterance {
            id: "a".into(),
            manifest: 0,
            line: 1,
            text: "x".into(),
            audio: "long.flac".into(),
            speaker: None,
            language: None,
            phonemes: None,
            split: Split::Train,
            part,
        }
    }

    #[test]
    fn a_part_is_cut_at_its_samples_and_a_whole_recording_is_not() {
        let folder = tempfile::tempdir().unwrap();
        ramp(folder.path());
        let mut importer = Importer::new(folder.path(), RATE, AudioConfig::default());
        let mut check = |start: u64, length: Option<u64>, expected: std::ops::Range<i16>| {
            let part = Part {
                start: Duration::from_millis(start),
                length: length.map(Duration::from_millis),
            };
            let (bytes, _) = importer.flac(&row(Some(part))).unwrap();
            let mut decoder = Decoder::new(RATE, AudioConfig::default());
            let found = decoder.decode(&bytes, Some("flac")).unwrap().to_f32();
            let expected: Vec<f32> = expected.map(|level| f32::from(level) / 32768.0).collect();
            assert_eq!(found, expected);
        };
        check(500, Some(250), 4000..6000);
        check(1500, None, 12_000..16_000);
        check(1500, Some(510), 12_000..16_000);
        let (_, length) = importer.flac(&row(None)).unwrap();
        assert_eq!(length, Seconds(2.0));
        let late = Part { start: Duration::from_secs(3), length: None };
        let fault = importer.flac(&row(Some(late))).unwrap_err();
        assert!(fault.to_string().contains("outside the recording") && fault.hint().is_some());
        let past = Part { start: Duration::from_secs(1), length: Some(Duration::from_secs(2)) };
        assert!(importer.flac(&row(Some(past))).is_err());
    }

    #[test]
    fn ids_stay_as_they_are_unless_no_file_can_have_them() {
        assert_eq!(imported_id("p225/p225_001"), "p225/p225_001");
        let (one, two) = (imported_id("a|b"), imported_id("a\\b"));
        assert!(one.starts_with("a-b-") && two.starts_with("a-b-") && one != two);
    }
}
