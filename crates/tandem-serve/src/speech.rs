//! A checkpoint as a worker: requests to samples, with `tandem-model`.

use crate::api_error::ApiError;
use crate::encode::Place;
use crate::request::SpeechRequest;
use crate::workers::Speech;
use std::ops::ControlFlow;
use tandem_model::synthesis::text::Synthesizer;
use tandem_units::SampleRate;

impl Speech for Synthesizer {
    fn rate(&self) -> SampleRate {
        self.trained().document.mel.rate
    }

    fn speak(
        &mut self,
        request: &SpeechRequest,
        part: &mut dyn FnMut(&[f32], Place) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        let SpeechRequest { text, speaker, options, .. } = request;
        let mut sent = 0;
        self.synthesize_by_sentence(text, speaker, options, &mut |speech, all| {
            let fresh = &speech.samples[sent..];
            sent = speech.samples.len();
            let place = if speech.sentences.len() == all { Place::Last } else { Place::More };
            part(fresh, place)
        })?;
        Ok(())
    }
}
