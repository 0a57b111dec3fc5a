//! Rows that repeat another row: the same text, or the same recording.
//!
//! In: all ranked rows. Out: in each, the ids of those that it repeats. A text that several speakers read is no fault; the
//! same recording with two texts is one.

use super::Ranked;
use std::collections::HashMap;
use std::hash::Hash;

/// Other rows that are named.
const NAMED: usize = 3;

pub fn mark(rows: &mut [Ranked]) {
    let texts = groups(rows.iter().map(|row| row.text.clone()));
    let recordings = groups(rows.iter().map(|row| row.recording.0));
    let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
    let others = |group: &[usize], own: usize| -> Vec<String> {
        group.iter().filter(|row| **row != own).take(NAMED).map(|row| ids[*row].clone()).collect()
    };
    for (number, row) in rows.iter_mut().enumerate() {
        row.same_text = others(&texts[&row.text], number);
        row.same_recording = others(&recordings[&row.recording.0], number);
    }
}

fn groups<K: Hash + Eq>(keys: impl Iterator<Item = K>) -> HashMap<K, Vec<usize>> {
    let mut groups: HashMap<K, Vec<usize>> = HashMap::new();
    for (row, key) in keys.enumerate() {
        groups.entry(key).or_default().push(row);
    }
    groups
}
