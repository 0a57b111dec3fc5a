//! A batch from the data device to the model device.
//!
//! In and out: [`DeviceBatch`]. Blocks the calling thread until the source may be forgotten; it
//! is a pipeline stage of its own for that reason, and the model never waits for it while a
//! batch is READY. What really overlaps differs by backend: `docs/devices.md` says it.

use crate::device::{DeviceError, guarded};
use crate::upload::DeviceBatch;
use burn::tensor::Device;

/// The batch on `device`; the same batch where it is there already.
pub fn transfer(batch: DeviceBatch, device: &Device) -> Result<DeviceBatch, DeviceError> {
    if batch.device() == *device {
        return Ok(batch);
    }
    guarded("copying a batch to the model device", || {
        let DeviceBatch { mel, symbols, frame_counts, symbol_counts, languages, speakers, host } =
            batch;
        DeviceBatch {
            mel: mel.to_device(device),
            symbols: symbols.to_device(device),
            frame_counts: frame_counts.to_device(device),
            symbol_counts: symbol_counts.to_device(device),
            languages: languages.to_device(device),
            speakers: speakers.to_device(device),
            host,
        }
    })
}
