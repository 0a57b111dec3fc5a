//! Device memory in use by a run, per device and owner.
//!
//! In: sizes of batches, weights and copies of weights. Out: two [`DeviceMemory`]s, which
//! [`crate::run::memory_watch`] reads. A batch is refused where the budget has no room for it. Memory
//! of the model is counted and never refused. Where one device does both kinds of work, batches
//! count for the data side and everything else for the model side.

use tandem_device::memory::{Charge, DeviceMemory, MemoryError, Side};
use tandem_device::placement::{MemoryLimits, OpenDevices};
use tandem_model::Module;
use tandem_units::Bytes;

/// Memory in use on both devices; clones share it.
#[derive(Clone, Debug)]
pub struct MemoryAccounting {
    data: DeviceMemory,
    model: DeviceMemory,
    apart: bool,
}

/// Batches that wait for the model or are being trained on.
const BATCHES: &str = "batches";
/// Weights, optimizer moments and the moving average.
const WEIGHTS: &str = "weights and optimizer";
/// What CUDA graphs of steps keep for themselves.
const GRAPHS: &str = "CUDA graphs";
/// Text encoders of earlier steps, which align.
const ALIGNER_SNAPSHOTS: &str = "aligner snapshots";
/// The copy of the voice for validation and samples.
const VALIDATION: &str = "validation";
const CHECKPOINTS: &str = "checkpoints being written";

impl MemoryAccounting {
    pub fn new(limits: Option<MemoryLimits>, devices: &OpenDevices) -> MemoryAccounting {
        MemoryAccounting {
            data: DeviceMemory::new(Side::Data, limits.map(|limits| limits.data)),
            model: DeviceMemory::new(Side::Model, limits.map(|limits| limits.model)),
            apart: devices.are_apart(),
        }
    }

    pub fn of(&self, side: Side) -> &DeviceMemory {
        match side {
            Side::Data => &self.data,
            Side::Model => &self.model,
        }
    }

    /// Whether both sides have a device of their own.
    pub fn are_apart(&self) -> bool {
        self.apart
    }

    /// Free budget for batches on the model device; none: no limit.
    pub fn room_for_batches(&self) -> Option<Bytes> {
        self.model_device_memory().available()
    }

    /// A batch on the model device.
    pub fn batch(&self, size: Bytes) -> Result<Charge, MemoryError> {
        self.model_device_memory().charge(BATCHES, size)
    }

    /// Weights, optimizer moments and the moving average: four times the parameters.
    pub fn weights<M: Module>(&self, module: &M) -> Charge {
        self.model.count(WEIGHTS, Bytes(4 * size_of(module).0))
    }

    /// What CUDA graphs hold.
    pub fn graphs(&self, size: Bytes) -> Charge {
        self.model.count(GRAPHS, size)
    }

    /// The text encoder of an earlier step.
    pub fn aligner_snapshot<M: Module>(&self, module: &M) -> Charge {
        self.copies_memory().count(ALIGNER_SNAPSHOTS, size_of(module))
    }

    /// A copy of the voice for validation.
    pub fn validation<M: Module>(&self, module: &M) -> Charge {
        self.copies_memory().count(VALIDATION, size_of(module))
    }

    /// The tensors of a checkpoint, on the model device until they are written.
    pub fn checkpoint<M: Module>(&self, module: &M) -> Charge {
        self.model.count(CHECKPOINTS, Bytes(4 * size_of(module).0))
    }

    fn model_device_memory(&self) -> &DeviceMemory {
        if self.apart { &self.model } else { &self.data }
    }

    /// Copies of the voice are on the data device, if there are two.
    fn copies_memory(&self) -> &DeviceMemory {
        if self.apart { &self.data } else { &self.model }
    }
}

fn size_of<M: Module>(module: &M) -> Bytes {
    Bytes(4 * module.num_params() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::Device;

    fn accounting() -> MemoryAccounting {
        let devices = OpenDevices { data: Device::flex(), model: Device::flex() };
        let limits = MemoryLimits { data: Bytes(100), model: Bytes(1000) };
        MemoryAccounting::new(Some(limits), &devices)
    }

    fn in_use(accounting: &MemoryAccounting) -> (Bytes, Bytes) {
        (accounting.of(Side::Data).in_use(), accounting.of(Side::Model).in_use())
    }

    #[test]
    fn on_one_device_batches_count_for_the_data_side() {
        let one = accounting();
        let batch = one.batch(Bytes(60)).unwrap();
        assert_eq!(in_use(&one), (Bytes(60), Bytes(0)));
        assert_eq!(one.room_for_batches(), Some(Bytes(40)));
        drop(batch);
        assert_eq!(in_use(&one), (Bytes(0), Bytes(0)));
    }

    #[test]
    fn on_two_devices_a_batch_counts_for_the_model_side() {
        let two = MemoryAccounting { apart: true, ..accounting() };
        let _batch = two.batch(Bytes(70)).unwrap();
        assert_eq!(in_use(&two), (Bytes(0), Bytes(70)));
        let refused = two.batch(Bytes(931)).unwrap_err();
        assert!(matches!(refused, MemoryError::OverBudget { side: Side::Model, .. }));
        assert_eq!(two.room_for_batches(), Some(Bytes(930)));
    }
}
