//! Arbitrary bytes as the manifest of a checkpoint, without and with a valid checksum.

#[path = "../../crates/tandem-model/src/checkpoint/fault.rs"]
#[allow(dead_code, reason = "some faults are found in the other files of a checkpoint")]
mod fault;
#[path = "../../crates/tandem-model/src/checkpoint/manifest.rs"]
#[allow(dead_code, reason = "the target only parses manifests")]
mod manifest;
#[path = "../../crates/tandem-model/src/checkpoint/sealed.rs"]
mod sealed;

use manifest::Manifest;
use serde_json::value::RawValue;

/// Gives a list of plain file names, or an error with a message.
pub fn checkpoint_manifest(bytes: &[u8]) {
    read(bytes);
    // The checksum rejects nearly every input, so the same contents are also read with a valid one.
    if let Ok(contents) = serde_json::from_slice::<&RawValue>(bytes)
        && let Ok(sealed) = sealed::seal(&contents)
    {
        read(&sealed);
    }
}

fn read(bytes: &[u8]) {
    match Manifest::parse(bytes) {
        Err(fault) => assert!(!fault.to_string().is_empty()),
        Ok(manifest) => {
            for file in &manifest.files {
                assert!(!file.name.contains(['/', '\\', '\0']), "{file:?}");
                assert!(!file.name.starts_with('.') && file.name.len() < 80, "{file:?}");
            }
            let again = sealed::seal(&manifest).expect("a parsed manifest can be written");
            assert_eq!(Manifest::parse(&again).ok().as_ref(), Some(&manifest));
        }
    }
}
