//! Missing measurements, and why there is no plan.

use serde::{Deserialize, Serialize};
use std::fmt;
use tandem_units::Hint;

/// A missing measurement, and the command that takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What cannot be predicted, and the reason.
    pub what: String,
    /// What to run, or to add.
    pub command: String,
}

impl Missing {
    pub(crate) fn single() -> Missing {
        Missing {
            what:
                "single mode cannot be predicted: the profile ran on two GPUs, so the cost of data work \
                   on the model's GPU was not measured"
                    .into(),
            command: "tandem profile --record DIR, without --data-gpu and --model-gpu".into(),
        }
    }

    pub(crate) fn doubted(mode: &str, doubt: &str) -> Missing {
        Missing {
            what: format!("{mode} mode cannot be predicted: {doubt}"),
            command: "tandem profile --record DIR, on an idle machine".into(),
        }
    }

    pub(crate) fn reduce() -> Missing {
        Missing {
            what: "data-parallel mode cannot be predicted: the cost of summing gradients over two ranks \
                   was not measured"
                .into(),
            command: "mpirun -np 2 --bind-to none tandem bench reduce, with a build that has MPI \
                      (docs/scale-out.md); or tandem plan --link GB_PER_SECOND, with what your \
                      vendor's tool measures"
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
    #[error("no profile was given to plan from")]
    NoProfile,
    /// A requested prediction lacks a measurement.
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
