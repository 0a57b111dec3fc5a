//! Everything that this build finds on this machine, before anything is opened.
//!
//! In: the backends of the build. Out: [`Inventory`]: their devices, the links between GPUs, and
//! what is missing with the way to get it. A backend that fails is reported, and hides no other.
//! Next on the path: [`crate::placement`], which chooses.

mod bus;
mod links;
mod processor;

pub use bus::{BusCard, cards_on_bus};
pub use links::{Link, LinkKind, PciAddress, links_between};
pub use processor::Processor;

use crate::backend::{Backend, DeviceError, DeviceId, enumerate};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use tandem_units::{Bytes, Hint};

/// A device that could be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundDevice {
    /// How to ask for it.
    pub id: DeviceId,
    /// As it names itself.
    pub name: String,
    /// What it is.
    pub kind: DeviceClass,
    /// Memory it has; none where its driver does not say.
    pub memory: Option<Bytes>,
    /// The driver and its version, as it names itself.
    pub driver: Option<String>,
    /// Its place on the bus, where it has one.
    pub pci: Option<PciAddress>,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceClass {
    /// A card of its own.
    Discrete,
    /// Part of the processor's chip.
    Integrated,
    /// A share of a card, given by a hypervisor.
    Virtual,
    /// A graphics driver that computes on the processor: for tests, slower than the CPU backend.
    Software,
    /// The driver does not say.
    Unknown,
    /// The processor itself.
    Processor,
}

impl DeviceClass {
    /// Whether it is a GPU in silicon, so that `auto` may take it.
    pub fn is_hardware_gpu(self) -> bool {
        !matches!(self, DeviceClass::Software | DeviceClass::Processor)
    }

    /// In one word, for a table.
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
    /// The processor as a device.
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

/// What one backend found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackendReport {
    /// Which backend.
    pub backend: Backend,
    /// Whether this build can use it.
    pub built: bool,
    /// Its devices, in the order of their numbers.
    pub devices: Vec<FoundDevice>,
    /// Why there are none, where that is known.
    pub trouble: Option<String>,
    /// What to do to get them.
    pub hint: Option<String>,
}

/// All devices of all backends, and how GPUs are linked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inventory {
    /// One report for each backend there is, the one to prefer first.
    pub backends: Vec<BackendReport>,
    /// How each pair of GPUs of one backend is linked, where both have a place on the bus.
    pub links: Vec<Link>,
    /// Cards on the bus that no backend of this build reaches.
    pub unused_cards: Vec<BusCard>,
    /// The processor.
    pub processor: Processor,
}

impl Inventory {
    /// Detects the devices of this machine.
    pub fn detect() -> Inventory {
        let backends: Vec<_> = Backend::ALL.into_iter().map(detect_devices).collect();
        let links = backends
            .iter()
            .flat_map(|report| links_between(&report.devices, Path::new("/sys")))
            .collect();
        let mut unused_cards = cards_on_bus(Path::new("/sys"));
        let devices = || backends.iter().flat_map(|report| &report.devices);
        unused_cards.retain(|card| !devices().any(|device| device.pci == Some(card.pci)));
        // A driver that does not say where its devices are would make them look unused.
        if devices().any(|device| device.kind.is_hardware_gpu() && device.pci.is_none()) {
            unused_cards.clear();
        }
        Inventory { backends, links, unused_cards, processor: Processor::here() }
    }

    /// What a backend found.
    pub fn report(&self, backend: Backend) -> Option<&BackendReport> {
        self.backends.iter().find(|report| report.backend == backend)
    }

    /// The GPUs of a backend; none for the CPU.
    pub fn gpus(&self, backend: Backend) -> &[FoundDevice] {
        match self.report(backend) {
            Some(report) if backend != Backend::Cpu => &report.devices,
            _ => &[],
        }
    }

    /// The processor as a device.
    pub fn cpu(&self) -> FoundDevice {
        let listed = self.report(Backend::Cpu).and_then(|report| report.devices.first());
        listed.cloned().unwrap_or_else(FoundDevice::processor)
    }

    /// How two devices are linked, where that is known.
    pub fn link(&self, one: DeviceId, other: DeviceId) -> Option<&Link> {
        self.links.iter().find(|link| {
            (link.one, link.other) == (one, other) || (link.one, link.other) == (other, one)
        })
    }
}

fn detect_devices(backend: Backend) -> BackendReport {
    let (devices, error) = match enumerate(backend) {
        Ok(devices) => (devices, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let built = backend.is_built();
    let nothing = built && devices.is_empty() && error.is_none();
    let error = error.or_else(|| {
        nothing.then(|| DeviceError::NoDriver { backend, why: "it lists no device".into() })
    });
    let hint = error.as_ref().and_then(|error| match error {
        DeviceError::NotBuilt { backend } => {
            Some(format!("cargo build --release -p tandem --features {backend}"))
        }
        DeviceError::NoDriver { backend, .. } => Some(format!("install {}", backend.driver())),
        other => other.hint(),
    });
    BackendReport { backend, built, devices, trouble: error.map(|e| e.to_string()), hint }
}
