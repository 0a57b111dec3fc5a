//! What a plan cannot say, and what would have to be measured.

use serde::{Deserialize, Serialize};
use std::fmt;
use tandem_units::Hint;

/// A measurement that is missing, and the command that makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What cannot be predicted, and why.
    pub what: String,
    /// What to run, or to add.
    pub command: String,
}

impl Missing {
    pub(crate) fn single() -> Missing {
        Missing {
            what:
                "single mode cannot be predicted: the profile ran on two GPUs, so what data work \
                   costs the model on the same one was not measured"
                    .into(),
            command: "tandem profile --record DIR, without --data-gpu and --model-gpu".into(),
        }
    }

    pub(crate) fn doubted(mode: &str, doubt: &str) -> Missing {
        Missing {
            what: format!("{mode} mode cannot be predicted: {doubt}"),
            command: "tandem profile --record DIR, on a quiet machine".into(),
        }
    }

    pub(crate) fn link() -> Missing {
        Missing {
            what:
                "data-parallel mode cannot be predicted: how fast gradients pass between the two \
                   devices was not measured"
                    .into(),
            command: "tandem plan --link GB_PER_SECOND, with what your vendor's tool measures \
                      (`tandem devices` names the link)"
                .into(),
        }
    }

    pub(crate) fn batch(size: usize, why: &str) -> Missing {
        Missing {
            what: format!("a batch of {size} cannot be predicted: {why}"),
            command: format!("tandem profile --batch-size {size} --record DIR"),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Nothing was measured.
    #[error("there is no profile to plan from")]
    NoProfile,
    /// Something asked for was not.
    #[error("{0}")]
    NotMeasured(Missing),
}

impl Hint for PlanError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoProfile => Some("make one: tandem profile --record DIR".into()),
            Self::NotMeasured(missing) => Some(format!("measure it: {}", missing.command)),
        }
    }
}
