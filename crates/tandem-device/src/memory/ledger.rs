//! The account of one device: who holds how much of its budget.
//!
//! In: charges with the name of their owner. Out: a [`Charge`] that gives its bytes back when it
//! is dropped, or a refusal. Shared by clones; a charge may be dropped on any thread.

use super::{MemoryError, Side};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tandem_units::Bytes;

/// The account of what the pipeline holds on one device.
#[derive(Clone, Debug)]
pub struct DeviceLedger {
    side: Side,
    /// None where there is no limit.
    budget: Option<Bytes>,
    account: Arc<Mutex<Account>>,
}

#[derive(Debug, Default)]
struct Account {
    held: Bytes,
    most: Bytes,
    owners: BTreeMap<String, Bytes>,
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub struct Charge {
    owner: String,
    size: Bytes,
    account: Arc<Mutex<Account>>,
}

/// What one owner holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerShare {
    /// Who.
    pub owner: String,
    /// How much.
    pub held: Bytes,
}

impl DeviceLedger {
    /// An empty account; without a budget everything is granted and counted.
    pub fn new(side: Side, budget: Option<Bytes>) -> DeviceLedger {
        DeviceLedger { side, budget, account: Arc::default() }
    }

    /// Takes bytes for an owner, if the budget has them.
    pub fn charge(&self, owner: &str, size: Bytes) -> Result<Charge, MemoryError> {
        let mut account = lock(&self.account);
        let held = account.held;
        if let Some(budget) = self.budget.filter(|budget| held + size > *budget) {
            let (side, owner, asked) = (self.side, owner.to_owned(), size);
            return Err(MemoryError::OverBudget { side, owner, asked, held, budget });
        }
        Ok(self.enter(&mut account, owner, size))
    }

    /// Counts what an owner holds in any case, past the budget too.
    pub fn count(&self, owner: &str, size: Bytes) -> Charge {
        self.enter(&mut lock(&self.account), owner, size)
    }

    fn enter(&self, account: &mut Account, owner: &str, size: Bytes) -> Charge {
        account.held += size;
        account.most = account.most.max(account.held);
        *account.owners.entry(owner.to_owned()).or_default() += size;
        Charge { owner: owner.to_owned(), size, account: Arc::clone(&self.account) }
    }

    /// What is held now.
    pub fn held(&self) -> Bytes {
        lock(&self.account).held
    }

    /// The most that was held at once.
    pub fn most(&self) -> Bytes {
        lock(&self.account).most
    }

    /// What the budget has left; none where there is no limit.
    pub fn room(&self) -> Option<Bytes> {
        self.budget.map(|budget| Bytes(budget.0.saturating_sub(self.held().0)))
    }

    /// The budget.
    pub fn budget(&self) -> Option<Bytes> {
        self.budget
    }

    /// Whose account it is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Everyone who holds something, the largest first.
    pub fn owners(&self) -> Vec<OwnerShare> {
        let account = lock(&self.account);
        let holding = account.owners.iter().filter(|(_, held)| **held > Bytes(0));
        let mut shares: Vec<_> =
            holding.map(|(owner, &held)| OwnerShare { owner: owner.clone(), held }).collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.held));
        shares
    }
}

impl Charge {
    /// How much it holds.
    pub fn size(&self) -> Bytes {
        self.size
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut account = lock(&self.account);
        account.held = Bytes(account.held.0 - self.size.0);
        if let Some(held) = account.owners.get_mut(&self.owner) {
            *held = Bytes(held.0 - self.size.0);
        }
    }
}

/// Sums stay right whatever thread broke down beside them.
fn lock(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_units::Hint;

    #[test]
    fn a_charge_is_given_back_when_it_is_dropped() {
        let ledger = DeviceLedger::new(Side::Data, Some(Bytes(100)));
        let first = ledger.charge("batches", Bytes(60)).unwrap();
        let second = ledger.charge("features", Bytes(30)).unwrap();
        assert_eq!((ledger.held(), ledger.room()), (Bytes(90), Some(Bytes(10))));
        drop(first);
        assert_eq!((ledger.held(), ledger.most()), (Bytes(30), Bytes(90)));
        let owners = ledger.owners();
        assert_eq!(owners, [OwnerShare { owner: "features".into(), held: Bytes(30) }]);
        assert_eq!(second.size(), Bytes(30));
    }

    #[test]
    fn what_the_budget_has_not_is_refused_and_costs_nothing() {
        let ledger = DeviceLedger::new(Side::Model, Some(Bytes::mib(10)));
        let _held = ledger.charge("weights", Bytes::mib(8)).unwrap();
        let error = ledger.charge("a batch", Bytes(3 << 20 | 1)).unwrap_err();
        let fact = "a batch needs 3.0 MiB on the model device, which holds 8.0 MiB of its budget \
                    of 10.0 MiB";
        assert_eq!(error.to_string(), fact);
        assert!(error.hint().unwrap().starts_with("type --model-gpu-memory 12 or more"));
        assert_eq!(ledger.held(), Bytes::mib(8));
        let _needed = ledger.count("a copy", Bytes::mib(8));
        assert_eq!((ledger.held(), ledger.room()), (Bytes::mib(16), Some(Bytes(0))));
    }

    #[test]
    fn without_a_budget_everything_is_granted_and_counted() {
        let ledger = DeviceLedger::new(Side::Data, None);
        let _large = ledger.charge("a batch", Bytes(u64::MAX / 2)).unwrap();
        assert_eq!((ledger.room(), ledger.held()), (None, Bytes(u64::MAX / 2)));
    }

    #[test]
    fn a_charge_may_be_dropped_on_another_thread() {
        let ledger = DeviceLedger::new(Side::Data, None);
        let charge = ledger.charge("a batch", Bytes(5)).unwrap();
        let thread = std::thread::Builder::new().name("dropping".into());
        thread.spawn(move || drop(charge)).unwrap().join().unwrap();
        assert_eq!(ledger.held(), Bytes(0));
    }
}
