//! Why a run ended before its data did.
//!
//! In: the first cause of a stop. Out: a message that names the stage and the item, and a hint. A
//! later cause is never reported. This is the end of the path.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tandem_units::{Hint, Hinted, Seconds, Ticket};

/// Why a run was stopped. Cheap to clone, so that every caller gets the same cause.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PipelineError {
    /// A stage returned [`crate::StageError::Stop`].
    #[error("stage `{stage}` stopped the run{}", at(ticket))]
    Stage {
        stage: &'static str,
        ticket: Option<Ticket>,
        #[source]
        source: Arc<dyn Hinted>,
    },
    #[error("stage `{stage}` panicked{}{}: {message}", at(ticket), inside(item))]
    Panic {
        stage: &'static str,
        ticket: Option<Ticket>,
        /// What the stage worked on, where it said so.
        item: Option<String>,
        message: String,
    },
    /// A stage worked on one item without progress for longer than the watchdog allows.
    #[error("{0}")]
    Frozen(Frozen),
    /// The consumer and all stages waited for longer than the watchdog allows.
    #[error("{0}")]
    Stalled(Stalled),
    #[error("cannot start thread `{name}`")]
    Thread {
        name: String,
        #[source]
        source: Arc<std::io::Error>,
    },
    #[error("the run was cancelled")]
    Cancelled,
}

impl Hint for PipelineError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Panic { .. } => {
                Some("this is a bug; run again with RUST_BACKTRACE=1 and report it".into())
            }
            Self::Frozen(Frozen { item: Some(item), .. }) => Some(format!(
                "check `{item}`, and the disk or network file system that holds it; if it is only slow, raise `--stall-timeout`"
            )),
            Self::Frozen(Frozen { stage, .. }) => Some(format!(
                "check the disk, network file system or device that `{stage}` uses; if it is only slow, raise `--stall-timeout`"
            )),
            Self::Stalled(_) => Some(
                "check what the stages wait for; if it is only slow, raise `--stall-timeout`"
                    .into(),
            ),
            Self::Thread { .. } => Some("use fewer workers".into()),
            Self::Stage { source, .. } => source.hint(),
            Self::Cancelled => None,
        }
    }
}

/// A worker that does not return from a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    pub stage: &'static str,
    /// Which of the stage's workers.
    pub worker: usize,
    pub ticket: Option<Ticket>,
    /// What the stage works on, such as the path of a file, where it said so.
    pub item: Option<String>,
    /// Observed time without progress.
    pub silent: Duration,
}

impl fmt::Display for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Frozen { stage, worker, ticket, item, silent } = self;
        let silent = length(*silent);
        write!(f, "stage `{stage}` (worker {worker}) made no progress for {silent}{}", at(ticket))?;
        f.write_str(&inside(item))
    }
}

/// What a stage works on, as it names it.
fn inside(item: &Option<String>) -> String {
    item.as_ref().map_or_else(String::new, |item| format!(", in `{item}`"))
}

/// A run in which everything waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// Observed time in which nothing moved.
    pub silent: Duration,
    /// All stages in the order of the route, then the consumer.
    pub stages: Arc<[StageState]>,
}

/// What a stage did when the run stalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageState {
    pub stage: &'static str,
    /// A verb phrase, such as `waits for room`.
    pub state: String,
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states = self.stages.iter().map(|stage| format!("`{}` {}", stage.stage, stage.state));
        let states = states.collect::<Vec<_>>().join(", ");
        write!(f, "nothing moved for {}: {states}", length(self.silent))
    }
}

/// Seconds as they are typed for `--stall-timeout`: `60 s`, not `1.0 min`.
fn length(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.0} s"),
        seconds => Seconds(seconds).to_string(),
    }
}

/// ` at item 7 of epoch 0`, or nothing.
fn at(ticket: &Option<Ticket>) -> String {
    ticket.map(|t| format!(" at item {} of epoch {}", t.seq, t.epoch.0)).unwrap_or_default()
}
