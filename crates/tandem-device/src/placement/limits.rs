//! Memory budgets of the data side and of the model.
//!
//! In: the flags and the memory of the devices. Out: [`MemoryLimits`], or an error if a flag exceeds the
//! memory. Budgets without a flag are fitted to the devices.

use super::Isolation;
use super::error::PlacementError;
use crate::inventory::FoundDevice;
use serde::Serialize;
use std::fmt;
use tandem_units::Bytes;

/// Budgets of the data side and of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryLimits {
    /// For batches and features on the data device.
    pub data: Bytes,
    /// For weights, gradients, optimizer state and activations on the model device.
    pub model: Bytes,
}

/// A row of the table of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MatrixRow {
    /// The smallest card of this row.
    pub card: Bytes,
    /// Smallest and largest batch size.
    pub batch: (usize, usize),
    pub limits: MemoryLimits,
    /// Smallest and largest number of prefetched batches.
    pub prefetch: (usize, usize),
}

/// Configurations for cards of 24, 16 and 12 GB, largest first.
pub const MATRIX: [MatrixRow; 3] = [
    row(24, (16, 24), (8192, 16384), (2, 4)),
    row(16, (12, 12), (6144, 10240), (4, 6)),
    row(12, (8, 8), (4096, 8192), (6, 8)),
];

const fn row(
    card_gib: u64,
    batch: (usize, usize),
    (data, model): (u64, u64),
    prefetch: (usize, usize),
) -> MatrixRow {
    let limits = MemoryLimits { data: Bytes::mib(data), model: Bytes::mib(model) };
    MatrixRow { card: Bytes::mib(card_gib * 1024), batch, limits, prefetch }
}

impl MemoryLimits {
    /// 8192 MB for data, 16384 MB for the model.
    pub const DEFAULT: MemoryLimits = MATRIX[0].limits;

    /// Budgets for these two devices; `None` without isolation.
    pub(super) fn decide(
        asked: Isolation,
        data: &FoundDevice,
        model: &FoundDevice,
    ) -> Result<Option<MemoryLimits>, PlacementError> {
        let Isolation::On { data: given_data, model: given_model } = asked else {
            return Ok(None);
        };
        let shared = data.id == model.id;
        let fitted = if shared { for_one(model.memory) } else { for_two(data, model) };
        let limits = MemoryLimits {
            data: given_data.unwrap_or(fitted.data),
            model: given_model.unwrap_or(fitted.model),
        };
        check("--data-gpu-memory", given_data, data.memory, data)?;
        let left = match (shared, model.memory) {
            (true, Some(memory)) => Some(Bytes(memory.0.saturating_sub(limits.data.0))),
            (_, memory) => memory,
        };
        check("--model-gpu-memory", given_model, left, model)?;
        Ok(Some(match (shared, left) {
            // A given data budget leaves less for the model budget.
            (true, Some(left)) => MemoryLimits { model: limits.model.min(left), ..limits },
            _ => limits,
        }))
    }
}

impl fmt::Display for MemoryLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data {} MB, model {} MB", self.data.0 >> 20, self.model.0 >> 20)
    }
}

/// Both budgets on one card: from its row of the table, or a third and two thirds for smaller cards.
fn for_one(memory: Option<Bytes>) -> MemoryLimits {
    let Some(memory) = memory else { return MemoryLimits::DEFAULT };
    match MATRIX.iter().find(|row| nearly(memory) >= row.card) {
        Some(row) => {
            let model = row.limits.model.min(Bytes(memory.0.saturating_sub(row.limits.data.0)));
            MemoryLimits { model, ..row.limits }
        }
        None => MemoryLimits { data: Bytes(memory.0 / 3), model: Bytes(memory.0 / 3 * 2) },
    }
}

/// One card each: the defaults, limited by the memory of the cards.
fn for_two(data: &FoundDevice, model: &FoundDevice) -> MemoryLimits {
    let fit = |size: Bytes, memory: Option<Bytes>| memory.map_or(size, |memory| size.min(memory));
    MemoryLimits {
        data: fit(MemoryLimits::DEFAULT.data, data.memory),
        model: fit(MemoryLimits::DEFAULT.model, model.memory),
    }
}

/// A 24 GB card reports slightly less, since the driver reserves some.
fn nearly(memory: Bytes) -> Bytes {
    Bytes(memory.0 + memory.0 / 16)
}

fn check(
    flag: &'static str,
    given: Option<Bytes>,
    has: Option<Bytes>,
    device: &FoundDevice,
) -> Result<(), PlacementError> {
    match (given, has) {
        (Some(asked), Some(has)) if asked > has => {
            Err(PlacementError::BudgetTooLarge { flag, asked, device: device.to_string(), has })
        }
        _ => Ok(()),
    }
}
