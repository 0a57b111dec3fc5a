//! Training runs of several batch sizes, each in its own process.
//!
//! In: the sizes, smallest first. Out: the directories of the runs, and the first size that did not
//! fit into memory. Each run is a new process of this program, so that no run inherits memory, threads
//! or compiled kernels from another.

use crate::failure::{Advised, Context, Result};
use crate::printer::Printer;
use serde::Serialize;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tandem_pipeline::{CancelToken, PipelineError};

/// Settings of all runs of a sweep.
pub struct Sweep {
    pub place: PathBuf,
    pub corpus: PathBuf,
    pub steps: u64,
    /// More flags for `tandem train`.
    pub more: Vec<String>,
}

/// Result of a sweep.
pub struct Swept {
    /// The directories of the finished runs.
    pub done: Vec<PathBuf>,
    /// The first size that did not fit.
    pub too_large: Option<TooLarge>,
}

/// A batch size that does not fit into memory.
#[derive(Clone, Debug, Serialize)]
pub struct TooLarge {
    pub batch_size: u32,
    /// The error of the run.
    pub why: String,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {} does not fit: {}", self.batch_size, self.why)
    }
}

/// Time a run has to stop after Ctrl-C before it is killed.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Sweep {
    /// Trains with each size in turn.
    pub fn run(&self, sizes: &[u32], cancel: &CancelToken, out: &mut Printer) -> Result<Swept> {
        let mut swept = Swept { done: Vec::new(), too_large: None };
        for (place, &size) in sizes.iter().enumerate() {
            let (number, all) = (place + 1, sizes.len());
            out.note(&format!("batch {size}: {} steps ({number} of {all})", self.steps));
            let directory = self.place.join(format!("batch-{size}"));
            let log = self.place.join(format!("batch-{size}.log"));
            let ended = wait(self.start(size, &directory, &log)?, cancel)?;
            if ended.success() {
                swept.done.push(directory);
                continue;
            }
            let said = fs::read_to_string(&log).unwrap_or_default();
            match memory_fault(ended, &said) {
                Some(why) => {
                    swept.too_large = Some(TooLarge { batch_size: size, why });
                    break;
                }
                None => return Err(failed(size, &said).into()),
            }
        }
        Ok(swept)
    }

    fn start(&self, size: u32, directory: &Path, log: &Path) -> Result<Child> {
        let program = std::env::current_exe().context("cannot find this program to start it")?;
        let log = File::create(log).context("cannot write the log of a run")?;
        let mut command = Command::new(program);
        command.arg("train").arg("--checkpoint-dir").arg(directory);
        let named = |flag: &str| {
            let given = format!("{flag}=");
            self.more.iter().any(|word| word == flag || word.starts_with(&given))
        };
        if !named("--train-data") {
            command.arg("--train-data").arg(&self.corpus);
        }
        command
            .args(["--batch-size", &size.to_string(), "--max-steps", &self.steps.to_string()])
            .args(&self.more)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command.spawn().context("cannot start a training run")
    }
}

/// Waits for a run. Ctrl-C reaches it as well, since it shares the terminal; a signal to this process
/// alone does not, so the run is killed then.
fn wait(mut child: Child, cancel: &CancelToken) -> Result<ExitStatus> {
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(ended) = child.try_wait().context("cannot wait for a training run")? {
            return if asked.is_some() { Err(PipelineError::Cancelled.into()) } else { Ok(ended) };
        }
        if cancel.is_cancelled() {
            let since = *asked.get_or_insert_with(Instant::now);
            if since.elapsed() > PATIENCE {
                child.kill().context("cannot end a training run")?;
            }
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The error of a run that ran out of memory; `None` for other errors.
fn memory_fault(ended: ExitStatus, said: &str) -> Option<String> {
    let words = [
        "the largest batch of this corpus",
        // The check of memory before a run.
        "(largest batch ",
        "of its budget of",
        "out of memory",
        "memory allocation of",
    ];
    // Before its error a run also prints what it needs.
    let mut error = said.lines().skip_while(|line| !line.starts_with("error:"));
    let line = error.find(|line| words.iter().any(|word| line.to_lowercase().contains(word)));
    if let Some(line) = line {
        return Some(
            line.trim().trim_start_matches("caused by: ").trim_start_matches("error: ").into(),
        );
    }
    // The system kills a process without a message if memory runs out.
    ended
        .code()
        .is_none()
        .then(|| "the system ended the run, as it does when memory runs out".into())
}

fn failed(size: u32, said: &str) -> Advised {
    let from_error: Vec<&str> =
        said.lines().skip_while(|line| !line.starts_with("error:")).collect();
    let (error, hint): (Vec<&str>, Vec<&str>) =
        from_error.iter().partition(|line| !line.starts_with("hint: "));
    let hint = hint
        .first()
        .map_or("correct that, then run the sweep again", |hint| &hint["hint: ".len()..]);
    let told = if error.is_empty() { "without a message".to_string() } else { error.join("\n") };
    let told = told.trim_start_matches("error: ").to_string();
    Advised::new(format!("the run with batch {size} failed: {told}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use tandem_units::Hint;

    #[test]
    fn out_of_memory_is_distinguished_from_other_errors() {
        let (exit_2, killed) = (ExitStatus::from_raw(2 << 8), ExitStatus::from_raw(9));
        let said = "memory: batch 2 (largest batch 3 MiB)\nerror: x\n  caused by: the largest batch of this corpus takes 3 GiB\n";
        let why = memory_fault(exit_2, said).unwrap();
        assert_eq!(why, "the largest batch of this corpus takes 3 GiB");
        assert!(memory_fault(killed, "").unwrap().contains("memory runs out"));
        assert_eq!(memory_fault(exit_2, "error: no corpus\n"), None);
        let error = failed(8, "a\nerror: no corpus\n  caused by: b\nhint: name one\n");
        assert_eq!(error.to_string(), "the run with batch 8 failed: no corpus\n  caused by: b");
        assert_eq!(error.hint().as_deref(), Some("name one"));
    }
}
