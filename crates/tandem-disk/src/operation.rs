//! One change of the disk, and the name by which a test asks for it.

use std::path::{Path, PathBuf};

/// A change that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// A directory appears.
    MakeDirectory {
        /// Which.
        path: &'a Path,
    },
    /// A file appears, or an old one becomes empty.
    Create {
        /// Which.
        path: &'a Path,
    },
    /// Bytes go to a file.
    Write {
        /// Which.
        path: &'a Path,
        /// Where they begin.
        at: u64,
        /// What they are.
        bytes: &'a [u8],
    },
    /// A file's bytes are made to survive a power cut.
    Sync {
        /// Which.
        path: &'a Path,
    },
    /// A directory's names are made to survive a power cut.
    SyncDirectory {
        /// Which.
        path: &'a Path,
    },
    /// A file or directory gets another name, in place of what had it.
    Rename {
        /// The old name.
        from: &'a Path,
        /// The new one.
        to: &'a Path,
    },
    /// A file goes.
    RemoveFile {
        /// Which.
        path: &'a Path,
    },
    /// A directory goes with all that is in it.
    RemoveTree {
        /// Which.
        path: &'a Path,
    },
}

impl Operation<'_> {
    /// What changes; of a rename, the new name.
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

/// The last two parts of a path, without the numbers of processes.
pub(crate) fn short(path: &Path) -> PathBuf {
    let parts: Vec<_> = path.components().collect();
    let last = parts[parts.len().saturating_sub(2)..].iter();
    last.map(|part| without_process(&part.as_os_str().to_string_lossy())).collect()
}

fn without_process(name: &str) -> String {
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
    fn a_name_does_not_tell_which_process_or_where() {
        let path = Path::new("/tmp/x1/run/.step-00000002.draft-77/weights.safetensors");
        let write = Operation::Write { path, at: 3, bytes: b"abc" };
        assert_eq!(write.name(), "write .step-00000002.draft/weights.safetensors");
        let (from, to) = (Path::new("run/.config.toml.draft-9"), Path::new("run/config.toml"));
        assert_eq!(Operation::Rename { from, to }.name(), "rename run/config.toml");
        let path = Path::new("cache/.probe-12-ThreadId(1)");
        assert_eq!(Operation::Create { path }.name(), "create cache/.probe");
    }
}
