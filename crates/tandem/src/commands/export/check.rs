//! `tandem export --check`: runs an exported graph with ONNX Runtime, and compares it with the voice.
//!
//! In: the model file, the voice it was made from, a sentence. Out: [`Checked`] for each speaker: the largest differences
//! of samples and mel frames. Both get the same noise, or none if the graph draws its own. ONNX Runtime runs in a Python process, with files in a temporary
//! directory between the two.

use crate::failure::{Advised, Context, Failure, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;
use tandem_export::ExportedSpeaker;
use tandem_model::synthesis::mel::SamplingOptions;
use tandem_model::synthesis::text::{SpeakerChoice, SpeechOptions, Synthesizer};
use tandem_text::Language;
use tandem_units::Seconds;

/// The largest difference of two samples that is rounding.
pub const TOLERANCE: f32 = 1e-3;
/// Runs the graph; see its header.
const SCRIPT: &str = include_str!("run_graph.py");

/// How to check a model.
pub struct Check<'a> {
    pub python: &'a Path,
    pub model: &'a Path,
    pub sampling: SamplingOptions,
}

/// The result for one speaker.
#[derive(Debug, Serialize)]
pub struct Checked {
    speaker: String,
    text: String,
    seconds: Seconds,
    /// Largest difference of two samples.
    samples: f32,
    /// Largest difference of two mel values.
    mel: f32,
    /// Time of ONNX Runtime per second of sound, and of this program.
    graph_real_time_factor: f64,
    synth_real_time_factor: f64,
    /// The version of ONNX Runtime.
    runtime: String,
}

impl Checked {
    pub fn agrees(&self) -> bool {
        // Written so that NaN fails too.
        self.samples <= TOLERANCE
    }

    pub fn line(&self) -> String {
        format!(
            "{}: largest difference to `tandem synth` {:.1e} ({:.1e} in mel frames) over {} of sound; real-time factor \
             {:.3} with ONNX Runtime {}, {:.3} with tandem: {}",
            self.speaker,
            self.samples,
            self.mel,
            self.seconds,
            self.graph_real_time_factor,
            self.runtime,
            self.synth_real_time_factor,
            if self.agrees() { "agrees" } else { "DIFFERS" },
        )
    }
}

/// What the script reads; all paths are in the temporary directory.
#[derive(Serialize)]
pub struct Request<'a> {
    pub model: &'a Path,
    pub ids: Vec<i64>,
    pub scales: [f32; 3],
    pub sid: Option<usize>,
    /// Values of a row of the noise.
    pub bands: usize,
}

/// What the script prints.
#[derive(Deserialize)]
pub struct Answer {
    runtime: String,
    seconds: f64,
}

impl Check<'_> {
    pub fn run(
        &self,
        synthesizer: &mut Synthesizer,
        speakers: &[ExportedSpeaker],
        text: Option<&str>,
    ) -> Result<Vec<Checked>> {
        let mut checked = Vec::new();
        for (number, speaker) in speakers.iter().enumerate() {
            let text = match text {
                Some(text) => text,
                None => sample_text(speaker.language)?,
            };
            let sid = (speakers.len() > 1).then_some(number);
            checked.push(self.one(synthesizer, speaker, sid, text)?);
        }
        Ok(checked)
    }

    fn one(
        &self,
        synthesizer: &mut Synthesizer,
        speaker: &ExportedSpeaker,
        sid: Option<usize>,
        text: &str,
    ) -> Result<Checked> {
        let options = SpeechOptions {
            sampling: self.sampling,
            language: Some(speaker.language),
            ..SpeechOptions::default()
        };
        let choice = SpeakerChoice::Reference(speaker.reference.clone());
        let speech = synthesizer.synthesize(text, &choice, &options, &mut |_, _| {})?;
        let [sentence] = &speech.sentences[..] else {
            let fact =
                format!("the text of `--check-text` has {} sentences", speech.sentences.len());
            return Err(
                Advised::new(fact, "give one sentence: the graph reads one at a time").into()
            );
        };
        let read = synthesizer.read(text, Some(speaker.language))?;
        let config = &synthesizer.trained().document.config;
        let frames: u32 = sentence.durations.iter().sum();
        let frames = (frames as usize).next_multiple_of(config.patch);
        let noise = synthesizer.mel_synthesizer().noise(frames, self.sampling.seed);
        let request = Request {
            model: self.model,
            ids: read.transcript.ids().iter().map(|id| i64::from(id.0)).collect(),
            scales: [self.sampling.temperature, self.sampling.speed.recip(), 0.0],
            sid,
            bands: config.bands,
        };
        let (answer, samples, mel) = self.run_graph(&request, &noise)?;
        let rate = synthesizer.trained().document.mel.rate;
        let seconds = Seconds(speech.samples.len() as f64 / f64::from(rate.0));
        Ok(Checked {
            speaker: speaker.name.clone(),
            text: text.to_owned(),
            seconds,
            samples: largest_difference(&samples, &speech.samples),
            mel: largest_difference(&mel, &speech.mel),
            graph_real_time_factor: answer.seconds / seconds.0,
            synth_real_time_factor: speech.time.total().as_secs_f64() / seconds.0,
            runtime: answer.runtime,
        })
    }

    /// The samples and the mel frames that ONNX Runtime computes.
    pub fn run_graph(
        &self,
        request: &Request<'_>,
        noise: &[f32],
    ) -> Result<(Answer, Vec<f32>, Vec<f32>)> {
        let room = tempfile::tempdir().map_err(Failure::foreign)?;
        let file = |name: &str| room.path().join(name);
        let request = serde_json::to_vec(request).map_err(Failure::foreign)?;
        std::fs::write(file("request.json"), request)?;
        std::fs::write(file("noise.f32"), bytes_of(noise))?;
        let python = self.python.display();
        let ran = Command::new(self.python).args(["-c", SCRIPT]).arg(room.path()).output();
        let output = ran.map_err(|error| {
            let fact = format!("cannot start `{python}`: {error}");
            Advised::new(fact, "name an interpreter with `--python`")
        })?;
        if !output.status.success() {
            return Err(self.failed(&String::from_utf8_lossy(&output.stderr)));
        }
        let answer: Answer = serde_json::from_slice(&output.stdout)
            .map_err(Failure::foreign)
            .with_context(|| format!("`{python}` did not answer as expected"))?;
        let read = |name: &str| std::fs::read(file(name)).map(|bytes| floats_of(&bytes));
        Ok((answer, read("output.f32")?, read("mel.f32")?))
    }

    fn failed(&self, complaint: &str) -> Failure {
        let last = complaint.lines().last().unwrap_or("no message").trim();
        let python = self.python.display();
        if last.contains("ModuleNotFoundError") {
            let fact = format!("`{python}` lacks a package: {last}");
            let advice =
                "install `onnxruntime` and `numpy` for it, or name another with `--python`";
            return Advised::new(fact, advice).into();
        }
        let fact = format!("ONNX Runtime cannot run `{}`: {last}", self.model.display());
        Advised::new(fact, "use onnxruntime 1.12 or later").into()
    }
}

/// Infinite for different lengths.
pub fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return f32::INFINITY;
    }
    // `max` would drop NaN.
    let larger = |most: f32, difference: f32| match most.is_nan() || difference <= most {
        true => most,
        false => difference,
    };
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, larger)
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats_of(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// A sentence of a few seconds.
pub fn sample_text(language: Language) -> Result<&'static str> {
    Ok(match language {
        Language::English => "The clock on the wall was slow again this morning.",
        Language::Persian => "آن روز صبح هوا بسیار خوب و آرام بود.",
        other => {
            let fact = format!("there is no sentence to check `{}` with", other.tag());
            return Err(Advised::new(fact, "give one with `--check-text`").into());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_nan_are_differences() {
        assert_eq!(largest_difference(&[1.0, 2.0], &[1.5, 2.0]), 0.5);
        assert_eq!(largest_difference(&[1.0], &[1.0, 2.0]), f32::INFINITY);
        assert!(largest_difference(&[1.0, f32::NAN, 1.0], &[1.0; 3]).is_nan());
    }

    #[test]
    fn floats_survive_their_bytes() {
        let values = [0.0, -1.5, f32::MAX];
        assert_eq!(floats_of(&bytes_of(&values)), values);
    }
}
