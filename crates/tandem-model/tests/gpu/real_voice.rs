//! A small voice with all parts and batches for it, trained on any devices.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use tandem_data::batch::HostBatch;
use tandem_device::placement::OpenDevices;
use tandem_model::gradients::GradientSum;
use tandem_model::network::size::VoiceConfig;
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::{Optimizer, StepSettings};
use tandem_model::train_batch::{AlignedBatch, DeviceBatch};
use tandem_model::weights::{Weight, weights_of};
use tandem_units::Seed;

/// Equal sizes: drivers compile and tune for each new shape, which takes seconds on software devices.
const SIZE: usize = 16;
const ROWS: usize = 2;
const SYMBOLS: usize = 8;

/// All parts of a voice, one block each.
pub fn config() -> VoiceConfig {
    VoiceConfig {
        symbols: SIZE,
        languages: 2,
        bands: SIZE,
        text_width: SIZE,
        text_blocks: 1,
        decoder_width: SIZE,
        decoder_blocks: 1,
        head_width: SIZE,
        voice_width: SIZE,
        patch: 2,
    }
}

/// A corner of a batch with these frames as the batch of a step: symbols as long as each other,
/// the beginning of the next row as reference, padding in the last row.
pub fn batch(batch: &HostBatch, mel: &[f32], step: u64) -> AlignedBatch {
    let (shape, bands) = (batch.shape(), batch.bands());
    let (symbol_counts, frame_counts) = (vec![SYMBOLS, 5], vec![SIZE, 10]);
    let corner = |row: usize| -> Vec<f32> {
        let frames = mel[row * shape.frames * bands..].chunks_exact(bands).take(SIZE);
        frames.flat_map(|frame| &frame[..SIZE]).map(|value| (value + 5.0) / 2.0).collect()
    };
    let mut durations = vec![0; ROWS * SYMBOLS];
    let mut symbol_ids = vec![0; ROWS * SYMBOLS];
    for row in 0..ROWS {
        let (symbols, frames) = (symbol_counts[row], frame_counts[row]);
        for at in 0..symbols {
            let place = row * SYMBOLS + at;
            durations[place] = (frames * (at + 1) / symbols - frames * at / symbols) as u32;
            symbol_ids[place] = (1 + at + row) as i32;
        }
    }
    AlignedBatch {
        rows: ROWS,
        symbols: SYMBOLS,
        frames: SIZE,
        bands: SIZE,
        patch: 2,
        symbol_counts,
        frame_counts,
        symbol_ids,
        languages: vec![0, 1],
        durations,
        mel: [corner(0), corner(1)].concat(),
        reference_frames: SIZE,
        reference: [corner(1), corner(0)].concat(),
        reference_counts: vec![SIZE, 8],
        seed: Seed(step),
    }
}

/// The result of a few steps.
#[derive(Default)]
pub struct Ran {
    /// The loss of each step, per utterance.
    pub losses: Vec<f32>,
    /// The devices on the model side: batches, weights, gradients, optimizer state.
    pub on_model: Vec<Transferred>,
}

/// A tensor by its name, and its device.
pub struct Transferred {
    pub what: String,
    pub device: Device,
}

/// Trains from the same seed: each batch to the model device, one step.
pub fn train(devices: &OpenDevices, batches: &[AlignedBatch]) -> Ran {
    let mut voice = Voice::new(&config(), Seed(7), &devices.model.clone().autodiff());
    let mut optimizer = Optimizer::new(&voice);
    let mut ran = Ran::default();
    for (number, batch) in batches.iter().enumerate() {
        let batch = batch.to_device(&devices.model);
        ran.on_model.extend(tensors_of(&batch));
        let losses = voice.losses(&batch);
        let mut sum = GradientSum::default();
        sum.add(&voice, losses.total().backward(), batch.utterances);
        ran.on_model.extend(gradients(&voice, &sum));
        let total = losses.total().into_scalar::<f32>() / batch.utterances as f32;
        ran.losses.push(total);
        let (moved, _) = optimizer.step(voice, sum, &settings(number as u64 + 1));
        voice = moved;
        ran.on_model.extend(state(&voice, &optimizer));
    }
    ran
}

pub fn settings(step: u64) -> StepSettings {
    StepSettings {
        rate: 1e-3,
        weight_decay: 0.01,
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-8,
        clip: 1.0,
        ema: 0.9,
        step,
    }
}

/// Gradients of every weight that has one.
fn gradients(voice: &Voice, sum: &GradientSum) -> Vec<Transferred> {
    let weights = weights_of(voice);
    let placed = |(weight, gradient): (&Weight, &Option<Tensor<1>>)| {
        let gradient = gradient.as_ref()?;
        Some(Transferred {
            what: format!("gradient of {}", weight.name),
            device: gradient.device(),
        })
    };
    let placed: Vec<Transferred> = weights.iter().zip(sum.tensors()).filter_map(placed).collect();
    assert!(placed.len() * 10 >= weights.len() * 9, "gradients flow: {}", placed.len());
    placed
}

fn state(voice: &Voice, optimizer: &Optimizer) -> Vec<Transferred> {
    let state = optimizer.state();
    let lists = [
        ("weight", weights_of(voice)),
        ("mean gradient", state.mean),
        ("mean square", state.square),
        ("running mean", state.ema),
    ];
    let placed = |what: &'static str, weight: Weight| Transferred {
        what: format!("{what} {}", weight.name),
        device: weight.values.device(),
    };
    let named = |(what, list): (&'static str, Vec<Weight>)| {
        list.into_iter().map(move |weight| placed(what, weight))
    };
    let module =
        voice.devices().into_iter().map(|device| Transferred { what: "module".into(), device });
    lists.into_iter().flat_map(named).chain(module).collect()
}

/// Every tensor of a batch. The pattern is exhaustive, so that new fields are not forgotten.
fn tensors_of(batch: &DeviceBatch) -> Vec<Transferred> {
    let DeviceBatch {
        symbols,
        languages,
        text,
        positions,
        log_durations,
        symbol_weight,
        frame_symbols,
        position_symbols,
        mel,
        frame_weight,
        reference,
        reference_mask,
        noise,
        times,
        time_features,
        utterances: _,
    } = batch;
    let named = [
        ("symbols", symbols.device()),
        ("languages", languages.device()),
        ("text mask", text.mask().device()),
        ("position mask", positions.mask().device()),
        ("durations", log_durations.device()),
        ("symbol weight", symbol_weight.device()),
        ("frame symbols", frame_symbols.device()),
        ("position symbols", position_symbols.device()),
        ("mel", mel.device()),
        ("frame weight", frame_weight.device()),
        ("reference", reference.device()),
        ("reference mask", reference_mask.device()),
        ("noise", noise.device()),
        ("times", times.device()),
        ("time features", time_features.device()),
    ];
    named.into_iter().map(|(what, device)| Transferred { what: what.into(), device }).collect()
}
