//! Scores one row: synthesizes its text and compares the result with the recording.
//!
//! In: a row of the corpus. Out: [`ScoredRow`]. Writes nothing.

use super::{EvaluateError, ScoredRow, TimingError, WordTimings, spread};
use std::collections::HashMap;
use tandem_audio::mel::{Mel, MelExtractor};
use tandem_audio::{AudioConfig, Decoder, FileReader};
use tandem_data::corpus::{Corpus, Split, Utterance};
use tandem_device::backend::guarded;
use tandem_model::alignment::Aligner;
use tandem_model::metrics::duration::duration_error;
use tandem_model::metrics::pitch::semitones;
use tandem_model::metrics::{
    AlignmentHealth, Band, HealthLimits, MeanMel, MelFrames, Modulation, PitchConfig, PitchTrack,
    Scores, cosine_distance, level, mel_cepstral_distortion,
};
use tandem_model::synthesis::mel::{Reference, SamplingOptions};
use tandem_model::synthesis::text::Synthesizer;
use tandem_model::train_batch::AlignedBatch;
use tandem_pipeline::CancelToken;
use tandem_text::{Language, SymbolTable};
use tandem_train::feed::align::priors;
use tandem_train::feed::align::text_fit::fit_text;
use tandem_units::{Samples, Seconds, Seed};

/// Training rows for the mean frame.
const ROWS_OF_MEAN: usize = 300;
/// The reference encoder needs a multiple of this many frames.
const REFERENCE_STRIDE: usize = 4;

pub struct Scorer<'a> {
    synthesizer: &'a mut Synthesizer,
    corpus: &'a Corpus,
    sampling: SamplingOptions,
    reader: RecordingReader,
    mean: MeanMel,
    /// References by the id of their utterance.
    references: HashMap<String, Reference>,
    aligner: Aligner,
    pitch: PitchConfig,
    limits: HealthLimits,
    spoken: Samples,
    timings: WordTimings,
    table: SymbolTable,
    words_off: Vec<f64>,
}

/// A decoded recording.
struct Recording {
    samples: Vec<f32>,
    mel: Mel,
}

/// Reads recordings.
struct RecordingReader {
    file: FileReader,
    decoder: Decoder,
    extractor: MelExtractor,
}

impl RecordingReader {
    fn read(&mut self, corpus: &Corpus, row: &Utterance) -> Result<Recording, EvaluateError> {
        let path = corpus.audio_path(row);
        let failed = |source| EvaluateError::Recording { id: row.id.clone(), source };
        let bytes = self.file.read(&path, self.decoder.config()).map_err(failed)?;
        let extension = path.extension().and_then(|extension| extension.to_str());
        let sound = self.decoder.decode(bytes, extension).map_err(failed)?;
        let mel = self.extractor.extract(sound)?;
        Ok(Recording { samples: sound.to_f32(), mel })
    }
}

impl<'a> Scorer<'a> {
    /// Computes the mean frame from training rows, or from all rows where there are none.
    pub fn new(
        synthesizer: &'a mut Synthesizer,
        corpus: &'a Corpus,
        sampling: &SamplingOptions,
        cancel: &CancelToken,
    ) -> Result<Scorer<'a>, EvaluateError> {
        let document = &synthesizer.trained().document;
        let mel = document.mel.clone();
        let audio = AudioConfig::default().conditioned_like(&document.audio);
        let mut reader = RecordingReader {
            file: FileReader::default(),
            decoder: Decoder::new(mel.rate, audio),
            extractor: MelExtractor::new(mel.clone())?,
        };
        let trained: Vec<&Utterance> = corpus.of(Split::Train).collect();
        let all: Vec<&Utterance> = corpus.utterances.iter().collect();
        let rows = if trained.is_empty() { &all } else { &trained };
        let mut mean = MeanMel::new(mel.bands);
        for row in spread(rows, ROWS_OF_MEAN) {
            if cancel.is_cancelled() {
                return Err(EvaluateError::cancelled());
            }
            // An unreadable recording is left out of the mean. If it is scored, its error is reported.
            if let Ok(recording) = reader.read(corpus, row) {
                mean.add(MelFrames::of(&recording.mel)?)?;
            }
        }
        let pitch = PitchConfig { rate: mel.rate, hop: mel.hop, ..PitchConfig::SPEECH_22K };
        Ok(Scorer {
            synthesizer,
            corpus,
            sampling: *sampling,
            reader,
            mean,
            references: HashMap::new(),
            aligner: Aligner::default(),
            pitch,
            limits: HealthLimits::default(),
            spoken: Samples(0),
            timings: WordTimings::read(&corpus.root)?,
            table: SymbolTable::standard(),
            words_off: Vec::new(),
        })
    }

    /// Length of the synthesized speech so far.
    pub fn spoken(&self) -> Seconds {
        self.pitch.rate.seconds(self.spoken)
    }

    /// Errors of word start times so far.
    pub fn timing(&self) -> Option<TimingError> {
        TimingError::of(self.words_off.clone())
    }

    /// Synthesizes a row's text and compares it with the recording.
    pub fn score(&mut self, row: &Utterance) -> Result<ScoredRow, EvaluateError> {
        let of_text = |source| EvaluateError::Text { id: row.id.clone(), source };
        let named = row.language.as_deref().map(str::parse::<Language>).transpose();
        let reading = self.synthesizer.read(&row.text, named.map_err(of_text)?).map_err(of_text)?;
        let symbols: Vec<i32> = reading.transcript.ids().iter().map(|id| i32::from(id.0)).collect();
        let truth = self.reader.read(self.corpus, row)?;
        let reference = self.reference_for(row)?;
        let spoken = self.synthesizer.synthesize_mel(
            &symbols,
            reading.language,
            &reference,
            &self.sampling,
        )?;
        let scale = self.synthesizer.trained().document.scale;
        let own = Reference { mel: spoken.mel.clone(), level: None };
        let mut mel = spoken.mel;
        self.synthesizer.trained().document.restore(&mut mel, &reference);
        let (found, wanted) = (self.frames(&mel)?, MelFrames::of(&truth.mel)?);
        let normalised = scale.normalised(truth.mel.values());
        let alignment = self.align(row, &symbols, reading.language, &reference, &normalised)?;
        let modulation = Modulation::of(found, wanted)?;
        let scores = Scores {
            distortion: mel_cepstral_distortion(found, wanted, Band::Whole)?.decibels,
            baseline: self.mean.distortion(wanted)?.decibels,
            duration: duration_error(found.frames() as f64, wanted.frames() as f64)?,
            alignment,
            speaker: self.speaker_distance(&own, &Reference { mel: normalised, level: None })?,
            pitch: self.pitch_error(&mel, &truth.samples)?,
            change_over_time: modulation.over_time,
            change_over_bands: modulation.over_bands,
            level: level(found) - level(wanted),
        };
        Ok(ScoredRow {
            id: row.id.clone(),
            language: reading.language.tag().to_owned(),
            speaker: row.speaker.clone(),
            suspicion: alignment.map_or(0.0, |health| health.suspicion(&self.limits)),
            scores,
        })
    }

    fn frames<'m>(&self, mel: &'m [f32]) -> Result<MelFrames<'m>, EvaluateError> {
        Ok(MelFrames::new(mel, self.synthesizer.trained().document.mel.bands)?)
    }

    /// Another utterance of the same speaker, from the training rows if possible; empty where there is
    /// none.
    fn reference_for(&mut self, row: &Utterance) -> Result<Reference, EvaluateError> {
        let same = |other: &&Utterance| {
            other.id != row.id && other.speaker == row.speaker && other.language == row.language
        };
        let trained = self.corpus.of(Split::Train).find(same);
        let Some(other) = trained.or_else(|| self.corpus.of(Split::Eval).find(same)) else {
            return Ok(Reference::default());
        };
        if let Some(known) = self.references.get(&other.id) {
            return Ok(known.clone());
        }
        let recording = self.reader.read(self.corpus, other)?;
        let document = &self.synthesizer.trained().document;
        let name = row.speaker.as_deref();
        let known = document.speakers.iter().find(|known| Some(known.name.as_str()) == name);
        let reference = Reference {
            mel: document.scale.normalised(recording.mel.values()),
            level: known.and_then(|known| known.level),
        };
        self.references.insert(other.id.clone(), reference.clone());
        Ok(reference)
    }

    /// Aligns the text to the recording as training does; none where it has too many symbols.
    fn align(
        &mut self,
        row: &Utterance,
        symbols: &[i32],
        language: Language,
        reference: &Reference,
        mel: &[f32],
    ) -> Result<Option<AlignmentHealth>, EvaluateError> {
        let language = self.synthesizer.language_number(language)?;
        let document = &self.synthesizer.trained().document;
        let bands = document.config.bands;
        let batch = one_row(symbols, language, reference, mel, bands);
        let (encoder, device) =
            (&self.synthesizer.trained().voice.encoder, self.synthesizer.device());
        let priors = guarded("encoding a text", || priors(encoder, &batch, device))?;
        let Some(fit) = fit_text(&mut self.aligner, mel, &priors, bands, &self.limits) else {
            return Ok(None);
        };
        let rate = self.pitch.rate.seconds(Samples(self.pitch.hop.0)).0.recip();
        let off = self.timings.errors(&row.id, symbols, &fit.durations, &self.table, rate);
        self.words_off.extend(off);
        Ok(Some(fit.health))
    }

    /// Distance of the speaker embeddings of the synthesized and the recorded speech.
    fn speaker_distance(
        &self,
        own: &Reference,
        truth: &Reference,
    ) -> Result<Option<f64>, EvaluateError> {
        let (own, truth) =
            (self.synthesizer.speaker_embedding(own)?, self.synthesizer.speaker_embedding(truth)?);
        // An untrained encoder may give a zero vector.
        Ok(cosine_distance(&own, &truth).ok())
    }

    /// Semitones above the recording; none where one of the two has no voiced frames.
    fn pitch_error(&mut self, mel: &[f32], truth: &[f32]) -> Result<Option<f64>, EvaluateError> {
        let sound = self.synthesizer.vocode(mel)?;
        self.spoken += Samples(sound.len());
        let own = PitchTrack::of(&sound, &self.pitch)?.median();
        let truth = PitchTrack::of(truth, &self.pitch)?.median();
        Ok(own.zip(truth).map(|(own, truth)| semitones(own, truth)))
    }
}

/// A batch of one utterance.
fn one_row(
    symbols: &[i32],
    language: i32,
    reference: &Reference,
    mel: &[f32],
    bands: usize,
) -> AlignedBatch {
    let (count, frames) = (symbols.len(), mel.len() / bands);
    let real = reference.mel.len() / bands;
    let reference_frames = real.next_multiple_of(REFERENCE_STRIDE).max(REFERENCE_STRIDE);
    let mut reference_mel = reference.mel.clone();
    reference_mel.resize(reference_frames * bands, 0.0);
    AlignedBatch {
        rows: 1,
        symbols: count,
        frames,
        bands,
        patch: 1,
        symbol_counts: vec![count],
        frame_counts: vec![frames],
        symbol_ids: symbols.to_vec(),
        languages: vec![language],
        durations: vec![0; count],
        mel: mel.to_vec(),
        reference_frames,
        reference: reference_mel,
        reference_counts: vec![real],
        seed: Seed(0),
    }
}
