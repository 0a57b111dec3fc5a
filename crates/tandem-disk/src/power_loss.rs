//! What a power cut may leave of a list of changes.
//!
//! In: the changes of a directory, recorded by a [`Recorder`] while a program runs. Out: the
//! [`DiskAfterCut`]s worth testing, to be written to a real disk and read by the program under test.
//!
//! The modelled disk guarantees less than any file system in use:
//!
//! - What existed before the recording stays until it is changed.
//! - Bytes are safe once their file was synced after the write. Until then each write is, by itself,
//!   complete, lost, torn (only its first half) or present in length only (zeros). A later write may
//!   survive without an earlier one. Truncating a file counts as a write.
//! - A name (created, changed, removed) is safe once its directory was synced afterwards. Until then
//!   each change is, by itself, complete or lost, in any combination: syncing a file saves its bytes,
//!   not its name. Only a rename is guaranteed to happen as a whole or not at all.
//! - Removing a tree is one removal per file, in an unspecified order.
//!
//! The power is cut between any two changes. At each cut these fates of unsafe changes are tried: all
//! lost; all complete; each one alone complete; each one alone lost, torn or zeroed; and some random
//! combinations. Equal states count once.

mod disk; // files and names, safe and unsafe

use crate::operation::Operation;
use crate::watch::{Watch, watch};
use disk::{Disk, Fate};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files with their bytes, and directories (`None`), by path below the root.
pub type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A recorded change; paths are below the root.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Make(PathBuf),
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Sync(PathBuf),
    SyncNames(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// Records the changes below a directory.
#[derive(Debug)]
pub struct Recorder {
    before: Tree,
    list: Arc<Mutex<Vec<Change>>>,
    _watch: Watch,
}

/// The recorded changes.
#[derive(Debug)]
pub struct Changes {
    before: Tree,
    list: Vec<Change>,
}

/// What a power cut may leave.
#[derive(Debug)]
pub struct DiskAfterCut {
    /// How many of the changes that [`Recorder::count`] counts came before the cut.
    pub after: usize,
    /// The fates of the unsafe changes, for messages.
    pub how: String,
    tree: Tree,
}

impl Recorder {
    /// Starts recording below `root`, which must exist.
    pub fn start(root: &Path) -> io::Result<Recorder> {
        let before = read_tree(root)?;
        let list = Arc::new(Mutex::new(Vec::new()));
        let (recorded, base) = (Arc::clone(&list), root.to_path_buf());
        let hook = move |operation: &Operation<'_>| {
            let changes = Change::of(operation, &base)?;
            recorded.lock().unwrap_or_else(PoisonError::into_inner).extend(changes);
            Ok(())
        };
        Ok(Recorder { before, list, _watch: watch(root, Arc::new(hook)) })
    }

    /// How many changes have been recorded so far.
    pub fn count(&self) -> usize {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Ends the recording.
    pub fn finish(self) -> Changes {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Changes { before: self.before, list }
    }
}

impl Changes {
    /// Every state worth testing, each once; `random` random combinations at every cut.
    pub fn states(&self, random: u64) -> Vec<DiskAfterCut> {
        let mut disk = Disk::of(&self.before);
        let mut seen = HashSet::new();
        let mut states = Vec::new();
        for after in 0..=self.list.len() {
            if after > 0 {
                disk.apply(&self.list[after - 1]);
            }
            for (how, fates) in fates(&disk.possible_fates(), random, after as u64) {
                let tree = disk.after_cut(&fates);
                let mut hash = DefaultHasher::new();
                (&tree, after).hash(&mut hash);
                if seen.insert(hash.finish()) {
                    states.push(DiskAfterCut { after, how, tree });
                }
            }
        }
        states
    }
}

impl DiskAfterCut {
    /// Writes the state to the disk and replaces what is at `root`.
    pub fn put(&self, root: &Path) -> io::Result<()> {
        if root.exists() {
            fs::remove_dir_all(root)?;
        }
        fs::create_dir_all(root)?;
        for (path, bytes) in &self.tree {
            match bytes {
                None => fs::create_dir(root.join(path))?,
                Some(bytes) => fs::write(root.join(path), bytes)?,
            }
        }
        Ok(())
    }

    /// A hash of the tree, to count the trees that differ.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.tree.hash(&mut hash);
        hash.finish()
    }
}

impl Change {
    fn of(operation: &Operation<'_>, root: &Path) -> io::Result<Vec<Change>> {
        let below = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_path_buf();
        Ok(match operation {
            Operation::MakeDirectory { path } if path.exists() => Vec::new(),
            Operation::MakeDirectory { path } => vec![Change::Make(below(path))],
            Operation::Create { path } => vec![Change::Create(below(path))],
            Operation::Write { path, at, bytes } => {
                vec![Change::Write(below(path), *at, bytes.to_vec())]
            }
            Operation::Sync { path } => vec![Change::Sync(below(path))],
            Operation::SyncDirectory { path } => vec![Change::SyncNames(below(path))],
            Operation::Rename { from, to } => vec![Change::Rename(below(from), below(to))],
            Operation::RemoveFile { path } => vec![Change::Remove(below(path))],
            Operation::RemoveTree { path } => {
                let inside = read_tree(path)?;
                let deepest_first = inside.into_keys().rev().map(|inner| path.join(inner));
                let all = deepest_first.chain([path.to_path_buf()]);
                all.map(|path| Change::Remove(below(&path))).collect()
            }
        })
    }
}

/// The combinations of fates that are tried; `possible` lists the fates of each unsafe change.
fn fates(possible: &[&[Fate]], random: u64, seed: u64) -> Vec<(String, Vec<Fate>)> {
    let count = possible.len();
    let mut tried = vec![
        ("all complete".into(), vec![Fate::Complete; count]),
        ("all lost".into(), vec![Fate::Lost; count]),
    ];
    let but = |others: Fate, one: usize, fate: Fate| {
        let mut fates = vec![others; count];
        fates[one] = fate;
        (format!("all {others:?}, but number {one} {fate:?}"), fates)
    };
    for (one, possible) in possible.iter().enumerate() {
        tried.push(but(Fate::Lost, one, Fate::Complete));
        let other = possible.iter().filter(|fate| **fate != Fate::Complete);
        tried.extend(other.map(|fate| but(Fate::Complete, one, *fate)));
    }
    // A simple xorshift generator is enough to mix them.
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for number in 0..random {
        let mut pick = |possible: &&[Fate]| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            possible[(state % possible.len() as u64) as usize]
        };
        tried.push((format!("random, {number}"), possible.iter().map(&mut pick).collect()));
    }
    tried
}

fn read_tree(root: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                tree.insert(path.clone(), None);
                waiting.push(path);
            } else {
                tree.insert(path, Some(fs::read(entry.path())?));
            }
        }
    }
    Ok(tree)
}

#[cfg(test)]
mod tests;
