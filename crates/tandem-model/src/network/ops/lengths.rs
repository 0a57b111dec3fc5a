//! Which positions of a batch are real.
//!
//! In: the real length of each row, known on the host. Out: [`Lengths`], created once per batch for every operation
//! that must ignore padding. Never reads from a device.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

/// The real lengths of a batch's rows: on the host, and as a mask on the device.
#[derive(Clone, Debug)]
pub struct Lengths {
    real: Arc<[usize]>,
    positions: usize,
    mask: Tensor<2>,
    #[cfg(feature = "any-gpu")]
    counts: Tensor<1>,
}

impl Lengths {
    /// The real lengths of rows that are padded to `positions`. Larger lengths are clamped.
    pub fn new(real: &[usize], positions: usize, device: &Device) -> Lengths {
        let real: Arc<[usize]> = real.iter().map(|&length| length.min(positions)).collect();
        let mask: Vec<f32> = real
            .iter()
            .flat_map(|&length| {
                (0..positions).map(move |position| if position < length { 1.0 } else { 0.0 })
            })
            .collect();
        let mask = Tensor::from_data(TensorData::new(mask, [real.len(), positions]), device);
        #[cfg(feature = "any-gpu")]
        let counts = {
            let counts: Vec<f32> = real.iter().map(|&length| length as f32).collect();
            Tensor::from_data(TensorData::new(counts, [real.len()]), device)
        };
        Lengths {
            real,
            positions,
            mask,
            #[cfg(feature = "any-gpu")]
            counts,
        }
    }

    /// The same from tensors: ones at real positions, `[batch, positions]`; the lengths, `[batch]`.
    pub(crate) fn uploaded(
        real: &[usize],
        positions: usize,
        mask: Tensor<2>,
        counts: Tensor<1>,
    ) -> Lengths {
        let real = real.iter().map(|&length| length.min(positions)).collect();
        // The CPU's kernels take the lengths from the host.
        #[cfg(not(feature = "any-gpu"))]
        drop(counts);
        Lengths {
            real,
            positions,
            mask,
            #[cfg(feature = "any-gpu")]
            counts,
        }
    }

    /// The real length of each row.
    pub fn real(&self) -> &[usize] {
        &self.real
    }

    /// The real lengths, shared.
    pub(super) fn shared(&self) -> Arc<[usize]> {
        Arc::clone(&self.real)
    }

    /// The padded length of all rows.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// One where a position is real, zero where it is padding: `[batch, positions]`.
    pub fn mask(&self) -> Tensor<2> {
        self.mask.clone()
    }

    /// The real length of each row on the device, for kernels: `[batch]`.
    #[cfg(feature = "any-gpu")]
    pub(super) fn counts(&self) -> Tensor<1> {
        self.counts.clone()
    }

    /// The number of real positions of all rows.
    pub fn total(&self) -> usize {
        self.real.iter().sum()
    }
}
