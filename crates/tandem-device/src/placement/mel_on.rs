//! Where mel frames are to be computed: `--mel-on`.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What was asked for with `--mel-on`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MelOn {
    /// Where a measurement at the start says that it is faster.
    #[default]
    Auto,
    /// The host, without a measurement.
    Host,
    /// The data device, without a measurement.
    Device,
}

impl FromStr for MelOn {
    type Err = String;

    fn from_str(text: &str) -> Result<MelOn, String> {
        match text {
            "auto" => Ok(MelOn::Auto),
            "host" => Ok(MelOn::Host),
            "device" => Ok(MelOn::Device),
            _ => Err("expected auto, host or device".into()),
        }
    }
}
