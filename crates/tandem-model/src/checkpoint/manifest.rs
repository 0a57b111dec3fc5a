//! The list of a checkpoint's files: what was written, how long, with which checksum.

use super::fault::Fault;
use super::sealed;
use serde::{Deserialize, Serialize};

/// Raised whenever an older program could not read what a newer one writes.
pub const VERSION: u64 = 1;
/// The manifest's file.
pub const FILE_NAME: &str = "manifest.json";
/// How files of tensors end.
pub const TENSORS: &str = ".safetensors";
/// How documents end.
pub const DOCUMENT: &str = ".json";

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the program that wrote it, for people.
    pub program: String,
    /// Steps done.
    pub step: u64,
    /// Every other file.
    pub files: Vec<FileEntry>,
}

/// One file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name; never a path.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// BLAKE3 of its bytes, in hexadecimal.
    pub blake3: String,
}

/// What kind of file a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind<'a> {
    /// A set of tensors of this name.
    Tensors(&'a str),
    /// A document of this name.
    Document(&'a str),
}

impl Manifest {
    /// Reads the text of a manifest. Every name it lists is that of a plain file.
    pub fn parse(text: &[u8]) -> Result<Manifest, Fault> {
        let manifest: Manifest = sealed::open(FILE_NAME, text)?;
        let odd = manifest.files.iter().find(|entry| entry.kind().is_none());
        match odd {
            None => Ok(manifest),
            Some(odd) => Err(Fault::Nonsense {
                file: FILE_NAME.into(),
                why: format!("it lists a file {:?}", odd.name),
            }),
        }
    }
}

impl FileEntry {
    /// What the file holds; none where the name cannot be one of ours.
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

/// The rule for names of tensor sets and documents; they become file names on any system.
pub fn check_stem(stem: &str) -> Result<(), &'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if stem.is_empty() || stem.len() > 64 || !stem.chars().all(plain) {
        return Err("up to 64 lower-case letters, digits, `-` and `_` make a name");
    }
    if stem == "manifest" {
        return Err("that is the list of the files");
    }
    Ok(())
}
