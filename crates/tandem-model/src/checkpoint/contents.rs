//! What a checkpoint contains: named tensors in host memory, and JSON documents.
//!
//! In: tensors that the trainer read back from a device, settings and counters. Out: the same, by
//! name and shape, with an error that names a mismatch. Reads and writes no file.

use super::CheckpointError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The contents of one checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// Optimizer steps done.
    pub step: u64,
    /// Tensor sets by name, such as `weights`, `ema`, `optimizer`: one file each.
    pub tensors: BTreeMap<String, TensorSet>,
    /// Documents by name, such as `config`, `state`, `symbols`: one file each.
    pub documents: BTreeMap<String, serde_json::Value>,
}

impl Contents {
    pub fn new(step: u64) -> Contents {
        Contents { step, ..Contents::default() }
    }

    /// Adds a document. Its name has lower-case letters, digits, `-` and `_`. NaN and infinities
    /// become null, since JSON has neither.
    pub fn add_document<T: Serialize>(
        &mut self,
        name: &str,
        document: &T,
    ) -> Result<(), CheckpointError> {
        let value = serde_json::to_value(document)
            .map_err(|source| CheckpointError::Document { name: name.into(), source })?;
        self.documents.insert(name.into(), value);
        Ok(())
    }

    pub fn document<T: DeserializeOwned>(&self, name: &str) -> Result<T, CheckpointError> {
        let Some(value) = self.documents.get(name) else {
            return Err(CheckpointError::PartMissing { name: name.into() });
        };
        T::deserialize(value)
            .map_err(|source| CheckpointError::Document { name: name.into(), source })
    }

    /// Removes and returns a tensor set.
    pub fn take_tensors(&mut self, name: &str) -> Result<TensorSet, CheckpointError> {
        let taken = self.tensors.remove(name);
        taken.ok_or_else(|| CheckpointError::PartMissing { name: name.into() })
    }
}

/// Tensors by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorSet(BTreeMap<String, HostTensor>);

/// A tensor in host memory. The number of values always matches the shape.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    shape: Vec<usize>,
    values: Values,
}

/// The values of a tensor, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    F32(Vec<f32>),
    I64(Vec<i64>),
}

impl Values {
    pub fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::I64(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kind(&self) -> &'static str {
        match self {
            Values::F32(_) => "32-bit floats",
            Values::I64(_) => "64-bit integers",
        }
    }
}

impl HostTensor {
    /// Empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn values(&self) -> &Values {
        &self.values
    }
}

impl TensorSet {
    pub fn new() -> TensorSet {
        TensorSet::default()
    }

    /// Adds a tensor. An error if the name exists already or the shape does not match the values.
    pub fn insert(
        &mut self,
        name: &str,
        shape: &[usize],
        values: Values,
    ) -> Result<(), CheckpointError> {
        let wanted = shape.iter().try_fold(1usize, |size, &axis| size.checked_mul(axis));
        if wanted != Some(values.len()) {
            let (name, shape, values) = (name.into(), shape.to_vec(), values.len());
            return Err(CheckpointError::ValueCount { name, shape, values });
        }
        let tensor = HostTensor { shape: shape.to_vec(), values };
        match self.0.insert(name.into(), tensor) {
            None => Ok(()),
            Some(_) => Err(CheckpointError::TensorTwice { name: name.into() }),
        }
    }

    /// Removes and returns a float tensor of the expected shape.
    pub fn take_f32(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, CheckpointError> {
        match self.take(name, shape)? {
            Values::F32(values) => Ok(values),
            other => Err(wrong_kind(name, "32-bit floats", &other)),
        }
    }

    /// Removes and returns an integer tensor of the expected shape.
    pub fn take_i64(&mut self, name: &str, shape: &[usize]) -> Result<Vec<i64>, CheckpointError> {
        match self.take(name, shape)? {
            Values::I64(values) => Ok(values),
            other => Err(wrong_kind(name, "64-bit integers", &other)),
        }
    }

    fn take(&mut self, name: &str, expected: &[usize]) -> Result<Values, CheckpointError> {
        let Some(tensor) = self.0.remove(name) else {
            return Err(CheckpointError::TensorMissing { name: name.into() });
        };
        if tensor.shape != expected {
            let (name, expected) = (name.into(), expected.to_vec());
            return Err(CheckpointError::Shape { name, expected, found: tensor.shape });
        }
        Ok(tensor.values)
    }

    /// An error if tensors are left that no caller has taken.
    pub fn finish(self) -> Result<(), CheckpointError> {
        match self.0.into_keys().collect::<Vec<_>>() {
            left if left.is_empty() => Ok(()),
            left => Err(CheckpointError::TensorsLeft { names: left }),
        }
    }

    pub fn get(&self, name: &str) -> Option<&HostTensor> {
        self.0.get(name)
    }

    /// In the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HostTensor)> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn wrong_kind(name: &str, expected: &'static str, found: &Values) -> CheckpointError {
    CheckpointError::Kind { name: name.into(), expected, found: found.kind() }
}
