//! ROCm devices in the order of AMD's driver.
//!
//! In: the driver. Out: [`FoundDevice`]s. Burn opens a device to get its name; the memory size comes from
//! the kernel's files.

use super::{Backend, DeviceError, DeviceId};
use crate::inventory::{DeviceClass, FoundDevice, PciAddress};
use burn::tensor::{Device, DeviceType};
use std::fs;
use std::path::{Path, PathBuf};
use tandem_units::Bytes;

pub(super) fn enumerate() -> Result<Vec<FoundDevice>, DeviceError> {
    let backend = Backend::Rocm;
    // Without the kernel driver the library would fail later.
    if !Path::new("/dev/kfd").exists() {
        let why = "the amdgpu kernel driver is not loaded (no /dev/kfd)".to_owned();
        return Err(DeviceError::NoDriver { backend, why });
    }
    let devices = Device::enumerate(DeviceType::Rocm);
    Ok(devices.iter().enumerate().map(|(index, device)| describe(index, device)).collect())
}

fn describe(index: usize, device: &Device) -> FoundDevice {
    let identity = device.identity();
    let physical = identity.as_ref().and_then(|identity| identity.physical.as_ref());
    let address = physical.and_then(|physical| physical.pci_address);
    let pci: Option<PciAddress> = address.and_then(|address| address.to_string().parse().ok());
    FoundDevice {
        id: DeviceId { backend: Backend::Rocm, index },
        name: identity.map_or_else(|| format!("AMD GPU {index}"), |identity| identity.name),
        kind: DeviceClass::Discrete,
        memory: pci.and_then(|pci| memory_of(&place_of(pci))),
        driver: fs::read_to_string("/sys/module/amdgpu/version")
            .ok()
            .map(|version| format!("amdgpu {}", version.trim())),
        pci,
    }
}

fn place_of(pci: PciAddress) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(pci.to_string())
}

fn memory_of(place: &Path) -> Option<Bytes> {
    let text = fs::read_to_string(place.join("mem_info_vram_total")).ok()?;
    text.trim().parse().ok().map(Bytes)
}
