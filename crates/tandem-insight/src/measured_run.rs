//! Step times and device samples of a record.
//!
//! In: a record or the directory of a run. Out: [`MeasuredRun`]: every step after the warm-up and
//! every device sample, in order. The warm-up is the first step, as in the report. Values that
//! the record does not contain are absent. Next: [`crate::compare`], [`crate::scaling`].

use std::path::{Path, PathBuf};
use tandem_telemetry::event::{DeviceRole, DeviceSample, Event, RunOutcome, Step};
use tandem_telemetry::ranks::RankSums;
use tandem_telemetry::reader::visit;
use tandem_telemetry::step_sample::{StepSample, StepSize, StepTime};
use tandem_telemetry::{Nanos, ReadNotes, TelemetryError};
use tandem_units::{Bytes, Seconds};

/// The steps and devices of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredRun {
    /// The record, as it was named.
    pub path: PathBuf,
    /// Every setting of the run.
    pub settings: serde_json::Value,
    /// Steps after the warm-up, in order.
    pub steps: Vec<MeasuredStep>,
    /// The steps before them.
    pub warm_up: Vec<MeasuredStep>,
    /// The steps that variation is judged by.
    pub sample: StepSample,
    /// Devices in the order of their first sample.
    pub devices: Vec<DeviceSeries>,
    /// The ranks of a data-parallel run.
    pub ranks: Option<RankSums>,
    /// From the start to the last event.
    pub lasted: Seconds,
    /// How it ended; `None` where the record has no final event.
    pub outcome: Option<RunOutcome>,
    /// What could not be read.
    pub notes: ReadNotes,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredStep {
    /// Seconds, waiting included.
    pub took: f64,
    pub items: u32,
    /// Real mel frames in the batch.
    pub frames: u64,
    /// The padded shape, or the utterances alone where shapes were not recorded: steps of the
    /// same shape are the same work.
    pub shape: [u32; 3],
    /// The padded size of all its batches; `None` where shapes were not recorded.
    pub size: Option<StepSize>,
}

/// Samples of a device, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSeries {
    pub device: String,
    /// What the run used it for.
    pub role: DeviceRole,
    /// Shares of time it was busy.
    pub utilisation: Vec<f64>,
    /// Memory in use, bytes.
    pub memory: Vec<f64>,
    pub memory_total: Option<Bytes>,
}

impl MeasuredRun {
    /// Steps that compile and tune; the report leaves out the same.
    pub const WARM_UP: usize = 1;

    /// Reads a record; `path` is the file or the run's directory.
    pub fn read(path: &Path) -> Result<MeasuredRun, TelemetryError> {
        let mut run = MeasuredRun { path: path.to_path_buf(), ..MeasuredRun::default() };
        let mut last = Nanos(0);
        let (header, notes) = visit(path, |stamped| {
            last = last.max(stamped.at);
            match &stamped.event {
                Event::Step(step) => run.add_step(step),
                Event::Device(sample) => run.add_sample(sample),
                Event::Ranks(interval) => run.ranks.get_or_insert_default().add(interval),
                Event::Final(ending) => run.outcome = Some(ending.outcome),
                _ => {}
            }
        })?;
        run.settings = header.settings;
        run.lasted = last.seconds();
        run.notes = notes;
        Ok(run)
    }

    /// Utterances of a batch: the setting where the record has it, otherwise the usual number.
    pub fn batch_size(&self) -> Option<u32> {
        let said = self.settings.pointer("/config/batch/batch_size");
        let said = said.or_else(|| self.settings.get("batch_size"));
        let said = said.and_then(|size| u32::try_from(size.as_u64()?).ok());
        said.filter(|size| *size > 0).or_else(|| self.usual_items())
    }

    /// The most frequent number of utterances of a step, the larger one of two.
    fn usual_items(&self) -> Option<u32> {
        let mut items: Vec<u32> = self.steps.iter().map(|step| step.items).collect();
        items.sort_unstable();
        let groups = items.chunk_by(|one, next| one == next);
        groups.max_by_key(|group| (group.len(), group[0])).map(|group| group[0])
    }

    /// Processes that trained together.
    pub fn rank_count(&self) -> usize {
        self.ranks.as_ref().map_or(1, |sums| sums.busy.len().max(1))
    }

    /// Times of the steps after the warm-up.
    pub fn times(&self) -> Vec<f64> {
        self.steps.iter().map(|step| step.took).collect()
    }

    /// The time that steps took, the warm-up included.
    pub fn stepped(&self) -> f64 {
        self.steps.iter().chain(&self.warm_up).map(|step| step.took).sum()
    }

    /// The most memory in use on a device of that role, and by which name.
    pub fn peak_memory(&self, role: DeviceRole) -> Option<(&str, f64)> {
        let devices = self.devices.iter().filter(|series| series.role == role);
        let peaks = devices.filter_map(|series| {
            let peak = series.memory.iter().copied().reduce(f64::max)?;
            Some((series.device.as_str(), peak))
        });
        // The machine's memory is shared by all programs; the process belongs to the run.
        let own = |name: &str| role != DeviceRole::Host || name == PROCESS;
        peaks.filter(|(name, _)| own(name)).max_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn add_step(&mut self, step: &Step) {
        let time = StepTime::from(step);
        let step = MeasuredStep {
            took: step.took.seconds().0,
            items: step.items,
            frames: step.frames,
            shape: step.shape.unwrap_or([step.items, 0, 0]),
            size: time.size,
        };
        self.sample.add(time);
        if self.warm_up.len() < Self::WARM_UP {
            self.warm_up.push(step);
        } else {
            self.steps.push(step);
        }
    }

    fn add_sample(&mut self, sample: &DeviceSample) {
        let is_it =
            |series: &DeviceSeries| series.role == sample.role && series.device == *sample.device;
        let place = self.devices.iter().position(is_it).unwrap_or_else(|| {
            self.devices.push(DeviceSeries {
                device: sample.device.to_string(),
                role: sample.role,
                utilisation: Vec::new(),
                memory: Vec::new(),
                memory_total: None,
            });
            self.devices.len() - 1
        });
        let series = &mut self.devices[place];
        series.utilisation.extend(sample.utilisation.map(f64::from));
        series.memory.extend(sample.memory_used.map(|used| used.0 as f64));
        series.memory_total = sample.memory_total.or(series.memory_total);
    }
}

/// The sampler's name for the run's own process.
pub const PROCESS: &str = "process";
