//! Settings from Python: the same parser, checks and names as the configuration file.
//!
//! In: a tree of settings as JSON. Out: a plan of a run, TOML, or `SettingsError` with a hint. The typed
//! classes of `python/tandem/settings.py` are generated from [`settings_reference`] and [`data_keys`].

use crate::errors::Class;
use pyo3::prelude::*;
use serde_json::{Value, json};
use tandem::advised::Advised;
use tandem::config::of_tree;
use tandem::config::reference::entries;
use tandem::config::tree::{Written, myxtts_keys};
use tandem::failure::{Failure, Result};
use tandem::train_args::plan_of;
use tandem::train_plan::TrainPlan;
use tandem_device::placement::{DeviceSettings, Mismatch};
use tandem_insight::myxtts::convert;
use tandem_settings::Typed;
use tandem_text::Language;

/// The settings of a run on this corpus, resolved and checked as for `tandem train`.
pub fn plan(tree: &str, corpus: &str) -> Result<TrainPlan> {
    let mut tree = parsed(tree)?;
    tree["train_data"] = json!(corpus);
    let plan = plan_of(of_tree(tree)?, &Typed::default(), false)?;
    check_pair(&plan.devices)?;
    Ok(plan)
}

/// Refuses a pair of GPUs that no machine has. Which GPUs exist is known where the settings are used, by `tandem train`.
fn check_pair(devices: &DeviceSettings) -> Result<()> {
    let Some(mismatch) = Mismatch::of_pair(devices.data_gpu, devices.model_gpu) else {
        return Ok(());
    };
    let fact = format!("insufficient GPUs for multi-GPU mode: {mismatch}");
    let advice = "set `data_gpu` and `model_gpu` to two different GPUs, or neither for one GPU";
    Err(Advised::new(fact, advice).into())
}

fn parsed(tree: &str) -> Result<Value> {
    let tree: Value = serde_json::from_str(tree).map_err(Failure::foreign)?;
    if tree.is_object() {
        return Ok(tree);
    }
    Err(Advised::new("settings are a table of keys", "give a dict").into())
}

/// A corpus that is never opened: only the settings are checked.
const ANY_CORPUS: &str = "corpus";

/// Checks settings as `tandem train --config` would.
#[pyfunction]
pub fn check_settings(py: Python<'_>, tree: &str) -> PyResult<()> {
    plan(tree, ANY_CORPUS).map(drop).map_err(|failure| Class::Settings.of(py, failure))
}

/// Checked settings as a configuration file; only the keys that are set.
#[pyfunction]
pub fn settings_to_toml(py: Python<'_>, tree: &str) -> PyResult<String> {
    let text = || -> Result<String> {
        plan(tree, ANY_CORPUS)?;
        toml::to_string(&parsed(tree)?).map_err(Failure::foreign)
    };
    text().map_err(|failure| Class::Settings.of(py, failure))
}

/// The settings of a file of Tandem or MyXTTS, TOML or YAML, as JSON; only the keys that are set.
#[pyfunction]
pub fn read_settings(py: Python<'_>, path: std::path::PathBuf) -> PyResult<String> {
    let read = || -> Result<String> {
        let text = Written::read(&path)?.to_toml()?;
        let tree: Value = toml::from_str(&text).map_err(Failure::foreign)?;
        serde_json::to_string(&tree).map_err(Failure::foreign)
    };
    read().map_err(|failure| Class::Settings.of(py, failure))
}

/// Settings with the names of MyXTTS (`{"data": {...}}`) under our names.
#[pyfunction]
pub fn convert_settings(py: Python<'_>, tree: &str) -> PyResult<String> {
    let languages: Vec<&str> = Language::ALL.iter().map(|language| language.tag()).collect();
    let converted = || -> Result<String> {
        let conversion = convert(&parsed(tree)?, &myxtts_keys(), &languages).map_err(|wrong| {
            let fact = format!("`{}` is {}, expected {}", wrong.key, wrong.found, wrong.expected);
            Advised::new(fact, "correct it, or leave it out for the default")
        })?;
        if let Some(key) = conversion.unknown.first() {
            let advice = "`help(tandem.DataConfig)` lists the keys";
            return Err(Advised::new(format!("unknown key `{key}`"), advice).into());
        }
        serde_json::to_string(&conversion.config).map_err(Failure::foreign)
    };
    converted().map_err(|failure| Class::Settings.of(py, failure))
}

/// Every key of the configuration file, as `tandem reference --json` prints it.
#[pyfunction]
pub fn settings_reference(py: Python<'_>) -> PyResult<String> {
    let text = serde_json::to_string(&entries()).map_err(Failure::foreign);
    text.map_err(|failure| Class::Internal.of(py, failure))
}

/// The keys of the table `data` of MyXTTS that have a counterpart: name, expected value, our key.
#[pyfunction]
pub fn data_keys() -> Vec<(&'static str, &'static str, &'static str)> {
    let data = myxtts_keys().into_iter().filter(|key| key.is("data", key.name));
    data.filter_map(|key| Some((key.name, key.expected(), key.counterpart()?))).collect()
}
