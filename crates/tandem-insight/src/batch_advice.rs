//! Which batch size to use, and how much memory it takes, from short runs of several sizes.
//!
//! In: the run as it is, and runs of other batch sizes. Out: [`BatchAdvice`]: a point for each size, the size with
//! nearly the best throughput, and the memory of a batch of any size. Only sizes that ran are recommended; memory is
//! extrapolated along a straight line, and marked as such.

use crate::measured::{DeviceFigures, Measured};
use crate::measured_run::PROCESS;
use crate::profile::{Sharing, Subject};
use serde::{Deserialize, Serialize};
use tandem_telemetry::event::DeviceRole;
use tandem_units::{Bytes, Seconds};

/// A size as fast as this share of the best one is fast enough, as in `tandem scaling`.
const ENOUGH: f64 = 0.95;
/// The least gain in utterances per second that is worth a change: short runs are noisy.
const LEAST: f64 = 0.05;
/// Share of a device's memory that a run may use.
const USABLE: f64 = 0.9;
/// Budgets are rounded up to a multiple of this.
const STEP: Bytes = Bytes::mib(256);
/// A larger batch than this many times the largest measured one is not extrapolated.
const FARTHEST: f64 = 4.0;

/// One measured batch size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchPoint {
    pub batch_size: usize,
    /// Steps that were measured.
    pub steps: u64,
    /// Mean seconds of a step.
    pub step: f64,
    pub samples_per_second: f64,
    /// The most memory in use on the model's device, or by the process.
    pub memory: Option<Bytes>,
}

/// Batch size and memory of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchAdvice {
    /// By size, smallest first; empty where no other size was measured.
    pub points: Vec<BatchPoint>,
    /// The size to use, with the gain in utterances per second; none where this one is as good.
    pub better: Option<BetterBatch>,
    pub memory: Option<MemoryAdvice>,
    /// Why sizes were not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BetterBatch {
    pub flag: String,
    /// More utterances per second than now: 0.1 is a tenth.
    pub gain: f64,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryAdvice {
    /// The device, or `process`.
    pub device: String,
    pub peak: Bytes,
    pub total: Option<Bytes>,
    /// What each further utterance of a batch takes, measured; none where sizes did not differ.
    pub per_utterance: Option<Bytes>,
    /// The largest batch that is known to fit, extrapolated at most to four times the largest measured one.
    pub largest: Option<usize>,
    /// What to type, where there is a budget to set.
    pub flag: Option<String>,
    pub sentence: String,
}

impl BatchAdvice {
    /// `tried` are runs of other sizes with the same settings.
    pub fn of(subject: &Subject, as_is: &Measured, tried: &[(usize, Measured)]) -> BatchAdvice {
        let mut points = vec![point(subject.batch_size, as_is)];
        points.extend(tried.iter().map(|(size, run)| point(*size, run)));
        points.sort_by_key(|point| point.batch_size);
        let memory = memory(subject, as_is, &points);
        let better = better(subject, &points);
        if points.len() < 2 {
            points.clear();
        }
        BatchAdvice { points, better, memory, notes: Vec::new() }
    }

    /// Whether a run of this size can be tried without filling the memory: `None` where it can, otherwise the reason.
    pub fn too_large(subject: &Subject, as_is: &Measured, size: usize) -> Option<String> {
        let instead = format!("`tandem scaling --sweep {},{size}` measures it", subject.batch_size);
        let Some((peak, total)) = watched(as_is)
            .and_then(|device| Some((device.memory?.max, memory_total(as_is, device)?.0 as f64)))
        else {
            return Some(format!(
                "batch {size} was not tried: free memory is not known; {instead}"
            ));
        };
        let needed = peak * size as f64 / subject.batch_size.max(1) as f64;
        (needed > USABLE * total).then(|| {
            format!(
                "batch {size} was not tried: it may need {} of {}; {instead}",
                Bytes(needed as u64),
                Bytes(total as u64)
            )
        })
    }
}

fn point(batch_size: usize, run: &Measured) -> BatchPoint {
    let items: f64 = run.batches.iter().map(|batch| f64::from(batch.items)).sum();
    let time = run.usual_step() * run.batches.len() as f64;
    let peak = watched(run).and_then(|device| device.memory);
    BatchPoint {
        batch_size,
        steps: run.step.count,
        step: run.usual_step() * run.batches_per_step(),
        samples_per_second: if time > 0.0 { items / time } else { 0.0 },
        memory: peak.map(|figures| Bytes(figures.max as u64)),
    }
}

/// The device whose memory limits the batch: that of the model, or the process on the CPU.
fn watched(run: &Measured) -> Option<&DeviceFigures> {
    let model = run.devices.iter().find(|device| device.role == DeviceRole::Model);
    let process = || run.devices.iter().find(|device| device.device == PROCESS);
    model.filter(|device| device.memory.is_some()).or_else(process)
}

/// Of a process: the memory of the machine.
fn memory_total(run: &Measured, device: &DeviceFigures) -> Option<Bytes> {
    let host = run.devices.iter().filter(|other| other.role == device.role);
    device.memory_total.or_else(|| host.filter_map(|other| other.memory_total).max())
}

fn better(subject: &Subject, points: &[BatchPoint]) -> Option<BetterBatch> {
    let here = points.iter().find(|point| point.batch_size == subject.batch_size)?;
    let best = points.iter().map(|point| point.samples_per_second).fold(0.0, f64::max);
    let found = points.iter().find(|point| point.samples_per_second >= ENOUGH * best)?;
    let gain = found.samples_per_second / here.samples_per_second.max(1e-12) - 1.0;
    let larger = found.batch_size > here.batch_size;
    if gain < LEAST || found.batch_size == here.batch_size {
        return None;
    }
    let memory = match (found.memory, larger) {
        (Some(memory), true) => format!("; it used {memory}"),
        _ => String::new(),
    };
    let why = format!(
        "measured {:.1} samples/s with batch {} ({} steps) and {:.1} with {}{memory}; the optimizer step \
         changes with it",
        found.samples_per_second,
        found.batch_size,
        found.steps,
        here.samples_per_second,
        here.batch_size,
    );
    Some(BetterBatch { flag: format!("--batch-size {}", found.batch_size), gain, why })
}

fn memory(subject: &Subject, as_is: &Measured, points: &[BatchPoint]) -> Option<MemoryAdvice> {
    let device = watched(as_is)?;
    let peak = Bytes(device.memory?.max as u64);
    let total = memory_total(as_is, device);
    let per_utterance = slope(subject.batch_size, points);
    let widest = points.last().map_or(subject.batch_size, |point| point.batch_size);
    let fits = total.zip(per_utterance).map(|(total, each)| {
        let room = (USABLE * total.0 as f64 - peak.0 as f64).max(0.0) / each.0.max(1) as f64;
        subject.batch_size + room as usize
    });
    let farthest = (FARTHEST * widest as f64) as usize;
    let largest = fits.map(|fits| fits.min(farthest));
    // The process has no budget: other programs share the machine's memory.
    let flag = (subject.sharing != Sharing::Cpu).then(|| {
        let wanted = (1.1 * peak.0 as f64) as u64;
        let budget = wanted.div_ceil(STEP.0) * STEP.0;
        format!("--model-gpu-memory {}", budget >> 20)
    });
    let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
    let mut said =
        format!("{} used {peak}{of} at most with batch {}", device.device, subject.batch_size);
    if let Some(each) = per_utterance {
        said += &format!("; each further utterance takes {each}");
    }
    if let Some(largest) = largest {
        said += &match fits > Some(largest) {
            true => {
                format!("; batches of {largest} fit with room (larger ones are not extrapolated)")
            }
            false => format!("; batches up to about {largest} fit (extrapolated)"),
        };
    }
    if let Some(flag) = &flag {
        said += &format!("; `{flag}` is enough for this batch size");
    }
    let device = device.device.clone();
    Some(MemoryAdvice { device, peak, total, per_utterance, largest, flag, sentence: said })
}

/// Growth from this size to the largest one. A program keeps the memory that it has taken, so a smaller size that ran
/// later shows nothing.
fn slope(here: usize, points: &[BatchPoint]) -> Option<Bytes> {
    let from_here = || points.iter().filter(|point| point.batch_size >= here);
    let known = || from_here().filter_map(|point| Some((point.batch_size, point.memory?.0)));
    let ((small, low), (large, high)) = (known().next()?, known().next_back()?);
    let grown = high.saturating_sub(low);
    (large > small && grown > 0).then(|| Bytes(grown / (large - small) as u64))
}

impl BatchPoint {
    /// Cells of a table: size, steps, step time, rate, memory.
    pub fn cells(&self) -> [String; 5] {
        [
            self.batch_size.to_string(),
            self.steps.to_string(),
            Seconds(self.step).to_string(),
            format!("{:.1}", self.samples_per_second),
            self.memory.map_or_else(|| "not measured".into(), |memory| memory.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::tests::{equal, measured};
    use crate::profile::tests::subject;
    use tandem_telemetry::Stats;

    /// A run of so many utterances in a batch, with this train time and memory.
    fn run(items: u32, train: f64, mib: u64) -> Measured {
        let mut run = measured(&equal(20, [1.0, 1.0, 1.0, 1.0, train, 0.0]));
        run.batches.iter_mut().for_each(|batch| batch.items = items);
        let device = |name: &str, memory: u64, total: Option<u64>| DeviceFigures {
            device: name.into(),
            role: DeviceRole::Host,
            utilisation: None,
            memory: Stats::from_iter([Bytes::mib(memory).0 as f64]).figures(),
            memory_total: total.map(Bytes::mib),
        };
        run.devices = vec![device("machine", 4000, Some(16_384)), device("process", mib, None)];
        run
    }

    #[test]
    fn a_larger_batch_with_more_throughput_is_advised_with_its_gain() {
        let (here, there) = (run(2, 20.0, 400), run(4, 25.0, 500));
        let found = BatchAdvice::of(&subject(), &here, &[(4, there)]);
        let better = found.better.expect("a better size");
        assert_eq!(better.flag, "--batch-size 4");
        assert!((better.gain - 0.6).abs() < 0.01, "{better:?}");
        let memory = found.memory.expect("memory");
        assert_eq!((memory.peak, memory.per_utterance), (Bytes::mib(400), Some(Bytes::mib(50))));
        assert_eq!(memory.largest, Some(16), "four times the largest measured size");
        assert!(
            memory.flag.is_none()
                && memory.sentence.starts_with("process used 400.0 MiB of 16.0 GiB")
                && memory.sentence.contains("batches of 16 fit with room"),
            "{}",
            memory.sentence
        );
    }

    #[test]
    fn a_batch_that_gains_nothing_is_not_advised() {
        let found = BatchAdvice::of(&subject(), &run(2, 20.0, 400), &[(4, run(4, 40.0, 500))]);
        assert!(found.better.is_none() && found.points.len() == 2);
        let alone = BatchAdvice::of(&subject(), &run(2, 20.0, 400), &[]);
        assert!(alone.better.is_none() && alone.points.is_empty());
        assert!(alone.memory.expect("memory").per_utterance.is_none());
    }

    #[test]
    fn a_smaller_batch_that_is_as_fast_is_advised_only_where_it_is_faster() {
        let faster = BatchAdvice::of(&subject(), &run(2, 20.0, 400), &[(1, run(1, 5.0, 400))]);
        assert_eq!(faster.better.expect("faster").flag, "--batch-size 1");
        let same = BatchAdvice::of(&subject(), &run(2, 20.0, 400), &[(1, run(1, 10.0, 400))]);
        assert!(same.better.is_none());
    }

    #[test]
    fn gpus_get_a_budget_and_sizes_beyond_memory_are_not_tried() {
        let gpu = Subject { sharing: Sharing::OneGpu, ..subject() };
        let mut here = run(2, 20.0, 400);
        here.devices.push(DeviceFigures {
            device: "cuda:0".into(),
            role: DeviceRole::Model,
            utilisation: None,
            memory: Stats::from_iter([Bytes::mib(1000).0 as f64]).figures(),
            memory_total: Some(Bytes::mib(8192)),
        });
        let memory = BatchAdvice::of(&gpu, &here, &[]).memory.expect("memory");
        assert_eq!(memory.flag.as_deref(), Some("--model-gpu-memory 1280"));
        assert_eq!(BatchAdvice::too_large(&gpu, &here, 4), None);
        let refused = BatchAdvice::too_large(&gpu, &here, 20).expect("too large");
        assert!(
            refused.contains("9.8 GiB of 8.0 GiB") && refused.contains("--sweep 2,20"),
            "{refused}"
        );
    }
}
