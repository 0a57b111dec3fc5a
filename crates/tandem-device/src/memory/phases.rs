//! The most memory of each card in use in each phase of a run, as its driver sees it.
//!
//! In: the cards of a run. Out: [`PhaseWatch`], which displays as a line of the report. The driver counts what an
//! allocator does not show: the scratch of the tuner, kernels, other programs. Nothing is watched where the driver
//! does not say it.

use crate::backend::{CardMemory, DeviceId, card_memory, tells_memory_in_use};
use crate::sampler::{SampleError, Sampler, SamplerHandle, Source};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tandem_telemetry::event::DeviceSample;
use tandem_telemetry::record::Recorder;
use tandem_units::Bytes;

const EVERY: Duration = Duration::from_millis(50);

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Devices are opened, the model is made.
    Opening,
    /// Kernels are compiled and tuned.
    WarmUp,
    Training,
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Opening, Phase::WarmUp, Phase::Training];

    fn name(self) -> &'static str {
        match self {
            Phase::Opening => "opening",
            Phase::WarmUp => "tuning and warm-up",
            Phase::Training => "training",
        }
    }
}

/// Watches the cards of a run until the last clone is dropped. The default watches nothing.
#[derive(Clone, Default)]
pub struct PhaseWatch {
    cards: Vec<Arc<Card>>,
    phase: Arc<AtomicUsize>,
    sampler: Arc<Mutex<Option<SamplerHandle>>>,
    /// Held while a driver is asked.
    asking: Arc<Mutex<()>>,
}

struct Card {
    id: DeviceId,
    name: String,
    /// Bytes, for each of [`Phase::ALL`].
    peaks: [AtomicU64; 3],
}

impl PhaseWatch {
    /// Watches these cards, in the phase [`Phase::Opening`].
    pub fn start(ids: &[DeviceId]) -> PhaseWatch {
        let mut ids = ids.to_vec();
        ids.dedup();
        let ids = ids.into_iter().filter(|id| tells_memory_in_use(*id));
        let card = |id: DeviceId| Card { id, name: id.to_string(), peaks: Default::default() };
        let watch =
            PhaseWatch { cards: ids.map(card).map(Arc::new).collect(), ..Default::default() };
        if watch.cards.is_empty() {
            return watch;
        }
        let source = |card: &Arc<Card>| {
            let (phase, asking) = (watch.phase.clone(), watch.asking.clone());
            let watched = Watched { card: card.clone(), phase, asking };
            Box::new(watched) as Box<dyn Source>
        };
        let sources = watch.cards.iter().map(source).collect();
        // Without a thread the report lacks a line.
        let handle = Sampler::start(sources, Recorder::off(), EVERY).ok();
        *lock(&watch.sampler) = handle;
        watch
    }

    /// No driver is asked while the result is held: a capture of a CUDA graph allows no call of another thread.
    pub fn paused(&self) -> MutexGuard<'_, ()> {
        lock(&self.asking)
    }

    /// A phase begins.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as usize, Ordering::Relaxed);
    }

    /// The largest value of a phase on a card; `None` if there is none.
    pub fn peak(&self, id: DeviceId, phase: Phase) -> Option<Bytes> {
        let card = self.cards.iter().find(|card| card.id == id)?;
        let peak = card.peaks[phase as usize].load(Ordering::Relaxed);
        (peak > 0).then_some(Bytes(peak))
    }

    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watched {
    card: Arc<Card>,
    phase: Arc<AtomicUsize>,
    asking: Arc<Mutex<()>>,
}

impl Source for Watched {
    fn name(&self) -> &str {
        &self.card.name
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        let _asking = lock(&self.asking);
        if let Some(CardMemory { in_use, .. }) = card_memory(self.card.id) {
            let phase = self.phase.load(Ordering::Relaxed);
            self.card.peaks[phase].fetch_max(in_use.0, Ordering::Relaxed);
        }
        Ok(None)
    }
}

impl fmt::Display for PhaseWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let card = |card: &Arc<Card>| {
            let phase = |phase: Phase| {
                let peak = self.peak(card.id, phase)?;
                Some(format!("{} {peak}", phase.name()))
            };
            let phases: Vec<String> = Phase::ALL.into_iter().filter_map(phase).collect();
            format!("{}: {}", card.name, phases.join(", "))
        };
        let cards: Vec<String> = self.cards.iter().map(card).collect();
        write!(f, "{}, by all programs", cards.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;

    #[test]
    fn each_phase_has_its_own_peak() {
        let id = DeviceId { backend: Backend::Cuda, index: 1 };
        let peaks = [AtomicU64::new(0), AtomicU64::new(3 << 30), AtomicU64::new(1 << 30)];
        let card = Card { id, name: id.to_string(), peaks };
        let watch = PhaseWatch { cards: vec![Arc::new(card)], ..Default::default() };
        assert_eq!(watch.peak(id, Phase::Opening), None);
        let text = "cuda:1: tuning and warm-up 3.0 GiB, training 1.0 GiB, by all programs";
        assert_eq!(watch.to_string(), text);
    }

    #[test]
    fn the_cpu_is_not_watched() {
        assert!(PhaseWatch::start(&[DeviceId::CPU]).is_empty());
    }
}
