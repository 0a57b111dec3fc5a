//! Creating, renaming and removing files and directories, with the hooks called first.

use crate::watch::before_change;
use crate::{File, Operation};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Creates a directory; an error if the name exists.
pub fn create_dir(path: &Path) -> io::Result<()> {
    before_change(&Operation::MakeDirectory { path })?;
    fs::create_dir(path)
}

/// Creates a directory and its missing parents. New directories are synced: otherwise a power cut
/// could remove them together with files that were synced inside.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_dir_all(parent)?;
    }
    match create_dir(path) {
        // Another process created it first.
        Err(_) if path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_names_of(path),
    }
}

/// Renames a file or directory; it replaces what had the new name.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    before_change(&Operation::Rename { from, to })?;
    fs::rename(from, to)
}

pub fn remove_file(path: &Path) -> io::Result<()> {
    before_change(&Operation::RemoveFile { path })?;
    fs::remove_file(path)
}

/// Removes a directory with its contents.
pub fn remove_dir_all(path: &Path) -> io::Result<()> {
    before_change(&Operation::RemoveTree { path })?;
    fs::remove_dir_all(path)
}

/// Writes a file without care: a reader may see half of it, and a power cut may lose it.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    File::create(path)?.write_all(contents)
}

/// The names in a directory survive a power cut afterwards.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    before_change(&Operation::SyncDirectory { path })?;
    let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    fs::File::open(here)?.sync_all()
}

/// Syncs the name of `path` itself. A directory that may be written but not read cannot be synced;
/// that is not an error.
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
    fn missing_parents_are_created_and_an_existing_directory_is_not_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        create_dir_all(&deep).unwrap();
        create_dir_all(&deep).unwrap();
        assert!(deep.is_dir());
        write(&dir.path().join("file"), b"").unwrap();
        assert!(create_dir_all(&dir.path().join("file/below")).is_err());
    }
}
