//! One row: the recording, what the voice makes of its text, and how far the two are apart.

use super::{EvaluateError, Judged, TimingError, WordTimings, spread};
use std::collections::HashMap;
use tandem_data::audio::mel::{Mel, MelExtractor};
use tandem_data::audio::{AudioLimits, Decoder, FileReader};
use tandem_data::corpus::{Corpus, Split, Utterance};
use tandem_data::text::{Language, SymbolTable};
use tandem_device::backend::guarded;
use tandem_model::alignment::Aligner;
use tandem_model::metrics::duration::duration_error;
use tandem_model::metrics::pitch::semitones;
use tandem_model::metrics::{
    AlignmentHealth, Band, HealthLimits, MeanMel, MelFrames, PitchConfig, PitchTrack, Scores,
    cosine_distance, mel_cepstral_distortion,
};
use tandem_model::synthesis::mel::{Reference, SamplingOptions};
use tandem_model::synthesis::text::Synthesizer;
use tandem_model::train_batch::AlignedBatch;
use tandem_pipeline::CancelToken;
use tandem_train::feed::align::priors;
use tandem_train::feed::align::text_fit::fit_text;
use tandem_units::{Samples, Seconds, Seed};

/// Training rows that the mean frame is taken of.
const ROWS_OF_MEAN: usize = 300;
/// The reference encoder takes frames by fours.
const BY_FOURS: usize = 4;

/// Judges row after row.
pub struct Judge<'a> {
    synthesizer: &'a mut Synthesizer,
    corpus: &'a Corpus,
    sampling: SamplingOptions,
    ears: Ears,
    mean: MeanMel,
    /// Frames to imitate, by the id of the utterance they are of.
    references: HashMap<String, Reference>,
    aligner: Aligner,
    pitch: PitchConfig,
    limits: HealthLimits,
    spoken: Samples,
    timings: WordTimings,
    table: SymbolTable,
    words_off: Vec<f64>,
}

/// A recording as samples and frames.
struct Heard {
    samples: Vec<f32>,
    mel: Mel,
}

/// What turns files into that.
struct Ears {
    file: FileReader,
    decoder: Decoder,
    extractor: MelExtractor,
}

impl Ears {
    fn hear(&mut self, corpus: &Corpus, row: &Utterance) -> Result<Heard, EvaluateError> {
        let path = corpus.audio_path(row);
        let failed = |source| EvaluateError::Recording { id: row.id.clone(), source };
        let limits = AudioLimits::default();
        let bytes = self.file.read(&path, &limits).map_err(failed)?;
        let ending = path.extension().and_then(|ending| ending.to_str());
        let sound = self.decoder.decode(bytes, ending).map_err(failed)?;
        let mel = self.extractor.extract(sound)?;
        Ok(Heard { samples: sound.to_f32(), mel })
    }
}

impl<'a> Judge<'a> {
    /// Hears training rows for the mean frame; where there are none, those that are judged.
    pub fn new(
        synthesizer: &'a mut Synthesizer,
        corpus: &'a Corpus,
        sampling: &SamplingOptions,
        cancel: &CancelToken,
    ) -> Result<Judge<'a>, EvaluateError> {
        let mel = synthesizer.trained().document.mel.clone();
        let mut ears = Ears {
            file: FileReader::default(),
            decoder: Decoder::new(mel.rate, AudioLimits::default()),
            extractor: MelExtractor::new(mel.clone())?,
        };
        let learned: Vec<&Utterance> = corpus.of(Split::Train).collect();
        let all: Vec<&Utterance> = corpus.utterances.iter().collect();
        let rows = if learned.is_empty() { &all } else { &learned };
        let mut mean = MeanMel::new(mel.bands);
        for row in spread(rows, ROWS_OF_MEAN) {
            if cancel.is_cancelled() {
                return Err(EvaluateError::cancelled());
            }
            // One that cannot be heard is no part of the mean; if it is judged, that is said.
            if let Ok(heard) = ears.hear(corpus, row) {
                mean.add(MelFrames::of(&heard.mel)?)?;
            }
        }
        let pitch = PitchConfig { rate: mel.rate, hop: mel.hop, ..PitchConfig::SPEECH_22K };
        Ok(Judge {
            synthesizer,
            corpus,
            sampling: *sampling,
            ears,
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

    /// Speech made so far.
    pub fn spoken(&self) -> Seconds {
        self.pitch.rate.seconds(self.spoken)
    }

    /// How far starts of words were off so far.
    pub fn timing(&self) -> Option<TimingError> {
        TimingError::of(self.words_off.clone())
    }

    /// Has the voice say a row's text, and compares.
    pub fn judge(&mut self, row: &Utterance) -> Result<Judged, EvaluateError> {
        let of_text = |source| EvaluateError::Text { id: row.id.clone(), source };
        let named = row.language.as_deref().map(str::parse::<Language>).transpose();
        let reading = self.synthesizer.read(&row.text, named.map_err(of_text)?).map_err(of_text)?;
        let symbols: Vec<i32> = reading.transcript.ids().iter().map(|id| i32::from(id.0)).collect();
        let truth = self.ears.hear(self.corpus, row)?;
        let reference = self.reference_for(row)?;
        let spoken = self.synthesizer.synthesize_mel(
            &symbols,
            reading.language,
            &reference,
            &self.sampling,
        )?;
        let scale = self.synthesizer.trained().document.scale;
        let own = Reference { mel: spoken.mel.clone() };
        let mut said = spoken.mel;
        scale.restore(&mut said);
        let (found, wanted) = (self.frames(&said)?, MelFrames::of(&truth.mel)?);
        let normalised = scale.normalised(truth.mel.values());
        let alignment = self.align(row, &symbols, reading.language, &reference, &normalised)?;
        let scores = Scores {
            distortion: mel_cepstral_distortion(found, wanted, Band::Whole)?.decibels,
            baseline: self.mean.distortion(wanted)?.decibels,
            duration: duration_error(found.frames() as f64, wanted.frames() as f64)?,
            alignment,
            speaker: self.speaker_distance(&own, &Reference { mel: normalised })?,
            pitch: self.pitch_error(&said, &truth.samples)?,
        };
        Ok(Judged {
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

    /// Another utterance of the same speaker, learned from if possible; nobody's where it has none.
    fn reference_for(&mut self, row: &Utterance) -> Result<Reference, EvaluateError> {
        let same = |other: &&Utterance| {
            other.id != row.id && other.speaker == row.speaker && other.language == row.language
        };
        let learned = self.corpus.of(Split::Train).find(same);
        let Some(other) = learned.or_else(|| self.corpus.of(Split::Eval).find(same)) else {
            return Ok(Reference::default());
        };
        if let Some(known) = self.references.get(&other.id) {
            return Ok(known.clone());
        }
        let heard = self.ears.hear(self.corpus, other)?;
        let scale = self.synthesizer.trained().document.scale;
        let reference = Reference { mel: scale.normalised(heard.mel.values()) };
        self.references.insert(other.id.clone(), reference.clone());
        Ok(reference)
    }

    /// Lays the text over the recording as training does; none where it does not fit.
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
        let priors = guarded("reading a text", || priors(encoder, &batch, device))?;
        let Some(fit) = fit_text(&mut self.aligner, mel, &priors, bands, &self.limits) else {
            return Ok(None);
        };
        let rate = self.pitch.rate.seconds(Samples(self.pitch.hop.0)).0.recip();
        let off = self.timings.errors(&row.id, symbols, &fit.durations, &self.table, rate);
        self.words_off.extend(off);
        Ok(Some(fit.health))
    }

    /// How far the voice that is heard is from the one that was recorded, to the voice's own ears.
    fn speaker_distance(
        &self,
        own: &Reference,
        truth: &Reference,
    ) -> Result<Option<f64>, EvaluateError> {
        let (own, truth) =
            (self.synthesizer.speaker_embedding(own)?, self.synthesizer.speaker_embedding(truth)?);
        // An encoder that has learned nothing may give no direction at all.
        Ok(cosine_distance(&own, &truth).ok())
    }

    /// Semitones above the recording; none where one of the two has no voice.
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
    let reference_frames = real.next_multiple_of(BY_FOURS).max(BY_FOURS);
    let mut heard = reference.mel.clone();
    heard.resize(reference_frames * bands, 0.0);
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
        reference: heard,
        reference_counts: vec![real],
        seed: Seed(0),
    }
}
