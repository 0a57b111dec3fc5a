//! Any bytes as the manifest of a checkpoint, and as what a manifest seals.

#[path = "../../crates/tandem-model/src/checkpoint/fault.rs"]
#[allow(dead_code, reason = "some faults are found by the files beside the manifest")]
mod fault;
#[path = "../../crates/tandem-model/src/checkpoint/manifest.rs"]
#[allow(dead_code, reason = "names of files are made elsewhere")]
mod manifest;
#[path = "../../crates/tandem-model/src/checkpoint/sealed.rs"]
mod sealed;

use manifest::Manifest;
use serde_json::value::RawValue;

/// A list of plain files, or an error with a fact.
pub fn checkpoint_manifest(bytes: &[u8]) {
    read(bytes);
    // The checksum stops nearly everything: the same behind a checksum that fits.
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
            let again = sealed::seal(&manifest).expect("what was read can be written");
            assert_eq!(Manifest::parse(&again).ok().as_ref(), Some(&manifest));
        }
    }
}
