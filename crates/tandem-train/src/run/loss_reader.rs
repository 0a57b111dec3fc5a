//! Losses on a device become numbers here, on a thread of their own: the training thread hands
//! over tensors and goes on.
//!
//! In: tensors with one number each, and promises. Out: the numbers, to whoever holds the other
//! ends; and how many steps in a row had none. Never makes the training thread wait: without
//! room the promises are dropped, and the record says that their values never came.

use crate::TrainError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use tandem_model::Tensor;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Loss, Warning};
use tandem_telemetry::pending::{Pending, Promise};

/// Steps whose losses may wait to be read.
const ROOM: usize = 64;

struct Reading {
    step: u64,
    values: Vec<(Tensor<1>, Promise<f32>)>,
    gradient: (Tensor<1>, Promise<f32>),
}

/// Owns the thread; dropping it reads what is left and ends it.
pub struct LossReader {
    sender: Option<SyncSender<Reading>>,
    thread: Option<JoinHandle<()>>,
    bad_in_a_row: Arc<AtomicU32>,
}

impl LossReader {
    /// Starts the thread.
    pub fn start(recorder: Recorder) -> Result<LossReader, TrainError> {
        let (sender, readings) = sync_channel(ROOM);
        let bad_in_a_row = Arc::new(AtomicU32::new(0));
        let bad = bad_in_a_row.clone();
        let thread = std::thread::Builder::new()
            .name("tandem-losses".into())
            .spawn(move || read_all(readings, &bad, &recorder))
            .map_err(TrainError::Thread)?;
        Ok(LossReader { sender: Some(sender), thread: Some(thread), bad_in_a_row })
    }

    /// Promises the numbers of a step's tensors.
    pub fn promise(
        &self,
        step: u64,
        losses: Vec<(&'static str, Tensor<1>)>,
        gradient: Tensor<1>,
    ) -> Vec<Loss> {
        let mut promised = Vec::with_capacity(losses.len() + 1);
        let mut promise = |name: &'static str, tensor| {
            let (promise, value) = Pending::later();
            promised.push(Loss { name: name.into(), value });
            (tensor, promise)
        };
        let values = losses.into_iter().map(|(name, tensor)| promise(name, tensor)).collect();
        let gradient = promise("gradient", gradient);
        if let Some(sender) = &self.sender {
            // Full, or gone after a device failed: the promises are dropped with the message.
            let _ = sender.try_send(Reading { step, values, gradient });
        }
        promised
    }

    /// Steps in a row, up to the last one read, whose gradient was no number.
    pub fn bad_in_a_row(&self) -> u32 {
        self.bad_in_a_row.load(Ordering::Relaxed)
    }
}

impl Drop for LossReader {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_all(readings: Receiver<Reading>, bad: &AtomicU32, recorder: &Recorder) {
    for Reading { step, values, gradient } in readings {
        for (tensor, promise) in values {
            if let Some(value) = number(tensor) {
                promise.keep(value);
            }
        }
        let (tensor, promise) = gradient;
        let Some(norm) = number(tensor) else { continue };
        promise.keep(norm);
        if norm.is_finite() {
            bad.store(0, Ordering::Relaxed);
        } else {
            bad.fetch_add(1, Ordering::Relaxed);
            let text = format!("step {step} was left out: its gradient is not a number");
            recorder.send(Warning { code: "not_a_number".into(), text });
        }
    }
}

fn number(tensor: Tensor<1>) -> Option<f32> {
    tensor.try_into_vec_as::<f32>().ok()?.first().copied()
}
