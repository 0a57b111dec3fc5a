//! The value of `--mel-on`.
//!
//! In: text. Out: [`MelOn`].

use serde::{Deserialize, Serialize};
use tandem_settings::{SettingValue, ValueKind};

/// Where mel frames are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MelOn {
    /// Where a measurement at the start is faster.
    #[default]
    Auto,
    /// The host, without a measurement.
    Host,
    /// The data device, without a measurement.
    Device,
}

impl SettingValue for MelOn {
    const KIND: ValueKind = ValueKind::Word;
    const WORDS: &'static [&'static str] = &["auto", "host", "device"];

    fn parse(text: &str) -> Result<MelOn, String> {
        match text {
            "auto" => Ok(MelOn::Auto),
            "host" => Ok(MelOn::Host),
            "device" => Ok(MelOn::Device),
            _ => Err("expected auto, host or device".into()),
        }
    }

    fn text(&self) -> String {
        format!("{self:?}").to_lowercase()
    }
}
