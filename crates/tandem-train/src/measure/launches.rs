//! What training steps ask of the CUDA driver: launches, copies, waits, allocations.
//!
//! In: a model, the shape of its batches, open devices. Out: [`LaunchCounts`]. The steps are those of the trainer.
//! Needs the stand-in driver of `tools/cuda-stand-in`, which counts; it computes nothing meanwhile, so that large
//! models are counted quickly.

use crate::TrainError;
use crate::run::step::TrainState;
use crate::train_settings::TrainSettings;
use serde::Serialize;
use tandem_data::batch::BatchShape;
use tandem_device::backend::{DeviceError, DriverCounts, stop_computing, wait_for, with_costs};
use tandem_device::placement::OpenDevices;
use tandem_model::Device;
use tandem_model::between_threads::flush;
use tandem_model::gradients::LocalGradients;
use tandem_model::network::size::VoiceConfig;
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::Optimizer;
use tandem_model::train_batch::{AlignedBatch, UploadedBatch};

/// Steps before counting: kernels are compiled and tuned.
const WARM_UP: u64 = 6;
const REFERENCE_FRAMES: usize = 64;

/// What the driver did for a number of steps.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LaunchCounts {
    pub steps: u64,
    /// Batches to the model device.
    pub upload: DriverCounts,
    /// Losses, gradients, weights: the calls of the training thread.
    pub training: DriverCounts,
    /// Launches of the optimizer, when it starts after all gradients are computed.
    pub optimizer_launches: u64,
    /// The same steps as CUDA graphs.
    pub replayed: DriverCounts,
}

/// Whether the driver also logs what each launch of a further step costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costs {
    Logged,
    NotLogged,
}

/// Counts steps of a new model, each with one batch without padding.
pub fn count_launches(
    config: &VoiceConfig,
    settings: &TrainSettings,
    shape: BatchShape,
    devices: &OpenDevices,
    steps: u64,
    costs: Costs,
) -> Result<LaunchCounts, TrainError> {
    now()?;
    stop_computing();
    let batch = AlignedBatch::fullest(shape, config, REFERENCE_FRAMES);
    let uploads = |count: u64| -> Vec<UploadedBatch> {
        (0..count).map(|_| batch.pack().upload(&devices.model)).collect()
    };
    let device = devices.model.clone().autodiff();
    let voice = Voice::with_compute(settings.precision.compute(), config, settings.seed, &device);
    let optimizer = Optimizer::new(&voice);
    let mut state = TrainState::new(voice, optimizer, 0, settings, 1000);
    state.fix_in_place(&batch.to_device(&devices.model));
    let mut counter = Counter { devices, own_waits: 0 };
    train(&mut state, uploads(WARM_UP), &devices.model)?;
    let before = counter.finish_work()?;
    let batches = uploads(steps);
    let uploaded = counter.finish_work()?;
    train(&mut state, batches, &devices.model)?;
    let trained = counter.finish_work()?;
    let mut optimizer_launches = 0;
    for batch in uploads(steps) {
        state.accumulate_gradients(&batch.tensors());
        let before = counter.finish_work()?;
        state.optimizer_step(state.step + 1, &mut LocalGradients)?;
        optimizer_launches += (counter.finish_work()? - before).launches;
    }
    if costs == Costs::Logged {
        let batches = uploads(1);
        counter.finish_work()?;
        with_costs(|| {
            train(&mut state, batches, &devices.model)?;
            counter.finish_work()
        })?;
    }
    state.capture(&batch.pack().upload(&devices.model), &devices.model)?;
    // The first replay needs memory for its result.
    train(&mut state, uploads(1), &devices.model)?;
    let batches = uploads(steps);
    let captured = counter.finish_work()?;
    train(&mut state, batches, &devices.model)?;
    let replayed = counter.finish_work()? - captured;
    let (upload, training) = (uploaded - before, trained - uploaded);
    Ok(LaunchCounts { steps, upload, training, optimizer_launches, replayed })
}

fn train(
    state: &mut TrainState,
    batches: Vec<UploadedBatch>,
    device: &Device,
) -> Result<(), TrainError> {
    for batch in batches {
        state.take_batch(&batch);
        state.optimizer_step(state.step + 1, &mut LocalGradients)?;
        flush(device);
    }
    Ok(())
}

/// The counts of the driver without the waits that counting needs.
struct Counter<'a> {
    devices: &'a OpenDevices,
    own_waits: u64,
}

impl Counter<'_> {
    /// Waits for all queued work, and returns the counts then.
    fn finish_work(&mut self) -> Result<DriverCounts, TrainError> {
        // The first wait may end with work of its own; the second is nothing but waiting.
        self.wait()?;
        self.own_waits += 2 * self.wait()?;
        let counts = now()?;
        let synchronisations = counts.synchronisations - self.own_waits;
        Ok(DriverCounts { synchronisations, ..counts })
    }

    /// The synchronisations of waiting for both devices.
    fn wait(&self) -> Result<u64, TrainError> {
        let before = now()?.synchronisations;
        for device in [&self.devices.data, &self.devices.model] {
            wait_for(device, "counting launches")?;
        }
        Ok(now()?.synchronisations - before)
    }
}

fn now() -> Result<DriverCounts, TrainError> {
    Ok(DriverCounts::now().ok_or(DeviceError::NotCounted)?)
}
