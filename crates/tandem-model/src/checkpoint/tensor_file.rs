//! Tensor sets as files in the safetensors format, and back.
//!
//! In: a [`TensorSet`] or bytes. Out: the other. Writes in chunks, so that a checkpoint needs no second
//! copy of the model in memory.

use super::contents::{HostTensor, TensorSet, Values};
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};
use std::io::{self, Write};

/// Bytes that are converted at once.
const CHUNK: usize = 1 << 16;

pub fn write(set: &TensorSet, out: &mut dyn Write) -> io::Result<()> {
    let ordered = ordered(set);
    let mut header = header(&ordered)?;
    // The format aligns the values to eight bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    for (_, tensor) in ordered {
        match tensor.values() {
            Values::F32(values) => write_chunks(values, |value| value.to_le_bytes(), out)?,
            Values::I64(values) => write_chunks(values, |value| value.to_le_bytes(), out)?,
        }
    }
    Ok(())
}

/// Reads a file whose checksum was verified. The error says what is wrong with it.
pub fn read(bytes: &[u8]) -> Result<TensorSet, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut set = TensorSet::new();
    for (name, view) in file.iter() {
        let values = match view.dtype() {
            Dtype::F32 => Values::F32(values_of(view.data(), f32::from_le_bytes)),
            Dtype::I64 => Values::I64(values_of(view.data(), i64::from_le_bytes)),
            other => return Err(format!("tensor `{name}` has the unsupported type {other}")),
        };
        set.insert(name, view.shape(), values).map_err(|error| error.to_string())?;
    }
    Ok(set)
}

/// Wide types first, as the format requires, so that all values are aligned.
fn ordered(set: &TensorSet) -> Vec<(&str, &HostTensor)> {
    let mut ordered: Vec<_> = set.iter().collect();
    ordered.sort_by_key(|(_, tensor)| match tensor.values() {
        Values::I64(_) => 0,
        Values::F32(_) => 1,
    });
    ordered
}

fn header(ordered: &[(&str, &HostTensor)]) -> io::Result<Vec<u8>> {
    let mut begin = 0;
    let entries = ordered.iter().map(|(name, tensor)| {
        let dtype = match tensor.values() {
            Values::F32(_) => Dtype::F32,
            Values::I64(_) => Dtype::I64,
        };
        let end = begin + tensor.values().len() * dtype.bitsize() / 8;
        let info = TensorInfo { dtype, shape: tensor.shape().to_vec(), data_offsets: (begin, end) };
        begin = end;
        (name.to_string(), info)
    });
    let metadata = Metadata::new(None, entries.collect()).map_err(io::Error::other)?;
    serde_json::to_vec(&metadata).map_err(io::Error::other)
}

fn write_chunks<T: Copy, const WIDTH: usize>(
    values: &[T],
    bytes_of: impl Fn(T) -> [u8; WIDTH],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK);
    for values in values.chunks(CHUNK / WIDTH) {
        chunk.clear();
        chunk.extend(values.iter().flat_map(|&value| bytes_of(value)));
        out.write_all(&chunk)?;
    }
    Ok(())
}

fn values_of<T, const WIDTH: usize>(bytes: &[u8], of_bytes: impl Fn([u8; WIDTH]) -> T) -> Vec<T> {
    bytes.as_chunks::<WIDTH>().0.iter().map(|&bytes| of_bytes(bytes)).collect()
}
