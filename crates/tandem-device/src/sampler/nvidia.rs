//! NVIDIA GPUs, through the driver's management library (NVML).
//!
//! In: the library, loaded at the first sample; without it there is one warning, never a panic. Out:
//! utilisation, activity of the multiprocessors if the card counts it, memory, temperature and power.
//! NVML opens no CUDA context and uses no memory on the card.

use super::{GpuAddress, SampleError, Source, WatchedGpu};
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device, Nvml};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tandem_telemetry::event::DeviceSample;
use tandem_units::Bytes;

/// The library, opened once for all GPUs at the first sample.
pub struct NvidiaDriver {
    library: Option<PathBuf>,
    open: Mutex<Option<&'static Nvml>>,
}

impl NvidiaDriver {
    /// The library of the system.
    pub fn usual() -> NvidiaDriver {
        NvidiaDriver { library: None, open: Mutex::new(None) }
    }

    /// The library in this file.
    pub fn at(library: &Path) -> NvidiaDriver {
        NvidiaDriver { library: Some(library.to_path_buf()), open: Mutex::new(None) }
    }

    fn open(&self) -> Result<&'static Nvml, SampleError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(nvml) = *open {
            return Ok(nvml);
        }
        let mut builder = Nvml::builder();
        if let Some(library) = &self.library {
            builder.lib_path(library.as_os_str());
        }
        // Never unloaded: samples refer to it, and other code may use the driver's library
        // too.
        let nvml: &'static Nvml = Box::leak(Box::new(builder.init().map_err(SampleError::Driver)?));
        *open = Some(nvml);
        Ok(nvml)
    }
}

/// One NVIDIA GPU.
pub struct Nvidia {
    gpu: WatchedGpu,
    driver: Arc<NvidiaDriver>,
    counters: Counters,
}

/// The counters of the multiprocessors: their activity is the difference of two samples.
enum Counters {
    NotAsked,
    Absent,
    Before(GpmSample<'static>),
}

impl Nvidia {
    /// Opens the driver at the first sample.
    pub fn new(gpu: WatchedGpu, driver: Arc<NvidiaDriver>) -> Nvidia {
        Nvidia { gpu, driver, counters: Counters::NotAsked }
    }

    fn find(&self, nvml: &'static Nvml) -> Result<Device<'static>, NvmlError> {
        match &self.gpu.address {
            GpuAddress::Index(index) => nvml.device_by_index(*index),
            GpuAddress::PciBus(bus) => nvml.device_by_pci_bus_id(bus.as_str()),
            GpuAddress::Uuid(uuid) => nvml.device_by_uuid(uuid.as_str()),
        }
    }

    /// Utilisation of the multiprocessors since the last sample. A single busy thread makes the card's
    /// utilisation high, but not this figure. Cards before Hopper do not count it.
    fn activity(&mut self, nvml: &'static Nvml, device: &Device<'static>) -> Option<f32> {
        if matches!(self.counters, Counters::NotAsked) && !device.gpm_support().unwrap_or(false) {
            self.counters = Counters::Absent;
        }
        if matches!(self.counters, Counters::Absent) {
            return None;
        }
        let now = device.gpm_sample().ok()?;
        let before = std::mem::replace(&mut self.counters, Counters::NotAsked);
        let share = match &before {
            Counters::Before(before) => {
                let metrics = gpm_metrics_get(nvml, before, &now, &[GpmMetricId::SmUtil]).ok();
                metrics.and_then(|list| list.into_iter().next()).and_then(Result::ok)
            }
            Counters::NotAsked | Counters::Absent => None,
        };
        self.counters = Counters::Before(now);
        share.map(|metric| (metric.value / 100.0) as f32)
    }
}

impl Source for Nvidia {
    fn name(&self) -> &str {
        &self.gpu.device
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        let nvml = self.driver.open()?;
        let device = self.find(nvml).map_err(SampleError::Nvidia)?;
        let busy = supported(device.utilization_rates())?;
        let memory = supported(device.memory_info())?;
        let degrees = supported(device.temperature(TemperatureSensor::Gpu))?;
        let power = supported(device.power_usage())?;
        let sample = DeviceSample {
            utilisation: busy.map(|rates| rates.gpu as f32 / 100.0),
            activity: self.activity(nvml, &device),
            memory_used: memory.as_ref().map(|memory| Bytes(memory.used)),
            memory_total: memory.as_ref().map(|memory| Bytes(memory.total)),
            temperature: degrees.map(|degrees| degrees as f32),
            power: power.map(|thousandths| thousandths as f32 / 1e3),
            ..DeviceSample::new(self.gpu.device.clone(), self.gpu.role)
        };
        Ok(Some(sample))
    }
}

/// A figure that this card, driver or user cannot get is absent; anything else is an error.
fn supported<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, SampleError> {
    use NvmlError::{FailedToLoadSymbol, FunctionNotFound, NoPermission, NotSupported};
    match answer {
        Ok(figure) => Ok(Some(figure)),
        Err(NotSupported | NoPermission | FunctionNotFound | FailedToLoadSymbol(_)) => Ok(None),
        Err(error) => Err(SampleError::Nvidia(error)),
    }
}
