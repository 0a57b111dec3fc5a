//! Arbitrary bytes as a configuration file: TOML and YAML, of Tandem and of MyXTTS.

#[path = "../../crates/tandem/src/advised.rs"]
mod advised;
#[path = "../../crates/tandem/src/config/format.rs"]
#[allow(dead_code, reason = "the target has no file names")]
mod format;
#[path = "../../crates/tandem/src/config/nearest.rs"]
mod nearest;
#[path = "../../crates/tandem/src/config/place.rs"]
mod place;

use advised::Advised;
use format::Format;
use place::place_of;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_data::batch::BatchConfig;
use tandem_data::corpus::CorpusConfig;
use tandem_insight::myxtts::{convert, is_myxtts, keys};
use tandem_text::TextConfig;
use tandem_units::Hint;

/// The configuration tables that do not depend on Burn. A test of the program reads the complete
/// configuration with the same inputs.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    num_workers: Option<usize>,
    cache_dataset: bool,
    max_rejected: Option<f64>,
    corpus: CorpusConfig,
    text: TextConfig,
    mel: MelConfig,
    audio: AudioConfig,
    batch: BatchConfig,
}

/// Gives settings that survive writing and reading, or an error with a message and a hint.
pub fn config_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for format in [Format::Toml, Format::Yaml] {
        match format.parse::<Settings>(text) {
            Ok(settings) => check(&settings),
            Err(advised) => {
                assert!(!advised.to_string().is_empty());
                assert!(advised.hint().is_some_and(|hint| !hint.is_empty()));
            }
        }
        if let Ok(tree) = format.parse::<Value>(text)
            && is_myxtts(&tree)
        {
            // Without the keys of training settings, which are declared above Burn.
            let _ = convert(&tree, &keys::all(&[]), &["en", "fa"]);
        }
        for key in ["batch.batch_size", "num_workers", "data.batch_size"] {
            if let Some((line, column)) = place_of(text, format, key) {
                assert!(line >= 1 && column >= 1 && line <= text.lines().count() + 1);
            }
        }
    }
}

fn check(settings: &Settings) {
    let _ = settings.batch.validate();
    let _ = settings.mel.validate();
    let Ok(written) = toml::to_string(settings) else { return };
    let again = Format::Toml.parse::<Settings>(&written).map_err(|advised| advised.to_string());
    // Compared as text, because NaN is not equal to itself.
    assert_eq!(
        format!("{:?}", again.expect("written settings can be read")),
        format!("{settings:?}")
    );
}
