//! The whole graph: ids of a text to samples, for the chosen speakers.
//!
//! In: a [`VoiceExport`]. Out: the bytes of an ONNX model. The speaker embeddings are computed here and stored in the
//! graph, so that a reference recording is needed only now.
//!
//! Inputs: `input` (ids), `input_lengths`, `scales` (scale of the noise, factor of the durations, unused), `sid` (index of
//! the speaker, only with several), `noise` (optional, see [`NoiseSource`]). Outputs: `output` (samples), `durations`, `mel`. Names, order and
//! shapes are those that Piper uses.

use crate::ExportError;
use crate::acoustic::{Acoustic, Controls, MOST_STEPS};
use crate::espeak_rewrites::rewritten;
use crate::graph::{Graph, Length, Value};
use crate::input_symbols::input_symbols;
use crate::layers::Weights;
use crate::messages::{ModelProto, OperatorSetIdProto, StringStringEntryProto, element};
use crate::reading::Reading;
use crate::symbol_map::SymbolMap;
use crate::{griffin_lim, neural};
use prost::Message;
use tandem_model::Device;
use tandem_model::spectral_detail::{FIRST, deviations};
use tandem_model::synthesis::mel::{MelSynthesizer, Reference};
use tandem_model::synthesis::text::FADE;
use tandem_model::trained_voice::TrainedVoice;
use tandem_model::vocoder::griffin_lim::GriffinLimConfig;
use tandem_model::vocoder::neural::NeuralVocoder;
use tandem_model::vocoder::samples_of;
use tandem_text::espeak_symbols::{self, Rewrite};
use tandem_text::{Language, SymbolSource, SymbolTable};

/// The version of the operations in the graph. ONNX Runtime runs it since version 1.12.
pub const OPSET: i64 = 17;
/// The version of the file format; the first with these operations.
const IR_VERSION: i64 = 8;

/// A speaker of the exported voice.
#[derive(Clone, Debug)]
pub struct ExportedSpeaker {
    pub name: String,
    /// The language that it speaks.
    pub language: Language,
    /// The index of that language in the model.
    pub language_number: i32,
    pub reference: Reference,
}

/// The vocoder inside the graph.
#[derive(Debug)]
pub enum ExportedVocoder {
    Neural(Box<NeuralVocoder>),
    GriffinLim(GriffinLimConfig),
}

impl ExportedVocoder {
    /// For messages and metadata.
    pub fn describe(&self) -> String {
        match self {
            ExportedVocoder::Neural(_) => "neural vocoder".into(),
            ExportedVocoder::GriffinLim(config) => {
                format!("Griffin-Lim, {} iterations", config.iterations)
            }
        }
    }
}

/// Where the noise of the flow comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseSource {
    /// From the optional input `noise`; the graph draws what it lacks. ONNX Runtime warns about such an input.
    Input,
    /// The graph draws it.
    Graph,
}

/// Whose symbols the graph reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputNotation {
    /// Those of the voice.
    Voice,
    /// Those that espeak-ng writes, where the voice reads built-in phonemes: the graph rewrites them. It reads the
    /// voice's own symbols, too.
    Espeak,
}

/// What is exported.
#[derive(Debug)]
pub struct VoiceExport<'a> {
    pub trained: &'a TrainedVoice,
    /// The device of the voice.
    pub device: &'a Device,
    /// At least one.
    pub speakers: Vec<ExportedSpeaker>,
    pub vocoder: ExportedVocoder,
    /// Steps of the flow.
    pub steps: usize,
    pub noise: NoiseSource,
    pub notation: InputNotation,
}

impl VoiceExport<'_> {
    /// How the graph rewrites its input. A program runs espeak-ng in one language, that of the first speaker.
    pub fn rewrites(&self) -> Vec<Rewrite> {
        let Some(first) = self.speakers.first() else { return Vec::new() };
        let source = self.trained.document.text.pronunciation.source(first.language);
        match (self.notation, source) {
            (InputNotation::Espeak, Ok(SymbolSource::BuiltIn)) => {
                espeak_symbols::rules(first.language)
            }
            _ => Vec::new(),
        }
    }

    /// Which ids code points have, and which the graph joins to one symbol.
    pub(crate) fn symbol_map(&self) -> SymbolMap {
        let (table, document) = (SymbolTable::standard(), &self.trained.document);
        let languages: Vec<Language> = self.speakers.iter().map(|one| one.language).collect();
        let readings = languages.iter().map(|&language| Reading::of(document, language));
        match Reading::common(readings) {
            Ok(Reading::Characters) => {
                SymbolMap::of_characters(&table, &languages, document.text.diacritics)
            }
            _ if !self.rewrites().is_empty() => SymbolMap::of_espeak(&table),
            _ => SymbolMap::of_symbols(&table),
        }
    }

    /// The bytes of the model.
    pub fn model(&self) -> Result<Vec<u8>, ExportError> {
        if self.speakers.is_empty() {
            return Err(ExportError::NoSpeaker);
        }
        if !(1..=MOST_STEPS).contains(&self.steps) {
            return Err(ExportError::Steps { steps: self.steps, most: MOST_STEPS });
        }
        let graph = Graph::new("");
        self.write(&graph)?;
        let entry = |(key, value): (&str, String)| StringStringEntryProto {
            key: Some(key.into()),
            value: Some(value),
        };
        let model = ModelProto {
            ir_version: Some(IR_VERSION),
            producer_name: Some("tandem".into()),
            producer_version: Some(env!("CARGO_PKG_VERSION").into()),
            doc_string: Some("text to speech: ids of symbols to samples".into()),
            graph: Some(graph.finish("voice")),
            opset_import: vec![OperatorSetIdProto {
                domain: Some(String::new()),
                version: Some(OPSET),
            }],
            metadata_props: self.metadata().into_iter().map(entry).collect(),
        };
        Ok(model.encode_to_vec())
    }

    /// Facts about the voice, as they are stored in the model.
    pub fn metadata(&self) -> Vec<(&'static str, String)> {
        let document = &self.trained.document;
        let names: Vec<&str> = self.speakers.iter().map(|speaker| speaker.name.as_str()).collect();
        let tags: Vec<&str> = self.speakers.iter().map(|speaker| speaker.language.tag()).collect();
        vec![
            ("sample_rate", document.mel.rate.0.to_string()),
            ("hop_length", document.mel.hop.0.to_string()),
            ("bands", document.mel.bands.to_string()),
            ("speakers", names.join(",")),
            ("languages", tags.join(",")),
            ("symbol_table", document.symbols.to_string()),
            ("flow_steps", self.steps.to_string()),
            ("vocoder", self.vocoder.describe()),
            ("training_steps", self.trained.step.to_string()),
        ]
    }

    fn write(&self, graph: &Graph) -> Result<(), ExportError> {
        let document = &self.trained.document;
        let (bands, hop) = (document.config.bands, document.mel.hop.0);
        let one = || Length::Fixed(1);
        let ids = graph.input(
            "input",
            element::INT64,
            &[one(), Length::Named("phonemes")],
            "ids of the symbols of one text; 0 is ignored",
        );
        let lengths = graph.input("input_lengths", element::INT64, &[one()], "number of ids");
        let scales = graph.input(
            "scales",
            element::FLOAT,
            &[Length::Fixed(3)],
            "scale of the noise, factor of the durations, unused",
        );
        let SpeakerValues { condition, deviations, level } = self.speaker(graph);
        let noise = (self.noise == NoiseSource::Input).then(|| {
            graph.optional_input(
                "noise",
                &[Length::Named("noise_frames"), Length::Fixed(bands)],
                (&[0, bands], Vec::new()),
                "optional: the first rows of the noise; the rest is drawn",
            )
        });
        let symbols = input_symbols(graph, &ids, &lengths, &self.symbol_map());
        let symbols = rewritten(graph, symbols, &self.rewrites(), &SymbolTable::standard());
        let controls = Controls {
            condition,
            temperature: scales.slice(0, 0, 1),
            length_scale: scales.slice(0, 1, 2),
            deviations,
            level,
            noise,
        };
        let acoustic = Acoustic {
            weights: Weights::of(graph, &self.trained.voice)?,
            config: &document.config,
            scale: document.scale,
            steps: self.steps,
        };
        let predicted = acoustic.mel(&symbols.symbols, &controls)?;
        let samples = match &self.vocoder {
            ExportedVocoder::Neural(vocoder) => neural::samples(graph, vocoder, &predicted.mel)?,
            ExportedVocoder::GriffinLim(config) => {
                griffin_lim::samples(graph, &document.mel, config, &predicted.mel)?
            }
        };
        let cut = hop - samples_of(1, &document.mel).0;
        let samples = faded(&samples).pad_rows(1, 0, cut as i64).reshape(&[1, 1, 1, -1]);
        graph.output(
            &samples,
            "output",
            element::FLOAT,
            &[one(), one(), one(), Length::Named("samples")],
            "samples, full scale at 1.0",
        );
        let empty = graph.zeros(&symbols.count);
        let durations =
            empty.scatter_add(&symbols.places, &predicted.durations.cast(element::FLOAT));
        graph.output(
            &durations.unsqueeze(0),
            "durations",
            element::FLOAT,
            &[one(), Length::Named("phonemes")],
            "frames of each id",
        );
        graph.output(
            &predicted.mel.unsqueeze(0),
            "mel",
            element::FLOAT,
            &[one(), Length::Named("frames"), Length::Fixed(bands)],
            "natural logarithms of mel bands",
        );
        Ok(())
    }

    fn speaker<'g>(&self, graph: &'g Graph) -> SpeakerValues<'g> {
        let TrainedVoice { document, voice, .. } = self.trained;
        let voice = MelSynthesizer { voice, config: &document.config, device: self.device };
        let vector = |speaker: &ExportedSpeaker| {
            voice.condition_vector(speaker.language_number, &speaker.reference)
        };
        let rows: Vec<f32> = self.speakers.iter().flat_map(vector).collect();
        let width = rows.len() / self.speakers.len();
        let table = graph.floats(&[self.speakers.len(), width], &rows);
        let levels = self.speakers.iter().map(|one| one.reference.level.or(document.scale.level));
        let levels: Option<Vec<f32>> = levels.collect();
        let all = SpeakerValues {
            condition: table,
            deviations: self.deviations(graph),
            level: levels.map(|levels| graph.floats(&[levels.len()], &levels)),
        };
        if self.speakers.len() == 1 {
            return all;
        }
        let about = "index of the speaker";
        let sid = graph.input("sid", element::INT64, &[Length::Fixed(1)], about);
        SpeakerValues {
            condition: all.condition.gather(&sid),
            deviations: all.deviations.gather(&sid),
            level: all.level.map(|level| level.gather(&sid)),
        }
    }

    /// Deviations of each speaker's reference, `[speakers, bands - FIRST]`; zeros change nothing.
    fn deviations<'g>(&self, graph: &'g Graph) -> Value<'g> {
        let bands = self.trained.document.config.bands;
        let coefficients = bands.saturating_sub(FIRST);
        let none = || vec![0.0; coefficients];
        let of_one = |speaker: &ExportedSpeaker| {
            deviations(&speaker.reference.mel, bands).unwrap_or_else(none)
        };
        let rows = self.speakers.iter().flat_map(of_one).map(|value| value as f32);
        let rows: Vec<f32> = rows.collect();
        graph.floats(&[self.speakers.len(), coefficients], &rows)
    }
}

/// What the graph knows of the chosen speaker, or of each speaker.
struct SpeakerValues<'g> {
    /// `[1, condition]`.
    condition: Value<'g>,
    /// `[1, bands - FIRST]`.
    deviations: Value<'g>,
    /// In dB, one value.
    level: Option<Value<'g>>,
}

/// Samples that are faded in and out at both ends, as `tandem synth` does.
fn faded<'g>(samples: &Value<'g>) -> Value<'g> {
    let graph = samples.graph();
    let count = samples.length(0);
    let index = graph.range(&count).cast(element::FLOAT) + 0.5;
    let from_end = count.cast(element::FLOAT) - &index;
    let level = index.with("Min", &from_end) / FADE as f32;
    samples * level.at_most(1.0)
}

#[cfg(test)]
mod tests;
