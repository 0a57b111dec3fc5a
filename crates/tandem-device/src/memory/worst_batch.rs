//! Runs one real step on the longest bucket before step 1, so that no run fails there hours later.
//!
//! In: a step given by the caller, and the devices' budgets. Out: what it needs on each device, or
//! which budget is too small and the smallest that is enough. It measures a real allocation, not an
//! estimate.

use super::{MemoryError, MemoryFigures, Side, figures_of};
use crate::backend::{guarded, wait_for};
use crate::placement::{MemoryLimits, OpenDevices};
use burn::tensor::Device;
use serde::Serialize;
use std::fmt;
use tandem_data::batch::BatchShape;
use tandem_units::Bytes;

/// What the largest batch needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorstBatch {
    pub shape: BatchShape,
    /// On the data device; `None` if its allocator reports nothing, or it is the model device.
    pub data: Option<MemoryNeed>,
    /// On the model device, with weights and optimizer state; `None` if its allocator reports
    /// nothing.
    pub model: Option<MemoryNeed>,
}

/// Memory that a step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryNeed {
    /// Reserved after the step, minus the baseline of [`MemoryBaseline`].
    pub needed: Bytes,
    pub budget: Option<Bytes>,
}

impl MemoryNeed {
    fn check(self, side: Side, shape: BatchShape) -> Result<(), MemoryError> {
        match self.budget {
            Some(budget) if self.needed > budget => {
                Err(MemoryError::WorstBatch { side, shape, needed: self.needed, budget })
            }
            _ => Ok(()),
        }
    }
}

/// Runs `step`, which must upload, transfer and train on a batch of this shape, and compares the
/// memory it needs with the budgets. `baseline` is measured before the model is created, so that
/// its weights count.
///
/// If data and model share a device, the need counts against both budgets together.
pub fn check_worst_batch(
    shape: BatchShape,
    devices: &OpenDevices,
    limits: Option<MemoryLimits>,
    baseline: &MemoryBaseline,
    step: impl FnOnce(),
) -> Result<WorstBatch, MemoryError> {
    const DOING: &str = "training on the largest batch";
    guarded(DOING, step)
        .and_then(|()| wait_for(&devices.data, DOING))
        .and_then(|()| wait_for(&devices.model, DOING))
        .map_err(|source| MemoryError::WorstBatchFailed { shape, source })?;
    let apart = devices.are_apart();
    let model_budget = limits.map(|l| if apart { l.model } else { l.model + l.data });
    let model = need(&devices.model, baseline.model, model_budget);
    let data_budget = limits.map(|limits| limits.data);
    let data = apart.then(|| need(&devices.data, baseline.data, data_budget)).flatten();
    for (side, need) in [(Side::Data, data), (Side::Model, model)] {
        need.map_or(Ok(()), |need| need.check(side, shape))?;
    }
    Ok(WorstBatch { shape, data, model })
}

/// Memory in use on both devices before the run allocates anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryBaseline {
    data: Option<MemoryFigures>,
    model: Option<MemoryFigures>,
}

impl MemoryBaseline {
    /// Measures it now. If the CPU is the device, resets the recorded peak of the process.
    pub fn measure(devices: &OpenDevices) -> MemoryBaseline {
        reset_peak();
        MemoryBaseline { data: figures_of(&devices.data), model: figures_of(&devices.model) }
    }
}

/// Linux records the peak of a process until it is reset. Elsewhere the peak since the start of
/// the process counts, which is too much rather than too little.
fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn need(
    device: &Device,
    before: Option<MemoryFigures>,
    budget: Option<Bytes>,
) -> Option<MemoryNeed> {
    let (before, after) = (before?, figures_of(device)?);
    // Allocators keep their pages, so what is reserved afterwards is the peak.
    let needed = Bytes(after.reserved.0.saturating_sub(before.in_use.0));
    Some(MemoryNeed { needed, budget })
}

impl fmt::Display for WorstBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BatchShape { rows, frames, symbols } = self.shape;
        write!(f, "largest batch ({rows} x {frames} frames, {symbols} symbols): ")?;
        let sides = [("data", self.data), ("model", self.model)];
        let known = sides.into_iter().filter_map(|(name, need)| Some((name, need?)));
        let texts: Vec<String> = known
            .map(|(name, need)| match need.budget {
                Some(budget) => format!("{} of {budget} on the {name} device", need.needed),
                None => format!("{} on the {name} device", need.needed),
            })
            .collect();
        match texts.as_slice() {
            [] => f.write_str("fits; the devices do not report how much it needs"),
            texts => f.write_str(&texts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Tensor;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use tandem_units::Hint;

    const SHAPE: BatchShape = BatchShape { rows: 16, frames: 800, symbols: 200 };

    /// The peak belongs to the process: one test at a time.
    static PEAK: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        PEAK.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cpu() -> OpenDevices {
        OpenDevices { data: Device::flex(), model: Device::flex() }
    }

    /// Allocates and touches 256 MiB, more than other tests of the process.
    fn step() {
        let large = Tensor::<1>::ones([64 << 20], &Device::flex()) * 2.0;
        assert_eq!(large.max().into_scalar::<f32>(), 2.0);
    }

    fn check(mib: u64) -> Result<WorstBatch, MemoryError> {
        let _alone = alone();
        let limits = MemoryLimits { data: Bytes::mib(1), model: Bytes::mib(mib) };
        let before = MemoryBaseline::measure(&cpu());
        check_worst_batch(SHAPE, &cpu(), Some(limits), &before, step)
    }

    #[test]
    fn a_batch_that_fits_reports_how_much_it_needs() {
        let worst = check(1 << 20).unwrap();
        assert!(worst.model.unwrap().needed >= Bytes::mib(128), "{worst:?}");
        let text = worst.to_string();
        assert!(text.starts_with("largest batch (16 x 800 frames, 200 symbols): "), "{text}");
    }

    #[test]
    fn a_budget_smaller_than_one_batch_is_an_error_with_the_smallest_that_works() {
        let error = check(15).unwrap_err();
        let MemoryError::WorstBatch { needed, budget, .. } = error else { panic!("{error:?}") };
        assert!(needed >= Bytes::mib(128) && budget == Bytes::mib(16), "{error}");
        let hint = error.hint().unwrap();
        let smallest = format!("--model-gpu-memory {} or more", needed.0.div_ceil(1 << 20));
        assert!(hint.contains(&smallest), "{hint}");
    }

    #[test]
    fn a_device_failure_is_an_error_with_its_message() {
        let _alone = alone();
        let before = MemoryBaseline::measure(&cpu());
        let outcome = check_worst_batch(SHAPE, &cpu(), None, &before, || panic!("out of memory"));
        let error = outcome.unwrap_err();
        assert!(matches!(&error, MemoryError::WorstBatchFailed { source, .. }
            if source.to_string().ends_with("out of memory")));
        assert!(error.hint().unwrap().contains("--batch-size"));
    }
}
