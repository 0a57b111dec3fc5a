//! Rows that fail while a run reads them, counted per epoch.
//!
//! In: a row and why it failed, from any worker. Out: an error as soon as more rows of one epoch failed
//! than `--max-rejected` allows. Each row counts once per epoch.

use crate::TrainError;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tandem_units::Epoch;

/// Rows whose names are stored.
pub const MOST_NAMED: usize = 100;

/// Shared by the workers and the trainer. The default counts nothing and has no limit.
#[derive(Clone, Debug, Default)]
pub struct RowFailures(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    limit: f64,
    rows: usize,
    over_limit: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failed: BTreeMap<Epoch, HashSet<u32>>,
    /// The first rows that failed, by number: id and reason.
    first: BTreeMap<u32, (String, String)>,
    /// The first failure beyond the limit.
    last: Option<(Epoch, usize, String, String)>,
}

impl RowFailures {
    /// For a corpus of so many rows, of which this share may fail in an epoch.
    pub fn new(limit: f64, rows: usize) -> RowFailures {
        let (over_limit, state) = (AtomicBool::new(false), Mutex::default());
        RowFailures(Some(Arc::new(Shared { limit, rows: rows.max(1), over_limit, state })))
    }

    /// Counts a row that could not be read in this epoch.
    pub fn add(&self, epoch: Epoch, row: u32, id: &str, why: &str) {
        let Some(shared) = &self.0 else { return };
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.entry(epoch).or_default().insert(row);
        if state.first.len() < MOST_NAMED {
            state.first.entry(row).or_insert_with(|| (id.to_string(), why.to_string()));
        }
        // Workers run ahead into the next epoch at most.
        while state.failed.len() > 2 {
            state.failed.pop_first();
        }
        let failed = state.failed.get(&epoch).map_or(0, HashSet::len);
        if failed as f64 > shared.limit * shared.rows as f64 && state.last.is_none() {
            state.last = Some((epoch, failed, id.to_string(), why.to_string()));
            shared.over_limit.store(true, Ordering::Release);
        }
    }

    /// The rows that failed so far, up to [`MOST_NAMED`]: id and reason.
    pub fn so_far(&self) -> Vec<(String, String)> {
        let Some(shared) = &self.0 else { return Vec::new() };
        let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.first.values().cloned().collect()
    }

    /// The error that ends the run, once the limit is exceeded. Costs one load otherwise.
    pub fn error(&self) -> Option<TrainError> {
        let shared = self.0.as_ref()?;
        if !shared.over_limit.load(Ordering::Acquire) {
            return None;
        }
        let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (epoch, failed, last, why) = state.last.clone()?;
        let (rows, limit, epoch) = (shared.rows, shared.limit, epoch.0);
        Some(TrainError::TooManyFailed { failed, rows, epoch, limit, last, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_distinct_rows_of_one_epoch() {
        let failures = RowFailures::new(0.02, 100);
        for _ in 0..10 {
            failures.add(Epoch(0), 1, "a", "gone");
        }
        failures.add(Epoch(0), 2, "b", "gone");
        failures.add(Epoch(1), 3, "c", "gone");
        failures.add(Epoch(1), 1, "a", "gone");
        assert!(failures.error().is_none());
        let so_far: Vec<String> = failures.so_far().into_iter().map(|(id, _)| id).collect();
        assert_eq!(so_far, ["a", "b", "c"]);
        failures.add(Epoch(1), 4, "d", "broken");
        let error = failures.error().expect("three of a hundred rows are over two percent");
        assert_eq!(
            error.to_string(),
            "3 of 100 rows could not be read in epoch 1 (3.0 %), the limit is 2.0 %; the last: `d`: broken"
        );
        assert!(RowFailures::default().error().is_none());
    }
}
