//! Replaces a file atomically: write a draft, sync it, rename it, sync the directory.
//!
//! In: a path and its new contents. Out: the old file or the new one, after any crash.

use crate::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A reader sees the old file or the new one, never half of it.
pub fn replace_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let (mut file, draft) = new_draft(path)?;
    let written = file.write_all(contents).and_then(|()| file.sync_all());
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

/// A new file with a name that nobody can foresee, next to `path`: threads and processes, also those of another machine
/// on a shared disk, may replace the same file at once, and a link with that name is never followed.
fn new_draft(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut attempts = 0;
    loop {
        let random = RandomState::new().hash_one(attempts);
        let mut name = draft_path(path).into_os_string();
        name.push(format!("-{random:016x}"));
        let draft = PathBuf::from(name);
        match File::create_new(&draft) {
            Ok(file) => return Ok((file, draft)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < 16 => {
                attempts += 1
            }
            Err(error) => return Err(error),
        }
    }
}

/// The path of the draft of a file that has one writer: in the same directory, because a rename works on one disk only,
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
        // A file cannot replace a directory with contents.
        let path = dir.path().join("index");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("old"), b"old").unwrap();
        assert!(replace_file(&path, b"new").is_err());
        assert_eq!(fs::read(path.join("old")).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn threads_that_replace_one_file_do_not_share_a_draft() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let texts: Vec<Vec<u8>> = (0..8u8).map(|one| vec![one; 10_000]).collect();
        std::thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| (0..20).for_each(|_| replace_file(&path, text).unwrap()));
            }
        });
        assert!(texts.contains(&fs::read(&path).unwrap()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_draft_is_a_new_file_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let (_first, one) = new_draft(&path).unwrap();
        let (_second, two) = new_draft(&path).unwrap();
        assert_ne!(one, two);
        assert!(one.exists() && two.exists());
    }
}
