//! The encoders that align: the weights of fixed earlier steps, handed from the training thread
//! to the aligning one.
//!
//! In: a encoder after every so many steps. Out: the one that belongs to a step, waited for where
//! it is late. Which step uses which is a pure function of the step's number
//! ([`AlignmentSettings::snapshot_for`]), so a run is the same however its threads are timed.
//! The training thread never waits here.

use crate::run::memory_accounting::MemoryAccounting;
use crate::train_settings::AlignmentSettings;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_device::memory::Charge;
use tandem_model::network::voice::Encoder;
use tandem_pipeline::CancelToken;

/// Readers by the number of steps they have learned.
#[derive(Clone, Debug)]
pub struct AlignerSnapshots {
    shared: Arc<Shared>,
    settings: AlignmentSettings,
}

#[derive(Debug)]
struct Shared {
    encoders: Mutex<BTreeMap<u64, Published>>,
    arrived: Condvar,
    /// No more encoders will come: whoever waits for one leaves.
    closed: AtomicBool,
}

/// A encoder, and its memory in the accounts of the run.
#[derive(Debug)]
struct Published {
    encoder: Arc<Encoder>,
    _memory: Option<Charge>,
}

/// A encoder and how long it was waited for.
#[derive(Debug)]
pub struct AlignerSnapshot {
    /// Its steps.
    pub step: u64,
    /// Itself.
    pub encoder: Arc<Encoder>,
    /// The wait.
    pub waited: Duration,
}

impl AlignerSnapshots {
    /// With the encoders that a run begins with, by step.
    pub fn new(
        settings: AlignmentSettings,
        begin: BTreeMap<u64, Arc<Encoder>>,
    ) -> AlignerSnapshots {
        let published =
            begin.into_iter().map(|(at, encoder)| (at, Published { encoder, _memory: None }));
        let (encoders, arrived) = (Mutex::new(published.collect()), Condvar::new());
        let shared = Shared { encoders, arrived, closed: AtomicBool::new(false) };
        AlignerSnapshots { shared: Arc::new(shared), settings }
    }

    /// Whether the encoder after this many steps will be asked for.
    pub fn wants(&self, step: u64) -> bool {
        step.is_multiple_of(self.settings.every.max(1))
    }

    /// Enters the encoders of the beginning in the accounts of a run.
    pub fn account(&self, accounting: &MemoryAccounting) {
        for published in self.lock().values_mut() {
            published._memory = Some(accounting.aligner_snapshot(&*published.encoder));
        }
    }

    /// Hands over the encoder after this many steps, and forgets those that no later step uses.
    pub fn publish(&self, step: u64, encoder: Encoder, held: Charge) {
        let oldest = self.settings.snapshot_for(step);
        let mut encoders = self.lock();
        encoders.insert(step, Published { encoder: Arc::new(encoder), _memory: Some(held) });
        encoders.retain(|&at, _| at >= oldest);
        self.shared.arrived.notify_all();
    }

    /// The encoder that aligns the batch of this step; `None` where the run is stopped first.
    pub fn for_step(&self, step: u64, cancel: &CancelToken) -> Option<AlignerSnapshot> {
        let wanted = self.settings.snapshot_for(step);
        let began = Instant::now();
        let mut encoders = self.lock();
        loop {
            if let Some(published) = encoders.get(&wanted) {
                let (encoder, waited) = (Arc::clone(&published.encoder), began.elapsed());
                return Some(AlignerSnapshot { step: wanted, encoder, waited });
            }
            if cancel.is_cancelled() || self.shared.closed.load(Ordering::Relaxed) {
                return None;
            }
            let pause = Duration::from_millis(20);
            let woken = self.shared.arrived.wait_timeout(encoders, pause);
            encoders = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Training is over: nobody may wait for encoders any more.
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.shared.arrived.notify_all();
    }

    /// Those that steps from this one on still need: what a checkpoint keeps.
    pub fn needed_from(&self, step: u64) -> Vec<(u64, Arc<Encoder>)> {
        let oldest = self.settings.snapshot_for(step);
        let encoders = self.lock();
        let needed = encoders.range(oldest..=step);
        needed.map(|(&at, published)| (at, Arc::clone(&published.encoder))).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Published>> {
        self.shared.encoders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
