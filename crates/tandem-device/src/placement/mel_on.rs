//! The value of `--mel-on`.
//!
//! In: text. Out: [`MelOn`].

use serde::{Deserialize, Serialize};
use std::str::FromStr;

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
