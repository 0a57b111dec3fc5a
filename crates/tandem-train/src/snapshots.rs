//! The readers that align: the weights of fixed earlier steps, handed from the training thread
//! to the aligning one.
//!
//! In: a reader after every so many steps. Out: the one that belongs to a step, waited for where
//! it is late. Which step uses which is a pure function of the step's number
//! ([`AlignmentSettings::snapshot_for`]), so a run is the same however its threads are timed.
//! The training thread never waits here.

use crate::holdings::Holdings;
use crate::train_settings::AlignmentSettings;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_model::memory::Charge;
use tandem_model::voice::Reader;
use tandem_pipeline::CancelToken;

/// Readers by the number of steps they have learned.
#[derive(Clone, Debug)]
pub struct Snapshots {
    shared: Arc<Shared>,
    settings: AlignmentSettings,
}

#[derive(Debug)]
struct Shared {
    readers: Mutex<BTreeMap<u64, Kept>>,
    arrived: Condvar,
    /// No more readers will come: whoever waits for one leaves.
    closed: AtomicBool,
}

/// A reader, and its memory in the accounts of the run.
#[derive(Debug)]
struct Kept {
    reader: Arc<Reader>,
    _held: Option<Charge>,
}

/// A reader and how long it was waited for.
#[derive(Debug)]
pub struct Obtained {
    /// Its steps.
    pub step: u64,
    /// Itself.
    pub reader: Arc<Reader>,
    /// The wait.
    pub waited: Duration,
}

impl Snapshots {
    /// With the readers that a run begins with, by step.
    pub fn new(settings: AlignmentSettings, begin: BTreeMap<u64, Arc<Reader>>) -> Snapshots {
        let kept = begin.into_iter().map(|(at, reader)| (at, Kept { reader, _held: None }));
        let (readers, arrived) = (Mutex::new(kept.collect()), Condvar::new());
        let shared = Shared { readers, arrived, closed: AtomicBool::new(false) };
        Snapshots { shared: Arc::new(shared), settings }
    }

    /// Whether the reader after this many steps will be asked for.
    pub fn wants(&self, step: u64) -> bool {
        step.is_multiple_of(self.settings.every.max(1))
    }

    /// Enters the readers of the beginning in the accounts of a run.
    pub fn account(&self, holdings: &Holdings) {
        for kept in self.lock().values_mut() {
            kept._held = Some(holdings.reader(&*kept.reader));
        }
    }

    /// Hands over the reader after this many steps, and forgets those that no later step uses.
    pub fn publish(&self, step: u64, reader: Reader, held: Charge) {
        let oldest = self.settings.snapshot_for(step);
        let mut readers = self.lock();
        readers.insert(step, Kept { reader: Arc::new(reader), _held: Some(held) });
        readers.retain(|&at, _| at >= oldest);
        self.shared.arrived.notify_all();
    }

    /// The reader that aligns the batch of this step; `None` where the run is stopped first.
    pub fn for_step(&self, step: u64, cancel: &CancelToken) -> Option<Obtained> {
        let wanted = self.settings.snapshot_for(step);
        let began = Instant::now();
        let mut readers = self.lock();
        loop {
            if let Some(kept) = readers.get(&wanted) {
                let (reader, waited) = (Arc::clone(&kept.reader), began.elapsed());
                return Some(Obtained { step: wanted, reader, waited });
            }
            if cancel.is_cancelled() || self.shared.closed.load(Ordering::Relaxed) {
                return None;
            }
            let pause = Duration::from_millis(20);
            let woken = self.shared.arrived.wait_timeout(readers, pause);
            readers = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Training is over: nobody may wait for readers any more.
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.shared.arrived.notify_all();
    }

    /// Those that steps from this one on still need: what a checkpoint keeps.
    pub fn needed_from(&self, step: u64) -> Vec<(u64, Arc<Reader>)> {
        let oldest = self.settings.snapshot_for(step);
        let readers = self.lock();
        let needed = readers.range(oldest..=step);
        needed.map(|(&at, kept)| (at, Arc::clone(&kept.reader))).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Kept>> {
        self.shared.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
