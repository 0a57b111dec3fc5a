//! Which positions of a batch are real.
//!
//! In: the real length of each row, known on the host. Out: [`Lengths`], made once per batch and handed to every
//! operation that must not look at padding. Never reads anything back from a device.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

/// The real lengths of a batch's rows: on the host, and as a mask on the device.
#[derive(Clone, Debug)]
pub struct Lengths {
    real: Arc<[usize]>,
    positions: usize,
    mask: Tensor<2>,
}

impl Lengths {
    /// Takes the real lengths of rows that are padded to `positions`. A length beyond that counts as `positions`.
    pub fn new(real: &[usize], positions: usize, device: &Device) -> Lengths {
        let real: Arc<[usize]> = real.iter().map(|&length| length.min(positions)).collect();
        let mask: Vec<f32> = real
            .iter()
            .flat_map(|&length| {
                (0..positions).map(move |position| if position < length { 1.0 } else { 0.0 })
            })
            .collect();
        let mask = Tensor::from_data(TensorData::new(mask, [real.len(), positions]), device);
        Lengths { real, positions, mask }
    }

    /// The real length of each row.
    pub fn real(&self) -> &[usize] {
        &self.real
    }

    /// The same, shared.
    pub(super) fn shared(&self) -> Arc<[usize]> {
        Arc::clone(&self.real)
    }

    /// The padded length that all rows share.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// One where a position is real, zero where it is padding: `[batch, positions]`.
    pub fn mask(&self) -> Tensor<2> {
        self.mask.clone()
    }

    /// How many positions are real in all rows together.
    pub fn total(&self) -> usize {
        self.real.iter().sum()
    }
}
