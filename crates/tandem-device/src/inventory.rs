//! Detects all devices of this machine without opening them.
//!
//! In: the backends of the build. Out: [`Inventory`]: their devices, the links between GPUs, and hints for
//! what is missing. A backend that fails is reported and does not hide the others.
//! Next on the path: [`crate::placement`], which chooses.

mod bus;
mod idle;
mod links;
mod processor;

pub use bus::{BusCard, cards_on_bus};
pub use links::{Link, LinkKind, PciAddress, links_between};
pub use processor::Processor;

use crate::backend::{Backend, DeviceError, DeviceId, enumerate, missing_library};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use tandem_units::{Bytes, Hint};

/// A device that can be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundDevice {
    pub id: DeviceId,
    pub name: String,
    pub kind: DeviceClass,
    /// `None` if the driver does not report it.
    pub memory: Option<Bytes>,
    /// Driver and version, as reported.
    pub driver: Option<String>,
    pub pci: Option<PciAddress>,
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceClass {
    /// A dedicated card.
    Discrete,
    /// Part of the CPU.
    Integrated,
    /// A part of a card, assigned by a hypervisor.
    Virtual,
    /// A graphics driver that computes on the CPU: for tests, slower than the CPU backend.
    Software,
    /// Not reported by the driver.
    Unknown,
    /// The CPU.
    Processor,
}

impl DeviceClass {
    /// Whether it is a hardware GPU, so that `auto` may use it.
    pub fn is_hardware_gpu(self) -> bool {
        !matches!(self, DeviceClass::Software | DeviceClass::Processor)
    }

    pub fn name(self) -> &'static str {
        match self {
            DeviceClass::Discrete => "discrete",
            DeviceClass::Integrated => "integrated",
            DeviceClass::Virtual => "virtual",
            DeviceClass::Software => "software",
            DeviceClass::Unknown => "unknown",
            DeviceClass::Processor => "processor",
        }
    }
}

impl FoundDevice {
    /// The CPU as a device.
    pub fn processor() -> FoundDevice {
        let processor = Processor::here();
        FoundDevice {
            id: DeviceId::CPU,
            name: processor.name,
            kind: DeviceClass::Processor,
            memory: processor.memory,
            driver: None,
            pci: None,
        }
    }
}

impl fmt::Display for FoundDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.name)
    }
}

/// The devices of one backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackendReport {
    pub backend: Backend,
    /// Whether it is part of this build.
    pub built: bool,
    /// In the order of their indices.
    pub devices: Vec<FoundDevice>,
    /// Why there are none, if known; or why the listed ones cannot be opened.
    pub fault: Option<String>,
    /// How to get them.
    pub hint: Option<String>,
}

/// The devices of all backends, and the links between GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inventory {
    /// One report for each backend, the preferred one first.
    pub backends: Vec<BackendReport>,
    /// The links of all pairs of GPUs of one backend with known PCI addresses.
    pub links: Vec<Link>,
    /// Cards on the bus that no backend of this build supports.
    pub unused_cards: Vec<BusCard>,
    pub processor: Processor,
}

impl Inventory {
    /// Detects the devices of this machine.
    pub fn detect() -> Inventory {
        Inventory::detect_in(Path::new("/sys"))
    }

    /// The same with the bus and the links below `sys` instead of `/sys`, for tests.
    pub fn detect_in(sys: &Path) -> Inventory {
        let backends: Vec<_> = Backend::ALL.into_iter().map(detect_devices).collect();
        let links =
            backends.iter().flat_map(|report| links_between(&report.devices, sys)).collect();
        let mut unused_cards = cards_on_bus(sys);
        let devices = || backends.iter().flat_map(|report| &report.devices);
        unused_cards.retain(|card| !devices().any(|device| device.pci == Some(card.pci)));
        // If a driver does not report PCI addresses, its devices would look unused.
        if devices().any(|device| device.kind.is_hardware_gpu() && device.pci.is_none()) {
            unused_cards.clear();
        }
        Inventory { backends, links, unused_cards, processor: Processor::here() }
    }

    pub fn report(&self, backend: Backend) -> Option<&BackendReport> {
        self.backends.iter().find(|report| report.backend == backend)
    }

    /// The GPUs of a backend; empty for the CPU.
    pub fn gpus(&self, backend: Backend) -> &[FoundDevice] {
        match self.report(backend) {
            Some(report) if backend != Backend::Cpu => &report.devices,
            _ => &[],
        }
    }

    /// The CPU as a device.
    pub fn cpu(&self) -> FoundDevice {
        let listed = self.report(Backend::Cpu).and_then(|report| report.devices.first());
        listed.cloned().unwrap_or_else(FoundDevice::processor)
    }

    /// The link of two devices, if known.
    pub fn link(&self, one: DeviceId, other: DeviceId) -> Option<&Link> {
        self.links.iter().find(|link| {
            (link.one, link.other) == (one, other) || (link.one, link.other) == (other, one)
        })
    }
}

const NEWER_DRIVER: &str = "install driver 525 or newer (`nvidia-smi` prints the version)";

fn detect_devices(backend: Backend) -> BackendReport {
    let (devices, error) = match enumerate(backend) {
        Ok(devices) => (devices, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let built = backend.is_built();
    let nothing = built && devices.is_empty() && error.is_none();
    let unusable = (!devices.is_empty()).then(|| missing_library(backend)).flatten();
    let error = error.or(unusable).or_else(|| {
        nothing.then(|| DeviceError::NoDriver { backend, why: "it lists no device".into() })
    });
    let hint = error.as_ref().and_then(|error| match error {
        DeviceError::NotBuilt { backend } => {
            Some(format!("cargo build --release -p tandem --features {backend}"))
        }
        DeviceError::NoDriver { backend, .. } => Some(format!("install {}", backend.driver())),
        DeviceError::OldDriver { .. } => Some(NEWER_DRIVER.into()),
        other => other.hint(),
    });
    BackendReport { backend, built, devices, fault: error.map(|e| e.to_string()), hint }
}
