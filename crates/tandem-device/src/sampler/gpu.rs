//! Which GPU to sample, and through which driver.
//!
//! In: vendor and address of a GPU. Out: a description for the vendor's source.

use super::{SampleError, Source};
use std::fmt;
use tandem_telemetry::event::{DeviceRole, DeviceSample, Name};

/// A GPU to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedGpu {
    /// The name in the run record, such as `cuda:0`.
    pub device: Name,
    /// What the run uses it for.
    pub role: DeviceRole,
    pub vendor: Vendor,
    pub address: GpuAddress,
}

/// The vendor of a GPU, which decides the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Nvidia,
    Amd,
    /// Any other, including software devices: no figures.
    Other,
}

impl Vendor {
    /// From the PCI vendor id.
    pub fn of_pci(number: u32) -> Vendor {
        match number {
            0x10DE => Vendor::Nvidia,
            0x1002 => Vendor::Amd,
            _ => Vendor::Other,
        }
    }
}

/// The address of a GPU in its driver. Indices of CUDA can differ from those of the driver; PCI address and
/// UUID are the same for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuAddress {
    /// The driver's index, in the order of the PCI bus.
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

/// A GPU without figures. Its only sample is an error, which is reported once.
pub struct Silent(WatchedGpu);

impl Silent {
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
