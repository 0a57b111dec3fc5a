//! Which device does the data work and which one trains: decided once, at the start.
//!
//! In: [`DeviceSettings`] from the user and the [`Inventory`] of the machine. Out: [`Placement`], which
//! displays as the banner of the run, or an error with flags that would work. A pure function: opens
//! nothing, and never changes the mode silently. Next: [`Placement::open`].

mod device_config;
mod error;
mod limits;
mod mel_on;
#[cfg(test)]
mod tests;

pub use device_config::{DeviceConfig, DeviceConfigError, GpuIndexes};
pub use error::{Mismatch, PlacementError};
pub use limits::{MATRIX, MatrixRow, MemoryLimits};
pub use mel_on::MelOn;

use crate::backend::{self, Backend, BackendChoice, DeviceError, F32Products};
use crate::inventory::{FoundDevice, Inventory};
use crate::memory::tuner_scratch;
use burn::tensor::Device;
use serde::Serialize;
use std::fmt;
use tandem_units::Bytes;

/// The device settings of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSettings {
    pub backend: BackendChoice,
    /// `--data-gpu`.
    pub data_gpu: Option<usize>,
    /// `--model-gpu`.
    pub model_gpu: Option<usize>,
    /// Data and model GPU of the second rank on this machine, and of those after it.
    pub further_pairs: Vec<(usize, usize)>,
    /// This process among the ranks of its machine.
    pub local: LocalRank,
    /// Whether each device has a budget.
    pub isolation: Isolation,
    /// Whether batches are padded to a small fixed set of shapes.
    pub shapes: Shapes,
    /// Where mel frames are computed.
    pub mel_on: MelOn,
    /// How the model's matrices are multiplied.
    pub products: F32Products,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        DeviceSettings {
            backend: BackendChoice::Auto,
            data_gpu: None,
            model_gpu: None,
            further_pairs: Vec::new(),
            local: LocalRank::ALONE,
            isolation: Isolation::Off,
            shapes: Shapes::Static,
            mel_on: MelOn::Auto,
            products: F32Products::Full,
        }
    }
}

/// One of the processes that train together on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRank {
    pub rank: usize,
    pub ranks: usize,
}

impl LocalRank {
    pub const ALONE: LocalRank = LocalRank { rank: 0, ranks: 1 };
}

/// Whether each device has a memory budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    Off,
    /// Budgets; `None` derives one from the defaults and the memory of the device.
    On {
        /// `--data-gpu-memory`.
        data: Option<Bytes>,
        /// `--model-gpu-memory`.
        model: Option<Bytes>,
    },
}

/// How batches are padded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shapes {
    /// To a small fixed set of shapes: kernels are compiled and tuned once for each.
    #[default]
    Static,
    /// Each to its own longest utterance.
    PerBatch,
}

/// How data work and model share devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Data work on one GPU, the model on another.
    MultiGpu,
    /// Both on one GPU, host work overlapped through a buffer.
    SingleGpu,
    /// Both on the CPU, with the same pipeline.
    Cpu,
}

impl Mode {
    /// The name in the banner.
    pub fn name(self) -> &'static str {
        match self {
            Mode::MultiGpu => "multi-GPU",
            Mode::SingleGpu => "single-GPU buffered",
            Mode::Cpu => "CPU buffered",
        }
    }
}

/// Which device does the data work, which one trains, and the limits of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    pub mode: Mode,
    /// Where mel frames are computed and batches are uploaded.
    pub data: FoundDevice,
    /// Where weights, gradients and optimizer state are, and every step runs.
    pub model: FoundDevice,
    /// GPUs of this backend in the machine.
    pub gpus: usize,
    /// Budgets of both devices; `None` without isolation.
    pub limits: Option<MemoryLimits>,
    /// How batches are padded.
    pub shapes: Shapes,
    /// How the model device multiplies matrices of 32-bit floats.
    pub products: F32Products,
    /// A warning about the pair, such as a slow link.
    pub warning: Option<String>,
}

/// Both devices, open. The same device twice unless the mode is [`Mode::MultiGpu`].
#[derive(Clone, Debug)]
pub struct OpenDevices {
    /// For data work; without autodiff.
    pub data: Device,
    /// For the model; without autodiff, which [`Device::autodiff`] adds.
    pub model: Device,
}

impl OpenDevices {
    /// Whether batches must be copied from one to the other.
    pub fn are_apart(&self) -> bool {
        self.data != self.model
    }
}

impl Placement {
    /// Depends only on its arguments.
    pub fn decide(asked: &DeviceSettings, found: &Inventory) -> Result<Self, PlacementError> {
        let backend = choose_backend(asked, found)?;
        let gpus = offered(backend, asked.backend, found);
        let LocalRank { rank, ranks } = asked.local;
        let (mode, data, model) = match error::pair_of_rank(asked, gpus)? {
            (None, None) => match gpus.get(rank) {
                Some(gpu) => (Mode::SingleGpu, gpu.clone(), gpu.clone()),
                None if gpus.is_empty() => (Mode::Cpu, found.cpu(), found.cpu()),
                None => return Err(PlacementError::FewerGpus { ranks, found: gpus.to_vec() }),
            },
            (data, model) => {
                let (data, model) = error::pair(data, model, gpus, asked.backend, found)?;
                (Mode::MultiGpu, gpus[data].clone(), gpus[model].clone())
            }
        };
        let is_tf32 = asked.products == F32Products::Tf32 && data.id == model.id;
        if is_tf32 && asked.mel_on == MelOn::Device {
            return Err(PlacementError::MelInTf32 { device: model.id.to_string() });
        }
        let limits = MemoryLimits::decide(asked.isolation, &data, &model)?;
        let warning = found.link(data.id, model.id).and_then(|link| link.warning());
        let DeviceSettings { shapes, products, .. } = *asked;
        let gpus = gpus.len();
        Ok(Placement { mode, data, model, gpus, limits, shapes, products, warning })
    }

    /// Opens both. The data device computes mel frames, for which TF32 is not enough: it has full products
    /// unless it is the model device too.
    pub fn open(&self) -> Result<OpenDevices, DeviceError> {
        let model = backend::open_for(self.model.id, self.products)?;
        let data = match self.data.id == self.model.id {
            true => model.clone(),
            false => backend::open(self.data.id)?,
        };
        Ok(OpenDevices { data, model })
    }
}

/// The banner: mode, both devices by name, memory limits; one line each.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "mode: {}", self.mode.name())?;
        writeln!(f, "data device: {}", self.data)?;
        writeln!(f, "model device: {}", self.model)?;
        match &self.limits {
            Some(limits) if self.data.id == self.model.id => {
                let both = (limits.data.0 + limits.model.0) >> 20;
                writeln!(f, "memory limits: {limits}; on one device {both} MB together")?;
            }
            Some(limits) => writeln!(f, "memory limits: {limits}")?,
            None => writeln!(f, "memory limits: none (--enable-memory-isolation sets them)")?,
        }
        if let Some(scratch) = tuner_scratch(&self.model) {
            writeln!(f, "tuner: {scratch} more on each card for a moment, at the first start")?;
        }
        if self.products == F32Products::Tf32 {
            writeln!(f, "matrix products of the model: TF32")?;
        }
        f.write_str(match self.shapes {
            Shapes::Static => "shapes: static",
            Shapes::PerBatch => "shapes: as each batch needs",
        })
    }
}

/// The GPUs to choose from. Hardware comes first; software devices are only offered if their backend is
/// named.
fn offered(backend: Backend, choice: BackendChoice, found: &Inventory) -> &[FoundDevice] {
    let gpus = found.gpus(backend);
    match choice {
        BackendChoice::Only(_) => gpus,
        BackendChoice::Auto => {
            let hardware = gpus.iter().take_while(|gpu| gpu.kind.is_hardware_gpu()).count();
            &gpus[..hardware]
        }
    }
}

/// The named backend, or the preferred one with a hardware GPU.
fn choose_backend(asked: &DeviceSettings, found: &Inventory) -> Result<Backend, PlacementError> {
    let BackendChoice::Only(backend) = asked.backend else {
        let has_gpu =
            |backend: &Backend| found.gpus(*backend).iter().any(|gpu| gpu.kind.is_hardware_gpu());
        return Ok(Backend::ALL.into_iter().find(has_gpu).unwrap_or(Backend::Cpu));
    };
    let report = found.report(backend);
    if backend != Backend::Cpu && !report.is_some_and(|report| report.built) {
        return Err(DeviceError::NotBuilt { backend }.into());
    }
    match report {
        Some(report) if report.devices.is_empty() && backend != Backend::Cpu => {
            let (fault, way_out) = (report.fault.clone(), report.hint.clone());
            Err(PlacementError::BackendEmpty { backend, fault, way_out })
        }
        _ => Ok(backend),
    }
}
