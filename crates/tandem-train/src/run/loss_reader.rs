//! Reads losses back from the device, on a thread of its own: the training thread passes tensors on
//! and never waits.
//!
//! In: one tensor for each step, and promises. Out: its values through the promises; how many steps in a row had a
//! non-finite gradient; and whether the device failed: work is asynchronous, so a read is the first to know.
//! Without room the promises are dropped, and the record says that the values are missing.

use crate::TrainError;
use crate::run::join::{ProgressCounter, Stuck, join_within};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
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
}

impl LossReader {
    /// Starts the thread.
    pub fn start(recorder: Recorder) -> Result<LossReader, TrainError> {
        let (sender, readings) = sync_channel(ROOM);
        let non_finite_in_a_row = Arc::new(AtomicU32::new(0));
        let (non_finite, progress) = (non_finite_in_a_row.clone(), ProgressCounter::default());
        let (counter, failure) = (progress.clone(), Arc::new(OnceLock::new()));
        let failed = failure.clone();
        let thread = std::thread::Builder::new()
            .name("tandem-losses".into())
            .spawn(move || {
                if let Err(error) = read_all(readings, &non_finite, &counter, &recorder) {
                    let _ = failed.set(error);
                }
            })
            .map_err(TrainError::Thread)?;
        let (sender, thread) = (Some(sender), Some(thread));
        Ok(LossReader { sender, thread, non_finite_in_a_row, failure, progress })
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
            let _ = sender.try_send(Reading { step, values, promises });
        }
        promised
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
    recorder: &Recorder,
) -> Result<(), DeviceError> {
    for Reading { step, values, promises } in readings {
        progress.advance();
        let values = read(values, promises.len())?;
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
}
