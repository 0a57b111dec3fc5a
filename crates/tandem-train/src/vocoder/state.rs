//! The state of a vocoder run: new, as a checkpoint saves it, and resumed from one.
//!
//! In: a corpus, settings, devices, and for a resumed run the newest whole checkpoint. Out: [`VocoderStart`]; a resumed run
//! continues bit for bit on the CPU. A run whose corpus or mel settings changed is refused. Next: [`super::trainer`].

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::feed::mel_scale::measure_mel_scale;
use crate::prepare::Prepared;
use crate::run::plan::total_steps;
use crate::run::state::{
    CONFIG, CheckpointSource, RunState, STATE, add_weights, corpus_facts, read_optimizer,
};
use crate::run::step::learning_rate;
use crate::train_settings::{OptimizerSettings, TrainSettings};
use std::sync::Arc;
use tandem_data::batch::Position;
use tandem_device::placement::OpenDevices;
use tandem_model::checkpoint::{CheckpointError, Checkpoints, Contents, Loaded};
use tandem_model::gradients::GradientSum;
use tandem_model::optimizer::{Optimizer, OptimizerState, StepSettings};
use tandem_model::trained_voice::{WEIGHTS, host_values};
use tandem_model::vocoder::VocoderError;
use tandem_model::vocoder::neural::config::{VocoderConfig, VocoderSize};
use tandem_model::vocoder::neural::losses::{VocoderLosses, log_magnitudes, losses};
use tandem_model::vocoder::neural::network::VocoderNetwork;
use tandem_model::vocoder::neural::segment::DeviceSegments;
use tandem_model::vocoder::neural::trained::{
    VOCODER, VOCODER_VERSION, VocoderDocument, read_document,
};
use tandem_model::weights::{Weight, weights_of, with_named};
use tandem_model::{Module, Tensor};
use tandem_pipeline::CancelToken;

/// Weights, optimizer and completed steps.
pub struct VocoderTrainState {
    /// With gradients.
    pub network: VocoderNetwork,
    pub optimizer: Optimizer,
    /// Completed steps, those without a batch included.
    pub step: u64,
    settings: OptimizerSettings,
    ema_decay: f64,
    total_steps: u64,
    gradients: GradientSum,
    /// Sums over the batches of the step under way.
    losses: Option<VocoderLosses>,
    /// The weights are being changed. Still set after a panic.
    half_changed: bool,
}

/// What a step gave: means over its segments, still on the device.
pub struct VocoderStep {
    /// All values, in the order of [`VocoderStep::NAMES`].
    pub values: Tensor<1>,
    /// The learning rate.
    pub rate: f64,
    pub segments: usize,
}

impl VocoderStep {
    /// The losses; the norm of the mean gradient, non-finite where the step changed nothing.
    pub const NAMES: [&str; 4] = ["total", "convergence", "magnitude", "gradient"];
}

impl VocoderTrainState {
    /// Adds the gradients of a batch to those of this step.
    pub fn accumulate_gradients(&mut self, batch: &DeviceSegments) {
        let inputs = batch.autodiff();
        let losses = losses(log_magnitudes(&self.network, &inputs), &inputs);
        self.gradients.add(&self.network, losses.total().backward(), batch.segments);
        let losses = losses.inner();
        self.losses = Some(match self.losses.take() {
            Some(before) => before + losses,
            None => losses,
        });
    }

    /// Completes step number `step` (counted from 1). Without gradients the step exists and changes nothing.
    pub fn optimizer_step(&mut self, step: u64) -> Option<VocoderStep> {
        // The rate of a step is that of the steps before it.
        let rate = learning_rate(&self.settings, step - 1, self.total_steps);
        let gradients = std::mem::take(&mut self.gradients);
        let Some(sums) = self.losses.take() else {
            self.step = step;
            return None;
        };
        let segments = gradients.utterances;
        let settings = self.step_settings(step, rate);
        self.half_changed = true;
        let moved = self.optimizer.step_in(&mut self.network, gradients, &settings);
        let share = 1.0 / segments.max(1) as f32;
        let losses = sums * share;
        (self.step, self.half_changed) = (step, false);
        let values =
            vec![losses.total(), losses.convergence, losses.magnitude, moved.gradient_norm];
        Some(VocoderStep { values: Tensor::cat(values, 0), rate, segments })
    }

    /// Whether weights and optimizers are those of a complete step. A checkpoint of anything else would be worthless.
    pub fn is_complete(&self) -> bool {
        !self.half_changed
    }

    fn step_settings(&self, step: u64, rate: f64) -> StepSettings {
        let s = &self.settings;
        // A new moving average follows quickly, or it would consist of the first weights for long.
        let young = step as f64 / (9.0 + step as f64);
        StepSettings {
            rate,
            weight_decay: s.weight_decay,
            beta1: s.beta1,
            beta2: s.beta2,
            epsilon: s.epsilon,
            clip: s.clip,
            ema: self.ema_decay.min(young),
            step,
        }
    }

    /// The network for inference: the moving average of the weights where one is computed.
    pub fn inference_network(&self) -> VocoderNetwork {
        match self.ema_decay > 0.0 {
            true => self.optimizer.averaged(&self.network),
            false => self.network.valid(),
        }
    }
}

/// A run before its first step in this process.
pub struct VocoderStart {
    pub train_state: VocoderTrainState,
    pub state: RunState,
    pub document: Arc<VocoderDocument>,
    /// Newer checkpoints that are damaged, each in a sentence.
    pub damaged: Vec<String>,
}

/// What a run is started with.
pub struct VocoderInputs<'a> {
    pub prepared: &'a Arc<Prepared>,
    pub feed: &'a FeedSettings,
    pub settings: &'a TrainSettings,
    pub size: VocoderSize,
    pub devices: &'a OpenDevices,
    pub checkpoints: &'a Checkpoints,
    pub cancel: &'a CancelToken,
}

impl VocoderInputs<'_> {
    /// A new run. The directory must not hold one already.
    pub fn begin(&self) -> Result<VocoderStart, TrainError> {
        if let Some(found) = self.checkpoints.load_newest()? {
            let directory = self.checkpoints.directory().to_path_buf();
            return Err(TrainError::RunExists { directory, step: found.contents.step });
        }
        let mel = self.prepared.settings.mel.clone();
        let config = VocoderConfig::of(self.size, &mel)?;
        let scale = measure_mel_scale(self.prepared, self.feed, self.cancel)?;
        let document =
            VocoderDocument { version: VOCODER_VERSION, size: self.size, config, scale, mel };
        let network = self.initial(&document.config);
        let optimizer = Optimizer::new(&network);
        let position = Position::start(self.feed.batch.seed);
        Ok(VocoderStart {
            train_state: self.train_state(network, optimizer, 0)?,
            state: RunState::new(self.prepared, self.feed, self.settings, position),
            document: Arc::new(document),
            damaged: Vec::new(),
        })
    }

    /// Resumes the newest whole checkpoint of the directory.
    pub fn resume(&self) -> Result<VocoderStart, TrainError> {
        let Some(Loaded { mut contents, path, passed_over, .. }) =
            self.checkpoints.load_newest()?
        else {
            let directory = self.checkpoints.directory().to_path_buf();
            return Err(TrainError::NothingToResume { directory });
        };
        let document = read_document(&contents, &path).map_err(VocoderError::from)?;
        let state: RunState = contents.document(STATE)?;
        self.compare(&document, &state, contents.step)?;
        let device = &self.devices.model;
        let weights = contents.take_tensors(WEIGHTS)?;
        let initial = self.initial(&document.config);
        let network = with_named(initial, |name| host_values(&weights, name), device)?;
        let mut optimizer = Optimizer::new(&network);
        optimizer.restore(read_optimizer(&mut contents, &network, device)?);
        let now = RunState::new(self.prepared, self.feed, self.settings, state.position);
        Ok(VocoderStart {
            train_state: self.train_state(network, optimizer, contents.step)?,
            state: RunState { settings: now.settings, ..state },
            document: Arc::new(document),
            damaged: passed_over.iter().map(ToString::to_string).collect(),
        })
    }

    fn initial(&self, config: &VocoderConfig) -> VocoderNetwork {
        let device = self.devices.model.clone().autodiff();
        VocoderNetwork::new(config, self.settings.seed, &device)
    }

    fn train_state(
        &self,
        network: VocoderNetwork,
        optimizer: Optimizer,
        step: u64,
    ) -> Result<VocoderTrainState, TrainError> {
        Ok(VocoderTrainState {
            network,
            optimizer,
            step,
            settings: self.settings.optimizer.clone(),
            ema_decay: self.settings.ema_decay,
            total_steps: total_steps(self.prepared, self.feed, self.settings)?,
            gradients: GradientSum::default(),
            losses: None,
            half_changed: false,
        })
    }

    /// What a saved vocoder must share with the corpus and the settings.
    fn compare(
        &self,
        document: &VocoderDocument,
        state: &RunState,
        step: u64,
    ) -> Result<(), TrainError> {
        let refused = |what: String, way_out: String| {
            let or = "or start a new run in another `--checkpoint-dir`";
            Err(TrainError::Incompatible { step, what, way_out: format!("{way_out}, {or}") })
        };
        if document.size != self.size {
            let (saved, now) = (document.size.name(), self.size.name());
            return refused(
                format!("its vocoder is of size {saved}, `--size {now}` is set now"),
                format!("type `--size {saved}`"),
            );
        }
        if document.mel != self.prepared.settings.mel {
            return refused(
                "it was trained on mel frames with other settings".into(),
                "use the mel settings of its `config.toml`".into(),
            );
        }
        if state.corpus != corpus_facts(self.prepared, self.feed) {
            return refused(
                "the corpus, the batch size or the seed changed since the checkpoint".into(),
                "use the corpus and settings of its `config.toml`".into(),
            );
        }
        Ok(())
    }
}

/// Input of a checkpoint: clones of tensor handles, which copy no data.
pub struct VocoderSnapshot {
    pub step: u64,
    pub state: RunState,
    pub document: Arc<VocoderDocument>,
    /// All settings, for people.
    pub config: serde_json::Value,
    weights: Vec<Weight>,
    optimizer: OptimizerState,
}

impl VocoderSnapshot {
    pub fn of(
        train_state: &VocoderTrainState,
        state: RunState,
        document: &Arc<VocoderDocument>,
        config: serde_json::Value,
    ) -> VocoderSnapshot {
        VocoderSnapshot {
            step: train_state.step,
            state,
            document: document.clone(),
            config,
            weights: weights_of(&train_state.network),
            optimizer: train_state.optimizer.state(),
        }
    }
}

impl CheckpointSource for VocoderSnapshot {
    fn step(&self) -> u64 {
        self.step
    }

    fn contents(&self) -> Result<Contents, CheckpointError> {
        let mut contents = Contents::new(self.step);
        contents.add_document(VOCODER, &*self.document)?;
        contents.add_document(STATE, &self.state)?;
        contents.add_document(CONFIG, &self.config)?;
        add_weights(&mut contents, &self.weights, &self.optimizer)?;
        Ok(contents)
    }
}
