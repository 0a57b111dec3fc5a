//! Looks at devices once a second, on a thread of its own.
//!
//! In: [`Source`]s: GPUs through their vendor's own figures, this process, its cgroup, the machine.
//! Out: one [`DeviceSample`] event per device and look. Asks drivers and files only: it never
//! touches a device's context, and nobody waits for it. What cannot be measured is said once, as a
//! warning, and tried again now and then. Next: [`tandem_telemetry::record`].

mod amd;
mod cgroup;
mod gpu;
mod host;
mod nvidia;
mod processor_share;
mod system_file;

pub use amd::Amd;
pub use cgroup::Cgroup;
pub use gpu::{GpuAddress, Silent, Vendor, WatchedGpu};
pub use host::{Machine, Process};
pub use nvidia::{Nvidia, NvidiaDriver};

use nvml_wrapper::error::NvmlError;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tandem_telemetry::error::TelemetryError;
use tandem_telemetry::event::{DeviceSample, Warning};
use tandem_telemetry::record::Recorder;

/// Something that can be looked at. It opens what it needs at its first look, which is on the
/// sampler's thread.
pub trait Source: Send {
    /// Its name in messages.
    fn name(&self) -> &str;

    /// One look; nothing where there is nothing to tell yet.
    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError>;
}

/// Why a device was not measured.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The vendor's library is missing or does not start.
    #[error("NVIDIA's management library (NVML) does not answer")]
    Driver(#[source] NvmlError),
    /// The vendor's library does not know the device, or lost it.
    #[error("NVIDIA's management library (NVML) has no figures")]
    Nvidia(#[source] NvmlError),
    /// No card of this address.
    #[error("no AMD card {address} under `{}`", root.display())]
    NoCard {
        /// The address asked for.
        address: String,
        /// Where cards are listed.
        root: PathBuf,
    },
    /// A file of the system could not be read.
    #[error("cannot read `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of the system says something else than a number.
    #[error("`{}` holds no number: `{text}`", path.display())]
    Number {
        /// The file.
        path: PathBuf,
        /// What it holds.
        text: String,
    },
    /// None of the device's figures can be read.
    #[error("the driver tells nothing under `{}`", path.display())]
    NoFigures {
        /// Where its figures would be.
        path: PathBuf,
    },
    /// Neither of the vendors whose figures we can read.
    #[error("its driver offers no figures that this program knows (NVIDIA and AMD do)")]
    UnknownVendor,
    /// The system's counters cannot be opened.
    #[error("the system's counters cannot be opened")]
    System(#[source] sysinfo::Error),
    /// The system does not say what this process uses.
    #[error("the system does not tell what this process uses")]
    Process,
}

/// What a run looks at: its GPUs, then this process, its cgroup and the whole machine.
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

/// Looks a source that failed is left alone for.
const REST: u32 = 30;
/// The longest that ending waits for a look under way. A driver that hangs keeps its thread: it
/// is left behind, not waited for.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Starts looking; see [`Sampler::start`].
pub struct Sampler {
    sources: Vec<Watched>,
    recorder: Recorder,
    every: Duration,
    stop: Arc<AtomicBool>,
}

/// Ends the looking when it is dropped.
pub struct SamplerHandle {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    // Its other end is dropped when the thread ends, however it ends.
    ended: Receiver<()>,
}

struct Watched {
    source: Box<dyn Source>,
    told: bool,
    rest: u32,
}

impl Sampler {
    /// Looks at all sources now and every so often, until the handle is dropped.
    pub fn start(
        sources: Vec<Box<dyn Source>>,
        recorder: Recorder,
        every: Duration,
    ) -> Result<SamplerHandle, TelemetryError> {
        let stop = Arc::new(AtomicBool::new(false));
        let watched = |source| Watched { source, told: false, rest: 0 };
        let sources = sources.into_iter().map(watched).collect();
        let mut sampler = Sampler { sources, recorder, every, stop: Arc::clone(&stop) };
        let (end, ended): (SyncSender<()>, _) = sync_channel(0);
        let thread = std::thread::Builder::new()
            .name("tandem-sampler".into())
            .spawn(move || {
                let _end = end;
                sampler.run();
            })
            .map_err(|source| TelemetryError::Thread { what: "looks at the devices", source })?;
        Ok(SamplerHandle { stop, thread: Some(thread), ended })
    }

    fn run(&mut self) {
        let mut due = Instant::now();
        while !self.stop.load(Ordering::Acquire) {
            for watched in &mut self.sources {
                watched.sample(&self.recorder);
            }
            // Late looks are left out, not made up for.
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
    fn sample(&mut self, recorder: &Recorder) {
        if self.rest > 0 {
            self.rest -= 1;
            return;
        }
        match self.source.sample() {
            Ok(sample) => sample.into_iter().for_each(|sample| recorder.send(sample)),
            Err(error) => {
                self.rest = REST;
                if !self.told {
                    self.told = true;
                    let text = format!("{} is not measured: {}", self.source.name(), whole(&error));
                    recorder.send(Warning { code: "not_measured".into(), text });
                }
            }
        }
    }
}

/// An error with its causes, on one line. Some errors repeat their cause: that is said once.
fn whole(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    })
}

impl Drop for SamplerHandle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        if self.ended.recv_timeout(END_WITHIN) != Err(RecvTimeoutError::Timeout) {
            // A source that panicked has ended the looking, which the record shows.
            let _ = thread.join();
        }
    }
}
