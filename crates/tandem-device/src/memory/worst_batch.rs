//! One real step on the longest bucket, before step 1, so that no run stops at it hours later.
//!
//! In: a step that the caller gives, and the devices' budgets. Out: what it took on each, or
//! which budget is too small and the smallest that is not. A real allocation, no estimate.

use super::{MemoryError, MemoryFigures, Side, figures_of};
use crate::backend::{guarded, wait_for};
use crate::placement::{MemoryLimits, OpenDevices};
use burn::tensor::Device;
use serde::Serialize;
use std::fmt;
use tandem_data::batch::BatchShape;
use tandem_units::Bytes;

/// What the worst batch took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorstBatch {
    /// The batch.
    pub shape: BatchShape,
    /// On the data device; none where its allocator does not say.
    pub data: Option<Room>,
    /// On the model device, weights and optimiser state included; none where it does not say.
    pub model: Option<Room>,
}

/// Memory that a step took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Room {
    /// Taken from the device after the step, over what was in use before anything of this run.
    pub needed: Bytes,
    /// The budget.
    pub budget: Option<Bytes>,
}

impl Room {
    fn check(self, side: Side, shape: BatchShape) -> Result<(), MemoryError> {
        match self.budget {
            Some(budget) if self.needed > budget => {
                Err(MemoryError::WorstBatch { side, shape, needed: self.needed, budget })
            }
            _ => Ok(()),
        }
    }
}

/// Runs `step`, which must upload, transfer and train on a batch of this shape, and compares what
/// it took with the budgets. `before` is what the devices held before the model was made: its
/// weights count.
///
/// Where data and model share a device, what the step took counts against both budgets together.
pub fn check_worst_batch(
    shape: BatchShape,
    devices: &OpenDevices,
    limits: Option<MemoryLimits>,
    before: &HeldBefore,
    step: impl FnOnce(),
) -> Result<WorstBatch, MemoryError> {
    const DOING: &str = "training on the largest batch";
    guarded(DOING, step)
        .and_then(|()| wait_for(&devices.data, DOING))
        .and_then(|()| wait_for(&devices.model, DOING))
        .map_err(|source| MemoryError::WorstBatchFailed { shape, source })?;
    let apart = devices.are_apart();
    let model_budget = limits.map(|l| if apart { l.model } else { l.model + l.data });
    let model = room(&devices.model, before.model, model_budget);
    let data_budget = limits.map(|limits| limits.data);
    let data = apart.then(|| room(&devices.data, before.data, data_budget)).flatten();
    for (side, room) in [(Side::Data, data), (Side::Model, model)] {
        room.map_or(Ok(()), |room| room.check(side, shape))?;
    }
    Ok(WorstBatch { shape, data, model })
}

/// What both devices held before anything of the run was on them.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldBefore {
    data: Option<MemoryFigures>,
    model: Option<MemoryFigures>,
}

impl HeldBefore {
    /// Looks now, and lets the process's peak begin anew where the processor is the device.
    pub fn look(devices: &OpenDevices) -> HeldBefore {
        forget_peak();
        HeldBefore { data: figures_of(&devices.data), model: figures_of(&devices.model) }
    }
}

/// Linux keeps the peak of a process until it is told to forget it; elsewhere the peak of the
/// whole life counts, which asks for too much rather than too little.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn room(device: &Device, before: Option<MemoryFigures>, budget: Option<Bytes>) -> Option<Room> {
    let (before, after) = (before?, figures_of(device)?);
    // Pages once taken are kept, so that what is reserved afterwards is the peak.
    let needed = Bytes(after.reserved.0.saturating_sub(before.in_use.0));
    Some(Room { needed, budget })
}

impl fmt::Display for WorstBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BatchShape { rows, frames, symbols } = self.shape;
        write!(f, "largest batch ({rows} x {frames} frames, {symbols} symbols): ")?;
        let sides = [("data", self.data), ("model", self.model)];
        let known = sides.into_iter().filter_map(|(name, room)| Some((name, room?)));
        let texts: Vec<String> = known
            .map(|(name, room)| match room.budget {
                Some(budget) => format!("{} of {budget} on the {name} device", room.needed),
                None => format!("{} on the {name} device", room.needed),
            })
            .collect();
        match texts.as_slice() {
            [] => f.write_str("fits; the devices do not say how much it takes"),
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

    /// Allocates and touches 256 MiB: other tests of the process come and go with less.
    fn step() {
        let large = Tensor::<1>::ones([64 << 20], &Device::flex()) * 2.0;
        assert_eq!(large.max().into_scalar::<f32>(), 2.0);
    }

    fn check(mib: u64) -> Result<WorstBatch, MemoryError> {
        let _alone = alone();
        let limits = MemoryLimits { data: Bytes::mib(1), model: Bytes::mib(mib) };
        let before = HeldBefore::look(&cpu());
        check_worst_batch(SHAPE, &cpu(), Some(limits), &before, step)
    }

    #[test]
    fn a_batch_that_fits_says_how_much_it_takes() {
        let worst = check(1 << 20).unwrap();
        assert!(worst.model.unwrap().needed >= Bytes::mib(128), "{worst:?}");
        let text = worst.to_string();
        assert!(text.starts_with("largest batch (16 x 800 frames, 200 symbols): "), "{text}");
    }

    #[test]
    fn a_budget_smaller_than_one_batch_is_refused_with_the_smallest_that_works() {
        let error = check(15).unwrap_err();
        let MemoryError::WorstBatch { needed, budget, .. } = error else { panic!("{error:?}") };
        assert!(needed >= Bytes::mib(128) && budget == Bytes::mib(16), "{error}");
        let hint = error.hint().unwrap();
        let smallest = format!("--model-gpu-memory {} or more", needed.0.div_ceil(1 << 20));
        assert!(hint.contains(&smallest), "{hint}");
    }

    #[test]
    fn a_device_that_breaks_down_is_an_error_with_its_words() {
        let _alone = alone();
        let before = HeldBefore::look(&cpu());
        let outcome = check_worst_batch(SHAPE, &cpu(), None, &before, || panic!("out of memory"));
        let error = outcome.unwrap_err();
        assert!(matches!(&error, MemoryError::WorstBatchFailed { source, .. }
            if source.to_string().ends_with("out of memory")));
        assert!(error.hint().unwrap().contains("--batch-size"));
    }
}
