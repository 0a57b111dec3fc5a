//! Looks at devices once a second, on a thread of its own. (Signatures; bodies follow.)

use crate::error::TelemetryError;
use crate::event::{DeviceRole, DeviceSample, Name};
use crate::record::Recorder;
use std::time::Duration;

/// Something that can be looked at. Opened by its first look, on the sampler's thread.
pub trait Source: Send {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// One look. An error is told once and tried again at the next look.
    fn look(&mut self) -> Result<Vec<DeviceSample>, SampleError>;
}

/// A GPU to look at.
#[derive(Clone, Debug)]
pub struct WatchedGpu { pub device: Name, pub role: DeviceRole, pub vendor: Vendor, pub address: GpuAddress }
/// Who made it, which decides whom to ask.
#[derive(Clone, Copy, Debug)]
pub enum Vendor { Nvidia, Amd, Other }
/// How the vendor's library knows it: indices of CUDA and of the driver may differ.
#[derive(Clone, Debug)]
pub enum GpuAddress { Index(u32), PciBus(String), Uuid(String) }

/// What a run looks at: its GPUs, this process, its cgroup, the machine.
pub fn standard_sources(gpus: &[WatchedGpu]) -> Vec<Box<dyn Source>> { todo!() }

pub struct Sampler;
impl Sampler {
    /// Starts looking every so often; ends when the handle is dropped.
    pub fn start(sources: Vec<Box<dyn Source>>, recorder: Recorder, every: Duration) -> Result<SamplerHandle, TelemetryError> { todo!() }
}
/// Stops and joins on drop.
pub struct SamplerHandle(());
