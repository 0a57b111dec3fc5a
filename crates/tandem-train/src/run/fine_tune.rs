//! A new run that starts from a trained voice (`--from`): fine-tuning on another corpus.
//!
//! In: a checkpoint of any run, a prepared corpus, settings. Out: [`RunStart`] with the weights of that voice, and
//! [`TakenOver`], which says what was taken over and what is new. Rows of the embeddings are taken by the name of their
//! symbol or language; symbols and languages that the voice does not know get new rows. The scale of the mel frames stays
//! that of the voice: its weights were trained in those units. Optimizer and step count start again.
//! Next: [`crate::run::trainer`].

use crate::TrainError;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::feed::{FeedSettings, Rows};
use crate::prepare::Prepared;
use crate::run::job::RunStart;
use crate::run::plan::total_steps;
use crate::run::start::{MOST_SPEAKERS, reference_segments};
use crate::run::state::{MOMENTS, RunState};
use crate::run::step::TrainState;
use crate::train_settings::TrainSettings;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tandem_data::batch::Position;
use tandem_data::cache::EntryBuffer;
use tandem_device::placement::OpenDevices;
use tandem_model::Module;
use tandem_model::checkpoint::{Checkpoints, Contents, Parts, TensorSet, find};
use tandem_model::network::size::VoiceConfig;
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::Optimizer;
use tandem_model::trained_voice::{
    EMA, KnownSpeaker, SPEAKERS, VOICE_VERSION, VoiceDocument, host_values, read_older_document,
    tensor_set,
};
use tandem_model::weights::{weights_of, with_named};
use tandem_text::SymbolId;

/// The embedding of the symbols: one row for each symbol of the table.
const SYMBOL_ROWS: &str = "encoder.text.embedding.table";
/// The embedding of the languages: one row for each tag of the voice's document.
const LANGUAGE_ROWS: &str = "encoder.languages.table";

/// What a fine-tuned run started from. Part of its checkpoints and of its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakenOver {
    /// The path that the user gave.
    pub from: PathBuf,
    /// The checkpoint it stands for, and its step.
    pub checkpoint: PathBuf,
    pub step: u64,
    /// Languages of the corpus that the voice knows.
    pub languages: Vec<String>,
    pub new_languages: Vec<String>,
    /// Languages of the voice that the corpus does not have.
    pub kept_languages: Vec<String>,
    /// Symbols of the corpus that the voice was trained on.
    pub symbols: usize,
    /// The other symbols of the corpus.
    pub new_symbols: Vec<String>,
    /// Speakers of the corpus with a reference segment.
    pub speakers: usize,
    /// Speakers of the voice that stay selectable.
    pub kept_speakers: usize,
}

/// A voice to start from.
pub struct SourceVoice {
    pub document: VoiceDocument,
    pub checkpoint: PathBuf,
    contents: Contents,
}

impl SourceVoice {
    /// The document only: enough to decide on settings.
    pub fn read_document(from: &Path) -> Result<VoiceDocument, TrainError> {
        let loaded = find(from, Parts::Only(&[]))?;
        Ok(read_older_document(&loaded.contents, &loaded.path)?)
    }

    /// A checkpoint, or the best one of a run directory.
    pub fn read(from: &Path) -> Result<SourceVoice, TrainError> {
        let loaded = find(from, Parts::Only(&[EMA, SPEAKERS, MOMENTS]))?;
        let document = read_older_document(&loaded.contents, &loaded.path)?;
        Ok(SourceVoice { document, checkpoint: loaded.path, contents: loaded.contents })
    }

    /// Refuses settings that the weights cannot be used with.
    fn check(&self, prepared: &Prepared, settings: &TrainSettings) -> Result<(), TrainError> {
        let refused = |what: String, way_out: String| {
            Err(TrainError::OtherVoice { path: self.checkpoint.clone(), what, way_out })
        };
        let (voice, data) = (&self.document, &prepared.settings);
        if voice.size != settings.model_size {
            let (saved, now) = (voice.size.name(), settings.model_size.name());
            return refused(
                format!("it is of size {saved}, `--model-size {now}` is set"),
                format!("type `--model-size {saved}`, or leave `--model-size` out"),
            );
        }
        if voice.mel != data.mel {
            let config = self.checkpoint.parent().unwrap_or(Path::new(".")).join("config.toml");
            return refused(
                "it was trained on mel frames with other settings".into(),
                format!(
                    "remove the section `[mel]` of your configuration, or type `--config {}`",
                    config.display()
                ),
            );
        }
        if voice.text.pronunciation != data.text.pronunciation {
            let (saved, now) = (voice.text.pronunciation, data.text.pronunciation);
            return refused(
                format!("it reads with `--pronunciation {saved}`, the corpus with `{now}`"),
                format!("type `--pronunciation {saved}`, or leave `--pronunciation` out"),
            );
        }
        Ok(())
    }
}

/// A new run with the weights of `from`. The directory must not hold a run already; ranks that write no checkpoints give
/// none.
pub fn fine_tune(
    from: &Path,
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    settings: &TrainSettings,
    devices: &OpenDevices,
    checkpoints: Option<&Checkpoints>,
) -> Result<RunStart, TrainError> {
    if let Some(own) = checkpoints
        && let Some(found) = own.load_newest()?
    {
        let directory = own.directory().to_path_buf();
        return Err(TrainError::RunExists { directory, step: found.contents.step });
    }
    let mut source = SourceVoice::read(from)?;
    source.check(prepared, settings)?;
    let moments = source.contents.take_tensors(MOMENTS).ok();
    let (document, speakers, taken_over) = describe(from, &mut source, moments, prepared, feed)?;
    let device = devices.model.clone().autodiff();
    let fresh =
        Voice::with_compute(settings.precision.compute(), &document.config, settings.seed, &device);
    let voice = with_weights_of(&mut source, fresh, &document)?;
    let optimizer = Optimizer::new(&voice);
    let first = BTreeMap::from([(0, voice.encoder.valid())]);
    let total = total_steps(prepared, feed, settings)?;
    let state = RunState::new(prepared, feed, settings, Position::start(feed.batch.seed));
    Ok(RunStart {
        train_state: TrainState::new(voice, optimizer, 0, settings, total),
        snapshots: AlignerSnapshots::new(settings.alignment, first),
        state: RunState { taken_over: Some(taken_over), ..state },
        document: Arc::new(document),
        speakers: Arc::new(speakers),
    })
}

/// The document of the new voice, the reference segments of its speakers, and what of both is new.
fn describe(
    from: &Path,
    source: &mut SourceVoice,
    moments: Option<TensorSet>,
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
) -> Result<(VoiceDocument, Vec<Vec<f32>>, TakenOver), TrainError> {
    let (meta, data) = (prepared.cache.meta(), &prepared.settings);
    let table = prepared.front_end.table();
    let old = source.document.clone();
    let is_known = |tag: &&String| old.languages.contains(tag);
    let (known, new): (Vec<_>, Vec<_>) = meta.languages.iter().partition(is_known);
    let not_in_corpus = |tag: &&String| !meta.languages.contains(tag);
    let kept: Vec<String> = old.languages.iter().filter(not_in_corpus).cloned().collect();
    // Batches number the languages of the corpus from 0: those of the voice alone follow.
    let languages = [meta.languages.clone(), kept.clone()].concat();

    let (mut speakers, mut segments) = reference_segments(prepared);
    segments.iter_mut().for_each(|mel| *mel = old.scale.normalised(mel));
    let of_corpus = speakers.len();
    for (speaker, mel) in old_speakers(source)? {
        let is_new = speakers.iter().all(|known| known.name != speaker.name);
        if is_new && speakers.len() < MOST_SPEAKERS {
            speakers.push(speaker);
            segments.push(mel);
        }
    }
    let trained = trained_symbols(moments.as_ref(), old.config.symbols);
    let used = corpus_symbols(prepared, feed);
    let (symbols, new_symbols): (Vec<u16>, Vec<u16>) =
        used.into_iter().partition(|id| trained.contains(id));
    let taken_over = TakenOver {
        from: from.to_path_buf(),
        checkpoint: source.checkpoint.clone(),
        step: source.contents.step,
        languages: known.into_iter().cloned().collect(),
        new_languages: new.into_iter().cloned().collect(),
        kept_languages: kept,
        symbols: symbols.len(),
        new_symbols: new_symbols.iter().map(|id| table.name(SymbolId(*id))).collect(),
        speakers: of_corpus,
        kept_speakers: speakers.len() - of_corpus,
    };
    let mut text = data.text.clone();
    // Synthesis must be able to detect every language that the voice speaks.
    text.languages.extend(
        old.text.languages.iter().filter(|known| !data.text.languages.contains(known)).copied(),
    );
    let document = VoiceDocument {
        version: VOICE_VERSION,
        config: VoiceConfig { symbols: table.len(), languages: languages.len(), ..old.config },
        mel: data.mel.clone(),
        audio: data.audio,
        text,
        lexicon: prepared.front_end.lexicon().map(str::to_owned),
        symbols: table.version(),
        languages,
        speakers,
        ..old
    };
    Ok((document, segments, taken_over))
}

/// The speakers of the source voice and their segments, in its units, which stay the same.
fn old_speakers(source: &mut SourceVoice) -> Result<Vec<(KnownSpeaker, Vec<f32>)>, TrainError> {
    let set = source.contents.take_tensors(SPEAKERS)?;
    let numbered = source.document.speakers.iter().enumerate();
    let of_number = |(number, speaker): (usize, &KnownSpeaker)| {
        let (_, mel) = host_values(&set, &number.to_string())?;
        Some((speaker.clone(), mel))
    };
    Ok(numbered.filter_map(of_number).collect())
}

/// Symbols whose row received a gradient: the second moment of such a row is above zero. Without the optimizer's state
/// all rows count as trained.
fn trained_symbols(moments: Option<&TensorSet>, count: usize) -> BTreeSet<u16> {
    let all = 0..count as u16;
    let found = moments.and_then(|set| host_values(set, &format!("square.{SYMBOL_ROWS}")));
    let Some((shape, squares)) = found else { return all.collect() };
    let width = shape.get(1).copied().unwrap_or(1).max(1);
    let is_trained = |id: &u16| {
        let row = squares.iter().skip(usize::from(*id) * width).take(width);
        row.into_iter().any(|square| *square > 0.0)
    };
    all.filter(is_trained).collect()
}

/// Symbols of the training rows.
fn corpus_symbols(prepared: &Prepared, feed: &FeedSettings) -> BTreeSet<u16> {
    let mut buffer = EntryBuffer::default();
    let mut used = BTreeSet::new();
    for &number in &Rows::of(prepared, feed.split).cache_row {
        let Some(row) = prepared.cache.row(number as usize) else { continue };
        if let Some(text) = prepared.cache.text(row.record, &mut buffer) {
            used.extend(text.symbols());
        }
    }
    used
}

/// The moving averages of the source's weights: what synthesis uses. Rows of the two embeddings are chosen by name.
fn with_weights_of(
    source: &mut SourceVoice,
    fresh: Voice,
    document: &VoiceDocument,
) -> Result<Voice, TrainError> {
    let device = fresh.devices()[0].clone().inner();
    let weights = source.contents.take_tensors(EMA)?;
    let of_fresh = weights_of(&fresh);
    let rows = of_fresh.iter().filter(|w| [SYMBOL_ROWS, LANGUAGE_ROWS].contains(&&*w.name));
    let initial = tensor_set(&rows.cloned().collect::<Vec<_>>())?;
    let old = &source.document;
    let named = |name: &str| {
        let found = host_values(&weights, name)?;
        let fresh = || host_values(&initial, name);
        match name {
            // Ids of symbols never change: a newer table only appends.
            SYMBOL_ROWS => Some(merge_rows(fresh()?, found, Some)),
            LANGUAGE_ROWS => Some(merge_rows(fresh()?, found, |row| {
                old.languages.iter().position(|tag| *tag == document.languages[row])
            })),
            _ => Some(found),
        }
    };
    Ok(with_named(fresh, named, &device)?)
}

/// A matrix, its shape and values.
type Matrix = (Vec<usize>, Vec<f32>);

/// `fresh` with the rows that `old` has. `old_row` gives the row of `old` for a row of `fresh`.
fn merge_rows(fresh: Matrix, old: Matrix, old_row: impl Fn(usize) -> Option<usize>) -> Matrix {
    let ((shape, mut values), (old_shape, old_values)) = (fresh, old);
    let (Some(&width), Some(&old_width)) = (shape.get(1), old_shape.get(1)) else {
        return (old_shape, old_values);
    };
    if width != old_width {
        // The caller refuses this shape.
        return (old_shape, old_values);
    }
    for (row, to) in values.chunks_exact_mut(width.max(1)).enumerate() {
        let at = old_row(row).map(|row| row * width);
        if let Some(from) = at.and_then(|at| old_values.get(at..at + width)) {
            to.copy_from_slice(from);
        }
    }
    (shape, values)
}

impl TakenOver {
    /// Whether a run that is resumed with this `--from` is the run that started from it.
    pub fn is_from(&self, typed: &Path) -> bool {
        let same_place = || {
            let (old, new) = (self.from.canonicalize(), typed.canonicalize());
            old.is_ok_and(|old| new.is_ok_and(|new| old == new))
        };
        self.from == typed || same_place()
    }
}

/// For the user: four lines.
impl fmt::Display for TakenOver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |tags: &[String], end: &str| match tags {
            [] => None,
            tags => Some(format!("{} {end}", tags.join(", "))),
        };
        writeln!(
            out,
            "fine-tuning: all weights of step {} in {}",
            self.step,
            self.checkpoint.display()
        )?;
        let languages = [
            listed(&self.languages, "taken over"),
            listed(&self.new_languages, "new"),
            listed(&self.kept_languages, "kept, not in the corpus"),
        ];
        let languages: Vec<String> = languages.into_iter().flatten().collect();
        writeln!(out, "  languages  {}", languages.join("; "))?;
        write!(out, "  symbols    {} of the corpus taken over", self.symbols)?;
        match self.new_symbols.as_slice() {
            [] => writeln!(out, ", none new")?,
            new => writeln!(out, ", {} new: {}", new.len(), new.join(" "))?,
        }
        write!(out, "  speakers   {} of the corpus", self.speakers)?;
        write!(out, ", {} of the voice kept", self.kept_speakers)
    }
}

#[cfg(test)]
mod tests;
