//! A judge that is a program of this machine.
//!
//! In: a command line and WAV files. Out: the lines that it prints, one for each file. A program that takes too long, or
//! prints without end, is killed. Its files are in a temporary directory.

use super::{JudgeError, MOST_BYTES, Patience};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

pub(super) fn hear(
    command: &str,
    wavs: &[Vec<u8>],
    patience: &mut Patience<'_>,
) -> Result<Vec<String>, JudgeError> {
    let room = tempfile::tempdir()?;
    let (mut output, mut complaints) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut program = program(command);
    for (number, wav) in wavs.iter().enumerate() {
        let path = room.path().join(format!("{number:03}.wav"));
        write(&path, wav)?;
        program.arg(path);
    }
    program.stdin(Stdio::null());
    program.stdout(output.try_clone()?).stderr(complaints.try_clone()?);
    // Ctrl-C goes to the whole foreground process group, but the run must handle it, not the child.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut program, 0);
    let child = program.spawn().map_err(|source| JudgeError::Start { source })?;
    let status = wait(child, &output, patience)?;
    if !status.success() {
        let complaints = contents(&mut complaints)?;
        let last = complaints.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        let message = last.trim().chars().take(200).collect();
        return Err(JudgeError::Failed { status: status.to_string(), message });
    }
    let lines: Vec<String> = contents(&mut output)?.lines().map(str::to_owned).collect();
    match lines.len() == wavs.len() {
        true => Ok(lines),
        false => Err(JudgeError::Lines { found: lines.len(), expected: wavs.len() }),
    }
}

/// Through the shell, which knows quotes; the shell becomes the program, so that killing it ends both.
#[cfg(unix)]
fn program(command: &str) -> Command {
    let mut program = Command::new("sh");
    program.arg("-c").arg(format!("exec {command} \"$@\"")).arg("tandem-judge");
    program
}

#[cfg(not(unix))]
fn program(command: &str) -> Command {
    let mut words = command.split_whitespace();
    let mut program = Command::new(words.next().unwrap_or_default());
    program.args(words);
    program
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), JudgeError> {
    tandem_disk::replace_file::replace_file(path, bytes).map_err(|error| JudgeError::Garbage {
        why: format!("cannot write `{}`: {error}", path.display()),
    })
}

fn wait(
    mut child: Child,
    output: &File,
    patience: &mut Patience<'_>,
) -> Result<ExitStatus, JudgeError> {
    let mut end = || -> Result<ExitStatus, JudgeError> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let left = patience.left()?;
            if output.metadata()?.len() > MOST_BYTES {
                return Err(JudgeError::Garbage { why: "it prints without end".into() });
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
    };
    let ended = end();
    if ended.is_err() {
        // Both can fail only if the process has ended in the meantime.
        let _ = child.kill();
        let _ = child.wait();
    }
    ended
}

fn contents(file: &mut File) -> Result<String, JudgeError> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| JudgeError::Garbage { why: "it is not UTF-8".into() })
}
