//! `tandem.text` and `tandem.features`: how one text and one recording become input of a model.

use crate::errors::Class;
use crate::interruptible::guarded;
use crate::memory::Memory;
use crate::settings::plan;
use pyo3::prelude::*;
use serde_json::json;
use std::path::PathBuf;
use tandem::failure::{Context, Result};
use tandem::train_plan::TrainPlan;
use tandem_audio::mel::{Mel, MelExtractor};
use tandem_audio::{Decoder, FileReader, Sound};
use tandem_text::{FrontEnd, Language};

/// Licences and notices of the package and of everything in it.
#[pyfunction]
pub fn licenses() -> String {
    tandem::notices::notices()
}

/// How a text is read: language, normalised text and symbols, as JSON.
#[pyfunction]
pub fn text(
    py: Python<'_>,
    text: &str,
    language: Option<&str>,
    settings: &str,
) -> PyResult<String> {
    let plan = settings_of(py, settings)?;
    let read = || -> Result<String> {
        let language: Option<Language> = language.map(str::parse).transpose()?;
        let mut config = plan.data.text.clone();
        // A language that is named need not be in the list as well.
        config.languages.extend(language.filter(|known| !plan.data.text.languages.contains(known)));
        let front_end = FrontEnd::new(&config)?;
        let read = front_end.read(text, language)?;
        let ids = read.transcript.ids();
        let symbols: Vec<String> = ids.iter().map(|id| front_end.table().name(*id)).collect();
        Ok(json!({
            "text": text,
            "language": read.language,
            "detected": read.detected,
            "normalized": read.normalized,
            "phonemes": read.phonemes,
            "guessed": read.uncertain.guessed,
            "as_characters": read.uncertain.as_characters,
            "ezafe": read.uncertain.ezafe,
            "symbols": symbols,
            "ids": ids,
        })
        .to_string())
    };
    guarded(py, Class::Text, read)
}

/// The mel frames of a recording: `[frames, bands]`.
#[pyfunction]
pub fn features_of_file(py: Python<'_>, path: PathBuf, settings: &str) -> PyResult<Memory> {
    let plan = settings_of(py, settings)?;
    let mel = || -> Result<Mel> {
        let (mel, limits) = (&plan.data.mel, plan.data.audio);
        let mut file = FileReader::default();
        let bytes = file.read(&path, &limits)?;
        let mut decoder = Decoder::new(mel.rate, limits);
        let sound = decoder.decode(bytes, path.extension().and_then(|ending| ending.to_str()))?;
        Ok(MelExtractor::new(mel.clone())?.extract(sound)?)
    };
    let mel = || mel().with_context(|| format!("cannot compute features of `{}`", path.display()));
    guarded(py, Class::Audio, mel).map(memory_of)
}

/// The mel frames of samples: 32-bit floats in the order of this machine, at the rate of the settings.
#[pyfunction]
pub fn features_of_samples(
    py: Python<'_>,
    samples: &[u8],
    rate: u32,
    settings: &str,
) -> PyResult<Memory> {
    let plan = settings_of(py, settings)?;
    let config = &plan.data.mel;
    if rate != config.rate.0 {
        let fact = format!("the samples have {rate} Hz, the features {} Hz", config.rate.0);
        let hint = "resample them, or give the path of the recording: files are resampled";
        return Err(Class::Audio.error(py, &fact, hint));
    }
    let samples: Vec<f32> = samples
        .chunks_exact(4)
        .map(|four| f32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
        .collect();
    let mel =
        || -> Result<Mel> { Ok(MelExtractor::new(config.clone())?.extract(Sound::F32(&samples))?) };
    guarded(py, Class::Audio, mel).map(memory_of)
}

fn memory_of(mel: Mel) -> Memory {
    let (frames, bands) = (mel.frames().0, mel.bands());
    Memory::of_floats(mel.values().to_vec(), &[frames, bands])
}

fn settings_of(py: Python<'_>, settings: &str) -> PyResult<TrainPlan> {
    plan(settings, "corpus").map_err(|failure| Class::Settings.of(py, failure))
}
