//! The scratch of the tuner, which is outside of every budget.
//!
//! In: a card. Out: the memory that it needs for a moment when it is tuned for the first time.

use crate::backend::Backend;
use crate::inventory::FoundDevice;
use tandem_units::Bytes;

/// Before it tunes the first product, the device library measures the memory of a card: it copies between two buffers
/// of 1 GiB, or of a quarter of the card if that is less, and gives them back. The result is stored with the tuned
/// kernels, so that later starts need none. `None` for devices whose memory is not known, or that are not measured.
pub fn tuner_scratch(device: &FoundDevice) -> Option<Bytes> {
    let is_measured = matches!(device.id.backend, Backend::Cuda | Backend::Rocm);
    device.memory.filter(|_| is_measured).map(tuner_scratch_of)
}

/// The same, of a CUDA card with so much memory.
pub fn tuner_scratch_of(memory: Bytes) -> Bytes {
    Bytes(2 * (memory.0 / 4).min(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::DeviceId;

    #[test]
    fn it_is_two_gibibytes_and_less_on_a_small_card() {
        let card = |backend, mib| FoundDevice {
            id: DeviceId { backend, index: 0 },
            memory: Some(Bytes::mib(mib)),
            ..FoundDevice::processor()
        };
        assert_eq!(tuner_scratch(&card(Backend::Cuda, 12_044)), Some(Bytes::mib(2048)));
        assert_eq!(tuner_scratch(&card(Backend::Cuda, 2048)), Some(Bytes::mib(1024)));
        assert_eq!(tuner_scratch(&FoundDevice::processor()), None);
    }
}
