//! Small JSON files that carry their own checksum.
//!
//! In: something that can be written as JSON. Out: its text with version and checksum, and the same
//! thing back, or the [`Fault`] that explains why not. The checksum is that of the text as it stands
//! in the file, so that no two ways of writing a number can disagree.

use super::fault::Fault;
use super::manifest::VERSION;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Serialize)]
struct Sealed<'a> {
    version: u64,
    checksum: String,
    contents: &'a RawValue,
}

#[derive(Deserialize)]
struct Head {
    version: u64,
}

#[derive(Deserialize)]
struct Body<'a> {
    checksum: String,
    #[serde(borrow)]
    contents: &'a RawValue,
}

/// The text of a sealed file.
pub fn seal<T: Serialize>(contents: &T) -> serde_json::Result<Vec<u8>> {
    let contents = serde_json::value::to_raw_value(contents)?;
    let checksum = checksum(contents.get());
    let mut text =
        serde_json::to_vec_pretty(&Sealed { version: VERSION, checksum, contents: &contents })?;
    text.push(b'\n');
    Ok(text)
}

/// What was sealed. Another version is told apart from a damaged file.
pub fn open<T: DeserializeOwned>(file: &str, text: &[u8]) -> Result<T, Fault> {
    let nonsense =
        |error: serde_json::Error| Fault::Nonsense { file: file.into(), why: error.to_string() };
    // Also read from versions to come, whatever else they hold.
    let head: Head = serde_json::from_slice(text).map_err(nonsense)?;
    if head.version != VERSION {
        return Err(Fault::Version { found: head.version });
    }
    let body: Body<'_> = serde_json::from_slice(text).map_err(nonsense)?;
    if checksum(body.contents.get()) != body.checksum {
        return Err(Fault::Changed { file: file.into() });
    }
    serde_json::from_str(body.contents.get()).map_err(nonsense)
}

fn checksum(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
