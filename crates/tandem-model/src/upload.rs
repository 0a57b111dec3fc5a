//! Host arrays to tensors on the data device.
//!
//! In: a finished [`HostBatch`]. Out: [`DeviceBatch`], and the host's memory is free again.
//! Blocks no longer than the copy into the driver's hands takes: on a GPU the copy itself goes on
//! behind it. Knows no thread. Next on the path: [`crate::transfer`].

use crate::device::{DeviceError, guarded};
use burn::tensor::{Device, Int, Tensor, TensorData};
use tandem_data::batch::{BatchShape, HostBatch};
use tandem_units::Bytes;

/// One batch on one device. Shapes: `rows` utterances padded to `frames` and `symbols`.
///
/// Tensors are without autodiff; beside a tensor with it they count as constants. A new field
/// needs a line in [`upload`], in [`crate::transfer::transfer`] and in [`DeviceBatch::size`];
/// the compiler names all three.
#[derive(Clone, Debug)]
pub struct DeviceBatch {
    /// Log-mel frames, silence behind each end: `[rows, frames, bands]`.
    pub mel: Tensor<3>,
    /// Symbols, [`SYMBOL_PADDING`](tandem_data::batch::SYMBOL_PADDING) behind each end:
    /// `[rows, symbols]`.
    pub symbols: Tensor<2, Int>,
    /// Real frames of each row, zero where it is empty: `[rows]`.
    pub frame_counts: Tensor<1, Int>,
    /// Real symbols of each row, zero where it is empty: `[rows]`.
    pub symbol_counts: Tensor<1, Int>,
    /// The language of each row: `[rows]`.
    pub languages: Tensor<1, Int>,
    /// Who speaks in each row: `[rows]`.
    pub speakers: Tensor<1, Int>,
    /// The same facts where the host can read them without asking the device.
    pub host: BatchFacts,
}

/// What the host knows of a batch that is on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchFacts {
    /// Rows, frames and symbols, padding included.
    pub shape: BatchShape,
    /// Bands of a mel frame.
    pub bands: usize,
    /// The utterances, one for each row that is not empty.
    pub row_ids: Vec<u32>,
    /// Real frames of each row.
    pub frame_counts: Vec<i32>,
    /// Real symbols of each row.
    pub symbol_counts: Vec<i32>,
    /// The language of each row.
    pub languages: Vec<i32>,
    /// Who speaks in each row.
    pub speakers: Vec<i32>,
}

impl BatchFacts {
    /// Of a finished batch.
    pub fn of(batch: &HostBatch) -> BatchFacts {
        BatchFacts {
            shape: batch.shape(),
            bands: batch.bands(),
            row_ids: batch.row_ids().to_vec(),
            frame_counts: batch.frame_counts().to_vec(),
            symbol_counts: batch.symbol_counts().to_vec(),
            languages: batch.languages().to_vec(),
            speakers: batch.speakers().to_vec(),
        }
    }

    /// Rows that hold an utterance.
    pub fn used(&self) -> usize {
        self.row_ids.len()
    }

    /// Frames that are sound, of all rows.
    pub fn real_frames(&self) -> usize {
        self.frame_counts.iter().map(|&count| count as usize).sum()
    }
}

impl DeviceBatch {
    /// The memory its tensors take on their device.
    pub fn size(&self) -> Bytes {
        let DeviceBatch { mel, symbols, frame_counts, symbol_counts, languages, speakers, host: _ } =
            self;
        let lists = [frame_counts, symbol_counts, languages, speakers];
        bytes_of(mel) + bytes_of(symbols) + lists.into_iter().map(bytes_of).sum()
    }

    /// The device all of it is on.
    pub fn device(&self) -> Device {
        self.mel.device()
    }
}

/// What a tensor takes on its device, padding of the allocator left out.
pub fn bytes_of<const D: usize, K: burn::tensor::kind::Basic>(tensor: &Tensor<D, K>) -> Bytes {
    Bytes((tensor.shape().num_elements() * tensor.dtype().size()) as u64)
}

/// Copies a finished batch to a device.
pub fn upload(batch: &HostBatch, device: &Device) -> Result<DeviceBatch, DeviceError> {
    let (shape, host) = (batch.shape(), BatchFacts::of(batch));
    guarded("uploading a batch", || DeviceBatch {
        mel: floats(batch.mel(), [shape.rows, shape.frames, batch.bands()], device),
        symbols: whole_numbers(batch.symbols(), [shape.rows, shape.symbols], device),
        frame_counts: whole_numbers(batch.frame_counts(), [shape.rows], device),
        symbol_counts: whole_numbers(batch.symbol_counts(), [shape.rows], device),
        languages: whole_numbers(batch.languages(), [shape.rows], device),
        speakers: whole_numbers(batch.speakers(), [shape.rows], device),
        host,
    })
}

/// A tensor of these values.
pub fn floats<const D: usize>(values: &[f32], shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
}

/// A tensor of these values.
pub fn whole_numbers<const D: usize>(
    values: &[i32],
    shape: [usize; D],
    device: &Device,
) -> Tensor<D, Int> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::transfer;
    use tandem_data::audio::mel::MelConfig;
    use tandem_data::batch::RowInfo;

    /// Two rows and an empty place, every value telling where it belongs.
    fn batch() -> HostBatch {
        let mut batch = HostBatch::new(&MelConfig { bands: 2, ..MelConfig::SPEECH_22K });
        batch.reset(BatchShape { rows: 3, frames: 4, symbols: 5 });
        for (row, frames, symbols) in [(7, 3, 5), (8, 4, 1)] {
            let info = RowInfo { row, frames, symbols, speaker: row + 10, language: 1 };
            let place = batch.push_row(info);
            place.mel.fill(row as f32);
            place.symbols.fill(row as i32);
        }
        batch.finish();
        batch
    }

    fn ints<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i32> {
        tensor.try_into_vec_as().unwrap()
    }

    #[track_caller]
    fn check_same(device: DeviceBatch, host: &HostBatch) {
        assert_eq!(device.mel.dims(), [3, 4, 2]);
        assert_eq!(device.symbols.dims(), [3, 5]);
        assert_eq!(device.mel.try_into_vec_as::<f32>().unwrap(), host.mel());
        assert_eq!(ints(device.symbols), host.symbols());
        assert_eq!(ints(device.frame_counts), host.frame_counts());
        assert_eq!(ints(device.symbol_counts), host.symbol_counts());
        assert_eq!(ints(device.languages), host.languages());
        assert_eq!(ints(device.speakers), host.speakers());
        assert_eq!(device.host, BatchFacts::of(host));
    }

    #[test]
    fn a_batch_arrives_as_it_was_filled() {
        let (host, device) = (batch(), Device::flex());
        check_same(upload(&host, &device).unwrap(), &host);
        let facts = upload(&host, &device).unwrap().host;
        assert_eq!((facts.used(), facts.real_frames()), (2, 7));
    }

    #[test]
    fn the_size_is_that_of_all_tensors() {
        let uploaded = upload(&batch(), &Device::flex()).unwrap();
        let whole = uploaded.symbols.dtype().size() as u64;
        assert_eq!(uploaded.size(), Bytes(4 * 3 * 4 * 2 + whole * (3 * 5 + 4 * 3)));
    }

    #[test]
    fn a_transfer_to_the_device_it_is_on_changes_nothing() {
        let (host, device) = (batch(), Device::flex());
        let uploaded = upload(&host, &device).unwrap();
        check_same(transfer(uploaded, &device.clone().autodiff()).unwrap(), &host);
    }

    #[test]
    fn a_batch_can_be_handed_to_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<DeviceBatch>();
    }
}
