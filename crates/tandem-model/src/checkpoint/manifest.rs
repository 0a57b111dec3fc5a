//! The manifest: the list of a checkpoint's files with size and checksum.
//!
//! In: the entries of written files, or untrusted bytes. Out: a [`Manifest`] in which every name is a
//! plain file name.

use super::fault::Fault;
use super::sealed;
use serde::{Deserialize, Serialize};

/// Raised when an older program cannot read what a newer one writes.
pub const VERSION: u64 = 1;
pub const FILE_NAME: &str = "manifest.json";
pub const TENSORS: &str = ".safetensors";
pub const DOCUMENT: &str = ".json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the program that wrote it, for information.
    pub program: String,
    /// Optimizer steps done.
    pub step: u64,
    /// Every file except the manifest.
    pub files: Vec<FileEntry>,
}

/// One file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Never a path.
    pub name: String,
    pub bytes: u64,
    /// BLAKE3 in hexadecimal.
    pub blake3: String,
}

/// The kind of a file and its name without the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind<'a> {
    Tensors(&'a str),
    Document(&'a str),
}

impl Manifest {
    /// Parses a manifest. Every name it lists is a plain file name.
    pub fn parse(text: &[u8]) -> Result<Manifest, Fault> {
        let manifest: Manifest = sealed::open(FILE_NAME, text)?;
        let foreign = manifest.files.iter().find(|entry| entry.kind().is_none());
        match foreign {
            None => Ok(manifest),
            Some(foreign) => Err(Fault::Invalid {
                file: FILE_NAME.into(),
                why: format!("it lists a file {:?}", foreign.name),
            }),
        }
    }
}

impl FileEntry {
    /// `None` if this program never writes such a name.
    pub fn kind(&self) -> Option<FileKind<'_>> {
        let kind = if let Some(stem) = self.name.strip_suffix(TENSORS) {
            FileKind::Tensors(stem)
        } else {
            FileKind::Document(self.name.strip_suffix(DOCUMENT)?)
        };
        let (FileKind::Tensors(stem) | FileKind::Document(stem)) = kind;
        check_stem(stem).is_ok().then_some(kind)
    }
}

/// The rule for names of tensor sets and documents, which must be file names on any system.
pub fn check_stem(stem: &str) -> Result<(), &'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if stem.is_empty() || stem.len() > 64 || !stem.chars().all(plain) {
        return Err("a name has 1 to 64 lower-case letters, digits, `-` and `_`");
    }
    if stem == "manifest" {
        return Err("this name is reserved for the list of files");
    }
    Ok(())
}
