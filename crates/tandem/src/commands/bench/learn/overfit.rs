//! Overfits one batch: a trainer that cannot do that cannot learn at all.

use super::super::target::{Limit, Target};
use crate::failure::{Failure, Result};
use crate::printer::Printer;
use std::path::Path;
use std::sync::Arc;
use tandem_data::batch::BatchConfig;
use tandem_model::alignment::Aligner;
use tandem_model::gradients::LocalGradients;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::Optimizer;
use tandem_model::{Device, Module};
use tandem_pipeline::{CancelToken, Stage};
use tandem_telemetry::Recorder;
use tandem_train::feed::align::Align;
use tandem_train::feed::align::flat_start::estimate_flat_start;
use tandem_train::feed::align::snapshots::AlignerSnapshots;
use tandem_train::feed::mel_scale::measure_mel_scale;
use tandem_train::feed::{FeedSettings, feed};
use tandem_train::prepare::row::Features;
use tandem_train::run::background::BackgroundPool;
use tandem_train::run::step::{StepMetrics, TrainState};
use tandem_train::train_settings::{AlignmentSettings, OptimizerSettings, TrainSettings};
use tandem_train::{DataSettings, PrepareOptions, Watcher, prepare};
use tandem_units::Seed;

const STEPS: u64 = 300;
/// Steps over which losses are averaged, at the start and at the end.
const MEAN: usize = 5;

struct Unwatched;

impl Watcher for Unwatched {
    fn waiting_for(&mut self, _: &str) {}
    fn progress(&mut self, _: usize, _: usize) {}
}

/// Losses of a step: prior and flow.
type Losses = [f64; 2];

pub fn measure(corpus: &Path, batch_size: usize, out: &mut Printer) -> Result<Vec<Target>> {
    let losses = learn_by_heart(corpus, batch_size, out)?;
    let mean = |part: usize, steps: &[Losses]| {
        steps.iter().map(|losses| losses[part]).sum::<f64>() / steps.len() as f64
    };
    let figure = |name: &str, part: usize| {
        let (first, last) =
            (mean(part, &losses[..MEAN]), mean(part, &losses[losses.len() - MEAN..]));
        let how = format!("{first:.3} to {last:.3} in {STEPS} steps on one batch of {batch_size}");
        Target::new(name, 100.0 * (1.0 - last / first), "%", Limit::AtLeast(80.0), how)
    };
    Ok(vec![figure("overfit, prior loss falls", 0), figure("overfit, flow loss falls", 1)])
}

fn learn_by_heart(corpus: &Path, batch_size: usize, out: &Printer) -> Result<Vec<Losses>> {
    let cancel = CancelToken::new();
    let data = DataSettings::default();
    let options = PrepareOptions { features: Features::Cached, ..PrepareOptions::default() };
    let prepared = Arc::new(prepare(corpus, &data, &options, &mut Unwatched, &cancel)?);
    let batch = BatchConfig { batch_size, ..BatchConfig::default() };
    let settings = FeedSettings { reference_frames: 128, ..FeedSettings::new(batch) };
    let scale = measure_mel_scale(&prepared, &settings, &cancel)?;
    let symbols = prepared.front_end.table().len();
    let languages = prepared.cache.meta().languages.len();
    let config = VoiceConfig::of(ModelSize::Tiny, symbols, languages, data.mel.bands);
    let device = Device::flex();
    let voice = Voice::new(&config, Seed(0), &device.clone().autodiff());
    let train = TrainSettings {
        optimizer: OptimizerSettings { warmup_steps: 20, lr: 2e-3, ..Default::default() },
        ..TrainSettings::default()
    };
    let alignment = AlignmentSettings { flat_start: STEPS, ..AlignmentSettings::default() };
    let encoder = voice.encoder.valid();
    let mut align = Align {
        flat_start: Some(estimate_flat_start(&prepared, &settings, &scale, &cancel)?),
        flat_start_steps: alignment.flat_start,
        snapshots: AlignerSnapshots::new(alignment, [(0, encoder)].into()),
        device: device.clone(),
        scale,
        patch: config.patch,
        batches_per_step: 1,
        seed: Seed(0),
        cancel: cancel.clone(),
        recorder: Recorder::off(),
        pool: BackgroundPool::default(),
        aligner: Aligner::default(),
    };
    let ready = feed(&prepared, &settings, &Recorder::off(), &cancel)?.next()?;
    let mut aligned = Vec::new();
    let ready = ready.ok_or_else(|| Failure::bare("the corpus gives no batch"))?;
    align.step(ready, &mut aligned).map_err(|fault| Failure::bare(format!("{fault:?}")))?;
    let mut batch = aligned.remove(0).batch;
    let optimizer = Optimizer::new(&voice);
    let mut train_state = TrainState::new(voice, optimizer, 0, &train, STEPS);
    let mut shown = out.progress("learning one batch by heart", STEPS);
    let mut losses = Vec::new();
    for step in 0..STEPS {
        // New noise and flow times in each step, so that the noise is not memorized.
        batch.seed = Seed(step);
        train_state.accumulate_gradients(&batch.to_device(&device));
        let next = train_state.step + 1;
        if let Some(facts) = train_state.optimizer_step(next, &mut LocalGradients)? {
            let values: Vec<f64> = facts.values.into_data().iter().collect();
            let value = |name| StepMetrics::NAMES.iter().position(|known| *known == name);
            losses.push([value("prior"), value("flow")].map(|at| at.map_or(0.0, |at| values[at])));
        }
        shown.at(step + 1);
    }
    shown.done();
    Ok(losses)
}
