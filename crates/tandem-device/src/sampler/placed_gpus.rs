//! Which GPUs of a run the device sampler reads.

use super::{GpuAddress, Vendor, WatchedGpu};
use crate::backend::Backend;
use crate::inventory::FoundDevice;
use crate::placement::{Mode, Placement};
use tandem_telemetry::event::DeviceRole;

/// The data GPU and the model GPU, or the one that is both.
pub fn placed_gpus(placement: &Placement) -> Vec<WatchedGpu> {
    match placement.mode {
        Mode::Cpu => Vec::new(),
        Mode::SingleGpu => vec![watched(&placement.model, DeviceRole::Model)],
        Mode::MultiGpu => vec![
            watched(&placement.data, DeviceRole::Data),
            watched(&placement.model, DeviceRole::Model),
        ],
    }
}

fn watched(found: &FoundDevice, role: DeviceRole) -> WatchedGpu {
    let name = found.name.to_lowercase();
    let vendor = match found.id.backend {
        Backend::Cuda => Vendor::Nvidia,
        Backend::Rocm => Vendor::Amd,
        _ if name.contains("nvidia") => Vendor::Nvidia,
        _ if name.contains("amd") || name.contains("radeon") => Vendor::Amd,
        _ => Vendor::Other,
    };
    let address = match &found.pci {
        Some(pci) => GpuAddress::PciBus(pci.to_string()),
        None => GpuAddress::Index(found.id.index as u32),
    };
    WatchedGpu { device: found.id.to_string().into(), role, vendor, address }
}
