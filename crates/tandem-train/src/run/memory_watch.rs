//! Looks every so often whether a device holds more than at the start of a run, and says whose
//! it is.
//!
//! In: the accounts of [`MemoryAccounting`], and what allocators say of themselves; for the processor that
//! is the process's resident memory. Out: a warning in the record for every further limit that is
//! passed, and [`MemoryReport`]. Runs on a thread of its own: an allocator may take its time to
//! answer. The baseline is taken when the run has settled: every shape met, the slots filled.

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

/// How often devices are asked: every answer takes a turn of the device's own thread.
pub const EVERY: Duration = Duration::from_secs(10);
/// Steps of a process before its memory is taken as usual.
const SETTLED_AFTER: u64 = 10;
/// The same where some shape never comes.
const SETTLED_AT_LATEST: u64 = 1000;

/// Asks a side's allocator; none where nobody answers, and the account alone counts.
pub type MemoryQuery = Box<dyn Fn() -> Option<MemoryFigures> + Send>;

/// Watches until it is finished or dropped.
pub struct MemoryWatch {
    handle: SamplerHandle,
    settled: Arc<AtomicBool>,
    sides: [Arc<Seen>; 2],
    accounting: MemoryAccounting,
}

/// What was seen of a side.
#[derive(Default)]
struct Seen {
    /// Warnings.
    grown: AtomicU64,
    /// The most that its allocator had in use when asked.
    most: AtomicU64,
}

/// What a run held. Prints as a line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// Data, then model.
    pub sides: [SideReport; 2],
    /// Whether a baseline was taken; without one nothing was compared.
    pub settled: bool,
}

/// One side of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideReport {
    /// Which one.
    pub side: Side,
    /// The most that the run itself accounted for at once.
    pub accounted: Bytes,
    /// The most that was in use when the allocator was asked; none where it never answered.
    pub in_use: Option<Bytes>,
    /// How often it had grown past a limit.
    pub grown: u64,
}

/// How both sides of these devices are asked. One device is asked once: the data side is then
/// what its account says.
pub fn queries(devices: &OpenDevices) -> [MemoryQuery; 2] {
    let (data, model) = (devices.data.clone(), devices.model.clone());
    let apart = devices.are_apart();
    [
        Box::new(move || if apart { figures_of(&data) } else { None }),
        Box::new(move || figures_of(&model)),
    ]
}

impl MemoryWatch {
    /// Starts looking; compares nothing until [`MemoryWatch::settle`].
    pub fn start(
        accounting: &MemoryAccounting,
        queries: [MemoryQuery; 2],
        recorder: &Recorder,
        every: Duration,
    ) -> Result<MemoryWatch, TrainError> {
        let settled = Arc::new(AtomicBool::new(false));
        let sides = [Arc::new(Seen::default()), Arc::new(Seen::default())];
        let names = [Side::Data, Side::Model];
        let watched = names.into_iter().zip(queries).zip(&sides).map(|((side, ask), seen)| {
            Box::new(Watched {
                ledger: accounting.of(side).clone(),
                ask,
                watch: None,
                settled: settled.clone(),
                seen: seen.clone(),
                recorder: recorder.clone(),
            }) as Box<dyn Source>
        });
        let handle = Sampler::start(watched.collect(), recorder.clone(), every)?;
        Ok(MemoryWatch { handle, settled, sides, accounting: accounting.clone() })
    }

    /// From the next look on, what is held is compared with what is held then. Called after each
    /// step with the shapes met and the shapes there are; costs a comparison.
    pub fn after_step(&self, steps: u64, met: usize, shapes: usize) {
        let usual = steps >= SETTLED_AFTER && met >= shapes;
        if usual || steps >= SETTLED_AT_LATEST {
            self.settle();
        }
    }

    /// The same at once.
    pub fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }

    /// Ends it.
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
    ledger: DeviceMemory,
    ask: MemoryQuery,
    watch: Option<GrowthWatch>,
    settled: Arc<AtomicBool>,
    seen: Arc<Seen>,
    recorder: Recorder,
}

impl Source for Watched {
    fn name(&self) -> &str {
        self.ledger.side().name()
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        let figures = (self.ask)();
        if let Some(figures) = figures {
            self.seen.most.fetch_max(figures.in_use.0, Ordering::Relaxed);
        }
        if !self.settled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(watch) = &mut self.watch else {
            self.watch = Some(GrowthWatch::start(&self.ledger, figures));
            return Ok(None);
        };
        if let Some(growth) = watch.check(&self.ledger, figures) {
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
            (false, _) => f.write_str("; too few steps to tell whether it grows"),
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

    /// A watch whose model side reads from a script: one figure a look, the last for ever.
    struct Staged {
        watch: MemoryWatch,
        looks: Arc<AtomicU64>,
        in_use: Arc<Mutex<u64>>,
    }

    fn staged(accounting: &MemoryAccounting, recorder: &Recorder) -> Staged {
        let (looks, in_use) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(1000)));
        let (counted, told) = (looks.clone(), in_use.clone());
        let model: MemoryQuery = Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let size = Bytes::mib(*told.lock().unwrap());
            Some(MemoryFigures { in_use: size, reserved: size })
        });
        let queries: [MemoryQuery; 2] = [Box::new(|| None), model];
        let every = Duration::from_millis(1);
        let watch = MemoryWatch::start(accounting, queries, recorder, every).unwrap();
        Staged { watch, looks, in_use }
    }

    impl Staged {
        /// Until both sides were looked at again, from beginning to end.
        fn let_look(&self) {
            let from = self.looks.load(Ordering::SeqCst);
            let late = Instant::now() + Duration::from_secs(60);
            while self.looks.load(Ordering::SeqCst) < from + 2 {
                assert!(Instant::now() < late, "nobody looks");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn growth_over_the_limit_is_a_warning_that_names_its_owner() {
        let header = RunHeader::now("memory_watch", "0", serde_json::Value::Null);
        let (recording, _file) = Recording::in_memory(header).unwrap();
        let accounting = MemoryAccounting::new(None, &devices());
        let staged = staged(&accounting, &recording.recorder());
        let _usual = accounting.batch(Bytes::mib(20)).unwrap();
        *staged.in_use.lock().unwrap() = 3000;
        staged.let_look();
        // What was before the run settled is no growth.
        *staged.in_use.lock().unwrap() = 1000;
        staged.watch.settle();
        staged.let_look();
        *staged.in_use.lock().unwrap() = 1499;
        let _under = accounting.batch(Bytes::mib(199)).unwrap();
        staged.let_look();
        assert_eq!(staged.watch.sides.each_ref().map(|s| s.grown.load(Ordering::SeqCst)), [0, 0]);
        *staged.in_use.lock().unwrap() = 1501;
        let _over = accounting.batch(Bytes::mib(2)).unwrap();
        staged.let_look();
        let report = staged.watch.finish();
        assert_eq!(report.sides.each_ref().map(|side| side.grown), [1, 1], "each said once");
        assert_eq!(report.sides[1].in_use, Some(Bytes::mib(3000)));
        let text = "data side at most 221.0 MiB, model side at most 0 B accounted for and 2.9 GiB \
                    in use; grew past a limit 2 times";
        assert_eq!(report.to_string(), text);
        let warnings = recording.finish().summary.warnings;
        let mut said: Vec<_> = warnings.iter().map(|w| (&*w.code, w.text.as_str())).collect();
        said.sort();
        let data = "221.0 MiB are in use on the data device, 201.0 MiB more than at the start: \
                    batches grew by 201.0 MiB";
        let model = "1.5 GiB are in use on the model device, 501.0 MiB more than at the start: \
                     not the pipeline's batches, so tensors that the model keeps alive";
        assert_eq!(said, [("memory_growth", data), ("memory_growth", model)]);
    }

    #[test]
    fn a_run_settles_when_every_shape_was_met() {
        let accounting = MemoryAccounting::new(None, &devices());
        let staged = staged(&accounting, &Recorder::off());
        let settled = || staged.watch.settled.load(Ordering::SeqCst);
        for (steps, met) in [(9, 3), (10, 2), (999, 2)] {
            staged.watch.after_step(steps, met, 3);
            assert!(!settled(), "{steps} steps, {met} shapes");
        }
        staged.watch.after_step(10, 3, 3);
        assert!(settled());
    }

    #[test]
    fn the_processor_is_asked_once_for_both_sides() {
        let [data, model] = queries(&devices());
        assert_eq!(data(), None);
        assert!(model().expect("Linux tells").in_use > Bytes::mib(1));
    }
}
