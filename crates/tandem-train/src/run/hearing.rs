//! A judge at validations: the sentences it listens to, and whether it is still asked.
//!
//! In: a judge, sentences, and a function that speaks one. Out: [`HearingErrors`], or why there are none. A judge that
//! fails once is not asked again: from then on the acoustic loss alone decides, which is better than two measures in turns.
//! Next: [`crate::run::validator`].

use crate::judge::{HearingErrors, Judge, LONGEST, Patience, hearing_errors};
use crate::run::judged_sentences::JudgedSentence;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tandem_model::trained_voice::VoiceDocument;
use tandem_model::vocoder::wav::wav_bytes;

/// A judge and what it listens to.
pub struct Hearing {
    judge: Judge,
    sentences: Vec<JudgedSentence>,
    limit: Duration,
    failed: AtomicBool,
}

impl Hearing {
    pub fn new(judge: Judge, sentences: Vec<JudgedSentence>) -> Hearing {
        Hearing { judge, sentences, limit: LONGEST, failed: AtomicBool::new(false) }
    }

    pub fn is_listening(&self) -> bool {
        !self.failed.load(Ordering::Relaxed)
    }

    /// All sentences as WAV.
    pub fn speak(
        &self,
        document: &VoiceDocument,
        mut speak: impl FnMut(&JudgedSentence) -> Option<Vec<f32>>,
    ) -> Result<Vec<Vec<u8>>, String> {
        let wav = |sentence: &JudgedSentence| {
            let samples = speak(sentence).ok_or("there is no audio to listen to")?;
            let (bytes, _) =
                wav_bytes(&samples, document.mel.rate).map_err(|error| error.to_string())?;
            Ok(bytes)
        };
        let spoken = self.sentences.iter().map(wav).collect();
        self.noted(spoken)
    }

    pub fn listen(
        &self,
        wavs: &[Vec<u8>],
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<HearingErrors, String> {
        let heard = self.judge.hear(wavs, &mut Patience::new(self.limit, watch));
        let heard = heard.map_err(|error| error.to_string()).and_then(|heard| {
            let said = self.sentences.iter().map(|said| (said.language, said.text.as_str()));
            let pairs =
                said.zip(&heard).map(|((language, said), heard)| (language, said, heard.as_str()));
            hearing_errors(pairs).ok_or_else(|| "there is no held-out sentence to listen to".into())
        });
        self.noted(heard)
    }

    fn noted<T>(&self, result: Result<T, String>) -> Result<T, String> {
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }
}
