//! Refuses a named pipe where a file is expected: opening one waits for a writer, perhaps for ever, and no message says so.
//!
//! In: the words of the command line. The pipes of a shell (`<(...)`, /dev/stdin) have a writer and are read.

use crate::failure::Advised;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

pub fn refuse_named_pipes(typed: impl Iterator<Item = OsString>) -> Result<(), Advised> {
    for word in typed {
        // `--flag=FILE` and `NAME=FILE` have the file behind the sign.
        let bytes = word.as_bytes();
        let behind = bytes.iter().position(|byte| *byte == b'=').map(|at| &bytes[at + 1..]);
        for path in [Some(bytes), behind].into_iter().flatten() {
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            if is_named_pipe(path) {
                let fact = format!("`{}` is a named pipe, not a file", path.display());
                return Err(Advised::new(fact, "write its contents to a file, and name that"));
            }
        }
    }
    Ok(())
}

fn is_named_pipe(path: &Path) -> bool {
    let of_shell = path.starts_with("/dev") || path.starts_with("/proc");
    !of_shell && fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_named_pipe_is_refused_and_other_words_are_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let pipe = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success()));
        let refused =
            |word: String| refuse_named_pipes([OsString::from(word)].into_iter()).is_err();
        assert!(refused(pipe.display().to_string()));
        assert!(refused(format!("--lexicon={}", pipe.display())));
        for word in ["/dev/stdin", "text with = signs", "", dir.path().to_str().expect("UTF-8")] {
            assert!(!refused(word.into()), "{word}");
        }
    }
}
