//! Why no placement could be decided, and what to type instead.

use crate::backend::{Backend, BackendChoice, DeviceError};
use crate::inventory::{FoundDevice, Inventory};
use std::fmt;
use tandem_units::{Bytes, Hint};

/// What was asked for and cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The pair of GPUs that was named is none.
    #[error("insufficient GPUs for multi-GPU mode: {mismatch}; found {}", listed(.found))]
    InsufficientGpus {
        /// What is wrong with the pair.
        mismatch: Mismatch,
        /// The GPUs that could have been named.
        found: Vec<FoundDevice>,
        /// What to type instead.
        instead: String,
    },
    /// A backend that was named finds nothing here.
    #[error("backend `{backend}` has no device here{}", because(.trouble))]
    BackendEmpty {
        /// Which one.
        backend: Backend,
        /// Why, where that is known.
        trouble: Option<String>,
    },
    /// A budget that the device cannot give.
    #[error("{flag} asks for {asked} of {device}, which has {has}")]
    BudgetTooLarge {
        /// The flag that was typed.
        flag: &'static str,
        /// What it asks for.
        asked: Bytes,
        /// Of which device.
        device: String,
        /// What that has, or has left.
        has: Bytes,
    },
    /// The backend is not in this build.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Hint for PlacementError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::InsufficientGpus { instead, .. } => Some(instead.clone()),
            Self::BackendEmpty { backend, .. } => Some(format!(
                "install {}, or leave `--backend` out for the best that is there; `tandem \
                 devices` shows it",
                backend.driver()
            )),
            Self::BudgetTooLarge { flag, has, .. } => {
                Some(format!("type {flag} {} or less", has.0 >> 20))
            }
            Self::Device(error) => error.hint(),
        }
    }
}

/// What is wrong with a pair of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Only one of the two flags was given.
    OnlyData(usize),
    /// Only the other one was given.
    OnlyModel(usize),
    /// Both name the same GPU.
    Same(usize),
    /// A number that no GPU has.
    NoSuch {
        /// The flag it was given to.
        flag: &'static str,
        /// The number.
        index: usize,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::OnlyData(index) => {
                write!(f, "`--data-gpu {index}` was given without `--model-gpu`")
            }
            Mismatch::OnlyModel(index) => {
                write!(f, "`--model-gpu {index}` was given without `--data-gpu`")
            }
            Mismatch::Same(index) => {
                write!(f, "`--data-gpu` and `--model-gpu` both name GPU {index}")
            }
            Mismatch::NoSuch { flag, index } => {
                write!(f, "`{flag} {index}` names a GPU that is not there")
            }
        }
    }
}

/// The two numbers, if they name two of the GPUs on offer.
pub(super) fn pair(
    data: Option<usize>,
    model: Option<usize>,
    gpus: &[FoundDevice],
    choice: BackendChoice,
    found: &Inventory,
) -> Result<(usize, usize), PlacementError> {
    let missing = |index: usize| index >= gpus.len();
    let mismatch = match (data, model) {
        (Some(index), _) if missing(index) => Mismatch::NoSuch { flag: "--data-gpu", index },
        (_, Some(index)) if missing(index) => Mismatch::NoSuch { flag: "--model-gpu", index },
        (Some(data), Some(model)) if data == model => Mismatch::Same(data),
        (Some(data), Some(model)) => return Ok((data, model)),
        (Some(data), None) => Mismatch::OnlyData(data),
        (None, Some(model)) => Mismatch::OnlyModel(model),
        (None, None) => unreachable!("asked for with at least one number"),
    };
    let instead = instead(data, model, gpus.len(), choice, found);
    Err(PlacementError::InsufficientGpus { mismatch, found: gpus.to_vec(), instead })
}

/// What to type: a pair that is there, with as much as possible of what was typed; otherwise
/// nothing at all, which is single-GPU or CPU mode.
fn instead(
    data: Option<usize>,
    model: Option<usize>,
    count: usize,
    choice: BackendChoice,
    found: &Inventory,
) -> String {
    if count >= 2 {
        let usable = |index: Option<usize>| index.filter(|&index| index < count);
        let other_than = |taken: usize| usize::from(taken == 0);
        let (data, model) = match (usable(data), usable(model)) {
            (Some(data), Some(model)) if data != model => (data, model),
            (Some(data), _) => (data, other_than(data)),
            (None, Some(model)) => (other_than(model), model),
            (None, None) => (0, 1),
        };
        return format!("type --data-gpu {data} --model-gpu {model}, or neither for one GPU");
    }
    // Software devices are not taken unless their backend is named.
    let software = Backend::ALL.into_iter().find(|&other| found.gpus(other).len() >= 2);
    let for_tests = match (choice, software) {
        (BackendChoice::Auto, Some(other)) => {
            format!("; for the software devices of a test, add --backend {other}")
        }
        _ => String::new(),
    };
    let unused = match found.unused_cards.first() {
        Some(card) if count == 0 => format!(
            "; a card of {} is at {}: build with `cargo build --release -p tandem --features {}` \
             to use it",
            card.vendor, card.pci, card.backend
        ),
        _ => String::new(),
    };
    let rest = if count == 1 { "the one GPU" } else { "the CPU" };
    format!("leave --data-gpu and --model-gpu out to train on {rest}{for_tests}{unused}")
}

fn listed(found: &[FoundDevice]) -> String {
    if found.is_empty() {
        return "no GPU".into();
    }
    let names: Vec<String> = found.iter().map(FoundDevice::to_string).collect();
    names.join(", ")
}

fn because(trouble: &Option<String>) -> String {
    trouble.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
}
