//! Which transcripts do not say what their recordings do, as a trained voice hears it.
//!
//! In: a trained voice and a prepared corpus. Out: [`Ranking`]: rows by suspicion, with reasons
//! and advice. Each text is laid over its recording as training does it, and so are a few other
//! texts of about the same length: a text that explains its own recording no better than they do
//! is likely the wrong one. A voice that has seen a wrong transcript often enough knows it by heart,
//! so texts are also laid over by what their symbols sound like in all other rows. Writes nothing,
//! starts no thread.

mod rivals; // which other texts a text is compared with
mod sounds; // what symbols sound like in all other rows
mod score; // how suspicious a row is, beside the others

pub use score::Typical;

use rivals::{Rivals, Text};
use serde::Serialize;
use sounds::{Part, Sounds, centred};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tandem_data::audio::mel::MelKernel;
use tandem_data::batch::HostBatch;
use tandem_data::corpus::Split;
use tandem_device::backend::guarded;
use tandem_model::Device;
use tandem_model::alignment::Aligner;
use tandem_model::metrics::alignment::Finding;
use tandem_model::metrics::{AlignmentHealth, HealthLimits};
use tandem_model::train_batch::AlignedBatch;
use tandem_model::trained_voice::TrainedVoice;
use tandem_pipeline::{CancelToken, PipelineError, Pool};
use tandem_telemetry::Recorder;
use tandem_train::TrainError;
use tandem_train::feed::Rows;
use tandem_train::feed::align::priors;
use tandem_train::feed::align::text_fit::{TextFit, fit_text};
use tandem_train::feed::languages::language_numbers;
use tandem_train::feed::load::Load;
use tandem_train::feed::worker_mel::WorkerMel;
use tandem_train::prepare::Prepared;
use tandem_units::{Seconds, Seed};

/// Frames of another utterance of the same speaker, as in training.
const REFERENCE_FRAMES: usize = 128;

/// What is ranked.
#[derive(Clone, Copy, Debug)]
pub struct RankOptions {
    /// Rows that were learned from, or those held out.
    pub split: Split,
    /// At most so many rows, spread over all.
    pub limit: Option<usize>,
}

impl Default for RankOptions {
    fn default() -> RankOptions {
        RankOptions { split: Split::Train, limit: None }
    }
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// The checkpoint that listened.
    pub checkpoint: PathBuf,
    /// Steps it was trained.
    pub step: u64,
    /// What it listened to.
    pub corpus: PathBuf,
    /// What is usual in this corpus: medians.
    pub typical: Typical,
    /// Rows that should be looked at: the first of `rows`.
    pub suspicious: usize,
    /// All rows, most suspicious first.
    pub rows: Vec<Ranked>,
    /// Rows that could not be laid over their recordings at all.
    pub unranked: Vec<Unranked>,
    /// What the whole corpus or the voice shows, and what to do about it.
    pub findings: Vec<Finding>,
    /// How long it took.
    pub took: Seconds,
}

/// One row.
#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    /// Its name in the corpus.
    pub id: String,
    /// The manifest it stands in.
    pub manifest: String,
    /// Its line there.
    pub line: u32,
    /// The language it was read in.
    pub language: String,
    /// What it is said to say, normalised.
    pub text: String,
    /// How suspicious it is, from 0 up; 1 and more should be looked at.
    pub suspicion: f64,
    /// Why, in words; empty where nothing is out of the ordinary.
    pub reasons: Vec<String>,
    /// How healthy its alignment is.
    #[serde(flatten)]
    pub health: AlignmentHealth,
    /// How far the frames are from what the text should sound like.
    pub misfit: f64,
    /// By which share its own text explains the frames better than the median of others of its
    /// length, going by what symbols sound like in all other rows.
    pub margin: Option<f64>,
    /// By which share it explains them better than the best of the others, going by the voice.
    pub lead: Option<f64>,
    /// The row with that best text, where it explains this recording better than its own.
    pub better: Option<String>,
}

/// A row that could not be ranked.
#[derive(Clone, Debug, Serialize)]
pub struct Unranked {
    /// Its name in the corpus.
    pub id: String,
    /// What is wrong with it.
    pub why: String,
}

/// Ranks the transcripts of a corpus. `watch` hears how much is done, and of how much: every row
/// is heard twice.
pub fn rank_transcripts(
    trained: &TrainedVoice,
    device: &Device,
    prepared: &Arc<Prepared>,
    options: &RankOptions,
    watch: &mut dyn FnMut(usize, usize),
    cancel: &CancelToken,
) -> Result<Ranking, TrainError> {
    let begun = Instant::now();
    let mut listener = Listener::new(trained, device, prepared, options.split)?;
    let all = listener.rows.cache_row.len();
    let count = options.limit.unwrap_or(all).min(all);
    let mut done = 0;
    let mut go_on = || {
        watch(done, 2 * count);
        done += 1;
        if cancel.is_cancelled() { Err(PipelineError::Cancelled) } else { Ok(()) }
    };
    let (mut heard, mut unranked) = (Vec::with_capacity(count), Vec::new());
    for place in 0..count {
        go_on()?;
        let row = (place * all / count) as u32;
        match listener.listen(row)? {
            Ok(one) => heard.push(one),
            Err(why) => unranked.push(Unranked { id: listener.id(row), why }),
        }
    }
    let mut rows = Vec::with_capacity(heard.len());
    for one in heard {
        go_on()?;
        let row = one.row;
        match listener.compare(one) {
            Ok(ranked) => rows.push(ranked),
            Err(why) => unranked.push(Unranked { id: listener.id(row), why }),
        }
    }
    watch(2 * count, 2 * count);
    let limits = HealthLimits::default();
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
        took: Seconds(begun.elapsed().as_secs_f64()),
    })
}

/// What the voice makes of a row.
struct Heard {
    row: u32,
    fit: TextFit,
    /// The other text that the voice finds likeliest: whose it is, and how far it is off.
    best_rival: Option<(u32, f64)>,
}

/// A voice that listens to rows, one after the other.
struct Listener<'a> {
    trained: &'a TrainedVoice,
    device: &'a Device,
    prepared: &'a Arc<Prepared>,
    rows: Arc<Rows>,
    rivals: Rivals,
    languages: Vec<i32>,
    load: Load,
    kernel: WorkerMel,
    /// The two longest rows of each speaker.
    longest: HashMap<u16, Vec<u32>>,
    /// Normalised frames to imitate, by row.
    references: HashMap<u32, Vec<f32>>,
    sounds: Sounds,
    aligner: Aligner,
    limits: HealthLimits,
}

impl<'a> Listener<'a> {
    fn new(
        trained: &'a TrainedVoice,
        device: &'a Device,
        prepared: &'a Arc<Prepared>,
        split: Split,
    ) -> Result<Listener<'a>, TrainError> {
        let rows = Arc::new(Rows::of(prepared, split));
        if rows.cache_row.is_empty() {
            return Err(TrainError::NoRows { corpus: prepared.root.clone() });
        }
        let mel = prepared.settings.mel.clone();
        let kernel = WorkerMel::new(mel.clone(), MelKernel::best_for(&mel));
        let pool = Pool::new(1, move || HostBatch::new(&mel));
        Ok(Listener {
            trained,
            device,
            prepared,
            rivals: Rivals::of(prepared, &rows),
            languages: language_numbers(prepared, &trained.document.languages)?,
            load: Load::new(prepared.clone(), rows.clone(), pool, Recorder::off()),
            rows,
            kernel,
            longest: HashMap::new(),
            references: HashMap::new(),
            sounds: Sounds::new(trained.document.config.bands),
            aligner: Aligner::default(),
            limits: HealthLimits::default(),
        })
    }

    fn id(&self, row: u32) -> String {
        let number = self.rows.cache_row[row as usize] as usize;
        self.prepared.cache.row(number).map_or_else(String::new, |row| row.id.to_string())
    }

    /// One row as the voice hears it; the inner error is the row's own.
    fn listen(&mut self, row: u32) -> Result<Result<Heard, String>, TrainError> {
        let frames = match self.frames_of(row) {
            Ok(frames) => frames,
            Err(why) => return Ok(Err(why)),
        };
        let bands = self.bands();
        let count = frames.len() / bands;
        let texts = match self.texts_for(row, count) {
            Ok(texts) => texts,
            Err(why) => return Ok(Err(why)),
        };
        let reference = self.reference_for(row);
        let fits = self.align_by_prior(&texts, &frames, &reference)?;
        let rivals = texts.iter().zip(&fits).skip(1);
        let rivals = rivals.filter_map(|(text, fit)| Some((text.row, fit.as_ref()?.misfit)));
        let best_rival = rivals.min_by(|a, b| a.1.total_cmp(&b.1));
        let Some(Some(fit)) = fits.into_iter().next() else {
            return Ok(Err("the voice gives no numbers for it".into()));
        };
        self.sounds.add(&part_of(&texts[0], &fit.durations, &frames, bands));
        Ok(Ok(Heard { row, fit, best_rival }))
    }

    /// The same row beside what its symbols sound like in all others.
    fn compare(&mut self, heard: Heard) -> Result<Ranked, String> {
        let Heard { row, fit, best_rival } = heard;
        let (frames, bands) = (self.frames_of(row)?, self.bands());
        let texts = self.texts_for(row, frames.len() / bands)?;
        let own = part_of(&texts[0], &fit.durations, &frames, bands);
        let frames = centred(&frames, bands);
        let mut misfit = |text: &Text| {
            let means = self.sounds.without(&own, &text.symbols);
            let fit = fit_text(&mut self.aligner, &frames, &means, bands, &self.limits);
            fit.map(|fit| fit.misfit)
        };
        let mine = misfit(&texts[0]);
        let others = texts.iter().skip(1).filter(|text| text.of_same_length);
        let others: Vec<f64> = others.filter_map(&mut misfit).collect();
        let lead = best_rival.map(|(_, rival)| score::ahead(fit.misfit, rival));
        let better = best_rival.filter(|(_, rival)| *rival < fit.misfit);
        let margin = mine.and_then(|mine| score::margin(mine, others));
        let better = better.map(|(row, _)| self.id(row));
        Ok(Ranked { margin, lead, better, ..self.describe(row, &fit) })
    }

    fn bands(&self) -> usize {
        self.trained.document.config.bands
    }

    /// A row's own text, then the others.
    fn texts_for(&self, row: u32, frames: usize) -> Result<Vec<Text>, String> {
        let own = self.rivals.text(self.prepared, &self.rows, row);
        let own = own.ok_or("its text in the cache is damaged")?;
        if own.symbols.len() > frames {
            let symbols = own.symbols.len();
            return Err(format!("{symbols} symbols cannot be spoken in {frames} frames"));
        }
        let mut texts = vec![own];
        texts.extend(self.rivals.of_row(self.prepared, &self.rows, row, frames));
        Ok(texts)
    }

    /// Every text over the same frames.
    fn align_by_prior(
        &mut self,
        texts: &[Text],
        frames: &[f32],
        reference: &[f32],
    ) -> Result<Vec<Option<TextFit>>, TrainError> {
        let bands = self.trained.document.config.bands;
        let languages = texts.iter().map(|text| self.languages[text.language]).collect();
        let batch = lesson_of(texts, languages, reference, bands);
        let encoder = &self.trained.voice.encoder;
        let priors = guarded("reading texts", || priors(encoder, &batch, self.device))?;
        let (aligner, limits) = (&mut self.aligner, &self.limits);
        let fits = texts.iter().zip(priors.chunks_exact(batch.symbols * bands));
        let fits = fits.map(|(text, prior)| {
            fit_text(aligner, frames, &prior[..text.symbols.len() * bands], bands, limits)
        });
        Ok(fits.collect())
    }

    fn describe(&self, row: u32, fit: &TextFit) -> Ranked {
        let number = self.rows.cache_row[row as usize] as usize;
        let cache = &self.prepared.cache;
        let meta = cache.meta();
        let record = cache.record(number).copied().unwrap_or_default();
        let manifest = meta.sources.get(usize::from(record.manifest));
        Ranked {
            id: self.id(row),
            manifest: manifest.map(|source| source.path.clone()).unwrap_or_default(),
            line: record.line,
            language: meta.languages.get(usize::from(record.language)).cloned().unwrap_or_default(),
            text: cache.text(&record).map(|text| text.normalized.to_string()).unwrap_or_default(),
            suspicion: 0.0,
            reasons: Vec::new(),
            health: fit.health,
            misfit: fit.misfit,
            margin: None,
            lead: None,
            better: None,
        }
    }

    fn frames_of(&mut self, row: u32) -> Result<Vec<f32>, String> {
        let mel = self.load.mel_of(row, &mut self.kernel)?;
        Ok(self.trained.document.scale.normalised(&mel))
    }

    /// The beginning of the speaker's longest other utterance; nothing where there is none.
    fn reference_for(&mut self, row: u32) -> Vec<f32> {
        let speaker = self.rows.speakers[row as usize];
        let longest =
            self.longest.entry(speaker).or_insert_with(|| two_longest(&self.rows, speaker));
        let Some(&other) = longest.iter().find(|&&other| other != row) else { return Vec::new() };
        if let Some(known) = self.references.get(&other) {
            return known.clone();
        }
        // One that cannot be heard is named when its own turn comes.
        let mut frames = self.frames_of(other).unwrap_or_default();
        frames.truncate(REFERENCE_FRAMES * self.trained.document.config.bands);
        self.references.insert(other, frames.clone());
        frames
    }
}

fn part_of(text: &Text, durations: &[u32], frames: &[f32], bands: usize) -> Part {
    Part::of(text.language, &text.symbols, durations, &centred(frames, bands), bands)
}

fn two_longest(rows: &Rows, speaker: u16) -> Vec<u32> {
    let mut same = rows.by_speaker.get(&speaker).cloned().unwrap_or_default();
    same.sort_by_key(|&row| std::cmp::Reverse(rows.frames[row as usize]));
    same.truncate(2);
    same
}

/// What the encoder needs of a batch: texts and one reference for all of them.
fn lesson_of(texts: &[Text], languages: Vec<i32>, reference: &[f32], bands: usize) -> AlignedBatch {
    let rows = texts.len();
    let symbols = texts.iter().map(|text| text.symbols.len()).max().unwrap_or_default();
    let mut symbol_ids = Vec::with_capacity(rows * symbols);
    for (row, text) in texts.iter().enumerate() {
        symbol_ids.extend_from_slice(&text.symbols);
        symbol_ids.resize((row + 1) * symbols, 0);
    }
    let mut heard = reference.to_vec();
    heard.resize(REFERENCE_FRAMES * bands, 0.0);
    AlignedBatch {
        rows,
        symbols,
        bands,
        patch: 1,
        symbol_counts: texts.iter().map(|text| text.symbols.len()).collect(),
        symbol_ids,
        languages,
        reference_frames: REFERENCE_FRAMES,
        reference: heard.repeat(rows),
        reference_counts: vec![reference.len() / bands; rows],
        seed: Seed(0),
        ..AlignedBatch::default()
    }
}
