//! Test material: the demo corpus, cut to clips of realistic length.

use crate::demo_files;
use crate::failure::{Context, Result};
use std::fs;
use std::io::Write;
use std::path::Path;
use tandem_audio::{AudioConfig, Decoder, FileReader, Sound};
use tandem_data::corpus::{Corpus, CorpusConfig};
use tandem_model::vocoder::wav::wav_of_levels;
use tandem_units::SampleRate;

pub const RATE: SampleRate = SampleRate(22050);
/// Distinct clips; a larger corpus repeats them under other names.
pub const DISTINCT: usize = 256;

/// One clip: 16-bit samples at [`RATE`].
pub type Clip = Vec<i16>;

/// Cuts the demo corpus, end to end, into clips of 3 to 6.4 s.
pub fn cut() -> Result<Vec<Clip>> {
    let speech = all_speech()?;
    let mut at = 0;
    let clip = |n: usize| {
        // Lengths spread evenly over the range, in an irregular order.
        let length = 66_150 + (n * 7919 % DISTINCT) * (141_120 - 66_150) / DISTINCT;
        let samples = speech.iter().cycle().skip(at).take(length).copied().collect();
        at = (at + length) % speech.len();
        samples
    };
    Ok((0..DISTINCT).map(clip).collect())
}

/// Total length of some clips in seconds.
pub fn seconds(clips: &[Clip]) -> f64 {
    clips.iter().map(Vec::len).sum::<usize>() as f64 / f64::from(RATE.0)
}

/// Writes a corpus of so many rows: each distinct clip is a file, further rows are links to it.
pub fn write_corpus(clips: &[Clip], rows: usize, root: &Path) -> Result<()> {
    let wavs = root.join("wavs");
    fs::create_dir_all(&wavs)?;
    let name = |row: usize| format!("clip{row:07}");
    let mut manifest = std::io::BufWriter::new(fs::File::create(root.join("metadata.csv"))?);
    for row in 0..rows {
        let path = wavs.join(format!("{}.wav", name(row)));
        if row < clips.len() {
            fs::write(&path, wav_of_levels(&clips[row], RATE)?)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        } else {
            let first = wavs.join(format!("{}.wav", name(row % clips.len())));
            fs::hard_link(first, &path)
                .with_context(|| format!("cannot link `{}`", path.display()))?;
        }
        writeln!(manifest, "{}|{}", name(row), sentence(row))?;
    }
    Ok(manifest.flush()?)
}

/// A sentence of about a hundred characters that differs from row to row.
pub fn sentence(row: usize) -> String {
    const ENGLISH: [&str; 4] = [
        "the printing press gave every reader in the town a book of their own",
        "she walked along the river until the lamps were lit on the far side",
        "nobody had told the captain that the harbour would be closed by noon",
        "a quiet engine and a steady hand are worth more than a loud promise",
    ];
    const PERSIAN: [&str; 4] = [
        "باران آرام آرام روی بام خانه می‌بارید و کسی در کوچه نبود",
        "کتاب تازه‌ای که خریدم درباره‌ی تاریخ شهرهای کنار دریاست",
        "هر روز صبح پیش از طلوع آفتاب از کنار رودخانه می‌گذریم",
        "معلم از شاگردان خواست که داستان را با صدای بلند بخوانند",
    ];
    if row.is_multiple_of(2) {
        format!("In {} of {} cases, {}.", row % 97 + 2, row % 900 + 100, ENGLISH[row / 2 % 4])
    } else {
        format!("در {} بار از {} بار، {}.", row % 97 + 2, row % 900 + 100, PERSIAN[row / 2 % 4])
    }
}

fn all_speech() -> Result<Vec<i16>> {
    let corpus = Corpus::read(&demo_files::corpus(Path::new("demo"))?, &CorpusConfig::default())?;
    let limits = AudioConfig::default();
    let mut file = FileReader::default();
    let mut decoder = Decoder::new(RATE, limits);
    let mut speech = Vec::new();
    for row in &corpus.utterances {
        let bytes = file.read(&corpus.audio_path(row), &limits)?;
        match decoder.decode(bytes, None)? {
            Sound::I16(samples) => speech.extend_from_slice(samples),
            Sound::F32(samples) => {
                speech.extend(samples.iter().map(|s| (s * 32767.0).round() as i16));
            }
        }
    }
    Ok(speech)
}
