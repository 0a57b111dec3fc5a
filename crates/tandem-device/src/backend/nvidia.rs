//! CUDA devices in the order of NVIDIA's driver.
//!
//! In: the driver. Out: [`FoundDevice`]s. Opens no device: no context is created and no memory used. The
//! CUDA library aborts without a driver, so its presence is checked first, and the driver's version.

use super::libdevice::{Libdevice, Search, toolkit_around};
use super::{Backend, DeviceError, DeviceId};
use crate::inventory::{DeviceClass, FoundDevice, PciAddress};
use cudarc::driver::result::{self, device};
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute as Attribute};
use std::path::Path;
use tandem_units::Bytes;

/// [`super::OLDEST_CUDA`] as the driver writes it.
const OLDEST: i32 = 12_000;

/// # Safety
///
/// The process must have one thread only.
pub(super) unsafe fn set_cuda_path(cache: &Path) {
    let root = match Search::on_this_machine().find() {
        Some(Libdevice::Toolkit(root)) => root,
        // Without a writable cache directory the file stays unusable, which `open` reports.
        Some(Libdevice::Bare(file)) => match toolkit_around(&file, cache) {
            Ok(root) => root,
            Err(_) => return,
        },
        None => return,
    };
    // SAFETY: no other thread, as the caller promises.
    unsafe { std::env::set_var("CUDA_PATH", root) };
}

/// The error of opening a device, if the device library would not find the file. [`set_cuda_path`] made
/// every usable place visible to it before.
pub(super) fn missing_libdevice() -> Option<DeviceError> {
    let search = Search::on_this_machine();
    match search.find() {
        Some(Libdevice::Toolkit(_)) => None,
        _ => Some(DeviceError::NoLibdevice { searched: search.places() }),
    }
}

pub(super) fn enumerate() -> Result<Vec<FoundDevice>, DeviceError> {
    let backend = Backend::Cuda;
    let missing = |why: String| DeviceError::NoDriver { backend, why };
    // SAFETY: only tries to load the driver's library.
    if !unsafe { sys::is_culib_present() } {
        return Err(missing("libcuda.so is not installed".into()));
    }
    result::init().map_err(|error| missing(format!("it cannot be initialised: {error}")))?;
    let count = device::get_count().map_err(|error| missing(error.to_string()))?;
    let version = driver_version();
    if let Some(version) = version.filter(|version| *version < OLDEST) {
        return Err(DeviceError::OldDriver { found: readable(version) });
    }
    let driver = version.map(|version| format!("CUDA {}", readable(version)));
    (0..count).map(|at| describe(at, driver.clone()).map_err(|e| missing(e.to_string()))).collect()
}

fn describe(at: i32, driver: Option<String>) -> Result<FoundDevice, result::DriverError> {
    let handle = device::get(at)?;
    Ok(FoundDevice {
        id: DeviceId { backend: Backend::Cuda, index: at as usize },
        name: device::get_name(handle)?,
        kind: match fact(handle, Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? {
            0 => DeviceClass::Discrete,
            _ => DeviceClass::Integrated,
        },
        // SAFETY: the handle was just returned by the driver.
        memory: Some(Bytes(unsafe { device::total_mem(handle) }? as u64)),
        driver,
        pci: Some(PciAddress {
            domain: fact(handle, Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)? as u32,
            bus: fact(handle, Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)? as u8,
            device: fact(handle, Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)? as u8,
            function: 0,
        }),
    })
}

fn fact(handle: CUdevice, which: Attribute) -> Result<i32, result::DriverError> {
    // SAFETY: the handle was just returned by the driver.
    unsafe { device::get_attribute(handle, which) }
}

/// The newest CUDA version that the driver supports, such as 12080 for 12.8.
fn driver_version() -> Option<i32> {
    let mut version = 0;
    // SAFETY: writes one number into a variable that outlives the call.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().ok()?;
    Some(version)
}

fn readable(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}
