//! Folders of a corpus in a fixed order, and the small text files in them.
//!
//! In: a corpus directory. Out: [`Folder`]s with the names of their files, one at a time; the text of one file; a
//! [`Stamp`] of all text files. Follows no link to a folder, enters no hidden folder, and never leaves the corpus.

use crate::DataError;
use crate::cache::Stamp;
use crate::corpus::recordings::KINDS;
use crate::corpus::rejected::{Fault, RejectReason, short};
use crate::corpus::rows::{not_utf8, one_line};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tandem_disk::read::look_up;
use tandem_disk::{AccessKind, Fingerprint, ReadFile, retry};

/// Folders below each other; corpora have at most four.
const DEEPEST: usize = 8;
/// The text of one recording, in bytes.
const LONGEST_TEXT: u64 = 1 << 16;

/// Folders depth first, each in the order of its names.
pub(in crate::corpus) struct Walk {
    root: PathBuf,
    /// Folders still to be listed, the next one last.
    pending: Vec<String>,
}

pub(in crate::corpus) struct Folder {
    /// Relative to the root; empty for the root itself.
    pub path: String,
    /// Names of files and of links, in order.
    pub files: Vec<String>,
}

impl Folder {
    /// The path of a name in this folder, relative to the root.
    pub fn join(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    /// The names that end in `end`, without it.
    pub fn stems<'f>(&'f self, end: &'f str) -> impl Iterator<Item = &'f str> {
        self.files.iter().filter_map(move |name| name.strip_suffix(end))
    }

    /// The recordings, without their extension, in order.
    pub fn recordings(&self) -> Vec<&str> {
        let stem = |name: &'_ String| {
            let (stem, kind) = name.rsplit_once('.')?;
            let known = KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known));
            (known && !stem.is_empty()).then_some(stem.len())
        };
        let mut stems: Vec<&str> =
            self.files.iter().filter_map(|name| Some(&name[..stem(name)?])).collect();
        stems.dedup();
        stems
    }
}

impl Walk {
    /// All folders below `folder` of the corpus at `root`, and that folder itself.
    pub fn below(root: &Path, folder: &str) -> Walk {
        Walk { root: root.into(), pending: vec![folder.to_owned()] }
    }

    pub fn next_folder(&mut self) -> Result<Option<Folder>, DataError> {
        let Some(path) = self.pending.pop() else { return Ok(None) };
        let whole = self.root.join(&path);
        let (mut folders, mut files) =
            retry(|| list(&whole)).map_err(|source| DataError::Read { path: whole, source })?;
        files.sort_unstable();
        folders.sort_unstable_by(|a, b| b.cmp(a));
        let folder = Folder { path, files };
        if folder.path.matches('/').count() + 1 < DEEPEST {
            self.pending.extend(folders.iter().map(|name| folder.join(name)));
        }
        Ok(Some(folder))
    }
}

/// Names of folders and of files. A name that is not UTF-8 is left out: no text can be found for it.
fn list(folder: &Path) -> io::Result<(Vec<String>, Vec<String>)> {
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in look_up(AccessKind::List, folder, || fs::read_dir(folder))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let kind = entry.file_type()?;
        match () {
            () if name.starts_with('.') => {}
            () if kind.is_dir() => folders.push(name),
            () => files.push(name),
        }
    }
    Ok((folders, files))
}

/// The text of one recording, as one line. A link must not leave the corpus.
pub(in crate::corpus) fn read_text(root: &Path, file: &str) -> Result<String, Fault> {
    let path = root.join(file);
    let unread = |error: &io::Error| {
        let message = format!("the text `{}` cannot be read: {error}", short(file));
        Fault::new(
            RejectReason::EmptyText,
            message,
            "restore the text file, or delete the recording",
        )
    };
    let target = retry(|| path.canonicalize()).map_err(|error| unread(&error))?;
    if !target.starts_with(root) {
        return Err(Fault::link_leaves_corpus(file, &target));
    }
    let mut bytes = Vec::new();
    let read = retry(|| {
        bytes.clear();
        ReadFile::open(&target)?.take(LONGEST_TEXT + 1).read_to_end(&mut bytes)
    });
    read.map_err(|error| unread(&error))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        let message = format!("the text `{}` is longer than {LONGEST_TEXT} bytes", short(file));
        let fix = "long recordings are cut before they are read; write one text for each recording";
        return Err(Fault::new(RejectReason::LineTooLong, message, fix));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| not_utf8(&bytes))?;
    Ok(one_line(text.trim_start_matches('\u{feff}')))
}

/// One stamp for all text files below a folder: it changes if one is written, added or removed.
pub(in crate::corpus) fn stamp_of_texts(folder: &Path) -> Result<Stamp, DataError> {
    let mut walk = Walk::below(folder, "");
    let (mut all, mut files) = (Vec::new(), 0);
    while let Some(folder_in) = walk.next_folder()? {
        for name in folder_in.files.iter().filter(|name| name.ends_with(".txt")) {
            let path = folder_in.join(name);
            let stamp = Stamp::of(&folder.join(&path))?;
            all.extend_from_slice(path.as_bytes());
            all.extend_from_slice(bytemuck::bytes_of(&stamp));
            files += 1;
            // The memory of one folder, not of all of them.
            if all.len() > 1 << 20 {
                all = Fingerprint::of(&all).0.to_vec();
            }
        }
    }
    let Fingerprint(hash) = Fingerprint::of(&all);
    let half = |from: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash[from..from + 8]);
        bytes
    };
    Ok(Stamp {
        size: files,
        modified: i64::from_le_bytes(half(0)),
        inode: u64::from_le_bytes(half(8)),
    })
}
