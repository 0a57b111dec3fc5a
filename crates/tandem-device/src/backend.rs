//! Backends and devices: the only file that names vendors and checks the features of the build.
//!
//! In: a [`Backend`] or a [`DeviceId`]. Out: the devices of that backend, or an open [`Device`]. Checks for a
//! driver before it opens a device: a missing driver is an error, never a panic. Chooses nothing; that is
//! [`crate::placement`], with the devices of [`crate::inventory`].

mod driver_counts;
mod error;
mod reason;
#[cfg(feature = "kernel-cache")]
mod kernel_cache;
#[cfg(feature = "wgpu")]
mod adapters;
#[cfg(any(feature = "cuda", test))]
mod libdevice;
#[cfg(feature = "cuda")]
mod nvidia;
#[cfg(feature = "rocm")]
mod amd;

pub use driver_counts::{DriverCounts, delay_work, stop_computing, with_costs};
pub use error::DeviceError;

use crate::inventory::FoundDevice;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, Mutex, PoisonError};
use tandem_settings::{SettingValue, ValueKind};
use tandem_telemetry::event::Kernels;
use tandem_units::Bytes;
use tandem_units::panic_guard::catch_panic;

/// The oldest CUDA version whose driver has every function that is called. See `cudarc` in Cargo.toml.
pub const OLDEST_CUDA: &str = "12.0";

/// Runs `work` in a device library. A panic becomes [`DeviceError::Broke`] with the description `doing`.
///
/// The caller must discard whatever `work` could have left incomplete.
pub fn guarded<T>(doing: &'static str, work: impl FnOnce() -> T) -> Result<T, DeviceError> {
    catch_panic(work).map_err(|why| DeviceError::broke(doing, &why))
}

/// A compute backend. Each except the CPU is a cargo feature of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// NVIDIA.
    Cuda,
    /// AMD.
    Rocm,
    /// Apple.
    Metal,
    /// Vulkan with kernels in SPIR-V.
    Vulkan,
    /// The graphics API of the system, with kernels in WGSL.
    Wgpu,
    /// Always available.
    Cpu,
}

impl Backend {
    /// All backends in the order of preference for `auto`.
    pub const ALL: [Backend; 6] = [
        Backend::Cuda,
        Backend::Rocm,
        Backend::Metal,
        Backend::Vulkan,
        Backend::Wgpu,
        Backend::Cpu,
    ];

    /// The value of `--backend`, and the name of the cargo feature.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Cuda => "cuda",
            Backend::Rocm => "rocm",
            Backend::Metal => "metal",
            Backend::Vulkan => "vulkan",
            Backend::Wgpu => "wgpu",
            Backend::Cpu => "cpu",
        }
    }

    pub fn is_built(self) -> bool {
        match self {
            Backend::Cuda => cfg!(feature = "cuda"),
            Backend::Rocm => cfg!(feature = "rocm"),
            Backend::Metal => cfg!(feature = "metal"),
            Backend::Vulkan => cfg!(feature = "vulkan"),
            Backend::Wgpu => cfg!(feature = "wgpu"),
            Backend::Cpu => true,
        }
    }

    /// The supported devices, for messages.
    pub fn serves(self) -> &'static str {
        match self {
            Backend::Cuda => "NVIDIA GPUs",
            Backend::Rocm => "AMD GPUs with ROCm",
            Backend::Metal => "Apple GPUs",
            Backend::Vulkan => "any GPU with a Vulkan driver, kernels in SPIR-V",
            Backend::Wgpu => "any GPU with a Vulkan, Metal or DirectX 12 driver, kernels in WGSL",
            Backend::Cpu => "the CPU",
        }
    }

    /// What must be installed to find a device.
    pub fn driver(self) -> &'static str {
        match self {
            Backend::Cuda => "NVIDIA's driver (libcuda.so)",
            Backend::Rocm => "AMD's ROCm (libamdhip64.so)",
            Backend::Metal => "macOS on a Mac with a GPU",
            Backend::Vulkan => "a Vulkan driver of your GPU's vendor",
            Backend::Wgpu => "a driver of your GPU's vendor (Vulkan, Metal or DirectX 12)",
            Backend::Cpu => "nothing",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name and backend of a PCI vendor id.
pub(crate) fn backend_of_vendor(number: u16) -> Option<(&'static str, Backend)> {
    match number {
        0x10de => Some(("NVIDIA", Backend::Cuda)),
        0x1002 => Some(("AMD", Backend::Rocm)),
        0x8086 => Some(("Intel", Backend::Vulkan)),
        _ => None,
    }
}

/// The value of `--backend`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BackendChoice {
    /// The preferred backend of this build that has a device.
    #[default]
    Auto,
    /// This one, or an error.
    Only(Backend),
}

impl SettingValue for BackendChoice {
    const KIND: ValueKind = ValueKind::Word;
    const WORDS: &'static [&'static str] = &{
        let mut words = ["auto"; Backend::ALL.len() + 1];
        let mut at = 0;
        while at < Backend::ALL.len() {
            words[at + 1] = Backend::ALL[at].name();
            at += 1;
        }
        words
    };

    fn parse(text: &str) -> Result<BackendChoice, String> {
        text.parse()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl FromStr for BackendChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<BackendChoice, String> {
        if text == "auto" {
            return Ok(BackendChoice::Auto);
        }
        let named = Backend::ALL.into_iter().find(|backend| backend.name() == text);
        named.map(BackendChoice::Only).ok_or_else(|| {
            let names = Backend::ALL.map(Backend::name).join(", ");
            format!("there is no backend `{text}`; expected auto, {names}")
        })
    }
}

impl TryFrom<String> for BackendChoice {
    type Error = String;

    fn try_from(text: String) -> Result<BackendChoice, String> {
        text.parse()
    }
}

impl From<BackendChoice> for String {
    fn from(choice: BackendChoice) -> String {
        choice.to_string()
    }
}

impl fmt::Display for BackendChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackendChoice::Auto => f.pad("auto"),
            BackendChoice::Only(backend) => backend.fmt(f),
        }
    }
}

/// How a device multiplies matrices of 32-bit floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum F32Products {
    /// With all bits of both factors.
    #[default]
    Full,
    /// With 10 of the 23 bits of each factor's mantissa, on the tensor cores of NVIDIA cards since Ampere;
    /// sums have 32 bits.
    Tf32,
}

/// A device: its backend and its index there. Displays as `cuda:1`, or `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceId {
    pub backend: Backend,
    /// The value of `--data-gpu` and `--model-gpu`.
    pub index: usize,
}

impl DeviceId {
    pub const CPU: DeviceId = DeviceId { backend: Backend::Cpu, index: 0 };
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.backend {
            Backend::Cpu => f.pad("cpu"),
            backend => f.pad(&format!("{backend}:{}", self.index)),
        }
    }
}

/// The devices of a backend, in the order of their indices. Empty if the driver finds none;
/// [`DeviceError::NoDriver`] without a driver.
pub(crate) fn enumerate(backend: Backend) -> Result<Vec<FoundDevice>, DeviceError> {
    match backend {
        Backend::Cpu => Ok(vec![FoundDevice::processor()]),
        #[cfg(feature = "cuda")]
        Backend::Cuda => guarded("listing CUDA devices", nvidia::enumerate)?,
        #[cfg(feature = "rocm")]
        Backend::Rocm => guarded("listing ROCm devices", amd::enumerate)?,
        #[cfg(feature = "wgpu")]
        Backend::Metal | Backend::Vulkan | Backend::Wgpu if backend.is_built() => {
            guarded("listing graphics adapters", || adapters::enumerate(backend))?
        }
        backend => Err(DeviceError::NotBuilt { backend }),
    }
}

/// Sets the environment variables that device libraries read: `CUDA_PATH`, where NVIDIA's mathematical
/// functions are found outside the directories that the library knows. `cache` is a directory of the user
/// for what must be created. Does nothing in a build without CUDA.
///
/// # Safety
///
/// The process must have one thread only: other threads may read the environment at the same time.
pub unsafe fn set_library_paths(cache: &std::path::Path) {
    #[cfg(feature = "cuda")]
    // SAFETY: promised by the caller.
    unsafe {
        nvidia::set_cuda_path(cache);
    }
    let _ = cache;
}

/// Stores tuning results and compiled kernels in this directory, for later processes with the same devices, driver
/// and version. To be called before a device is opened; without it nothing is stored.
pub fn store_kernels_in(directory: &std::path::Path) {
    #[cfg(feature = "kernel-cache")]
    kernel_cache::store_in(directory);
    let _ = directory;
}

/// The kernels of a process, and its cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelReport {
    pub kernels: Kernels,
    /// Why the kernels of earlier processes, or any, are not in the cache.
    pub fault: Option<String>,
}

/// The kernels of this process and those that earlier processes stored; `None` if no open device compiles kernels
/// or nothing is stored.
pub fn kernel_report() -> Option<KernelReport> {
    #[cfg(feature = "kernel-cache")]
    return kernel_cache::report();
    #[cfg(not(feature = "kernel-cache"))]
    None
}

/// What a backend needs beside its driver, and does not find. Known without opening a device.
pub(crate) fn missing_library(backend: Backend) -> Option<DeviceError> {
    match backend {
        #[cfg(feature = "cuda")]
        Backend::Cuda => nvidia::missing_libdevice(),
        _ => None,
    }
}

/// Opens a device once for the whole process; later calls return the same device.
pub fn open(id: DeviceId) -> Result<Device, DeviceError> {
    open_for(id, F32Products::Full)
}

// Registering a graphics adapter twice would create a second device with its own memory.
static OPEN: LazyLock<Mutex<HashMap<DeviceId, (Device, F32Products)>>> =
    LazyLock::new(Mutex::default);

/// [`open`], with the kind of products of 32-bit floats. A device keeps the kind it was opened with.
pub fn open_for(id: DeviceId, products: F32Products) -> Result<Device, DeviceError> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((device, opened_for)) = open.get(&id) {
        if *opened_for != products {
            return Err(DeviceError::OpenOtherwise { id });
        }
        return Ok(device.clone());
    }
    let device = open_first(id, products)?;
    open.insert(id, (device.clone(), products));
    Ok(device)
}

fn open_first(id: DeviceId, products: F32Products) -> Result<Device, DeviceError> {
    match id.backend {
        // Only NVIDIA cards have TF32. `open_vendor` checks which.
        backend if products == F32Products::Tf32 && backend != Backend::Cuda => {
            Err(DeviceError::NoTf32 { id })
        }
        Backend::Cpu => Ok(Device::flex()),
        backend if !backend.is_built() => Err(DeviceError::NotBuilt { backend }),
        // An invalid index would panic in the device library, so it is checked first.
        backend => {
            let found = enumerate(backend)?;
            if id.index >= found.len() {
                return Err(DeviceError::NoSuchDevice { id, found: found.len() });
            }
            if let Some(missing) = missing_library(backend) {
                return Err(missing);
            }
            #[cfg(feature = "kernel-cache")]
            kernel_cache::use_for(id, products, &found);
            guarded("opening the device", || open_vendor(id, products))?
        }
    }
}

#[allow(unreachable_patterns, reason = "the match arms depend on the features")]
fn open_vendor(id: DeviceId, products: F32Products) -> Result<Device, DeviceError> {
    let _ = products;
    match id.backend {
        #[cfg(feature = "cuda")]
        Backend::Cuda => {
            if products == F32Products::Tf32 && !nvidia::has_tf32(id.index)? {
                return Err(DeviceError::NoTf32 { id });
            }
            nvidia::register(id.index, products)?;
            answering(id, Device::cuda(id.index))
        }
        #[cfg(feature = "rocm")]
        Backend::Rocm => answering(id, Device::rocm(id.index)),
        #[cfg(feature = "wgpu")]
        Backend::Metal | Backend::Vulkan | Backend::Wgpu => adapters::open(id),
        backend => Err(DeviceError::NotBuilt { backend }),
    }
}

/// Whether the driver of a device is asked for the memory that is in use.
pub(crate) fn tells_memory_in_use(id: DeviceId) -> bool {
    cfg!(feature = "cuda") && id.backend == Backend::Cuda
}

/// Memory of a card, as its driver sees it.
#[derive(Clone, Copy, Debug)]
pub struct CardMemory {
    /// By all programs.
    pub in_use: Bytes,
    pub free: Bytes,
}

/// `None` before a card is open, and where its driver is not asked.
pub(crate) fn card_memory(id: DeviceId) -> Option<CardMemory> {
    match id.backend {
        #[cfg(feature = "cuda")]
        Backend::Cuda => nvidia::card_memory(id.index),
        _ => None,
    }
}

/// Memory of an open card that no program uses; `None` where its driver is not asked.
pub fn free_memory(device: &Device) -> Option<Bytes> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (id, _) = open.iter().find(|(_, (opened, _))| opened == device)?;
    Some(card_memory(*id)?.free)
}

/// Whether a device compiles and tunes kernels for each new shape. Those of the CPU are compiled with the
/// program.
pub fn compiles_kernels(device: &Device) -> bool {
    *device != Device::flex()
}

/// Waits until a device has finished all queued work, and returns its errors.
pub fn wait_for(device: &Device, doing: &'static str) -> Result<(), DeviceError> {
    let failed = |why: burn::tensor::ExecutionError| DeviceError::broke(doing, &why.to_string());
    guarded(doing, || device.sync())?.map_err(failed)
}

/// These devices are opened by their first operation; this makes an error visible now. The logarithm needs
/// a library of the vendor beside the driver, as the mel kernel does.
#[cfg(any(feature = "cuda", feature = "rocm"))]
fn answering(id: DeviceId, device: Device) -> Result<Device, DeviceError> {
    let fault = |why: String| DeviceError::Open { id, why };
    let probe = (burn::tensor::Tensor::<1>::from_floats([1.0, 2.0], &device) * 2.0).log();
    let values = probe.try_into_vec_as::<f32>().map_err(|error| fault(error.to_string()))?;
    let near = |(found, expected): (&f32, f32)| (found - expected).abs() < 1e-5;
    if values.len() != 2 || !values.iter().zip([2f32.ln(), 4f32.ln()]).all(near) {
        return Err(fault(format!("it computes ln([1, 2] * 2) as {values:?}")));
    }
    Ok(device)
}

#[cfg(test)]
mod tests;
