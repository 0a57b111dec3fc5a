//! A build without a GPU has no graphs.

use crate::network::voice::Voice;
use crate::optimizer::Optimizer;
use crate::train_batch::UploadedBatch;
use burn::tensor::{Device, Tensor};
use tandem_device::backend::DeviceError;

/// There is none.
#[derive(Clone, Debug)]
pub enum StepGraph {}

pub fn has_graphs(_device: &Device) -> bool {
    false
}

impl StepGraph {
    pub fn capture(
        _voice: &Voice,
        _optimizer: &Optimizer,
        _batch: &UploadedBatch,
        _device: &Device,
    ) -> Result<StepGraph, DeviceError> {
        unreachable!("a device that has no graphs")
    }

    pub fn fits(&self, _batch: &UploadedBatch) -> bool {
        match *self {}
    }

    pub fn run(&self, _batch: &UploadedBatch) -> Tensor<1> {
        match *self {}
    }
}
