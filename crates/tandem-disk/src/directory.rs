//! Names that come, go and change.

use crate::watch::before_change;
use crate::{File, Operation};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Makes a directory; an error where there is something of that name.
pub fn create_dir(path: &Path) -> io::Result<()> {
    before_change(&Operation::MakeDirectory { path })?;
    fs::create_dir(path)
}

/// Makes a directory with those above it, where they are not there. New ones survive a power cut:
/// otherwise all that is later synced inside could be gone with them.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_dir_all(parent)?;
    }
    match create_dir(path) {
        // Another process at the same work was faster.
        Err(_) if path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_names_of(path),
    }
}

/// Gives a file or directory another name, in place of what had it.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    before_change(&Operation::Rename { from, to })?;
    fs::rename(from, to)
}

/// Removes a file.
pub fn remove_file(path: &Path) -> io::Result<()> {
    before_change(&Operation::RemoveFile { path })?;
    fs::remove_file(path)
}

/// Removes a directory with all that is in it.
pub fn remove_dir_all(path: &Path) -> io::Result<()> {
    before_change(&Operation::RemoveTree { path })?;
    fs::remove_dir_all(path)
}

/// Writes a file that needs no care: readers may see half of it, a power cut may leave none.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    File::create(path)?.write_all(contents)
}

/// Makes the names in a directory survive a power cut.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    before_change(&Operation::SyncDirectory { path })?;
    let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    fs::File::open(here)?.sync_all()
}

/// Makes the name of `path` itself survive. A directory that may be written but not read cannot be
/// synced, and is used all the same.
fn sync_names_of(path: &Path) -> io::Result<()> {
    match path.parent().map_or(Ok(()), sync_directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_with_those_above_and_twice_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        create_dir_all(&deep).unwrap();
        create_dir_all(&deep).unwrap();
        assert!(deep.is_dir());
        write(&dir.path().join("file"), b"").unwrap();
        assert!(create_dir_all(&dir.path().join("file/below")).is_err());
    }
}
