//! Finds transcripts that do not match their recordings, with a trained voice.
//!
//! In: a trained voice and a prepared corpus. Out: [`Ranking`]: rows by suspicion, with reasons
//! and advice. Each text is aligned to its recording as in training, and so are a few other texts of
//! about the same length. A text that explains its recording no better than they do is likely wrong.
//! A voice may have memorized a wrong transcript. So texts are also aligned by the mean frames of
//! their symbols in all other rows. Writes nothing, starts no thread.

mod alternatives; // which other texts a text is compared with
mod symbol_means; // mean frames of symbols in all other rows
mod repeats; // rows with the text or the recording of another row
pub mod sound; // clipping, noise and silence of a recording
mod score; // how suspicious a row is, compared with the others

pub use score::Typical;

use alternatives::{AlternativeTexts, Text};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use symbol_means::{RowSums, SymbolMeans, centred};
use tandem_data::cache::EntryBuffer;
use tandem_data::corpus::Split;
use tandem_disk::Fingerprint;
use tandem_model::Device;
use tandem_model::metrics::alignment::Finding;
use tandem_model::metrics::{AlignmentHealth, HealthLimits};
use tandem_model::trained_voice::TrainedVoice;
use tandem_pipeline::{CancelToken, PipelineError};
use tandem_train::TrainError;
use tandem_train::feed::align::corpus_fit::{CachedText, CorpusFit};
use tandem_train::feed::align::text_fit::TextFit;
use tandem_train::prepare::Prepared;
use tandem_units::{Samples, Seconds};

/// Which rows are ranked.
#[derive(Clone, Copy, Debug)]
pub struct RankOptions {
    /// Training rows or held-out rows.
    pub split: Split,
    /// Maximum number of rows, evenly spread over all.
    pub limit: Option<usize>,
}

impl Default for RankOptions {
    fn default() -> RankOptions {
        RankOptions { split: Split::Train, limit: None }
    }
}

/// The result of a ranking.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    pub checkpoint: PathBuf,
    /// Training steps of the checkpoint.
    pub step: u64,
    pub corpus: PathBuf,
    /// Medians over this corpus.
    pub typical: Typical,
    /// How many rows the user should check: the first ones of `rows`.
    pub suspicious: usize,
    /// All rows, most suspicious first.
    pub rows: Vec<Ranked>,
    /// Rows that could not be aligned at all.
    pub unranked: Vec<Unranked>,
    /// Findings about the whole corpus or the voice, with advice.
    pub findings: Vec<Finding>,
    pub took: Seconds,
}

#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    pub id: String,
    pub manifest: String,
    /// Line in the manifest.
    pub line: u32,
    pub language: String,
    /// The normalised transcript.
    pub text: String,
    /// From 0 up; rows from 1 up should be checked.
    pub suspicion: f64,
    /// Empty where the row is not suspicious.
    pub reasons: Vec<String>,
    #[serde(flatten)]
    pub health: AlignmentHealth,
    /// Mean squared distance between the frames and the frames that the voice predicts for the text.
    pub misfit: f64,
    /// By which share its own text explains the frames better than the median of other texts of its
    /// length, by the mean frames of symbols in all other rows.
    pub margin: Option<f64>,
    /// By which share it explains them better than the best other text, by the voice.
    pub lead: Option<f64>,
    /// The row of that other text, where it explains this recording better.
    pub better: Option<String>,
    /// The recording, relative to the corpus.
    pub audio: PathBuf,
    pub seconds: Seconds,
    /// How fast it is spoken.
    pub symbols_per_second: f64,
    /// Rows with the same text.
    pub same_text: Vec<String>,
    /// Rows with the same recording, byte for byte.
    pub same_recording: Vec<String>,
    #[serde(skip)]
    pub recording: Fingerprint,
}

/// A row that could not be ranked.
#[derive(Clone, Debug, Serialize)]
pub struct Unranked {
    pub id: String,
    pub why: String,
}

/// Ranks the transcripts of a corpus. `progress` receives the finished work and all work; every row is
/// processed twice.
pub fn rank_transcripts(
    trained: &TrainedVoice,
    device: &Device,
    prepared: &Arc<Prepared>,
    options: &RankOptions,
    progress: &mut dyn FnMut(usize, usize),
    cancel: &CancelToken,
) -> Result<Ranking, TrainError> {
    let started = Instant::now();
    let mut ranker = Ranker::new(trained, device, prepared, options.split)?;
    let all = ranker.corpus.rows.cache_row.len();
    let count = options.limit.unwrap_or(all).min(all);
    let mut done = 0;
    let mut next_row = || {
        progress(done, 2 * count);
        done += 1;
        if cancel.is_cancelled() { Err(PipelineError::Cancelled) } else { Ok(()) }
    };
    let (mut by_voice, mut unranked) = (Vec::with_capacity(count), Vec::new());
    for index in 0..count {
        next_row()?;
        let row = (index * all / count) as u32;
        match ranker.score_by_voice(row)? {
            Ok(score) => by_voice.push(score),
            Err(why) => unranked.push(Unranked { id: ranker.id(row), why }),
        }
    }
    let mut rows = Vec::with_capacity(by_voice.len());
    for score in by_voice {
        next_row()?;
        let row = score.row;
        match ranker.score_by_means(score) {
            Ok(ranked) => rows.push(ranked),
            Err(why) => unranked.push(Unranked { id: ranker.id(row), why }),
        }
    }
    progress(2 * count, 2 * count);
    let limits = HealthLimits::default();
    repeats::mark(&mut rows);
    let typical = Typical::of(&rows);
    let suspicious = score::rank(&mut rows, &typical, &limits);
    Ok(Ranking {
        checkpoint: trained.path.clone(),
        step: trained.step,
        corpus: prepared.root.clone(),
        findings: score::findings(&typical, &limits, suspicious, rows.len(), unranked.len()),
        typical,
        suspicious,
        rows,
        unranked,
        took: Seconds(started.elapsed().as_secs_f64()),
    })
}

/// How well the voice explains a row.
struct VoiceScore {
    row: u32,
    fit: TextFit,
    /// The best other text: its row and its misfit.
    best_alternative: Option<(u32, f64)>,
}

/// Scores rows one after the other.
struct Ranker<'a> {
    corpus: CorpusFit<'a>,
    alternatives: AlternativeTexts,
    means: SymbolMeans,
}

impl<'a> Ranker<'a> {
    fn new(
        trained: &'a TrainedVoice,
        device: &'a Device,
        prepared: &'a Arc<Prepared>,
        split: Split,
    ) -> Result<Ranker<'a>, TrainError> {
        let corpus = CorpusFit::new(trained, device, prepared, split)?;
        let alternatives = AlternativeTexts::of(prepared, &corpus.rows);
        let means = SymbolMeans::new(trained.document.config.bands);
        Ok(Ranker { corpus, alternatives, means })
    }

    fn id(&self, row: u32) -> String {
        let number = self.corpus.rows.cache_row[row as usize] as usize;
        let row = self.corpus.prepared.cache.row(number);
        row.map_or_else(String::new, |row| row.id.to_string())
    }

    /// First pass: aligns a row by the voice. The inner error concerns only this row.
    fn score_by_voice(&mut self, row: u32) -> Result<Result<VoiceScore, String>, TrainError> {
        let frames = match self.corpus.frames_of(row) {
            Ok(frames) => frames,
            Err(why) => return Ok(Err(why)),
        };
        let bands = self.corpus.bands();
        let count = frames.len() / bands;
        let texts = match self.texts_for(row, count) {
            Ok(texts) => texts,
            Err(why) => return Ok(Err(why)),
        };
        let reference = self.corpus.reference_for(row);
        let cached: Vec<&CachedText> = texts.iter().map(|text| &text.cached).collect();
        let fits = self.corpus.fit(&cached, &frames, &reference)?;
        let others = texts.iter().zip(&fits).skip(1);
        let others = others.filter_map(|(text, fit)| Some((text.row, fit.as_ref()?.misfit)));
        let best_alternative = others.min_by(|a, b| a.1.total_cmp(&b.1));
        let Some(Some(fit)) = fits.into_iter().next() else {
            return Ok(Err("the voice gives no finite values for it".into()));
        };
        self.means.add(&row_sums(&texts[0], &fit.durations, &frames, bands));
        Ok(Ok(VoiceScore { row, fit, best_alternative }))
    }

    /// Second pass: aligns the row by the mean frames of its symbols in all other rows.
    fn score_by_means(&mut self, score: VoiceScore) -> Result<Ranked, String> {
        let VoiceScore { row, fit, best_alternative } = score;
        let (frames, bands) = (self.corpus.frames_of(row)?, self.corpus.bands());
        let texts = self.texts_for(row, frames.len() / bands)?;
        let own = row_sums(&texts[0], &fit.durations, &frames, bands);
        let frames = centred(&frames, bands);
        let mut misfit = |text: &Text| {
            let means = self.means.without(&own, &text.cached.symbols);
            self.corpus.fit_prior(&frames, &means).map(|fit| fit.misfit)
        };
        let own_misfit = misfit(&texts[0]);
        let others = texts.iter().skip(1).filter(|text| text.of_same_length);
        let others: Vec<f64> = others.filter_map(&mut misfit).collect();
        let lead = best_alternative.map(|(_, other)| score::ahead(fit.misfit, other));
        let better = best_alternative.filter(|(_, other)| *other < fit.misfit);
        let margin = own_misfit.and_then(|own| score::margin(own, others));
        let better = better.map(|(row, _)| self.id(row));
        Ok(Ranked { margin, lead, better, ..self.describe(row, &fit) })
    }

    /// A row's own text, followed by the alternatives.
    fn texts_for(&self, row: u32, frames: usize) -> Result<Vec<Text>, String> {
        let CorpusFit { prepared, rows, .. } = &self.corpus;
        let own = self.alternatives.text(prepared, rows, row);
        let own = own.ok_or("its text in the cache is damaged")?;
        let symbols = own.cached.symbols.len();
        if symbols > frames {
            return Err(format!("{symbols} symbols cannot be spoken in {frames} frames"));
        }
        let mut texts = vec![own];
        texts.extend(self.alternatives.of_row(prepared, rows, row, frames));
        Ok(texts)
    }

    fn describe(&self, row: u32, fit: &TextFit) -> Ranked {
        let number = self.corpus.rows.cache_row[row as usize] as usize;
        let cache = &self.corpus.prepared.cache;
        let meta = cache.meta();
        let record = cache.record(number).copied().unwrap_or_default();
        let manifest = meta.sources.get(usize::from(record.manifest));
        let mut buffer = EntryBuffer::default();
        let text = cache.text(&record, &mut buffer);
        let mel = &self.corpus.prepared.settings.mel;
        let seconds = mel.rate.seconds(Samples(record.frames as usize * mel.hop.0));
        let audio = cache.row(number).map(|row| row.audio.into()).unwrap_or_default();
        Ranked {
            id: self.id(row),
            manifest: manifest.map(|source| source.path.clone()).unwrap_or_default(),
            line: record.line,
            language: meta.languages.get(usize::from(record.language)).cloned().unwrap_or_default(),
            text: text.map(|text| text.normalized.to_string()).unwrap_or_default(),
            suspicion: 0.0,
            reasons: Vec::new(),
            health: fit.health,
            misfit: fit.misfit,
            margin: None,
            lead: None,
            better: None,
            audio,
            seconds,
            symbols_per_second: f64::from(record.symbols) / seconds.0.max(1e-3),
            same_text: Vec::new(),
            same_recording: Vec::new(),
            recording: record.audio_hash,
        }
    }
}

fn row_sums(text: &Text, durations: &[u32], frames: &[f32], bands: usize) -> RowSums {
    let CachedText { symbols, language } = &text.cached;
    RowSums::of(*language, symbols, durations, &centred(frames, bands), bands)
}
