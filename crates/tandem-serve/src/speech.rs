//! A checkpoint as a worker: requests to samples, with `tandem-model`.

use crate::api_error::ApiError;
use crate::encode::BlockPosition;
use crate::request::SpeechRequest;
use crate::workers::Speech;
use std::ops::ControlFlow;
use std::sync::mpsc::SyncSender;
use tandem_model::synthesis::text::Synthesizer;
use tandem_units::SampleRate;

impl Speech for Synthesizer {
    fn rate(&self) -> SampleRate {
        self.trained().document.mel.rate
    }

    fn speak(
        &mut self,
        request: &SpeechRequest,
        part: &mut dyn FnMut(&[f32], BlockPosition) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        speak(self, request, part).map(|_| ())
    }
}

/// A voice that reports what it does not speak. A full channel loses reports, so that no request waits for one.
pub struct ReportingSpeech {
    pub synthesizer: Synthesizer,
    pub left_out: SyncSender<String>,
}

impl Speech for ReportingSpeech {
    fn rate(&self) -> SampleRate {
        self.synthesizer.rate()
    }

    fn speak(
        &mut self,
        request: &SpeechRequest,
        part: &mut dyn FnMut(&[f32], BlockPosition) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        let left_out = speak(&mut self.synthesizer, request, part)?;
        if !left_out.is_empty() {
            let _ = self.left_out.try_send(left_out.join(", "));
        }
        Ok(())
    }
}

/// Synthesizes a request; returns what was not spoken.
fn speak(
    synthesizer: &mut Synthesizer,
    request: &SpeechRequest,
    part: &mut dyn FnMut(&[f32], BlockPosition) -> ControlFlow<()>,
) -> Result<Vec<String>, ApiError> {
    let SpeechRequest { text, speaker, options, .. } = request;
    let mut sent = 0;
    let speech =
        synthesizer.synthesize_by_sentence(text, speaker, options, &mut |speech, all| {
            let fresh = &speech.samples[sent..];
            sent = speech.samples.len();
            let place = if speech.sentences.len() == all {
                BlockPosition::Last
            } else {
                BlockPosition::More
            };
            part(fresh, place)
        })?;
    Ok(speech.left_out)
}
