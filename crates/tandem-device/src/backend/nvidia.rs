//! CUDA devices in the order of NVIDIA's driver.
//!
//! In: the driver. Out: [`FoundDevice`]s, without opening one: no context is created and no memory used. The
//! CUDA library aborts without a driver, so its presence is checked first, and the driver's version.
//! [`register`] opens a device for Burn, with or without TF32.

use super::libdevice::{Libdevice, Search, toolkit_around};
use super::{Backend, CardMemory, DeviceError, DeviceId, F32Products};
use crate::inventory::{DeviceClass, FoundDevice, PciAddress};
use cubecl_core::client::Client;
use cubecl_core::device::{Device as _, DeviceService};
use cubecl_core::ir::{ElemType, FloatKind};
use cubecl_core::server::{Server, ServerUtilities};
use cubecl_cuda::{CudaDevice, CudaRuntime};
use cubecl_runtime::runtime::Runtime;
use cudarc::driver::result::{self, device};
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute as Attribute};
use nvml_wrapper::Nvml;
use std::path::Path;
use std::sync::Arc;
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
    let driver = version.map(|version| match installed_driver() {
        Some(installed) => format!("CUDA {}, driver {installed}", readable(version)),
        None => format!("CUDA {}", readable(version)),
    });
    (0..count).map(|at| describe(at, driver.clone()).map_err(|e| missing(e.to_string()))).collect()
}

/// Whether the card has TF32: compute capability 8.0 (Ampere) and newer.
pub(super) fn has_tf32(index: usize) -> Result<bool, DeviceError> {
    let failed = |error: result::DriverError| DeviceError::Open {
        id: DeviceId { backend: Backend::Cuda, index },
        why: error.to_string(),
    };
    let handle = device::get(index as i32).map_err(failed)?;
    Ok(fact(handle, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR).map_err(failed)? >= 8)
}

type CudaServer = <CudaRuntime as Runtime>::Server;

/// Registers a device with Burn, which otherwise opens it at its first use and then replaces matrix products
/// of 32-bit floats by TF32 on every card that has it. Burn takes that from the properties of the device, so
/// they do not mention TF32 unless it is wanted.
pub(super) fn register(index: usize, products: F32Products) -> Result<(), DeviceError> {
    let id = CudaDevice::new(index).to_id();
    let server = <CudaServer as DeviceService>::init(id);
    if products == F32Products::Full {
        forget_tf32(&server);
    }
    let taken = |_| DeviceError::Open {
        id: DeviceId { backend: Backend::Cuda, index },
        why: "another part of the program opened it before".into(),
    };
    Client::try_init(id, server).map(|_| ()).map_err(taken)
}

fn forget_tf32(server: &CudaServer) {
    let shared: Arc<ServerUtilities> = Server::utilities(server);
    let mut properties = (*shared.properties).clone();
    let tf32 = ElemType::Float(FloatKind::TF32);
    let features = &mut properties.features;
    features.types.elem.remove(&tf32);
    features.matmul.cmma.retain(|shape| shape.a_type != tf32);
    features.matmul.mma.retain(|shape| shape.a_type != tf32);
    // SAFETY: the server was made by the caller and is not registered. It and `shared` have the only two
    // pointers to its utilities, and the server does not read them during this call.
    let utilities = unsafe { &mut *Arc::as_ptr(&shared).cast_mut() };
    utilities.properties_hash = properties.checksum();
    utilities.properties = Arc::new(properties);
}

/// `None` before a card is open.
pub(super) fn card_memory(index: usize) -> Option<CardMemory> {
    let handle = device::get(index as i32).ok()?;
    // SAFETY: the handle was just returned by the driver; numbers are written into variables that outlive the calls.
    // The context is the one that Burn uses and never releases.
    let (free, total) = unsafe {
        let (mut flags, mut is_active) = (0, 0);
        sys::cuDevicePrimaryCtxGetState(handle, &mut flags, &mut is_active).result().ok()?;
        if is_active == 0 {
            return None;
        }
        let context = result::primary_ctx::retain(handle).ok()?;
        let asked = result::ctx::set_current(context).and_then(|()| result::mem_get_info());
        let _ = result::primary_ctx::release(handle);
        asked.ok()?
    };
    Some(CardMemory { in_use: Bytes((total - free) as u64), free: Bytes(free as u64) })
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

/// The version of the installed driver, such as 575.57.08, from NVIDIA's management library. Several of them support
/// the same CUDA version, and compile kernels differently.
fn installed_driver() -> Option<String> {
    Nvml::init().ok()?.sys_driver_version().ok()
}

fn readable(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}
