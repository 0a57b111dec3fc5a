//! What can fail with a device, with a hint.

use super::reason::in_one_line;
use super::{Backend, DeviceId};
use tandem_units::Hint;

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    #[error("backend `{backend}` is not in this build")]
    NotBuilt { backend: Backend },
    #[error("backend `{backend}` found no driver: {why}")]
    NoDriver { backend: Backend, why: String },
    #[error(
        "NVIDIA's driver is too old: it supports CUDA {found}, and {} is the oldest that works",
        super::OLDEST_CUDA
    )]
    OldDriver {
        /// The newest CUDA version that the driver supports.
        found: String,
    },
    /// Kernels with `log`, `exp` or `tanh` are linked with it.
    #[error("NVIDIA's library of mathematical functions, `libdevice.10.bc`, was not found")]
    NoLibdevice { searched: Vec<std::path::PathBuf> },
    #[error("there is no device {} of backend `{}`: it has {found}", id.index, id.backend)]
    NoSuchDevice {
        id: DeviceId,
        /// The number of devices.
        found: usize,
    },
    #[error("cannot open device {id}: {why}")]
    Open { id: DeviceId, why: String },
    #[error("device {id} has no TF32")]
    NoTf32 { id: DeviceId },
    /// A device keeps the kind of products with which it was opened.
    #[error("device {id} is already open with another precision of matrix products")]
    OpenOtherwise { id: DeviceId },
    #[error("the driver of this device does not count launches")]
    NotCounted,
    /// The device library failed; the device may be lost.
    #[error("the device failed while {doing}: {why}")]
    Broke {
        /// The operation in progress.
        doing: &'static str,
        why: String,
    },
}

impl DeviceError {
    /// From what the device library says.
    pub fn broke(doing: &'static str, why: &str) -> DeviceError {
        DeviceError::Broke { doing, why: in_one_line(why) }
    }
}

impl Hint for DeviceError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotBuilt { backend } => Some(format!(
                "build with `cargo build --release -p tandem --features {backend}`, or leave \
                 `--backend` out"
            )),
            Self::NoDriver { backend, .. } => Some(format!(
                "install {}, or leave `--backend` out to use the best available one",
                backend.driver()
            )),
            Self::OldDriver { .. } => Some(
                "install driver 525 or newer (`nvidia-smi` prints the version), or leave \
                 `--backend` out to use another device"
                    .into(),
            ),
            Self::NoLibdevice { searched } => Some(format!(
                "get it with `pip install nvidia-cuda-nvcc-cu12` or with NVIDIA's CUDA toolkit, or set \
                 `CUDA_PATH` to a directory that contains nvvm/libdevice/libdevice.10.bc; searched: {}",
                searched.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
            )),
            Self::NoSuchDevice { .. } => {
                Some("`tandem devices` lists the numbers there are".into())
            }
            Self::Open { .. } => {
                Some("check that the driver works and that no other program uses the device".into())
            }
            Self::NoTf32 { .. } => Some(
                "NVIDIA cards since Ampere (RTX 30, A100) have it, with `--backend cuda`; elsewhere use \
                 `--mixed-precision off` or `bf16`"
                    .into(),
            ),
            Self::OpenOtherwise { .. } => None,
            Self::NotCounted => Some(
                "the stand-in for NVIDIA's driver counts them, without a card: \
                 `xtask/tests/cuda_tests.sh launches`; on a card, NVIDIA's `nsys profile --trace=cuda` does"
                    .into(),
            ),
            Self::Broke { .. } => Some(
                "if memory ran out, take a smaller `--batch-size`; if the device is gone, look at \
                 the system's log (`dmesg`)"
                    .into(),
            ),
        }
    }
}
