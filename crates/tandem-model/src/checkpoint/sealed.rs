//! Small JSON files that contain their own checksum.
//!
//! In: a value that can be serialized as JSON. Out: its text with version and checksum, and the same
//! value back, or a [`Fault`]. The checksum is that of the text in the file, so that it does not depend
//! on how a number is formatted.

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

pub fn seal<T: Serialize>(contents: &T) -> serde_json::Result<Vec<u8>> {
    let contents = serde_json::value::to_raw_value(contents)?;
    let checksum = checksum(contents.get());
    let mut text =
        serde_json::to_vec_pretty(&Sealed { version: VERSION, checksum, contents: &contents })?;
    text.push(b'\n');
    Ok(text)
}

/// The value in a sealed file. The error distinguishes another version from a damaged file.
pub fn open<T: DeserializeOwned>(file: &str, text: &[u8]) -> Result<T, Fault> {
    let invalid =
        |error: serde_json::Error| Fault::Invalid { file: file.into(), why: error.to_string() };
    // Newer versions must have this field too, whatever else they contain.
    let head: Head = serde_json::from_slice(text).map_err(invalid)?;
    if head.version != VERSION {
        return Err(Fault::Version { found: head.version });
    }
    let body: Body<'_> = serde_json::from_slice(text).map_err(invalid)?;
    if checksum(body.contents.get()) != body.checksum {
        return Err(Fault::Changed { file: file.into() });
    }
    serde_json::from_str(body.contents.get()).map_err(invalid)
}

fn checksum(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
