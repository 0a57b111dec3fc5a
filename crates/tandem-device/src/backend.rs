//! Backends and devices: the one file that names vendors and asks which of them are built in.
//!
//! In: a [`Backend`] or a [`DeviceId`]. Out: what that backend finds on this machine, or an open
//! [`Device`]. Looks before it opens: a missing driver is an error, never a panic. Chooses
//! nothing by itself; that is [`crate::placement`], with what [`crate::inventory`] found.

mod error;
#[cfg(feature = "wgpu")]
mod adapters;
#[cfg(feature = "cuda")]
mod nvidia;
#[cfg(feature = "rocm")]
mod amd;

pub use error::DeviceError;

use crate::inventory::FoundDevice;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, Mutex, PoisonError};
use tandem_data::panic_guard::catch_panic;

/// Runs `work` inside a device library; a panic in it becomes [`DeviceError::Broke`] with what `doing` names.
///
/// The caller must throw away whatever `work` could have left half done.
pub fn guarded<T>(doing: &'static str, work: impl FnOnce() -> T) -> Result<T, DeviceError> {
    catch_panic(work).map_err(|why| DeviceError::Broke { doing, why })
}

/// A way to reach devices; each but the CPU is a cargo feature of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// NVIDIA's own.
    Cuda,
    /// AMD's own.
    Rocm,
    /// Apple's own.
    Metal,
    /// Vulkan with kernels in SPIR-V.
    Vulkan,
    /// Whatever graphics interface the system has, with kernels in WGSL.
    Wgpu,
    /// The processor; always there.
    Cpu,
}

impl Backend {
    /// All of them, the one to prefer first: that is the order `auto` goes by.
    pub const ALL: [Backend; 6] = [
        Backend::Cuda,
        Backend::Rocm,
        Backend::Metal,
        Backend::Vulkan,
        Backend::Wgpu,
        Backend::Cpu,
    ];

    /// The name, as it is typed; also that of the cargo feature.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Cuda => "cuda",
            Backend::Rocm => "rocm",
            Backend::Metal => "metal",
            Backend::Vulkan => "vulkan",
            Backend::Wgpu => "wgpu",
            Backend::Cpu => "cpu",
        }
    }

    /// Whether this build can use it.
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

    /// Whose devices it is for, in a few words.
    pub fn serves(self) -> &'static str {
        match self {
            Backend::Cuda => "NVIDIA GPUs",
            Backend::Rocm => "AMD GPUs with ROCm",
            Backend::Metal => "Apple GPUs",
            Backend::Vulkan => "any GPU with a Vulkan driver, kernels in SPIR-V",
            Backend::Wgpu => "any GPU with a Vulkan, Metal or DirectX 12 driver, kernels in WGSL",
            Backend::Cpu => "this computer's processor",
        }
    }

    /// What has to be installed for it to find a device.
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

/// Who makes cards under this PCI number, and which backend is theirs.
pub(crate) fn backend_of_vendor(number: u16) -> Option<(&'static str, Backend)> {
    match number {
        0x10de => Some(("NVIDIA", Backend::Cuda)),
        0x1002 => Some(("AMD", Backend::Rocm)),
        0x8086 => Some(("Intel", Backend::Vulkan)),
        _ => None,
    }
}

/// What was asked for with `--backend`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BackendChoice {
    /// The best that this build and this machine have.
    #[default]
    Auto,
    /// This one or an error.
    Only(Backend),
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

/// One device: the backend that reaches it and its number there. Prints as `cuda:1`, or `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceId {
    /// Which backend.
    pub backend: Backend,
    /// The number to give to `--data-gpu` and `--model-gpu`.
    pub index: usize,
}

impl DeviceId {
    /// The processor.
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

/// A second software adapter is handed to the tensor library with what WGSL needs; its kernels
/// in SPIR-V need more.
#[cfg(feature = "wgpu")]
const MANY_SOFTWARE_ADAPTERS: bool = !cfg!(feature = "vulkan");

/// The devices of a backend, in the order of their numbers. Empty where the driver is there and
/// finds none; [`DeviceError::NoDriver`] where it is not.
pub(crate) fn enumerate(backend: Backend) -> Result<Vec<FoundDevice>, DeviceError> {
    match backend {
        Backend::Cpu => Ok(vec![FoundDevice::processor()]),
        #[cfg(feature = "cuda")]
        Backend::Cuda => guarded("looking for CUDA devices", nvidia::enumerate)?,
        #[cfg(feature = "rocm")]
        Backend::Rocm => guarded("looking for ROCm devices", amd::enumerate)?,
        #[cfg(feature = "wgpu")]
        Backend::Metal | Backend::Vulkan | Backend::Wgpu if backend.is_built() => {
            guarded("looking for graphics adapters", || adapters::enumerate(backend))?
        }
        backend => Err(DeviceError::NotBuilt { backend }),
    }
}

/// Opens a device, once for the whole program: whoever asks again gets the same.
pub fn open(id: DeviceId) -> Result<Device, DeviceError> {
    // Registering a graphics adapter a second time would make a second device of it, with
    // memory of its own.
    static OPEN: LazyLock<Mutex<HashMap<DeviceId, Device>>> = LazyLock::new(Mutex::default);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = open.get(&id) {
        return Ok(device.clone());
    }
    let device = open_first(id)?;
    open.insert(id, device.clone());
    Ok(device)
}

fn open_first(id: DeviceId) -> Result<Device, DeviceError> {
    match id.backend {
        Backend::Cpu => Ok(Device::flex()),
        backend if !backend.is_built() => Err(DeviceError::NotBuilt { backend }),
        // Asking for the number first keeps a wrong one from becoming a panic further down.
        backend => {
            let found = enumerate(backend)?.len();
            if id.index >= found {
                return Err(DeviceError::NoSuchDevice { id, found });
            }
            guarded("opening the device", || open_vendor(id))?
        }
    }
}

#[allow(unreachable_patterns, reason = "which arms there are depends on the features")]
fn open_vendor(id: DeviceId) -> Result<Device, DeviceError> {
    match id.backend {
        #[cfg(feature = "cuda")]
        Backend::Cuda => answering(id, Device::cuda(id.index)),
        #[cfg(feature = "rocm")]
        Backend::Rocm => answering(id, Device::rocm(id.index)),
        #[cfg(feature = "wgpu")]
        Backend::Metal | Backend::Vulkan | Backend::Wgpu => adapters::open(id),
        backend => Err(DeviceError::NotBuilt { backend }),
    }
}

/// Whether a device compiles and tunes kernels when it first meets a shape; the processor's are
/// part of the program.
pub fn compiles_kernels(device: &Device) -> bool {
    *device != Device::flex()
}

/// Waits until a device has done everything it was given; what failed on the way shows here.
pub fn wait_for(device: &Device, doing: &'static str) -> Result<(), DeviceError> {
    let failed = |why: burn::tensor::ExecutionError| {
        let why = why.to_string();
        DeviceError::Broke { doing, why }
    };
    guarded(doing, || device.sync())?.map_err(failed)
}

/// Those are opened by their first work; this makes a fault show now.
#[cfg(any(feature = "cuda", feature = "rocm"))]
fn answering(id: DeviceId, device: Device) -> Result<Device, DeviceError> {
    let fault = |why: String| DeviceError::Open { id, why };
    let probe = burn::tensor::Tensor::<1>::from_floats([1.0, 2.0], &device) * 2.0;
    let values = probe.try_into_vec_as::<f32>().map_err(|error| fault(error.to_string()))?;
    if values != [2.0, 4.0] {
        return Err(fault(format!("it says that twice 1 and 2 are {values:?}")));
    }
    Ok(device)
}

#[cfg(test)]
mod tests;
