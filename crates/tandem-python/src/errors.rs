//! A failure as a Python exception: facts, causes and hint.
//!
//! In: any error of the workspace. Out: an exception of the Python module `tandem.errors`, which holds the
//! same three parts. Next: `python/tandem/errors.py`.

use pyo3::prelude::*;
use std::any::Any;
use tandem::failure::Failure;

/// The exception class of a failure, by what was being done.
#[derive(Clone, Copy, Debug)]
pub enum Class {
    Settings,
    Corpus,
    Loader,
    Fork,
    Voice,
    Text,
    Audio,
    Internal,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Settings => "SettingsError",
            Class::Corpus => "CorpusError",
            Class::Loader => "LoaderError",
            Class::Fork => "ForkError",
            Class::Voice => "VoiceError",
            Class::Text => "TextError",
            Class::Audio => "AudioError",
            Class::Internal => "InternalError",
        }
    }

    /// The exception of a failure.
    pub fn of(self, py: Python<'_>, failure: impl Into<Failure>) -> PyErr {
        let failure = failure.into();
        raised(py, self, failure.facts(), failure.hint())
    }

    /// The exception of a fact and a hint.
    pub fn error(self, py: Python<'_>, fact: &str, hint: &str) -> PyErr {
        raised(py, self, vec![fact.to_string()], Some(hint.to_string()))
    }
}

/// A panic of a thread, or of our own code under a call.
pub fn of_panic(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let known = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let said = known.or_else(|| panic.downcast_ref::<String>().cloned());
    let fact = format!("a panic: {}", said.unwrap_or_else(|| "it gave no reason".to_string()));
    Class::Internal.error(py, &fact, "this is a bug; run again with RUST_BACKTRACE=1 and report it")
}

fn raised(py: Python<'_>, class: Class, facts: Vec<String>, hint: Option<String>) -> PyErr {
    let made = py
        .import("tandem.errors")
        .and_then(|module| module.getattr(class.name()))
        .and_then(|class| class.call1((facts, hint)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        // The package is incomplete: that error says so.
        Err(error) => error,
    }
}
