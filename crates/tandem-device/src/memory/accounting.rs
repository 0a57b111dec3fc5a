//! Memory accounting of one device: who uses how much of its budget.
//!
//! In: charges with the name of their owner. Out: a [`Charge`] that returns its bytes when it is
//! dropped, or an error if the budget is exceeded. Clones share the accounting; a charge may be
//! dropped on any thread.

use super::{MemoryError, Side};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tandem_units::Bytes;

/// What the pipeline uses on one device.
#[derive(Clone, Debug)]
pub struct DeviceMemory {
    side: Side,
    /// `None` for no limit.
    budget: Option<Bytes>,
    accounting: Arc<Mutex<Accounting>>,
}

#[derive(Debug, Default)]
struct Accounting {
    in_use: Bytes,
    peak: Bytes,
    owners: BTreeMap<String, Bytes>,
}

/// Bytes that are in use until this is dropped.
#[derive(Debug)]
pub struct Charge {
    owner: String,
    size: Bytes,
    accounting: Arc<Mutex<Accounting>>,
}

/// What one owner uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerShare {
    pub owner: String,
    pub in_use: Bytes,
}

impl DeviceMemory {
    /// Nothing in use. Without a budget every charge succeeds and is counted.
    pub fn new(side: Side, budget: Option<Bytes>) -> DeviceMemory {
        DeviceMemory { side, budget, accounting: Arc::default() }
    }

    /// Reserves bytes for an owner, if the budget allows it.
    pub fn charge(&self, owner: &str, size: Bytes) -> Result<Charge, MemoryError> {
        let mut accounting = lock(&self.accounting);
        let in_use = accounting.in_use;
        if let Some(budget) = self.budget.filter(|budget| in_use + size > *budget) {
            let (side, owner, needed) = (self.side, owner.to_owned(), size);
            return Err(MemoryError::OverBudget { side, owner, needed, in_use, budget });
        }
        Ok(self.enter(&mut accounting, owner, size))
    }

    /// Counts bytes that an owner uses in any case, even over the budget.
    pub fn count(&self, owner: &str, size: Bytes) -> Charge {
        self.enter(&mut lock(&self.accounting), owner, size)
    }

    fn enter(&self, accounting: &mut Accounting, owner: &str, size: Bytes) -> Charge {
        accounting.in_use += size;
        accounting.peak = accounting.peak.max(accounting.in_use);
        *accounting.owners.entry(owner.to_owned()).or_default() += size;
        Charge { owner: owner.to_owned(), size, accounting: Arc::clone(&self.accounting) }
    }

    pub fn in_use(&self) -> Bytes {
        lock(&self.accounting).in_use
    }

    /// The most that was in use at once.
    pub fn peak(&self) -> Bytes {
        lock(&self.accounting).peak
    }

    /// What is left of the budget; `None` for no limit.
    pub fn available(&self) -> Option<Bytes> {
        self.budget.map(|budget| Bytes(budget.0.saturating_sub(self.in_use().0)))
    }

    pub fn budget(&self) -> Option<Bytes> {
        self.budget
    }

    pub fn side(&self) -> Side {
        self.side
    }

    /// All owners with memory in use, the largest first.
    pub fn owners(&self) -> Vec<OwnerShare> {
        let accounting = lock(&self.accounting);
        let using = accounting.owners.iter().filter(|(_, in_use)| **in_use > Bytes(0));
        let mut shares: Vec<_> =
            using.map(|(owner, &in_use)| OwnerShare { owner: owner.clone(), in_use }).collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.in_use));
        shares
    }
}

impl Charge {
    pub fn size(&self) -> Bytes {
        self.size
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut accounting = lock(&self.accounting);
        accounting.in_use = Bytes(accounting.in_use.0 - self.size.0);
        if let Some(in_use) = accounting.owners.get_mut(&self.owner) {
            *in_use = Bytes(in_use.0 - self.size.0);
        }
    }
}

/// A panic on another thread leaves the sums valid: each change is complete before the lock is released.
fn lock(accounting: &Mutex<Accounting>) -> MutexGuard<'_, Accounting> {
    accounting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_units::Hint;

    #[test]
    fn a_charge_returns_its_bytes_when_it_is_dropped() {
        let memory = DeviceMemory::new(Side::Data, Some(Bytes(100)));
        let first = memory.charge("batches", Bytes(60)).unwrap();
        let second = memory.charge("features", Bytes(30)).unwrap();
        assert_eq!((memory.in_use(), memory.available()), (Bytes(90), Some(Bytes(10))));
        drop(first);
        assert_eq!((memory.in_use(), memory.peak()), (Bytes(30), Bytes(90)));
        let owners = memory.owners();
        assert_eq!(owners, [OwnerShare { owner: "features".into(), in_use: Bytes(30) }]);
        assert_eq!(second.size(), Bytes(30));
    }

    #[test]
    fn a_charge_over_the_budget_fails_and_is_not_counted() {
        let memory = DeviceMemory::new(Side::Model, Some(Bytes::mib(10)));
        let _weights = memory.charge("weights", Bytes::mib(8)).unwrap();
        let error = memory.charge("a batch", Bytes(3 << 20 | 1)).unwrap_err();
        let fact = "a batch needs 3.0 MiB on the model device, where 8.0 MiB of its \
                    budget of 10.0 MiB are in use";
        assert_eq!(error.to_string(), fact);
        assert!(error.hint().unwrap().starts_with("set --model-gpu-memory 12 or more"));
        assert_eq!(memory.in_use(), Bytes::mib(8));
        let _needed = memory.count("a copy", Bytes::mib(8));
        assert_eq!((memory.in_use(), memory.available()), (Bytes::mib(16), Some(Bytes(0))));
    }

    #[test]
    fn without_a_budget_every_charge_succeeds_and_is_counted() {
        let memory = DeviceMemory::new(Side::Data, None);
        let _large = memory.charge("a batch", Bytes(u64::MAX / 2)).unwrap();
        assert_eq!((memory.available(), memory.in_use()), (None, Bytes(u64::MAX / 2)));
    }

    #[test]
    fn a_charge_may_be_dropped_on_another_thread() {
        let memory = DeviceMemory::new(Side::Data, None);
        let charge = memory.charge("a batch", Bytes(5)).unwrap();
        let thread = std::thread::Builder::new().name("dropping".into());
        thread.spawn(move || drop(charge)).unwrap().join().unwrap();
        assert_eq!(memory.in_use(), Bytes(0));
    }
}
