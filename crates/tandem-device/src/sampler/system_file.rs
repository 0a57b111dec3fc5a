//! Small system files with one figure.
//!
//! In: a path. Out: its number or text; `None` if there is no such file, since the kernel has none for a
//! figure that does not exist.

use super::SampleError;
use std::io;
use std::path::Path;

/// The text of a file without the line end.
pub(super) fn text(path: &Path) -> Result<Option<String>, SampleError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_string())),
        Err(error) if is_absence(&error) => Ok(None),
        Err(source) => Err(SampleError::File { path: path.to_path_buf(), source }),
    }
}

/// The number in a file.
pub(super) fn number(path: &Path) -> Result<Option<u64>, SampleError> {
    let Some(text) = text(path)? else { return Ok(None) };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(SampleError::Number { path: path.to_path_buf(), text }),
    }
}

/// A driver without this figure for this device fails with one of these errors.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound, Unsupported};
    matches!(error.kind(), NotFound | NotADirectory | Unsupported | InvalidInput)
}
