//! A small corpus that a test creates, changes and prepares.

#![allow(dead_code, reason = "each test file uses its own part of the kit")]

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tandem_data::cache::EntryBuffer;
use tandem_data::corpus::Split;
use tandem_pipeline::CancelToken;
use tandem_train::prepare::row::{ChangeCheck, Features};
use tandem_train::{DataSettings, PrepareOptions, Prepared, TrainError, Watcher, prepare};

/// A corpus on disk, deleted at the end of the test.
pub struct TestCorpus {
    folder: tempfile::TempDir,
    /// Lines of the manifest.
    pub lines: Vec<String>,
    pub settings: DataSettings,
    pub options: PrepareOptions,
}

/// Everything the cache holds of a row, in plain types.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    pub id: String,
    pub line: u32,
    pub frames: u32,
    pub symbols: Vec<u16>,
    pub normalized: String,
    pub language: String,
    pub speaker: String,
    pub split: u8,
    pub mel: Option<Vec<f32>>,
}

impl TestCorpus {
    /// A corpus of `rows` rows, each with its own text and a tone of its own pitch and length.
    pub fn with_rows(rows: usize) -> TestCorpus {
        let folder = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(folder.path().join("wavs")).expect("created");
        let settings = DataSettings::default();
        let options = PrepareOptions { workers: 2, ..PrepareOptions::default() };
        let mut corpus = TestCorpus { folder, lines: Vec::new(), settings, options };
        for row in 0..rows {
            corpus.write_clip(&id(row), row);
            corpus.lines.push(line(row));
        }
        corpus.write_manifest();
        corpus
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn clip(&self, row: usize) -> PathBuf {
        self.root().join("wavs").join(format!("{}.wav", id(row)))
    }

    pub fn write_clip(&self, id: &str, pitch: usize) {
        let path = self.root().join("wavs").join(format!("{id}.wav"));
        fs::write(path, tone(pitch, samples(pitch))).expect("written");
    }

    /// Recordings of half a second or more: long enough for every text, and for the measurement of loudness.
    pub fn with_long_recordings(self) -> TestCorpus {
        for row in 0..self.lines.len() {
            fs::write(self.clip(row), tone(row, 12_000 + row * 100)).expect("written");
        }
        self
    }

    pub fn write_manifest(&self) {
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.root().join("metadata.csv"), text).expect("written");
    }

    pub fn cache_features(mut self) -> TestCorpus {
        self.options.features = Features::Cached;
        self
    }

    pub fn try_prepare(&self) -> Result<Prepared, TrainError> {
        let cancel = CancelToken::new();
        prepare(self.root(), &self.settings, &self.options, &mut NoProgress, &cancel)
    }

    #[track_caller]
    pub fn prepare(&self) -> Prepared {
        self.try_prepare().expect("prepared")
    }

    #[track_caller]
    pub fn prepare_shared(&self) -> Arc<Prepared> {
        Arc::new(self.prepare())
    }

    /// Prepares with a comparison of all contents.
    #[track_caller]
    pub fn verify(&self) -> Prepared {
        let options =
            PrepareOptions { change_check: ChangeCheck::Contents, ..self.options.clone() };
        let cancel = CancelToken::new();
        prepare(self.root(), &self.settings, &options, &mut NoProgress, &cancel).expect("prepared")
    }
}

pub struct NoProgress;

impl Watcher for NoProgress {
    fn waiting_for(&mut self, _owner: &str) {}
    fn progress(&mut self, _done: usize, _rows: usize) {}
}

/// All usable rows of a prepared corpus, by id.
pub fn contents(prepared: &Prepared) -> Vec<Content> {
    let cache = &prepared.cache;
    let mut buffer = EntryBuffer::default();
    let mut all: Vec<Content> = (0..cache.len())
        .filter_map(|number| cache.row(number))
        .filter(|row| row.note.is_empty())
        .map(|row| {
            let text = cache.text(row.record, &mut buffer).expect("a prepared row has its text");
            Content {
                id: row.id.to_string(),
                line: row.record.line,
                frames: row.record.frames,
                symbols: text.symbols().collect(),
                normalized: text.normalized.to_string(),
                language: cache.meta().languages[usize::from(row.record.language)].clone(),
                speaker: cache.meta().speakers[usize::from(row.record.speaker)].clone(),
                split: row.record.split,
                mel: cache.mel(row.record),
            }
        })
        .collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

pub fn id(row: usize) -> String {
    format!("clip_{row:03}")
}

pub fn line(row: usize) -> String {
    format!("{}|Row number {row} says {}.|", id(row), "la ".repeat(row % 5 + 1).trim())
}

/// A tone as a 16-bit WAV file.
pub fn tone(pitch: usize, samples: usize) -> Vec<u8> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 22_050,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = Cursor::new(Vec::new());
    let mut file = hound::WavWriter::new(&mut bytes, spec).expect("in memory");
    let step = (110.0 + 13.0 * pitch as f64) * std::f64::consts::TAU / 22_050.0;
    for at in 0..samples {
        file.write_sample(((at as f64 * step).sin() * 12_000.0) as i16).expect("in memory");
    }
    file.finalize().expect("in memory");
    bytes.into_inner()
}

/// From 0.15 to 0.5 s.
fn samples(pitch: usize) -> usize {
    3_300 + (pitch * 677) % 7_700
}

pub const SPLITS: [Split; 2] = [Split::Train, Split::Eval];
