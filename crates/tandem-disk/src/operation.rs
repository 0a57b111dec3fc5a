//! One change of the disk, and the name by which a test selects it.
//!
//! In: a path and what is about to happen to it. Out: a name that is the same in every run. Changes
//! nothing itself. Next: [`mod@crate::watch`].

use std::path::{Path, PathBuf};

/// A change that is about to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// A directory is created.
    MakeDirectory { path: &'a Path },
    /// A file is created, or an existing one is truncated.
    Create { path: &'a Path },
    /// Bytes are written at an offset.
    Write { path: &'a Path, at: u64, bytes: &'a [u8] },
    /// A file is synced: its bytes survive a power cut afterwards.
    Sync { path: &'a Path },
    /// A directory is synced: the names in it survive a power cut afterwards.
    SyncDirectory { path: &'a Path },
    /// A file or directory gets a new name and replaces what had that name.
    Rename { from: &'a Path, to: &'a Path },
    /// A file is removed.
    RemoveFile { path: &'a Path },
    /// A directory is removed with its contents.
    RemoveTree { path: &'a Path },
}

impl Operation<'_> {
    /// The path that changes; for a rename, the new name.
    pub fn path(&self) -> &Path {
        match self {
            Operation::MakeDirectory { path }
            | Operation::Create { path }
            | Operation::Write { path, .. }
            | Operation::Sync { path }
            | Operation::SyncDirectory { path }
            | Operation::Rename { to: path, .. }
            | Operation::RemoveFile { path }
            | Operation::RemoveTree { path } => path,
        }
    }

    /// A name that is the same in every run: `write .step-00000002.draft/weights.safetensors`.
    pub fn name(&self) -> String {
        let what = match self {
            Operation::MakeDirectory { .. } => "make",
            Operation::Create { .. } => "create",
            Operation::Write { .. } => "write",
            Operation::Sync { .. } => "sync",
            Operation::SyncDirectory { .. } => "sync-names",
            Operation::Rename { .. } => "rename",
            Operation::RemoveFile { .. } => "remove",
            Operation::RemoveTree { .. } => "remove-tree",
        };
        format!("{what} {}", short(self.path()).display())
    }
}

/// The last two parts of a path, without process ids.
pub(crate) fn short(path: &Path) -> PathBuf {
    let parts: Vec<_> = path.components().collect();
    let last = parts[parts.len().saturating_sub(2)..].iter();
    last.map(|part| without_process_id(&part.as_os_str().to_string_lossy())).collect()
}

fn without_process_id(name: &str) -> String {
    let marks = [".draft-", ".probe-"].into_iter();
    let mut cut = marks.filter_map(|mark| Some((name.split_once(mark)?.0, mark)));
    match cut.next() {
        Some((of, mark)) => format!("{of}{}", mark.trim_end_matches('-')),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_depend_on_the_process_or_the_location() {
        let path = Path::new("/tmp/x1/run/.step-00000002.draft-77/weights.safetensors");
        let write = Operation::Write { path, at: 3, bytes: b"abc" };
        assert_eq!(write.name(), "write .step-00000002.draft/weights.safetensors");
        let (from, to) = (Path::new("run/.config.toml.draft-9"), Path::new("run/config.toml"));
        assert_eq!(Operation::Rename { from, to }.name(), "rename run/config.toml");
        let path = Path::new("cache/.probe-12-ThreadId(1)");
        assert_eq!(Operation::Create { path }.name(), "create cache/.probe");
    }
}
