//! Why no placement is possible, with flags that would work.
//!
//! In: the requested pair and the available GPUs. Out: [`PlacementError`] with a hint.

use crate::backend::{Backend, BackendChoice, DeviceError};
use crate::inventory::{FoundDevice, Inventory};
use crate::placement::DeviceSettings;
use std::fmt;
use tandem_units::{Bytes, Hint};

/// Why a placement is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The named pair of GPUs is invalid.
    #[error("insufficient GPUs for multi-GPU mode: {mismatch}; found {}", listed(.found))]
    InsufficientGpus {
        mismatch: Mismatch,
        /// The available GPUs.
        found: Vec<FoundDevice>,
        /// The hint.
        instead: String,
    },
    /// More ranks on this machine than it has GPUs.
    #[error("{ranks} ranks on this machine need {ranks} GPUs; found {}", listed(.found))]
    FewerGpus { ranks: usize, found: Vec<FoundDevice> },
    /// Not one pair of GPUs for each rank of this machine.
    #[error(
        "`--data-gpu` and `--model-gpu` name {pairs} pairs for {ranks} ranks on this machine; \
         found {}", listed(.found)
    )]
    PairsOfRanks { pairs: usize, ranks: usize, found: Vec<FoundDevice> },
    /// The named backend has no device.
    #[error("backend `{backend}` has no device here{}", because(.fault))]
    BackendEmpty {
        backend: Backend,
        /// Why, if known.
        fault: Option<String>,
        /// How to get one, if known.
        way_out: Option<String>,
    },
    /// Mel frames need all bits of 32-bit floats.
    #[error("mel frames cannot be computed on {device}: it would multiply in TF32")]
    MelInTf32 { device: String },
    /// A budget is larger than the memory of the device.
    #[error("{flag} asks for {asked} of {device}, which has {has}")]
    BudgetTooLarge {
        flag: &'static str,
        asked: Bytes,
        device: String,
        /// The memory of the device, or what the other budget leaves of it.
        has: Bytes,
    },
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Hint for PlacementError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::InsufficientGpus { instead, .. } => Some(instead.clone()),
            Self::FewerGpus { found, .. } => Some(format!(
                "start {} on this machine, or train on its CPU with `--backend cpu`",
                if found.len() == 1 { "1 rank".into() } else { format!("{} ranks", found.len()) }
            )),
            Self::PairsOfRanks { .. } => Some(
                "name one GPU of each list for each rank of a machine, such as `--data-gpu 0,2 \
                 --model-gpu 1,3` for two"
                    .into(),
            ),
            Self::BackendEmpty { backend, way_out, .. } => Some(format!(
                "{}, or leave `--backend` out to use the best available one; `tandem devices` lists all",
                way_out.clone().unwrap_or_else(|| format!("install {}", backend.driver()))
            )),
            Self::MelInTf32 { .. } => Some(
                "leave out `--mel-on device`, name two GPUs with `--data-gpu` and `--model-gpu`, or use \
                 another `--mixed-precision`"
                    .into(),
            ),
            Self::BudgetTooLarge { flag, has, .. } => {
                Some(format!("set {flag} {} or less", has.0 >> 20))
            }
            Self::Device(error) => error.hint(),
        }
    }
}

/// What is wrong with a pair of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Only `--data-gpu` was given.
    OnlyData(usize),
    /// Only `--model-gpu` was given.
    OnlyModel(usize),
    /// Both name the same GPU.
    Same(usize),
    /// No GPU has this index.
    NoSuch { flag: &'static str, index: usize },
}

impl Mismatch {
    /// What is wrong with a pair on any machine; `None` if neither index is given, or two different ones.
    pub fn of_pair(data: Option<usize>, model: Option<usize>) -> Option<Mismatch> {
        match (data, model) {
            (Some(data), None) => Some(Mismatch::OnlyData(data)),
            (None, Some(model)) => Some(Mismatch::OnlyModel(model)),
            (Some(data), Some(model)) if data == model => Some(Mismatch::Same(data)),
            _ => None,
        }
    }
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
                write!(f, "`{flag} {index}` names a GPU that does not exist")
            }
        }
    }
}

/// The indices that the user named for this rank.
pub(super) fn pair_of_rank(
    asked: &DeviceSettings,
    gpus: &[FoundDevice],
) -> Result<(Option<usize>, Option<usize>), PlacementError> {
    let first = (asked.data_gpu, asked.model_gpu);
    if first == (None, None) {
        return Ok(first);
    }
    let (ranks, pairs) = (asked.local.ranks, 1 + asked.further_pairs.len());
    if pairs != ranks {
        return Err(PlacementError::PairsOfRanks { pairs, ranks, found: gpus.to_vec() });
    }
    Ok(match asked.local.rank {
        0 => first,
        rank => {
            let (data, model) = asked.further_pairs[rank - 1];
            (Some(data), Some(model))
        }
    })
}

/// The two indices, if they name two of the available GPUs.
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
        _ => match (data, model, Mismatch::of_pair(data, model)) {
            (_, _, Some(mismatch)) => mismatch,
            (Some(data), Some(model), None) => return Ok((data, model)),
            _ => unreachable!("called with at least one index"),
        },
    };
    let instead = suggestion(data, model, gpus.len(), choice, found);
    Err(PlacementError::InsufficientGpus { mismatch, found: gpus.to_vec(), instead })
}

/// A valid pair that keeps as much as possible of the given flags; otherwise no flags, which is single-GPU
/// or CPU mode.
fn suggestion(
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
        return format!("use --data-gpu {data} --model-gpu {model}, or neither for one GPU");
    }
    // Software devices are only used if their backend is named.
    let software = Backend::ALL.into_iter().find(|&other| found.gpus(other).len() >= 2);
    let for_tests = match (choice, software) {
        (BackendChoice::Auto, Some(other)) => {
            format!("; to use software devices for a test, add --backend {other}")
        }
        _ => String::new(),
    };
    let unused = match found.unused_cards.first() {
        Some(card) if count == 0 => format!(
            "; a card of {} is at {}: build with `cargo build --release -p tandem --features {}` \
             to use it",
            card.vendor, card.pci, card.backend
        ),
        _ if found.backends.iter().all(|one| one.backend == Backend::Cpu || !one.built) => {
            "; this build has no GPU backend: `cargo build --release -p tandem --features cuda` (NVIDIA) or \
             `--features wgpu` makes one that has"
                .into()
        }
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

fn because(fault: &Option<String>) -> String {
    fault.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
}
