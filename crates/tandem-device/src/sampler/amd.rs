//! AMD GPUs, from the files of their kernel driver.
//!
//! In: `/sys/class/drm`, or a directory that looks like it. Out: utilisation, memory, temperature and
//! power of one card. File names and units are those of the kernel's `gpu/amdgpu` documentation.

use super::system_file::{number, text};
use super::{GpuAddress, SampleError, Source, WatchedGpu};
use std::path::{Path, PathBuf};
use tandem_telemetry::event::DeviceSample;
use tandem_units::Bytes;

/// One AMD GPU.
pub struct Amd {
    gpu: WatchedGpu,
    root: PathBuf,
    // Found at the first sample.
    device: Option<PathBuf>,
}

impl Amd {
    /// `root` is usually `/sys/class/drm`. The card is found at the first sample.
    pub fn new(gpu: WatchedGpu, root: &Path) -> Amd {
        Amd { gpu, root: root.to_path_buf(), device: None }
    }

    fn find(&self) -> Result<PathBuf, SampleError> {
        let mut cards = cards(&self.root)?;
        cards.sort();
        let found = match &self.gpu.address {
            GpuAddress::Index(index) => cards.into_iter().nth(*index as usize),
            GpuAddress::PciBus(bus) => {
                cards.into_iter().find(|card| card.bus.eq_ignore_ascii_case(bus))
            }
            GpuAddress::Uuid(uuid) => cards.into_iter().find(|card| {
                let own = text(&card.device.join("unique_id")).ok().flatten();
                own.is_some_and(|own| own.eq_ignore_ascii_case(uuid.trim_start_matches("GPU-")))
            }),
        };
        let missing = || SampleError::NoCard {
            address: self.gpu.address.to_string(),
            root: self.root.clone(),
        };
        found.map(|card| card.device).ok_or_else(missing)
    }
}

impl Source for Amd {
    fn name(&self) -> &str {
        &self.gpu.device
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        let device = match &self.device {
            Some(device) => device.clone(),
            None => self.device.insert(self.find()?).clone(),
        };
        let figure = |name: &str| number(&device.join(name));
        let sensors = sensors(&device);
        let sensor = |name: &str| match &sensors {
            Some(directory) => number(&directory.join(name)),
            None => Ok(None),
        };
        // The older name is an average over a short time, the newer one the current value.
        let power = match sensor("power1_average")? {
            Some(power) => Some(power),
            None => sensor("power1_input")?,
        };
        let sample = DeviceSample {
            utilisation: figure("gpu_busy_percent")?.map(|percent| percent as f32 / 100.0),
            memory_used: figure("mem_info_vram_used")?.map(Bytes),
            memory_total: figure("mem_info_vram_total")?.map(Bytes),
            temperature: sensor("temp1_input")?.map(|thousandths| thousandths as f32 / 1e3),
            power: power.map(|micro| micro as f32 / 1e6),
            ..DeviceSample::new(self.gpu.device.clone(), self.gpu.role)
        };
        if sample.is_empty() {
            return Err(SampleError::NoFigures { path: device });
        }
        Ok(Some(sample))
    }
}

/// An AMD card. Sorted by bus, which is the order of the driver's indices.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Card {
    bus: String,
    device: PathBuf,
}

fn cards(root: &Path) -> Result<Vec<Card>, SampleError> {
    let failed = |source| SampleError::File { path: root.to_path_buf(), source };
    let mut cards = Vec::new();
    for entry in std::fs::read_dir(root).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        // `card0` is a card, `card0-DP-1` one of its outputs.
        let number = name.to_str().and_then(|name| name.strip_prefix("card"));
        if number.is_none_or(|number| number.parse::<u32>().is_err()) {
            continue;
        }
        let device = entry.path().join("device");
        if text(&device.join("vendor"))?.as_deref() != Some("0x1002") {
            continue;
        }
        let facts = text(&device.join("uevent"))?.unwrap_or_default();
        let bus = facts.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME="));
        cards.push(Card { bus: bus.unwrap_or_default().to_string(), device });
    }
    Ok(cards)
}

/// The directory with temperature and power; the kernel chooses the number in its name.
fn sensors(device: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(device.join("hwmon")).ok()?;
    entries.filter_map(Result::ok).map(|entry| entry.path()).min()
}
