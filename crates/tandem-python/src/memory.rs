//! Our memory as NumPy arrays, without a copy.
//!
//! In: a batch or samples. Out: [`Memory`], which NumPy reads through `__array_interface__`. The array keeps
//! the `Memory` alive, and that keeps the owner: the memory of a batch returns to its pool when the last
//! array of the batch is gone.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex};
use tandem_data::batch::HostBatch;
use tandem_pipeline::Pooled;

/// A block of numbers that belongs to no Rust code any more.
#[pyclass(frozen, module = "tandem._native")]
pub struct Memory {
    address: usize,
    shape: Vec<usize>,
    kind: ElementKind,
    // Never read: it frees the block.
    _owner: Owner,
}

#[derive(Clone, Copy, Debug)]
pub enum ElementKind {
    F32,
    I32,
}

/// What owns the block. Behind a lock, so that it can be dropped by any thread.
#[derive(Clone)]
enum Owner {
    Batch(#[expect(dead_code, reason = "kept alive")] Arc<Mutex<Pooled<HostBatch>>>),
    Floats(#[expect(dead_code, reason = "kept alive")] Arc<Mutex<Vec<f32>>>),
}

/// The arrays of a batch.
pub struct BatchMemory {
    pub text_ids: Memory,
    pub text_lengths: Memory,
    pub mel: Memory,
    pub mel_lengths: Memory,
    pub speaker: Memory,
    pub language: Memory,
}

/// Whether rows without an utterance are part of the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyRows {
    Kept,
    LeftOut,
}

impl BatchMemory {
    /// Takes the batch. Nothing in Rust reads or writes it until the last array is gone.
    pub fn of(mut batch: Pooled<HostBatch>, empty_rows: EmptyRows) -> BatchMemory {
        let (shape, bands) = (batch.shape(), batch.bands());
        let rows = match empty_rows {
            EmptyRows::Kept => shape.rows,
            EmptyRows::LeftOut => batch.used(),
        };
        let arrays = batch.arrays_mut();
        let integers = |numbers: &mut [i32]| numbers.as_mut_ptr() as usize;
        let (symbols, symbol_counts) = (integers(arrays.symbols), integers(arrays.symbol_counts));
        let (mel, frame_counts) = (arrays.mel.as_mut_ptr() as usize, integers(arrays.frame_counts));
        let (speakers, languages) = (integers(arrays.speakers), integers(arrays.languages));
        let owner = Owner::Batch(Arc::new(Mutex::new(batch)));
        let memory = |address, shape: &[usize], kind| Memory {
            address,
            shape: shape.to_vec(),
            kind,
            _owner: owner.clone(),
        };
        BatchMemory {
            text_ids: memory(symbols, &[rows, shape.symbols], ElementKind::I32),
            text_lengths: memory(symbol_counts, &[rows], ElementKind::I32),
            mel: memory(mel, &[rows, shape.frames, bands], ElementKind::F32),
            mel_lengths: memory(frame_counts, &[rows], ElementKind::I32),
            speaker: memory(speakers, &[rows], ElementKind::I32),
            language: memory(languages, &[rows], ElementKind::I32),
        }
    }
}

impl Memory {
    /// Takes samples or frames of this shape.
    pub fn of_floats(mut values: Vec<f32>, shape: &[usize]) -> Memory {
        let address = values.as_mut_ptr() as usize;
        let owner = Owner::Floats(Arc::new(Mutex::new(values)));
        Memory { address, shape: shape.to_vec(), kind: ElementKind::F32, _owner: owner }
    }
}

#[pymethods]
impl Memory {
    /// Version 3 of NumPy's array interface: address, shape and type; writable, in C order.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", pyo3::types::PyTuple::new(py, &self.shape)?)?;
        let order = if cfg!(target_endian = "little") { "<" } else { ">" };
        let kind = match self.kind {
            ElementKind::F32 => "f4",
            ElementKind::I32 => "i4",
        };
        interface.set_item("typestr", format!("{order}{kind}"))?;
        interface.set_item("data", (self.address, false))?;
        Ok(interface)
    }
}
