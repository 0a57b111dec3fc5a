//! The voices that requests may name: speakers of the checkpoint, recordings, and `default`.
//!
//! In: a checkpoint and recordings with names. Out: a list, and the speaker for a name.

use crate::error::ServeError;
use serde::Serialize;
use tandem_model::synthesis::mel::Reference;
use tandem_model::synthesis::text::SpeakerChoice;
use tandem_model::trained_voice::VoiceDocument;

/// The first speaker with the language of the text.
pub const DEFAULT: &str = "default";

/// All voices of a server.
#[derive(Clone, Debug)]
pub struct Voices {
    all: Vec<(Voice, SpeakerChoice)>,
    /// Language tags that the model reads.
    pub languages: Vec<String>,
}

/// A voice as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Voice {
    pub name: String,
    pub kind: VoiceKind,
    /// The language that the speaker was recorded in. Every voice reads all languages of the model.
    pub language: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VoiceKind {
    /// Chosen by the language of the text.
    Default,
    /// A speaker of the training corpus.
    Speaker,
    /// A recording that was given at the start.
    Reference,
}

impl Voices {
    /// The voices of a checkpoint. Speakers without a name are reached by [`DEFAULT`] only.
    pub fn of(document: &VoiceDocument) -> Voices {
        let default = Voice { name: DEFAULT.into(), kind: VoiceKind::Default, language: None };
        let mut all = vec![(default, SpeakerChoice::AnyKnown)];
        for speaker in &document.speakers {
            let known = all.iter().any(|(voice, _)| voice.name == speaker.name);
            if speaker.name.is_empty() || known {
                continue;
            }
            let language = Some(speaker.language.clone());
            let voice = Voice { name: speaker.name.clone(), kind: VoiceKind::Speaker, language };
            all.push((voice, SpeakerChoice::Known(speaker.name.clone())));
        }
        Voices { all, languages: document.languages.clone() }
    }

    /// Adds a recording.
    pub fn add(&mut self, name: &str, reference: Reference) -> Result<(), ServeError> {
        if self.find(name).is_some() {
            return Err(ServeError::VoiceTwice { name: name.into() });
        }
        let fits = |letter: char| letter.is_alphanumeric() || "-_. ".contains(letter);
        let length = name.chars().count();
        if !(1..=64).contains(&length) || name.trim() != name || !name.chars().all(fits) {
            return Err(ServeError::VoiceName { name: name.into() });
        }
        let voice = Voice { name: name.into(), kind: VoiceKind::Reference, language: None };
        self.all.push((voice, SpeakerChoice::Reference(reference)));
        Ok(())
    }

    pub fn find(&self, name: &str) -> Option<&SpeakerChoice> {
        self.all.iter().find(|(voice, _)| voice.name == name).map(|(_, speaker)| speaker)
    }

    pub fn list(&self) -> impl Iterator<Item = &Voice> {
        self.all.iter().map(|(voice, _)| voice)
    }

    /// All names, for hints.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.list().map(|voice| &*voice.name).collect();
        names.join(", ")
    }

    /// Without a checkpoint, for tests of what is around it.
    #[cfg(test)]
    pub(crate) fn test() -> Voices {
        let voice = |name: &str, kind| Voice { name: name.into(), kind, language: None };
        let all = vec![
            (voice(DEFAULT, VoiceKind::Default), SpeakerChoice::AnyKnown),
            (voice("emma", VoiceKind::Speaker), SpeakerChoice::Known("emma".into())),
        ];
        Voices { all, languages: vec!["en".into(), "fa".into()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_get_names_of_their_own() {
        let mut voices = Voices::test();
        voices.add("me", Reference::default()).unwrap();
        voices.add("مینا", Reference::default()).unwrap();
        assert_eq!(voices.names(), "default, emma, me, مینا");
        assert!(matches!(voices.find("me"), Some(SpeakerChoice::Reference(_))));
        assert!(voices.find("bob").is_none());
        for taken in ["me", "emma", "default"] {
            let error = voices.add(taken, Reference::default()).unwrap_err();
            assert!(matches!(error, ServeError::VoiceTwice { .. }), "{error}");
        }
        for bad in ["", " a", "a\nb", "a/b", &"x".repeat(65)] {
            let error = voices.add(bad, Reference::default()).unwrap_err();
            assert!(matches!(error, ServeError::VoiceName { .. }), "{error}");
        }
    }
}
