//! Tensors of one thread, used by another.
//!
//! In: tensors of the training thread. Out: the same for threads that align, validate, or read losses. On the CPU they are
//! shared. On a GPU the library runs the operations of each thread as a stream of its own, and holds the last ones back to
//! fuse them with the next. Three things follow from that:
//!
//! - A thread that takes another one's tensor makes the library run what that thread has registered so far, wherever it is:
//!   a kernel that would be fused with the next operation is compiled again without it. So the owner calls [`flush`] at a
//!   fixed point, before it gives tensors away.
//! - Each launch that reads another stream's tensor waits for a place in a short queue of the library. So other threads get
//!   copies, through the host: [`copy_to`].
//! - Between two cards, the library uses NCCL where it is installed: a send and a receive that are entered separately, so
//!   that threads that copy at the same time can wait for each other for ever. A copy through the host cannot: it reads,
//!   waits until the source was read, then writes. Nothing else in this program copies between devices.

use crate::weights::{weights_of, with_weights};
use burn::module::Module;
use burn::tensor::{Device, Tensor};

/// Makes the library run all operations that this thread has registered. Waits for the thread of the device that launches
/// them, never for the device.
pub fn flush(device: &Device) {
    #[cfg(feature = "any-gpu")]
    crate::upload::flush_gpu(device);
    #[cfg(not(feature = "any-gpu"))]
    let _ = device;
}

/// A module of another thread for this one, without autodiff, on any device. On the CPU it shares its tensors.
pub fn copy_to<M: Module>(module: &M, device: &Device) -> M {
    let module = module.valid();
    let host = Device::flex();
    if *device == host && module.devices().iter().all(|from| *from == host) {
        return module;
    }
    let copy = |weight: Tensor<1>| Tensor::from_data(weight.into_data(), device);
    let weights = weights_of(&module).into_iter().map(|weight| copy(weight.values)).collect();
    with_weights(module, weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::size::{ModelSize, VoiceConfig};
    use crate::network::voice::Voice;
    use tandem_units::Seed;

    #[test]
    fn a_copy_on_the_cpu_has_the_same_weights_without_autodiff() {
        let config = VoiceConfig::of(ModelSize::Micro, 8, 1, 4);
        let voice = Voice::new(&config, Seed(3), &Device::flex().autodiff());
        let copy = copy_to(&voice, &Device::flex());
        let values = |voice: &Voice| -> Vec<Vec<f32>> {
            let read = |weight: crate::weights::Weight| weight.values.try_into_vec_as().unwrap();
            weights_of(voice).into_iter().map(read).collect()
        };
        assert!(values(&voice) == values(&copy));
        assert!(copy.devices().iter().all(|device| *device == Device::flex()));
    }
}
