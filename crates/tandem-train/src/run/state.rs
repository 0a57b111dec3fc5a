//! Converts a training run to the contents of a checkpoint, and back.
//!
//! In: training state, the aligner snapshots that coming steps need, the data position. Out:
//! [`Contents`]; and from these the same run, bit for bit on the CPU. Whether the state fits the
//! voice, the corpus and the settings is checked by [`crate::run::resume`] before it is used.

use crate::TrainError;
use crate::feed::{FeedSettings, Rows};
use crate::prepare::Prepared;
use crate::run::fine_tune::TakenOver;
use crate::train_settings::TrainSettings;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_data::batch::Position;
use tandem_data::cache::EntryBuffer;
use tandem_device::memory::Charge;
use tandem_model::checkpoint::{CheckpointError, Contents, TensorSet, Values};
use tandem_model::network::voice::{Encoder, Voice};
use tandem_model::optimizer::{Optimizer, OptimizerState};
use tandem_model::trained_voice::{
    EMA, SPEAKERS, VOICE, VoiceDocument, WEIGHTS, host_values, tensor_set,
};
use tandem_model::weights::{Weight, WeightsError, weights_of, with_named};
use tandem_model::{Device, Module, Tensor, TensorData};

pub(crate) const MOMENTS: &str = "moments";
/// Among the moments: the scale of the losses.
const LOSS_SCALE: &str = "loss_scale";
const ALIGNER_SNAPSHOTS: &str = "aligner_snapshots";
pub(crate) const STATE: &str = "state";
/// The document with all settings of the run.
pub const CONFIG: &str = "config";

/// The state of a run, apart from its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunState {
    /// The next batch of the plan.
    pub position: Position,
    /// The number of the next batch, counted over the whole run.
    pub next_batch: u64,
    pub corpus: CorpusFacts,
    /// The settings of the run that wrote the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<TrainSettings>,
    /// The voice that the run started from, if it was fine-tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<TakenOver>,
    /// The ranks that trained together.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub ranks: usize,
    // In files of earlier versions. `best.json` alone says which checkpoint is the best, and on which rows.
    #[serde(default, skip_serializing)]
    pub(crate) best: IgnoredAny,
    #[serde(default, skip_serializing)]
    pub(crate) since_best: IgnoredAny,
    #[serde(default, skip_serializing)]
    pub(crate) validation: IgnoredAny,
}

fn one() -> usize {
    1
}

fn is_one(count: &usize) -> bool {
    *count == 1
}

impl RunState {
    /// The state before the first step, with the data at `position`.
    pub fn new(
        prepared: &Prepared,
        feed: &FeedSettings,
        settings: &TrainSettings,
        position: Position,
    ) -> RunState {
        RunState {
            position,
            next_batch: 0,
            corpus: corpus_facts(prepared, feed),
            // Where a run is stored does not belong to its state.
            settings: Some(TrainSettings { checkpoint_dir: None, ..settings.clone() }),
            taken_over: None,
            ranks: feed.shard.ranks,
            best: IgnoredAny,
            since_best: IgnoredAny,
            validation: IgnoredAny,
        }
    }
}

/// Must be equal for a run to resume without any change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusFacts {
    /// Training rows.
    pub rows: usize,
    /// Hash of their lengths, texts and speakers.
    pub fingerprint: String,
    /// Hash of the batch settings.
    pub batches: String,
}

/// Input of a checkpoint: clones of tensor handles, which copy no data. The checkpoint writer reads
/// the values back from the device.
pub struct Snapshot {
    pub step: u64,
    pub state: RunState,
    pub document: Arc<VoiceDocument>,
    /// Reference segments of the speakers: `[frames, bands]` each.
    pub speakers: Arc<Vec<Vec<f32>>>,
    /// All settings, for people and for comparison.
    pub config: serde_json::Value,
    /// Trained weights, not their moving average.
    pub weights: Vec<Weight>,
    pub optimizer: OptimizerState,
    /// Text encoders that align coming steps, by step.
    pub aligner_snapshots: Vec<(u64, Encoder)>,
    pub memory: Charge,
}

/// What the checkpoint writer writes.
pub trait CheckpointSource: Send + 'static {
    /// Completed steps.
    fn step(&self) -> u64;

    /// Copies everything to the host. Waits for the device.
    fn contents(&self) -> Result<Contents, CheckpointError>;
}

impl CheckpointSource for Snapshot {
    fn step(&self) -> u64 {
        self.step
    }

    fn contents(&self) -> Result<Contents, CheckpointError> {
        let mut contents = Contents::new(self.step);
        contents.add_document(VOICE, &*self.document)?;
        contents.add_document(STATE, &self.state)?;
        contents.add_document(CONFIG, &self.config)?;
        add_weights(&mut contents, &self.weights, &self.optimizer)?;
        let aligner_snapshots: Vec<Weight> = self
            .aligner_snapshots
            .iter()
            .flat_map(|(step, encoder)| {
                prefixed(&step.to_string(), &weights_of(encoder)).collect::<Vec<_>>()
            })
            .collect();
        contents.tensors.insert(ALIGNER_SNAPSHOTS.into(), tensor_set(&aligner_snapshots)?);
        contents.tensors.insert(SPEAKERS.into(), self.speaker_set()?);
        Ok(contents)
    }
}

/// Adds weights and the optimizer's state, of a voice or a vocoder.
pub(crate) fn add_weights(
    contents: &mut Contents,
    weights: &[Weight],
    optimizer: &OptimizerState,
) -> Result<(), CheckpointError> {
    contents.tensors.insert(WEIGHTS.into(), tensor_set(weights)?);
    contents.tensors.insert(EMA.into(), tensor_set(&optimizer.ema)?);
    let moments = prefixed("mean", &optimizer.mean).chain(prefixed("square", &optimizer.square));
    let loss_scale = optimizer.loss_scale.iter().map(|values| Weight {
        name: LOSS_SCALE.into(),
        shape: vec![2],
        values: values.clone(),
    });
    let moments: Vec<Weight> = moments.chain(loss_scale).collect();
    contents.tensors.insert(MOMENTS.into(), tensor_set(&moments)?);
    Ok(())
}

impl Snapshot {
    fn speaker_set(&self) -> Result<TensorSet, CheckpointError> {
        let bands = self.document.config.bands;
        let mut set = TensorSet::new();
        for (number, mel) in self.speakers.iter().enumerate() {
            let shape = [mel.len() / bands, bands];
            set.insert(&number.to_string(), &shape, Values::F32(mel.clone()))?;
        }
        Ok(set)
    }
}

fn prefixed<'a>(prefix: &'a str, weights: &'a [Weight]) -> impl Iterator<Item = Weight> + 'a {
    weights.iter().map(move |weight| Weight {
        name: format!("{prefix}.{}", weight.name),
        shape: weight.shape.clone(),
        values: weight.values.clone(),
    })
}

/// A run read from a checkpoint.
pub struct Resumed {
    pub step: u64,
    pub state: RunState,
    pub document: VoiceDocument,
    /// Reference segments of the speakers: `[frames, bands]` each.
    pub speakers: Vec<Vec<f32>>,
    /// On the model device, with autodiff.
    pub voice: Voice,
    pub optimizer: Optimizer,
    /// Text encoders by step.
    pub aligner_snapshots: BTreeMap<u64, Encoder>,
    /// The settings of the run that wrote it.
    pub config: serde_json::Value,
}

impl Resumed {
    /// Reads a run's contents. `fresh` is a voice of the same shape on the model device, with
    /// autodiff. Its weights are replaced.
    pub fn read(
        mut contents: Contents,
        document: VoiceDocument,
        fresh: Voice,
    ) -> Result<Resumed, TrainError> {
        let model_device = fresh.devices()[0].clone().inner();
        let state: RunState = contents.document(STATE)?;
        let config = contents.document(CONFIG)?;
        let weights = contents.take_tensors(WEIGHTS)?;
        let voice = with_named(fresh, |name| host_values(&weights, name), &model_device)?;
        let mut optimizer = Optimizer::new(&voice);
        optimizer.restore(read_optimizer(&mut contents, &voice, &model_device)?);
        let aligner_snapshots = read_aligner_snapshots(
            &contents.take_tensors(ALIGNER_SNAPSHOTS)?,
            &voice,
            &model_device,
        )?;
        let set = contents.take_tensors(SPEAKERS)?;
        let segment = |n: usize| host_values(&set, &n.to_string()).map_or(Vec::new(), |v| v.1);
        let speakers = (0..document.speakers.len()).map(segment).collect();
        let step = contents.step;
        Ok(Resumed { step, state, document, speakers, voice, optimizer, aligner_snapshots, config })
    }
}

/// The optimizer's state of a module with these weights.
pub(crate) fn read_optimizer<M: Module>(
    contents: &mut Contents,
    module: &M,
    device: &Device,
) -> Result<OptimizerState, TrainError> {
    let (ema, moments) = (contents.take_tensors(EMA)?, contents.take_tensors(MOMENTS)?);
    let weights = weights_of(module);
    let read = |set: &TensorSet, prefix: &str| -> Result<Vec<Weight>, TrainError> {
        let one = |Weight { name, shape, .. }: &Weight| {
            let key = format!("{prefix}{name}");
            let values = tensor_of(set, &key, shape, device)?;
            Ok(Weight { name: name.clone(), shape: shape.clone(), values })
        };
        weights.iter().map(one).collect()
    };
    // Only runs with half floats have one.
    let loss_scale = match host_values(&moments, LOSS_SCALE) {
        Some(_) => Some(tensor_of(&moments, LOSS_SCALE, &[2], device)?),
        None => None,
    };
    Ok(OptimizerState {
        mean: read(&moments, "mean.")?,
        square: read(&moments, "square.")?,
        ema: read(&ema, "")?,
        loss_scale,
    })
}

fn tensor_of(
    set: &TensorSet,
    name: &str,
    expected: &[usize],
    device: &Device,
) -> Result<Tensor<1>, WeightsError> {
    let name = name.to_string();
    let Some((shape, values)) = host_values(set, &name) else {
        return Err(WeightsError::Missing { name });
    };
    if shape != expected {
        return Err(WeightsError::Shape { name, found: shape, expected: expected.to_vec() });
    }
    let count = values.len();
    Ok(Tensor::from_data(TensorData::new(values, [count]), device))
}

fn read_aligner_snapshots(
    set: &TensorSet,
    voice: &Voice,
    device: &Device,
) -> Result<BTreeMap<u64, Encoder>, TrainError> {
    let steps = set.iter().filter_map(|(name, _)| name.split('.').next()?.parse().ok());
    let steps: std::collections::BTreeSet<u64> = steps.collect();
    let mut aligner_snapshots = BTreeMap::new();
    for step in steps {
        let named = |name: &str| host_values(set, &format!("{step}.{name}"));
        let plain = voice.encoder.valid();
        aligner_snapshots.insert(step, with_named(plain, named, device)?);
    }
    Ok(aligner_snapshots)
}

/// Hashes of a corpus and its batch settings, compared when a run is resumed.
pub fn corpus_facts(prepared: &Prepared, feed: &FeedSettings) -> CorpusFacts {
    let rows = Rows::of(prepared, feed.split);
    let mut hash = blake3::Hasher::new();
    let mut buffer = EntryBuffer::default();
    for (index, &number) in rows.cache_row.iter().enumerate() {
        let Some(row) = prepared.cache.row(number as usize) else { continue };
        hash.update(row.id.as_bytes());
        hash.update(&rows.frames[index].to_le_bytes());
        hash.update(&rows.speakers[index].to_le_bytes());
        if let Some(text) = prepared.cache.text(row.record, &mut buffer) {
            text.symbols().for_each(|symbol| {
                hash.update(&symbol.to_le_bytes());
            });
        }
    }
    let batches = serde_json::to_vec(&(&feed.batch, feed.shapes)).unwrap_or_default();
    CorpusFacts {
        rows: rows.cache_row.len(),
        fingerprint: hash.finalize().to_hex().as_str()[..32].to_string(),
        batches: blake3::hash(&batches).to_hex().as_str()[..32].to_string(),
    }
}

/// The rows that validation measures, for comparison: losses on other rows cannot be compared with theirs.
pub fn validation_rows(validation: Option<&Prepared>, feed: &FeedSettings) -> String {
    let feed = FeedSettings { split: None, ..feed.clone() };
    let own = || "held-out rows of the corpus".to_string();
    validation.map_or_else(own, |corpus| corpus_facts(corpus, &feed).fingerprint)
}
