//! Aligner snapshots: the encoders of fixed earlier steps, passed from the training thread to the
//! aligning one.
//!
//! In: the encoder after every so many steps, on the model device. Out: the one that belongs to a
//! step, on the data device. Which step uses which is a pure function of the step's number
//! ([`AlignmentSettings::snapshot_for`]), so a run is the same however its threads are timed. The
//! training thread never waits here and copies nothing between devices: the aligning thread does.
//!
//! No wait lasts for ever: the snapshot of step `n` is published when step `n` is complete, every
//! step number exists (see [`crate::run::schedule`]), and the run closes this when training ends.

use crate::run::memory_accounting::MemoryAccounting;
use crate::train_settings::AlignmentSettings;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tandem_device::memory::Charge;
use tandem_model::Device;
use tandem_model::between_threads::copy_to;
use tandem_model::network::voice::Encoder;
use tandem_pipeline::CancelToken;

/// How long a wait sleeps before it checks the cancel token again.
const POLL: Duration = Duration::from_millis(20);

/// Encoders by step. Clones share them.
#[derive(Clone, Debug)]
pub struct AlignerSnapshots {
    shared: Arc<Shared>,
    settings: AlignmentSettings,
}

#[derive(Debug)]
struct Shared {
    published: Mutex<BTreeMap<u64, Arc<Published>>>,
    arrived: Condvar,
    /// No more snapshots will come.
    closed: AtomicBool,
}

/// An encoder as it was published, and its copy on the data device once it was used.
#[derive(Debug)]
struct Published {
    encoder: Encoder,
    on_data_device: OnceLock<Encoder>,
    memory: Mutex<Option<Charge>>,
}

/// The encoder that aligns a step.
#[derive(Debug)]
pub struct AlignerSnapshot {
    /// Steps that it was trained for.
    pub step: u64,
    /// How long it was waited for.
    pub waited: Duration,
    published: Arc<Published>,
}

impl AlignerSnapshot {
    /// The encoder on a device. The first call copies it there.
    pub fn on(&self, device: &Device) -> &Encoder {
        self.published.on_data_device.get_or_init(|| copy_to(&self.published.encoder, device))
    }
}

impl AlignerSnapshots {
    /// With the encoders that a run begins with, by step.
    pub fn new(settings: AlignmentSettings, begin: BTreeMap<u64, Encoder>) -> AlignerSnapshots {
        let published = begin.into_iter().map(|(step, encoder)| (step, publish(encoder, None)));
        let shared = Shared {
            published: Mutex::new(published.collect()),
            arrived: Condvar::new(),
            closed: AtomicBool::new(false),
        };
        AlignerSnapshots { shared: Arc::new(shared), settings }
    }

    /// Snapshots that steps after this one need and that are not there: settings changed since the
    /// checkpoint was written. Each is replaced by `current`. Returns the steps.
    pub fn rebuild_missing(&self, step: u64, current: &Encoder) -> Vec<u64> {
        let every = self.settings.every.max(1);
        let mut published = self.lock();
        let needed = (self.settings.snapshot_for(step)..=step).step_by(every as usize);
        let missing: Vec<u64> = needed.filter(|at| !published.contains_key(at)).collect();
        for &at in &missing {
            published.insert(at, publish(current.clone(), None));
        }
        missing
    }

    /// Whether the encoder after this many steps will be needed.
    pub fn wants(&self, step: u64) -> bool {
        step.is_multiple_of(self.settings.every.max(1))
    }

    /// Counts the encoders of the beginning in the memory accounting of a run.
    pub fn account(&self, accounting: &MemoryAccounting) {
        for published in self.lock().values() {
            let charge = accounting.aligner_snapshot(&published.encoder);
            *published.memory.lock().unwrap_or_else(PoisonError::into_inner) = Some(charge);
        }
    }

    /// Publishes the encoder after this many steps, and drops those that no later step uses.
    pub fn publish(&self, step: u64, encoder: Encoder, memory: Charge) {
        let oldest = self.settings.snapshot_for(step);
        let mut published = self.lock();
        published.insert(step, publish(encoder, Some(memory)));
        published.retain(|&at, _| at >= oldest);
        self.shared.arrived.notify_all();
    }

    /// The step whose weights align the batches of `step`.
    pub fn wanted_by(&self, step: u64) -> u64 {
        self.settings.snapshot_for(step)
    }

    /// The encoder that aligns the batches of this step, if it is there already.
    pub fn get(&self, step: u64) -> Option<AlignerSnapshot> {
        let step = self.settings.snapshot_for(step);
        let published = self.lock().get(&step).cloned()?;
        Some(AlignerSnapshot { step, waited: Duration::ZERO, published })
    }

    /// The same, waited for. `None` when the run ends first.
    pub fn wait_for(&self, step: u64, cancel: &CancelToken) -> Option<AlignerSnapshot> {
        let step = self.settings.snapshot_for(step);
        let began = Instant::now();
        let mut published = self.lock();
        loop {
            if let Some(found) = published.get(&step).cloned() {
                return Some(AlignerSnapshot { step, waited: began.elapsed(), published: found });
            }
            if cancel.is_cancelled() || self.shared.closed.load(Ordering::Relaxed) {
                return None;
            }
            let woken = self.shared.arrived.wait_timeout(published, POLL);
            published = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Training is over: every wait ends.
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.shared.arrived.notify_all();
    }

    /// The encoders that steps after this one still need: what a checkpoint saves.
    pub fn needed_from(&self, step: u64) -> Vec<(u64, Encoder)> {
        let oldest = self.settings.snapshot_for(step);
        let published = self.lock();
        let needed = published.range(oldest..=step);
        needed.map(|(&at, published)| (at, published.encoder.clone())).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Published>>> {
        self.shared.published.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn publish(encoder: Encoder, memory: Option<Charge>) -> Arc<Published> {
    Arc::new(Published { encoder, on_data_device: OnceLock::new(), memory: Mutex::new(memory) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::network::size::{ModelSize, VoiceConfig};
    use tandem_model::network::voice::Voice;
    use tandem_units::Seed;

    fn encoder(seed: u64) -> Encoder {
        let config = VoiceConfig::of(ModelSize::Micro, 8, 1, 4);
        Voice::new(&config, Seed(seed), &Device::flex()).encoder
    }

    #[test]
    fn a_larger_lag_after_a_resume_needs_snapshots_that_are_rebuilt() {
        let settings = AlignmentSettings { every: 5, lag: 20, flat_start: 0 };
        let snapshots = AlignerSnapshots::new(settings, BTreeMap::from([(40, encoder(1))]));
        assert!(snapshots.get(42).is_none(), "step 42 is aligned by step 20");
        assert_eq!(snapshots.rebuild_missing(42, &encoder(2)), [20, 25, 30, 35]);
        for step in 42..=60 {
            assert!(snapshots.get(step).is_some(), "step {step}");
        }
        assert!(snapshots.rebuild_missing(42, &encoder(2)).is_empty());
    }

    #[test]
    fn a_wait_ends_when_training_ends() {
        let settings = AlignmentSettings { every: 1, lag: 0, flat_start: 0 };
        let snapshots = AlignerSnapshots::new(settings, BTreeMap::new());
        let other = snapshots.clone();
        let waiting = std::thread::scope(|scope| {
            let thread = scope.spawn(|| other.wait_for(7, &CancelToken::new()).is_none());
            std::thread::sleep(Duration::from_millis(30));
            snapshots.close();
            thread.join().unwrap()
        });
        assert!(waiting);
    }
}
