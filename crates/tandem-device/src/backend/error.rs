//! What can go wrong with a device, as a fact and a way out.

use super::{Backend, DeviceId};
use tandem_units::Hint;

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The program was built without that backend.
    #[error("backend `{backend}` is not in this build")]
    NotBuilt {
        /// Which one.
        backend: Backend,
    },
    /// The backend is built in, and its driver is not installed.
    #[error("backend `{backend}` found no driver: {why}")]
    NoDriver {
        /// Which one.
        backend: Backend,
        /// What was missing.
        why: String,
    },
    /// There is no device of that number.
    #[error("there is no device {} of backend `{}`: it has {found}", id.index, id.backend)]
    NoSuchDevice {
        /// What was asked for.
        id: DeviceId,
        /// How many there are.
        found: usize,
    },
    /// The driver refused.
    #[error("cannot open device {id}: {why}")]
    Open {
        /// Which one.
        id: DeviceId,
        /// What it said.
        why: String,
    },
    /// The device library broke down; it may have lost the device.
    #[error("the device failed while {doing}: {why}")]
    Broke {
        /// What was under way.
        doing: &'static str,
        /// What it said.
        why: String,
    },
}

impl Hint for DeviceError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotBuilt { backend } => Some(format!(
                "build with `cargo build --release -p tandem --features {backend}`, or leave \
                 `--backend` out"
            )),
            Self::NoDriver { backend, .. } => Some(format!(
                "install {}, or leave `--backend` out for the best that is there",
                backend.driver()
            )),
            Self::NoSuchDevice { .. } => {
                Some("`tandem devices` lists the numbers there are".into())
            }
            Self::Open { .. } => {
                Some("check that the driver works and that no other program holds it".into())
            }
            Self::Broke { .. } => Some(
                "if memory ran out, take a smaller `--batch-size`; if the device is gone, look at \
                 the system's log (`dmesg`)"
                    .into(),
            ),
        }
    }
}
