//! Why a run ended before its data did. The first cause is the one that is told.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tandem_units::{Hint, Seconds, Ticket};

/// Why a run was stopped. Cheap to copy, so that everyone who asks is told the same.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PipelineError {
    /// A stage said that nothing after this can be trusted.
    #[error("stage `{stage}` stopped the run{}", at(ticket))]
    Stage {
        /// The stage.
        stage: &'static str,
        /// The item it worked on.
        ticket: Option<Ticket>,
        /// What it said.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },
    /// A stage panicked.
    #[error("stage `{stage}` panicked{}: {message}", at(ticket))]
    Panic {
        /// The stage.
        stage: &'static str,
        /// The item it worked on.
        ticket: Option<Ticket>,
        /// What the panic said.
        message: String,
    },
    /// A stage worked on one item for longer than the watchdog allows.
    #[error("{0}")]
    Frozen(Frozen),
    /// A worker's thread could not be started.
    #[error("cannot start thread `{name}`")]
    Thread {
        /// The thread's name.
        name: String,
        /// What the system said.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The user asked to stop.
    #[error("the run was cancelled")]
    Cancelled,
}

impl Hint for PipelineError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Panic { .. } => {
                Some("this is a bug; run again with RUST_BACKTRACE=1 and report it".into())
            }
            Self::Frozen(frozen) => Some(format!(
                "look at what `{}` reads or waits for; raise the watchdog's limit if it is only slow",
                frozen.stage
            )),
            Self::Thread { .. } => Some("use fewer workers".into()),
            Self::Stage { .. } | Self::Cancelled => None,
        }
    }
}

/// A worker that does not come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// Its stage.
    pub stage: &'static str,
    /// Which of the stage's workers.
    pub worker: usize,
    /// The item it works on.
    pub ticket: Option<Ticket>,
    /// For how long it has.
    pub for_so_long: Duration,
}

impl fmt::Display for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = Seconds(self.for_so_long.as_secs_f64());
        let Frozen { stage, worker, ticket, .. } = self;
        write!(f, "stage `{stage}` (worker {worker}) has been silent for {length}{}", at(ticket))
    }
}

/// ` at item 7 of epoch 0`, or nothing.
fn at(ticket: &Option<Ticket>) -> String {
    ticket.map(|t| format!(" at item {} of epoch {}", t.seq, t.epoch.0)).unwrap_or_default()
}
