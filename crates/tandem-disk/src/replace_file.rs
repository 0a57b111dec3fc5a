//! Replaces a file atomically: write a draft, sync it, rename it, sync the directory.
//!
//! In: a path and its new contents. Out: the old file or the new one, after any crash.

use crate::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A reader sees the old file or the new one, never half of it.
pub fn replace_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let draft = draft_path(path);
    let written = File::create(&draft).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    match written.and_then(|()| commit(&draft, path)) {
        Ok(()) => Ok(()),
        Err(error) => {
            // The draft is useless now. An error while removing it must not hide the first error.
            let _ = crate::remove_file(&draft);
            Err(error)
        }
    }
}

/// Renames a finished, synced draft to `path`.
pub fn commit(draft: &Path, path: &Path) -> io::Result<()> {
    crate::rename(draft, path)?;
    sync_directory(path)
}

/// The path of the draft of a file: in the same directory, because a rename works on one disk only,
/// and with the process id, because two processes may write at once.
pub fn draft_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.draft-{}", std::process::id()))
}

/// A rename or a new file in `path`'s directory survives a power cut afterwards.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    crate::sync_directory(path.parent().unwrap_or(Path::new("")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_new_contents_replace_the_old_and_leave_no_draft() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        replace_file(&path, b"old").unwrap();
        replace_file(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_the_old_contents() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        replace_file(&path, b"old").unwrap();
        fs::create_dir(draft_path(&path)).unwrap();
        assert!(replace_file(&path, b"new").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
}
