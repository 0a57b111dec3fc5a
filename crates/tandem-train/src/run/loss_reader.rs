//! Reads losses back from the device, on a thread of its own: the training thread passes tensors on
//! and never waits, except for a card that is several steps behind.
//!
//! In: one tensor for each step, and promises. Out: its values through the promises; how many steps in a row had a
//! non-finite gradient; and whether the device failed: work is asynchronous, so a read is the first to know.
//! Without room the promises are dropped, and the record says that the values are missing.

use crate::TrainError;
use crate::run::join::{ProgressCounter, Stuck, join_within};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tandem_device::backend::{DeviceError, guarded};
use tandem_model::Tensor;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Loss, Warning};
use tandem_telemetry::pending::{Pending, Promise};

/// Steps whose losses may wait to be read.
const ROOM: usize = 64;

/// The longest that the end of a run waits for one loss.
const SLOWEST_READ: Duration = Duration::from_secs(120);

/// Steps whose losses are promised and not read. Clones share it.
#[derive(Clone, Debug, Default)]
struct Unread(Arc<(Mutex<usize>, Condvar)>);

impl Unread {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(usize) -> usize) {
        let mut count = self.count();
        *count = change(*count);
        self.0.1.notify_all();
    }

    fn wait_for(&self, at_most: usize) {
        let waited = self.0.1.wait_while(self.count(), |count| *count > at_most);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The reader has ended, for whatever reason: nobody waits for it any more.
struct NoneUnread(Unread);

impl Drop for NoneUnread {
    fn drop(&mut self) {
        self.0.set(|_| 0);
    }
}

struct Reading {
    step: u64,
    values: Tensor<1>,
    /// One for each value.
    promises: Vec<Promise<f32>>,
}

/// Owns the thread.
pub struct LossReader {
    sender: Option<SyncSender<Reading>>,
    thread: Option<JoinHandle<()>>,
    non_finite_in_a_row: Arc<AtomicU32>,
    failure: Arc<OnceLock<DeviceError>>,
    progress: ProgressCounter,
    unread: Unread,
}

impl LossReader {
    /// Starts the thread.
    pub fn start(recorder: Recorder) -> Result<LossReader, TrainError> {
        let (sender, readings) = sync_channel(ROOM);
        let non_finite_in_a_row = Arc::new(AtomicU32::new(0));
        let (non_finite, progress) = (non_finite_in_a_row.clone(), ProgressCounter::default());
        let (counter, failure) = (progress.clone(), Arc::new(OnceLock::new()));
        let (failed, unread) = (failure.clone(), Unread::default());
        let none_unread = NoneUnread(unread.clone());
        let thread = std::thread::Builder::new()
            .name("tandem-losses".into())
            .spawn(move || {
                let unread = &none_unread.0;
                if let Err(error) = read_all(readings, &non_finite, &counter, unread, &recorder) {
                    let _ = failed.set(error);
                }
            })
            .map_err(TrainError::Thread)?;
        let (sender, thread) = (Some(sender), Some(thread));
        Ok(LossReader { sender, thread, non_finite_in_a_row, failure, progress, unread })
    }

    /// Promises the values of a step's tensor, which have these names. The last one is the norm of the gradient. The
    /// operations that compute them must have left the queue of this thread ([`flush`](tandem_model::between_threads::flush)).
    pub fn promise(&self, step: u64, names: &[&'static str], values: Tensor<1>) -> Vec<Loss> {
        let promise = |name: &&'static str| {
            let (promise, value) = Pending::later();
            (promise, Loss { name: (*name).into(), value })
        };
        let (promises, promised) = names.iter().map(promise).unzip();
        if let Some(sender) = &self.sender {
            // Full, or gone after a device failed: the promises are dropped with the message.
            self.unread.set(|count| count + 1);
            if sender.try_send(Reading { step, values, promises }).is_err() {
                self.unread.set(|count| count.saturating_sub(1));
            }
        }
        promised
    }

    /// Waits until at most so many steps are unread, or the device failed: launches of graphs do not wait for the card, so
    /// that the caller would be far ahead of a card that is lost.
    pub fn wait_for(&self, unread: usize) {
        self.unread.wait_for(unread);
    }

    /// Steps in a row, up to the last one read, whose gradient was NaN or infinite.
    pub fn non_finite_in_a_row(&self) -> u32 {
        self.non_finite_in_a_row.load(Ordering::Relaxed)
    }

    /// Why a loss could not be read. The device has failed then: no later step computes anything.
    pub fn failure(&self) -> Option<DeviceError> {
        self.failure.get().cloned()
    }

    /// Reads what is left and ends.
    pub fn finish(mut self) -> Result<(), TrainError> {
        self.sender = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let why = match join_within(thread, &self.progress, SLOWEST_READ) {
            Ok(()) => return self.failure().map_or(Ok(()), |error| Err(error.into())),
            Err(Stuck::Panicked(message)) => message,
            Err(Stuck::NoProgress(limit)) => {
                format!("the device gave no loss for {} s", limit.as_secs())
            }
        };
        Err(TrainError::BackgroundThread { what: "the loss reader", why })
    }
}

fn read_all(
    readings: Receiver<Reading>,
    non_finite: &AtomicU32,
    progress: &ProgressCounter,
    unread: &Unread,
    recorder: &Recorder,
) -> Result<(), DeviceError> {
    for Reading { step, values, promises } in readings {
        progress.advance();
        let values = read(values, promises.len())?;
        unread.set(|count| count.saturating_sub(1));
        let norm = values.last().copied().unwrap_or_default();
        promises.into_iter().zip(values).for_each(|(promise, value)| promise.set(value));
        if norm.is_finite() {
            non_finite.store(0, Ordering::Relaxed);
        } else {
            non_finite.fetch_add(1, Ordering::Relaxed);
            let text = format!("step {step} changed no weights: its gradient is NaN or infinite");
            recorder.send(Warning { code: "non_finite_gradient".into(), text });
        }
    }
    Ok(())
}

fn read(tensor: Tensor<1>, count: usize) -> Result<Vec<f32>, DeviceError> {
    const DOING: &str = "reading the losses";
    let values = guarded(DOING, || tensor.try_into_vec_as::<f32>())?;
    let failed = |why: &str| DeviceError::broke(DOING, why);
    let values = values.map_err(|error| failed(&error.to_string()))?;
    if values.len() == count { Ok(values) } else { Err(failed("a loss has no value")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::Device;

    #[test]
    fn a_finite_gradient_ends_a_row_of_non_finite_ones() {
        let count_after = |norms: &[f32]| {
            let reader = LossReader::start(Recorder::off()).unwrap();
            for (step, &norm) in (1..).zip(norms) {
                let values = Tensor::from_floats([0.25, norm], &Device::flex());
                let losses = reader.promise(step, &["flow", "gradient"], values);
                assert_eq!(losses.len(), 2);
            }
            let count = reader.non_finite_in_a_row.clone();
            reader.finish().unwrap();
            count.load(Ordering::Relaxed)
        };
        assert_eq!(count_after(&[f32::NAN, f32::INFINITY, f32::NAN]), 3);
        assert_eq!(count_after(&[f32::NAN, f32::NAN, 0.5, f32::NAN]), 1);
        assert_eq!(count_after(&[f32::NAN, 0.5]), 0);
    }

    #[test]
    fn a_wait_ends_when_the_losses_are_read_or_cannot_be() {
        let reader = LossReader::start(Recorder::off()).unwrap();
        let values = |count| Tensor::<1>::ones([count], &Device::flex());
        let promised: Vec<_> =
            (1..=3).flat_map(|step| reader.promise(step, &["gradient"], values(1))).collect();
        reader.wait_for(0);
        assert!(promised.iter().all(|loss| loss.value.value() == Some(1.0)));
        // One value too few: the reader ends, and what is sent afterwards is never read.
        drop(reader.promise(4, &["flow", "gradient"], values(1)));
        reader.wait_for(0);
        drop(reader.promise(5, &["gradient"], values(1)));
        reader.wait_for(0);
        assert!(reader.finish().is_err());
    }
}
