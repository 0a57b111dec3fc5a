//! What a run holds on each device, by owner.
//!
//! In: batches, weights and copies of them as they come and go. Out: two accounts
//! ([`DeviceMemory`]), which [`crate::run::memory_watch`] reads. Batches are refused where a budget has
//! no room for them; what the model itself needs is counted and never refused. Where one device
//! does both kinds of work, batches are the data side's and everything else the model's.

use tandem_device::memory::{Charge, DeviceMemory, MemoryError, Side};
use tandem_device::placement::{MemoryLimits, OpenDevices};
use tandem_model::Module;
use tandem_units::Bytes;

/// The accounts of both devices; clones share them.
#[derive(Clone, Debug)]
pub struct MemoryAccounting {
    data: DeviceMemory,
    model: DeviceMemory,
    apart: bool,
}

/// Batches that wait for the model, or are with it.
const BATCHES: &str = "batches";
/// Batches between the data device and the model device.
const ON_THE_WAY: &str = "batches on their way";
/// Weights, gradients' moments and running means.
const WEIGHTS: &str = "weights and optimizer";
/// Earlier weights, which align texts.
const ALIGNER_SNAPSHOTS: &str = "aligner snapshots";
/// A voice that is validated or speaks.
const VALIDATION: &str = "validation";
/// Tensors that are being written to disk.
const CHECKPOINTS: &str = "checkpoints being written";

impl MemoryAccounting {
    /// Empty accounts with these budgets.
    pub fn new(limits: Option<MemoryLimits>, devices: &OpenDevices) -> MemoryAccounting {
        MemoryAccounting {
            data: DeviceMemory::new(Side::Data, limits.map(|limits| limits.data)),
            model: DeviceMemory::new(Side::Model, limits.map(|limits| limits.model)),
            apart: devices.are_apart(),
        }
    }

    /// The account of a side.
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

    /// What the budget leaves for batches beside the weights; none: no limit.
    pub fn room_for_batches(&self) -> Option<Bytes> {
        self.beside_weights().available()
    }

    /// A batch beside the weights.
    pub fn batch(&self, size: Bytes) -> Result<Charge, MemoryError> {
        self.beside_weights().charge(BATCHES, size)
    }

    /// A batch on the data device, to be copied to the model's.
    pub fn on_the_way(&self, size: Bytes) -> Result<Charge, MemoryError> {
        self.data.charge(ON_THE_WAY, size)
    }

    /// The weights that are trained, their moments and running means.
    pub fn weights<M: Module>(&self, module: &M) -> Charge {
        self.model.count(WEIGHTS, Bytes(4 * size_of(module).0))
    }

    /// Earlier weights that align.
    pub fn aligner_snapshot<M: Module>(&self, module: &M) -> Charge {
        self.of_copies().count(ALIGNER_SNAPSHOTS, size_of(module))
    }

    /// A copy of the voice, for an exam.
    pub fn validation<M: Module>(&self, module: &M) -> Charge {
        self.of_copies().count(VALIDATION, size_of(module))
    }

    /// Everything of a checkpoint until it is on disk: it stays on the model device.
    pub fn checkpoint<M: Module>(&self, module: &M) -> Charge {
        self.model.count(CHECKPOINTS, Bytes(4 * size_of(module).0))
    }

    fn beside_weights(&self) -> &DeviceMemory {
        if self.apart { &self.model } else { &self.data }
    }

    /// Copies for the data device are made there.
    fn of_copies(&self) -> &DeviceMemory {
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

    fn held(accounting: &MemoryAccounting) -> (Bytes, Bytes) {
        (accounting.of(Side::Data).in_use(), accounting.of(Side::Model).in_use())
    }

    #[test]
    fn on_one_device_batches_are_the_data_sides() {
        let one = accounting();
        let batch = one.batch(Bytes(60)).unwrap();
        assert_eq!(held(&one), (Bytes(60), Bytes(0)));
        assert_eq!(one.room_for_batches(), Some(Bytes(40)));
        drop(batch);
        assert_eq!(held(&one), (Bytes(0), Bytes(0)));
    }

    #[test]
    fn on_two_devices_a_batch_is_accounted_for_where_it_is() {
        let two = MemoryAccounting { apart: true, ..accounting() };
        let _way = two.on_the_way(Bytes(60)).unwrap();
        let _batch = two.batch(Bytes(70)).unwrap();
        assert_eq!(held(&two), (Bytes(60), Bytes(70)));
        let refused = two.on_the_way(Bytes(41)).unwrap_err();
        assert!(matches!(refused, MemoryError::OverBudget { side: Side::Data, .. }));
        assert_eq!(two.room_for_batches(), Some(Bytes(930)));
    }
}
