//! Checks regularly whether device memory grows during a run, and which owner grows.
//!
//! In: the memory in use of [`MemoryAccounting`], and the figures of the allocators; for the CPU, the
//! resident memory of the process. Out: a warning in the record for each limit that is exceeded, and
//! [`MemoryReport`]. Runs on a thread of its own, since an allocator may answer slowly. The baseline
//! is taken when the run has settled: every shape was used and the slots are full.

use crate::TrainError;
use crate::run::memory_accounting::MemoryAccounting;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tandem_device::memory::{DeviceMemory, Growth, GrowthWatch, MemoryFigures, Side, figures_of};
use tandem_device::placement::OpenDevices;
use tandem_device::sampler::{SampleError, Sampler, SamplerHandle, Source};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{DeviceSample, Warning};
use tandem_units::Bytes;

/// Sampling interval. Each query interrupts the thread of the device.
pub const EVERY: Duration = Duration::from_secs(10);
/// Steps before the baseline is taken, at least.
const SETTLED_AFTER: u64 = 10;
/// Steps after which the baseline is taken even if a shape was never used.
const SETTLED_AT_LATEST: u64 = 1000;

/// Queries the allocator of a side; none where it gives no figures, and only [`MemoryAccounting`] counts.
pub type MemoryQuery = Box<dyn Fn() -> Option<MemoryFigures> + Send>;

/// Samples memory until it is finished or dropped.
pub struct MemoryWatch {
    handle: SamplerHandle,
    settled: Arc<AtomicBool>,
    sides: [Arc<Seen>; 2],
    accounting: MemoryAccounting,
}

/// What was observed on a side.
#[derive(Default)]
struct Seen {
    /// Number of warnings.
    grown: AtomicU64,
    /// The largest in-use figure of its allocator, in bytes.
    most: AtomicU64,
}

/// Memory use of a run. Prints as a line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// Data, then model.
    pub sides: [SideReport; 2],
    /// Whether a baseline was taken. Without one, growth is unknown.
    pub settled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideReport {
    pub side: Side,
    /// Peak of the memory that the run itself accounted for.
    pub accounted: Bytes,
    /// Largest sample of the allocator's in-use figure; none where it gave none.
    pub in_use: Option<Bytes>,
    /// How often a growth limit was exceeded.
    pub grown: u64,
}

/// Queries for both sides. A single device is queried once, for the model side; the data side then
/// has only the accounting.
pub fn queries(devices: &OpenDevices) -> [MemoryQuery; 2] {
    let (data, model) = (devices.data.clone(), devices.model.clone());
    let apart = devices.are_apart();
    [
        Box::new(move || if apart { figures_of(&data) } else { None }),
        Box::new(move || figures_of(&model)),
    ]
}

impl MemoryWatch {
    /// Starts sampling. Compares nothing until [`MemoryWatch::settle`].
    pub fn start(
        accounting: &MemoryAccounting,
        queries: [MemoryQuery; 2],
        recorder: &Recorder,
        every: Duration,
    ) -> Result<MemoryWatch, TrainError> {
        let settled = Arc::new(AtomicBool::new(false));
        let sides = [Arc::new(Seen::default()), Arc::new(Seen::default())];
        let names = [Side::Data, Side::Model];
        let watched = names.into_iter().zip(queries).zip(&sides).map(|((side, query), seen)| {
            Box::new(Watched {
                accounted: accounting.of(side).clone(),
                query,
                watch: None,
                settled: settled.clone(),
                seen: seen.clone(),
                recorder: recorder.clone(),
            }) as Box<dyn Source>
        });
        let handle = Sampler::start(watched.collect(), recorder.clone(), every)?;
        Ok(MemoryWatch { handle, settled, sides, accounting: accounting.clone() })
    }

    /// Settles after enough steps. Called after each step with the number of shapes seen so far and of
    /// all shapes; costs a comparison.
    pub fn after_step(&self, steps: u64, seen: usize, shapes: usize) {
        let settled = steps >= SETTLED_AFTER && seen >= shapes;
        if settled || steps >= SETTLED_AT_LATEST {
            self.settle();
        }
    }

    /// Takes the baseline at the next sample.
    pub fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }

    pub fn finish(self) -> MemoryReport {
        let MemoryWatch { handle, settled, sides, accounting } = self;
        drop(handle);
        let report = |side: Side, seen: &Seen| {
            let most = seen.most.load(Ordering::Relaxed);
            SideReport {
                side,
                accounted: accounting.of(side).peak(),
                in_use: (most > 0).then_some(Bytes(most)),
                grown: seen.grown.load(Ordering::Relaxed),
            }
        };
        let [data, model] = &sides;
        let sides = [report(Side::Data, data), report(Side::Model, model)];
        MemoryReport { sides, settled: settled.load(Ordering::Relaxed) }
    }
}

struct Watched {
    accounted: DeviceMemory,
    query: MemoryQuery,
    watch: Option<GrowthWatch>,
    settled: Arc<AtomicBool>,
    seen: Arc<Seen>,
    recorder: Recorder,
}

impl Source for Watched {
    fn name(&self) -> &str {
        self.accounted.side().name()
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        let figures = (self.query)();
        if let Some(figures) = figures {
            self.seen.most.fetch_max(figures.in_use.0, Ordering::Relaxed);
        }
        if !self.settled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(watch) = &mut self.watch else {
            self.watch = Some(GrowthWatch::start(&self.accounted, figures));
            return Ok(None);
        };
        if let Some(growth) = watch.check(&self.accounted, figures) {
            self.seen.grown.fetch_add(1, Ordering::Relaxed);
            self.recorder.send(Warning { code: Growth::CODE.into(), text: growth.to_string() });
        }
        Ok(None)
    }
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, side) in self.sides.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{} side at most {}", side.side.name(), side.accounted)?;
            if let Some(in_use) = side.in_use {
                write!(f, " accounted for and {in_use} in use")?;
            }
        }
        let grown: u64 = self.sides.iter().map(|side| side.grown).sum();
        match (self.settled, grown) {
            (false, _) => f.write_str("; too few steps to measure growth"),
            (true, 0) => f.write_str("; no growth over the limits"),
            (true, 1) => f.write_str("; grew past a limit once"),
            (true, times) => write!(f, "; grew past a limit {times} times"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::time::Instant;
    use tandem_model::Device;
    use tandem_telemetry::event::RunHeader;
    use tandem_telemetry::record::Recording;

    fn devices() -> OpenDevices {
        OpenDevices { data: Device::flex(), model: Device::flex() }
    }

    /// A watch whose model side reports the value of `in_use`, in MiB.
    struct TestWatch {
        watch: MemoryWatch,
        samples: Arc<AtomicU64>,
        in_use: Arc<Mutex<u64>>,
    }

    fn test_watch(accounting: &MemoryAccounting, recorder: &Recorder) -> TestWatch {
        let (samples, in_use) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(1000)));
        let (counted, reported) = (samples.clone(), in_use.clone());
        let model: MemoryQuery = Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let size = Bytes::mib(*reported.lock().unwrap());
            Some(MemoryFigures { in_use: size, reserved: size })
        });
        let queries: [MemoryQuery; 2] = [Box::new(|| None), model];
        let every = Duration::from_millis(1);
        let watch = MemoryWatch::start(accounting, queries, recorder, every).unwrap();
        TestWatch { watch, samples, in_use }
    }

    impl TestWatch {
        /// Waits until both sides were sampled again, from beginning to end.
        fn wait_for_samples(&self) {
            let from = self.samples.load(Ordering::SeqCst);
            let late = Instant::now() + Duration::from_secs(60);
            while self.samples.load(Ordering::SeqCst) < from + 2 {
                assert!(Instant::now() < late, "no sample in 60 s");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn growth_over_the_limit_is_a_warning_that_names_the_owner() {
        let header = RunHeader::now("memory_watch", "0", serde_json::Value::Null);
        let (recording, _file) = Recording::in_memory(header).unwrap();
        let accounting = MemoryAccounting::new(None, &devices());
        let test = test_watch(&accounting, &recording.recorder());
        let _baseline = accounting.batch(Bytes::mib(20)).unwrap();
        *test.in_use.lock().unwrap() = 3000;
        test.wait_for_samples();
        // Memory in use before the baseline does not count as growth.
        *test.in_use.lock().unwrap() = 1000;
        test.watch.settle();
        test.wait_for_samples();
        *test.in_use.lock().unwrap() = 1499;
        let _under = accounting.batch(Bytes::mib(199)).unwrap();
        test.wait_for_samples();
        assert_eq!(test.watch.sides.each_ref().map(|s| s.grown.load(Ordering::SeqCst)), [0, 0]);
        *test.in_use.lock().unwrap() = 1501;
        let _over = accounting.batch(Bytes::mib(2)).unwrap();
        test.wait_for_samples();
        let report = test.watch.finish();
        assert_eq!(report.sides.each_ref().map(|side| side.grown), [1, 1], "one warning per side");
        assert_eq!(report.sides[1].in_use, Some(Bytes::mib(3000)));
        let text = "data side at most 221.0 MiB, model side at most 0 B accounted for and 2.9 GiB \
                    in use; grew past a limit 2 times";
        assert_eq!(report.to_string(), text);
        let warnings = recording.finish().summary.warnings;
        let mut found: Vec<_> = warnings.iter().map(|w| (&*w.code, w.text.as_str())).collect();
        found.sort();
        let data = "221.0 MiB are in use on the data device, 201.0 MiB more than at the start: \
                    batches grew by 201.0 MiB";
        let model = "1.5 GiB are in use on the model device, 501.0 MiB more than at the start: \
                     not the pipeline's batches, so tensors that the model keeps alive";
        assert_eq!(found, [("memory_growth", model), ("memory_growth", data)]);
    }

    #[test]
    fn a_run_settles_when_every_shape_was_used() {
        let accounting = MemoryAccounting::new(None, &devices());
        let test = test_watch(&accounting, &Recorder::off());
        let settled = || test.watch.settled.load(Ordering::SeqCst);
        for (steps, seen) in [(9, 3), (10, 2), (999, 2)] {
            test.watch.after_step(steps, seen, 3);
            assert!(!settled(), "{steps} steps, {seen} shapes");
        }
        test.watch.after_step(10, 3, 3);
        assert!(settled());
    }

    #[test]
    fn a_single_device_is_queried_once() {
        let [data, model] = queries(&devices());
        assert_eq!(data(), None);
        assert!(model().expect("Linux reports resident memory").in_use > Bytes::mib(1));
    }
}
