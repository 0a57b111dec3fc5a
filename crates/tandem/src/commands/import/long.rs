//! Long recordings as rows of a corpus: cut at pauses, each row with its sentence.
//!
//! In: recordings with their texts, or with a recogniser. Out: [`Source`]. What was found in a recording is kept in
//! `cuts/ID.json` of OUT, so that an interrupted import does not align it again.

use super::ImportSettings;
use super::manifest::UsedColumns;
use super::source::{RowResult, Source};
use crate::advised::Advised;
use crate::failure::{Context, Failure, Result};
use crate::printer::{Printer, Progress};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_data::corpus::{
    CorpusRow, LongRecording, LongRecordings, Part, RejectReason, RejectedRow, Split, Utterance,
    is_recording,
};
use tandem_data::import::Importer;
use tandem_data::long_text;
use tandem_disk::replace_file::replace_file;
use tandem_eval::cutting::rows::{CutRow, CutRows, CutSettings, LeftOut, WhyNot};
use tandem_eval::cutting::{self, CutError};
use tandem_model::vocoder::wav::wav_bytes;
use tandem_pipeline::{CancelToken, PipelineError};
use tandem_text::{FrontEnd, Language, TextConfig};
use tandem_train::judge::{Judge, LONGEST, Patience};
use tandem_units::Hint;

/// Symbols of a phrase; a sentence of a book may be long.
const MOST_SYMBOLS: usize = 4000;
/// Recordings that a judge hears at once.
const HEARD_AT_ONCE: usize = 32;

#[derive(Clone, Debug, Default, clap::Args)]
pub struct LongArgs {
    /// SOURCE has long recordings, each with its text beside it (.srt, .vtt, .json, .tsv or .txt): cut them
    /// at pauses into sentences. Not needed where SOURCE is one recording
    #[arg(long)]
    cut: bool,
    /// Longest row that is cut, in seconds, from 2 to 60 [default: 9.2]
    #[arg(long, value_name = "SECONDS", value_parser = longest)]
    longest: Option<f64>,
    /// Languages of the texts, such as en,fa [default: en,fa]
    #[arg(long, value_name = "TAGS", value_delimiter = ',', env = "TANDEM_LANGUAGES")]
    languages: Vec<Language>,
    /// Recogniser that writes the text of recordings without one: a command that gets WAV files and prints a
    /// line for each, or http://HOST:PORT/PATH
    #[arg(long, value_name = "COMMAND|URL")]
    judge: Option<String>,
}

fn longest(typed: &str) -> std::result::Result<f64, String> {
    let value: f64 = typed.parse().map_err(|_| format!("`{typed}` is not a number"))?;
    match (2.0..=60.0).contains(&value) {
        true => Ok(value),
        false => Err("expected 2 to 60 seconds".into()),
    }
}

pub struct LongSettings {
    cut: CutSettings,
    text: TextConfig,
    judge: Option<Judge>,
}

/// What `ORIGIN.toml` says of it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct CutOrigin {
    longest: f64,
    languages: Vec<Language>,
    /// Texts were written by a recogniser where there were none.
    judge: bool,
}

impl LongArgs {
    pub fn resolve(&self, source: &Path) -> Result<Option<LongSettings>> {
        if !self.cut && !is_recording(source) {
            return match (self.longest, &self.judge) {
                (None, None) => Ok(None),
                _ => Err(Advised::new(
                    "`--longest` and `--judge` are for long recordings",
                    "add `--cut` if SOURCE has such",
                )
                .into()),
            };
        }
        let default = TextConfig::default();
        let languages = match self.languages.is_empty() {
            true => default.languages.clone(),
            false => self.languages.clone(),
        };
        let default_cut = CutSettings::default();
        Ok(Some(LongSettings {
            cut: CutSettings {
                longest: self.longest.unwrap_or(default_cut.longest),
                ..default_cut
            },
            text: TextConfig { languages, max_symbols: MOST_SYMBOLS, ..default },
            judge: self.judge.as_deref().map(Judge::parse).transpose()?,
        }))
    }
}

impl LongSettings {
    pub fn origin(&self) -> CutOrigin {
        CutOrigin {
            longest: self.cut.longest,
            languages: self.text.languages.clone(),
            judge: self.judge.is_some(),
        }
    }
}

/// What of long recordings is in the corpus.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CutShare {
    recordings: usize,
    /// Length of the recordings, in seconds.
    seconds: f64,
    /// Of these, in rows.
    kept_seconds: f64,
    sentences: usize,
    kept_sentences: usize,
    /// Rows whose text a recogniser wrote.
    heard: usize,
}

impl fmt::Display for CutShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |part: f64, whole: f64| 100.0 * part / whole.max(1e-9);
        let CutShare { recordings, seconds, kept_seconds, sentences, kept_sentences, heard } = self;
        let recordings = match recordings {
            1 => "1 recording".into(),
            many => format!("{many} recordings"),
        };
        let time = share(*kept_seconds, *seconds);
        write!(f, "{recordings} of {:.1} min: {time:.1} % of the time is in rows", seconds / 60.0)?;
        if *sentences > 0 {
            let said = share(*kept_sentences as f64, *sentences as f64);
            write!(f, ", {kept_sentences} of {sentences} sentences of the text ({said:.1} %)")?;
        }
        if *heard > 0 {
            write!(f, ", {heard} rows with a text by the judge")?;
        }
        Ok(())
    }
}

/// Aligns all recordings that are not aligned yet.
pub fn open(
    settings: &ImportSettings,
    long: &LongSettings,
    cancel: &CancelToken,
    out: &mut Printer,
) -> Result<Source> {
    let LongRecordings { root, recordings } = LongRecordings::find(&settings.source)?;
    let mel = MelConfig::SPEECH_22K;
    let mut cutter = Cutter {
        front_end: FrontEnd::new(&long.text)?,
        importer: Importer::new(&root, mel.rate, AudioConfig::default()),
        root: &root,
        mel,
        long,
        cancel,
        progress: out.progress("aligning", (recordings.len() * cutting::STEPS) as u64),
    };
    let mut rows: Vec<RowResult> = Vec::new();
    let mut share = CutShare { recordings: recordings.len(), ..CutShare::default() };
    let mut manifests = Vec::new();
    for (number, recording) in recordings.iter().enumerate() {
        let manifest = recording.text.as_ref().unwrap_or(&recording.audio);
        manifests.push(manifest.clone());
        let kept = settings.output.join("cuts").join(format!("{}.json", recording.id));
        let cut = match read_kept(&kept)? {
            Some(cut) => Ok(cut),
            None => cutter.cut(recording, number)?,
        };
        match cut {
            Ok(cut) => {
                keep(&kept, &cut)?;
                share.add(&cut);
                rows.extend(corpus_rows(recording, number, manifest, cut).map(Ok));
            }
            Err(why) => rows.push(Ok(CorpusRow::Rejected(RejectedRow {
                manifest: manifest.display().to_string(),
                line: 1,
                id: recording.id.clone(),
                reason: why.reason,
                message: why.message,
                fix: why.fix,
            }))),
        }
    }
    cutter.progress.done();
    Ok(Source {
        root: root.clone(),
        manifests,
        most: rows.len(),
        columns: UsedColumns::default(),
        held_out: false,
        rows: Box::new(rows.into_iter()),
        cut: Some(share),
    })
}

impl CutShare {
    fn add(&mut self, cut: &CutRows) {
        self.seconds += cut.length;
        self.kept_seconds += cut.rows.iter().map(|row| row.end - row.start).sum::<f64>();
        self.sentences += cut.sentences.len();
        self.kept_sentences += cut.sentences.len().saturating_sub(cut.left_out.len());
        self.heard += cut.rows.iter().filter(|row| row.excess.is_none()).count();
    }
}

/// What an interrupted import found.
fn read_kept(path: &Path) -> Result<Option<CutRows>> {
    if !path.exists() {
        return Ok(None);
    }
    let failed = || format!("cannot read `{}`", path.display());
    let text = std::fs::read(path).with_context(failed)?;
    serde_json::from_slice(&text).map(Some).map_err(Failure::foreign).with_context(failed)
}

fn keep(path: &Path, cut: &CutRows) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let failed = || format!("cannot write `{}`", path.display());
    let text = serde_json::to_vec_pretty(cut).map_err(Failure::foreign).with_context(failed)?;
    tandem_disk::create_dir_all(path.parent().unwrap_or(path)).with_context(failed)?;
    replace_file(path, &text).with_context(failed)
}

/// Why nothing of a recording can be used.
struct Unusable {
    reason: RejectReason,
    message: String,
    fix: String,
}

impl Unusable {
    fn of(reason: RejectReason, error: &(impl Hint + fmt::Display)) -> Unusable {
        let fix = error.hint().unwrap_or_else(|| "correct the file, or leave it out".into());
        Unusable { reason, message: error.to_string(), fix }
    }
}

struct Cutter<'a> {
    front_end: FrontEnd,
    importer: Importer,
    root: &'a Path,
    mel: MelConfig,
    long: &'a LongSettings,
    cancel: &'a CancelToken,
    progress: Progress,
}

impl Cutter<'_> {
    /// The rows of a recording; the inner error concerns only this recording.
    fn cut(
        &mut self,
        recording: &LongRecording,
        number: usize,
    ) -> Result<std::result::Result<CutRows, Unusable>> {
        let text = match (&recording.text, &self.long.judge) {
            (None, None) => {
                return Ok(Err(Unusable {
                    reason: RejectReason::EmptyText,
                    message: "no text beside the recording".into(),
                    fix: "write a .txt of the same name, or name a recogniser with `--judge`"
                        .into(),
                }));
            }
            (None, Some(_)) => None,
            (Some(text), _) => match long_text::read(&self.root.join(text)) {
                Ok(sentences) => Some(sentences),
                Err(error) => return Ok(Err(Unusable::of(RejectReason::EmptyText, &error))),
            },
        };
        let samples = match self.importer.whole(&recording.audio) {
            Ok(samples) => samples,
            Err(error) => return Ok(Err(Unusable::of(RejectReason::BrokenAudio, &error))),
        };
        if self.cancel.is_cancelled() {
            return Err(PipelineError::Cancelled.into());
        }
        let Some(sentences) = text else {
            return self.hear(recording, number).map(Ok);
        };
        let progress = &mut self.progress;
        let mut watch = |step: usize| progress.at((number * cutting::STEPS + step) as u64);
        let found = cutting::align(
            samples,
            &self.mel,
            &self.front_end,
            &sentences,
            None,
            &mut watch,
            self.cancel,
        );
        match found {
            Ok(found) => {
                let texts: Vec<&str> =
                    sentences.iter().map(|sentence| &sentence.text[..]).collect();
                Ok(Ok(found.rows(&texts, &self.long.cut, self.mel.rate)))
            }
            Err(CutError::Cancelled) => Err(PipelineError::Cancelled.into()),
            Err(error) => Ok(Err(Unusable::of(RejectReason::TextDoesNotFit, &error))),
        }
    }

    /// Rows without a text, and what the judge hears in each.
    fn hear(&mut self, recording: &LongRecording, number: usize) -> Result<CutRows> {
        let Some(judge) = &self.long.judge else { return Ok(CutRows::default()) };
        let samples = self.importer.whole(&recording.audio)?;
        let mut cut = cutting::untranscribed::rows(samples, &self.mel, &self.long.cut);
        let rate = self.mel.rate;
        let all = cut.rows.len().max(1);
        for (chunk, rows) in cut.rows.chunks_mut(HEARD_AT_ONCE).enumerate() {
            let at = |seconds: f64| ((seconds * f64::from(rate.0)) as usize).min(samples.len());
            let wav = |row: &CutRow| {
                wav_bytes(&samples[at(row.start)..at(row.end)], rate).map(|(bytes, _)| bytes)
            };
            let wavs = rows.iter().map(wav).collect::<std::result::Result<Vec<_>, _>>()?;
            let cancel = self.cancel;
            let mut watch = || match cancel.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let heard = judge.hear(&wavs, &mut Patience::new(LONGEST, &mut watch));
            if cancel.is_cancelled() {
                return Err(PipelineError::Cancelled.into());
            }
            let heard = heard.with_context(|| {
                format!("the judge has not heard `{}`", recording.audio.display())
            })?;
            for (row, text) in rows.iter_mut().zip(heard) {
                row.text = text.trim().to_owned();
            }
            let done = (chunk * HEARD_AT_ONCE + rows.len()) * cutting::STEPS / all;
            self.progress.at((number * cutting::STEPS + done) as u64);
        }
        cut.rows.retain(|row| row.text.contains(char::is_alphanumeric));
        Ok(cut)
    }
}

fn corpus_rows(
    recording: &LongRecording,
    number: usize,
    manifest: &Path,
    cut: CutRows,
) -> impl Iterator<Item = CorpusRow> {
    let manifest = manifest.display().to_string();
    let id = |number: usize| format!("{}-{number:04}", recording.id);
    let audio: PathBuf = recording.audio.clone();
    let used = cut.rows.into_iter().enumerate().map(|(row, cut)| {
        CorpusRow::Usable(Utterance {
            id: id(row + 1),
            manifest: number as u16,
            line: cut.sentence as u32 + 1,
            text: cut.text,
            audio: audio.clone(),
            speaker: None,
            language: None,
            phonemes: None,
            split: Split::Train,
            part: Some(Part {
                start: Duration::from_secs_f64(cut.start),
                length: Some(Duration::from_secs_f64(cut.end - cut.start)),
            }),
        })
    });
    let sentences = cut.sentences;
    let left_out = cut.left_out.into_iter().map(|LeftOut { sentence, why }| {
        let (reason, message, fix) = in_words(&why);
        let text: String =
            sentences.get(sentence).map_or("", |text| &text[..]).chars().take(60).collect();
        CorpusRow::Rejected(RejectedRow {
            manifest: manifest.clone(),
            line: sentence as u32 + 1,
            id: recording.id.clone(),
            reason,
            message: format!("sentence {}, `{text}`: {message}", sentence + 1),
            fix: fix.into(),
        })
    });
    used.chain(left_out).collect::<Vec<_>>().into_iter()
}

fn in_words(why: &WhyNot) -> (RejectReason, String, &'static str) {
    let correct = "correct the text to what is said, or leave it out";
    match why {
        WhyNot::DoesNotFit { excess } => {
            let message =
                format!("it fits worse than the others, by {excess:.1} standard deviations");
            (RejectReason::TextDoesNotFit, message, correct)
        }
        WhyNot::Pace { times } => (
            RejectReason::TextDoesNotFit,
            format!("it would be spoken {times:.1} times as fast as the others"),
            correct,
        ),
        WhyNot::NotSaid => (RejectReason::TextDoesNotFit, "it is not said".into(), correct),
        WhyNot::NoPause => (
            RejectReason::NoPlaceToCut,
            "no pause where it begins or ends".into(),
            "leave it out, or cut it by hand",
        ),
        WhyNot::TooLong { seconds } => (
            RejectReason::NoPlaceToCut,
            format!("{seconds:.1} s without a pause behind a mark"),
            "raise `--longest`, and `--max-mel-frames` of training",
        ),
        WhyNot::TooShort { seconds } => (
            RejectReason::NoPlaceToCut,
            format!("{seconds:.2} s are too short for a row"),
            "leave it out",
        ),
        WhyNot::Unreadable { message } => {
            (RejectReason::UnknownSymbol, message.clone(), "write it as it is spoken")
        }
    }
}
