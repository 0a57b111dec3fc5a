//! The native half of `tandem.Voice`: a trained voice that speaks.
//!
//! In: a checkpoint and texts. Out: samples as [`Memory`] and a summary as JSON. Texts are synthesized one
//! after the other. The same text, seed and checkpoint give the same samples as `tandem synth`.

use crate::errors::Class;
use crate::interruptible;
use crate::memory::Memory;
use crate::process::Process;
use pyo3::prelude::*;
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tandem::advised::Advised;
use tandem::failure::{Context, Failure, Result};
use tandem::speaking_args::VoiceArgs;
use tandem_device::backend::BackendChoice;
use tandem_model::synthesis::mel::SamplingOptions;
use tandem_model::synthesis::text::{SpeakerChoice, SpeechOptions, SynthesizedSpeech, Synthesizer};
use tandem_model::vocoder::VocoderChoice;
use tandem_text::Language;
use tandem_units::{Seconds, Seed};

#[pyclass(frozen, module = "tandem._native")]
pub struct NativeVoice {
    process: Process,
    synthesizer: Arc<Mutex<Synthesizer>>,
    about: String,
    rate: u32,
}

const NAME: &str = "Voice";

#[pymethods]
impl NativeVoice {
    #[new]
    fn new(
        py: Python<'_>,
        checkpoint: PathBuf,
        backend: &str,
        gpu: Option<usize>,
    ) -> PyResult<NativeVoice> {
        let backend: BackendChoice = backend.parse().map_err(|error| {
            let fact = format!("`backend` is `{backend}`: {error}");
            Class::Settings.error(py, &fact, "write `auto` or `cpu`; `tandem devices` lists all")
        })?;
        let args = VoiceArgs { checkpoint, backend, gpu };
        let read = move || args.open_with(&VocoderChoice::default());
        let each_tick = &mut || Ok(());
        let voice = interruptible::run(py, "voice", Class::Voice, None, each_tick, read)?;
        let trained = voice.trained();
        let speakers: Vec<_> = trained.document.speakers.iter().map(|known| &known.name).collect();
        let about = json!({
            "checkpoint": trained.path,
            "step": trained.step,
            "rate": trained.document.mel.rate,
            "languages": trained.document.languages,
            "speakers": speakers,
            "damaged": trained.damaged,
        });
        Ok(NativeVoice {
            process: Process::current(),
            about: about.to_string(),
            rate: trained.document.mel.rate.0,
            synthesizer: Arc::new(Mutex::new(voice)),
        })
    }

    /// Checkpoint, step, rate, languages and speakers, as JSON.
    #[getter]
    fn about(&self) -> &str {
        &self.about
    }

    /// Samples, rate, and the sentences as JSON.
    #[expect(clippy::too_many_arguments, reason = "the arguments of a Python method")]
    fn synthesize(
        &self,
        py: Python<'_>,
        text: String,
        language: Option<&str>,
        reference: Option<PathBuf>,
        speaker: Option<String>,
        speed: f32,
        seed: u64,
        steps: Option<usize>,
        temperature: Option<f32>,
        pause: f64,
    ) -> PyResult<(Memory, u32, String)> {
        self.process.check(py, NAME)?;
        let refused = |failure: Failure| Class::Voice.of(py, failure);
        let language: Option<Language> = language
            .map(str::parse)
            .transpose()
            .map_err(|error: tandem_text::TextError| refused(error.into()))?;
        if !(0.0..=60.0).contains(&pause) {
            let fact = format!("`pause` is {pause} s");
            return Err(Class::Settings.error(py, &fact, "give seconds from 0 to 60"));
        }
        if reference.is_some() && speaker.is_some() {
            let fact = "a text has one speaker: `reference` and `speaker` are both given";
            return Err(Class::Settings.error(py, fact, "leave one of them out"));
        }
        let usual = SamplingOptions::default();
        let sampling = SamplingOptions {
            speed,
            steps: steps.unwrap_or(usual.steps),
            temperature: temperature.unwrap_or(usual.temperature),
            seed: Seed(seed),
        };
        let pause = Seconds(pause);
        let options = SpeechOptions { sampling, language, pause, ..SpeechOptions::default() };
        let synthesizer = self.synthesizer.clone();
        let work = move || {
            let mut voice = synthesizer.lock().unwrap_or_else(PoisonError::into_inner);
            speak(&mut voice, &text, reference, speaker, &options)
        };
        let each_tick = &mut || Ok(());
        let speech = interruptible::run(py, "speak", Class::Voice, None, each_tick, work)?;
        let sentences = speech.sentences.iter().map(|sentence| {
            json!({ "text": sentence.text, "language": sentence.language, "symbols": sentence.symbols })
        });
        let summary = json!({
            "sentences": sentences.collect::<Vec<_>>(),
            "unsaid": speech.skipped,
            "left_out": speech.left_out,
        });
        let length = speech.samples.len();
        Ok((Memory::of_floats(speech.samples, &[length]), self.rate, summary.to_string()))
    }
}

fn speak(
    voice: &mut Synthesizer,
    text: &str,
    reference: Option<PathBuf>,
    speaker: Option<String>,
    options: &SpeechOptions,
) -> Result<SynthesizedSpeech> {
    if text.trim().is_empty() {
        return Err(Advised::new("the text is empty", "give at least one word").into());
    }
    let speaker = match (reference, speaker) {
        (Some(recording), _) => SpeakerChoice::Reference(voice.read_reference(&recording)?),
        (None, Some(name)) => SpeakerChoice::Known(name),
        (None, None) => SpeakerChoice::AnyKnown,
    };
    let speech = voice.synthesize(text, &speaker, options, &mut |_, _| {});
    speech.context("cannot synthesize the text")
}
