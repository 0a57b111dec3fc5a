//! Samples the load and memory of devices once a second, on its own thread.
//!
//! In: [`Source`]s: GPUs, this process, its cgroup, the machine. Out: one [`DeviceSample`] event per source
//! and interval. Uses drivers and files only: it never opens a device context, and no thread waits for
//! it. A source that fails is reported once as a warning, and tried again later. Next: [`tandem_telemetry::record`].

mod amd;
mod cgroup;
mod gpu;
mod host;
mod nvidia;
mod placed_gpus; // which GPUs of a run are sampled
mod processor_share;
mod system_file;

pub use amd::Amd;
pub use cgroup::Cgroup;
pub use gpu::{GpuAddress, Silent, Vendor, WatchedGpu};
pub use host::{Machine, Process};
pub use nvidia::{Nvidia, NvidiaDriver};
pub use placed_gpus::placed_gpus;

use nvml_wrapper::error::NvmlError;
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tandem_telemetry::error::TelemetryError;
use tandem_telemetry::event::{DeviceSample, Warning};
use tandem_telemetry::record::Recorder;

/// Something to sample. It opens what it needs at its first sample, on the sampler's thread.
pub trait Source: Send {
    /// The name in messages.
    fn name(&self) -> &str;

    /// `None` if there is no figure yet.
    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError>;
}

/// Why a device was not sampled.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The library is missing or cannot be initialised.
    #[error("NVIDIA's management library (NVML) cannot be used")]
    Driver(#[source] NvmlError),
    /// The library does not know the device, or lost it.
    #[error("NVIDIA's management library (NVML) reports no figures")]
    Nvidia(#[source] NvmlError),
    #[error("no AMD card {address} under `{}`", root.display())]
    NoCard { address: String, root: PathBuf },
    #[error("cannot read `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` does not contain a number: `{text}`", path.display())]
    Number { path: PathBuf, text: String },
    #[error("the driver reports no figures under `{}`", path.display())]
    NoFigures { path: PathBuf },
    #[error("this program can only read figures of NVIDIA and AMD GPUs")]
    UnknownVendor,
    #[error("the system's counters cannot be opened")]
    System(#[source] sysinfo::Error),
    #[error("the system does not report what this process uses")]
    Process,
}

impl tandem_units::Hint for SampleError {}

/// The sources of a run: its GPUs, then this process, its cgroup and the machine.
pub fn standard_sources(gpus: &[WatchedGpu]) -> Vec<Box<dyn Source>> {
    let driver = Arc::new(NvidiaDriver::usual());
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for gpu in gpus.iter().cloned() {
        sources.push(match gpu.vendor {
            Vendor::Nvidia => Box::new(Nvidia::new(gpu, Arc::clone(&driver))),
            Vendor::Amd => Box::new(Amd::new(gpu, Path::new("/sys/class/drm"))),
            Vendor::Other => Box::new(Silent::new(gpu)),
        });
    }
    sources.push(Box::new(Process::new()));
    sources.push(Box::new(Cgroup::new(Path::new("/"))));
    sources.push(Box::new(Machine::new()));
    sources
}

/// Intervals that a failed source is skipped.
const REST: u32 = 30;
/// How long ending waits for a sample in progress. The thread of a driver that hangs is abandoned.
const END_WITHIN: Duration = Duration::from_secs(2);

/// The sampling thread; see [`Sampler::start`].
pub struct Sampler {
    sources: Vec<Watched>,
    recorder: Recorder,
    every: Duration,
    latest: LatestSamples,
    stop: Arc<AtomicBool>,
}

/// The newest sample of every device, for the run itself: a report of a stuck step, a temperature limit. Clones
/// share them. Reading never waits for a driver.
#[derive(Clone, Debug, Default)]
pub struct LatestSamples(Arc<Mutex<BTreeMap<String, DeviceSample>>>);

impl LatestSamples {
    /// One sample per device, sorted by name.
    pub fn all(&self) -> Vec<DeviceSample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn set(&self, sample: &DeviceSample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.insert(sample.device.to_string(), sample.clone());
    }
}

/// Ends the sampling when it is dropped.
pub struct SamplerHandle {
    latest: LatestSamples,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    // Its other end is dropped when the thread ends, however it ends.
    ended: Receiver<()>,
}

struct Watched {
    source: Box<dyn Source>,
    reported: bool,
    rest: u32,
}

impl Sampler {
    /// Samples all sources now and at every interval, until the handle is dropped.
    pub fn start(
        sources: Vec<Box<dyn Source>>,
        recorder: Recorder,
        every: Duration,
    ) -> Result<SamplerHandle, TelemetryError> {
        let stop = Arc::new(AtomicBool::new(false));
        let watched = |source| Watched { source, reported: false, rest: 0 };
        let sources = sources.into_iter().map(watched).collect();
        let latest = LatestSamples::default();
        let mut sampler =
            Sampler { sources, recorder, every, latest: latest.clone(), stop: Arc::clone(&stop) };
        let (end, ended): (SyncSender<()>, _) = sync_channel(0);
        let thread = std::thread::Builder::new()
            .name("tandem-sampler".into())
            .spawn(move || {
                let _end = end;
                sampler.run();
            })
            .map_err(|source| TelemetryError::Thread { what: "samples the devices", source })?;
        Ok(SamplerHandle { latest, stop, thread: Some(thread), ended })
    }

    fn run(&mut self) {
        let mut due = Instant::now();
        while !self.stop.load(Ordering::Acquire) {
            for watched in &mut self.sources {
                watched.sample(&self.recorder, &self.latest);
            }
            // Missed intervals are skipped.
            while due <= Instant::now() {
                due += self.every.max(Duration::from_millis(1));
            }
            while let Some(left) = due.checked_duration_since(Instant::now())
                && !left.is_zero()
                && !self.stop.load(Ordering::Acquire)
            {
                std::thread::park_timeout(left);
            }
        }
    }
}

impl Watched {
    fn sample(&mut self, recorder: &Recorder, latest: &LatestSamples) {
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        match self.source.sample() {
            Ok(sample) => sample.into_iter().for_each(|sample| {
                latest.set(&sample);
                recorder.send(sample);
            }),
            Err(error) => {
                self.rest = REST;
                if !self.reported {
                    self.reported = true;
                    let text =
                        format!("{} is not measured: {}", self.source.name(), with_causes(&error));
                    recorder.send(Warning { code: "not_measured".into(), text });
                }
            }
        }
    }
}

/// An error with its causes on one line. A cause that an error already contains is not repeated.
fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    })
}

impl SamplerHandle {
    /// The newest samples; they stay readable after the sampling has ended.
    pub fn latest(&self) -> LatestSamples {
        self.latest.clone()
    }
}

impl Drop for SamplerHandle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        if self.ended.recv_timeout(END_WITHIN) != Err(RecvTimeoutError::Timeout) {
            // A source that panicked has ended the sampling, which the run record shows.
            let _ = thread.join();
        }
    }
}
