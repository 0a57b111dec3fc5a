//! The first line of a record: what runs, where, with which settings.
//!
//! In: the program's name and settings. Out: [`RunHeader`], by which a reader recognises our
//! files and their format version. Reads no file and queries no device.

use serde::{Deserialize, Serialize};
use tandem_units::Bytes;

/// Version of the record's format. Readers accept their own major and any minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Rises when an old reader would misread a field.
    pub major: u32,
    /// Rises when events or fields were added.
    pub minor: u32,
}

impl Schema {
    /// The one this build writes.
    pub const CURRENT: Schema = Schema { major: 1, minor: 3 };
}

/// What runs, where, with which settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Always [`RunHeader::FORMAT`]: identifies our files.
    pub format: String,
    /// Version of the record's format.
    pub schema: Schema,
    /// The program that wrote it.
    pub program: String,
    pub version: String,
    /// Wall time at the start, milliseconds since 1970 UTC.
    pub started_unix_ms: u64,
    /// Every setting of the run as it was resolved.
    pub settings: serde_json::Value,
    /// The machine it ran on.
    pub host: HostFacts,
}

impl RunHeader {
    /// The word in `format`.
    pub const FORMAT: &'static str = "tandem-run";

    /// A header for a run that starts now.
    pub fn now(program: &str, version: &str, settings: serde_json::Value) -> RunHeader {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        RunHeader {
            format: Self::FORMAT.into(),
            schema: Schema::CURRENT,
            program: program.into(),
            version: version.into(),
            started_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            settings,
            host: HostFacts::here(),
        }
    }
}

/// Facts about the machine. Unknown ones are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    pub os: String,
    pub arch: String,
    /// Threads the machine runs at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none", alias = "processor")]
    pub cpu: Option<String>,
}

impl HostFacts {
    /// What the standard library knows of this machine; the program may add the rest.
    pub fn here() -> HostFacts {
        HostFacts {
            os: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            threads: std::thread::available_parallelism().ok().map(|n| n.get() as u32),
            memory: None,
            cpu: None,
        }
    }
}
