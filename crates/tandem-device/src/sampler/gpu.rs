//! Which GPU to look at, and whom to ask about it.

use super::{SampleError, Source};
use std::fmt;
use tandem_telemetry::event::{DeviceRole, DeviceSample, Name};

/// A GPU to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedGpu {
    /// Its name in the record, such as `cuda:0`.
    pub device: Name,
    /// What the run uses it for.
    pub role: DeviceRole,
    /// Who made it.
    pub vendor: Vendor,
    /// How its driver knows it.
    pub address: GpuAddress,
}

/// Who made a GPU, which decides whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// Anyone else, software devices included: nobody to ask.
    Other,
}

impl Vendor {
    /// By the number that PCI and graphics interfaces give.
    pub fn of_pci(number: u32) -> Vendor {
        match number {
            0x10DE => Vendor::Nvidia,
            0x1002 => Vendor::Amd,
            _ => Vendor::Other,
        }
    }
}

/// How a driver knows a GPU. Indices of CUDA need not be those of the driver: bus and UUID are
/// the same for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuAddress {
    /// The driver's own count, in the order of the PCI bus.
    Index(u32),
    /// Such as `0000:03:00.0`.
    PciBus(String),
    /// Such as `GPU-8f0e...`.
    Uuid(String),
}

impl fmt::Display for GpuAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuAddress::Index(index) => write!(f, "number {index}"),
            GpuAddress::PciBus(bus) => write!(f, "at PCI bus {bus}"),
            GpuAddress::Uuid(uuid) => f.write_str(uuid),
        }
    }
}

/// A GPU that nobody can be asked about: says so, once.
pub struct Silent(WatchedGpu);

impl Silent {
    /// For this GPU.
    pub fn new(gpu: WatchedGpu) -> Silent {
        Silent(gpu)
    }
}

impl Source for Silent {
    fn name(&self) -> &str {
        &self.0.device
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        Err(SampleError::UnknownVendor)
    }
}
