//! Cosines and sines of rotary positions, computed once for each head width.
//!
//! In: a head width and a number of positions. Out: a shared table.

use crate::network::ops::plain::rotary_values;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Cosines and sines of rotary positions.
pub(super) struct Rotary {
    half: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Rotary {
    /// The table for heads of this width and at least this many positions. Cached, since computing it costs as much as
    /// the attention of a short row.
    pub(super) fn of(positions: usize, head: usize) -> Arc<Rotary> {
        static MADE: Mutex<BTreeMap<usize, Arc<Rotary>>> = Mutex::new(BTreeMap::new());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let half = head / 2;
        let long_enough = |table: &&Arc<Rotary>| table.cos.len() >= positions * half;
        if let Some(table) = made.get(&head).filter(long_enough) {
            return Arc::clone(table);
        }
        let (cos, sin) = rotary_values(positions.next_power_of_two(), head);
        let table = Arc::new(Rotary { half, cos, sin });
        made.insert(head, Arc::clone(&table));
        table
    }

    #[inline(always)]
    pub(super) fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let from = position * self.half;
        (&self.cos[from..][..self.half], &self.sin[from..][..self.half])
    }
}
