//! Training in 16 bits against training in 32, on the CPU, which rounds to 16 bits wherever a GPU's kernels do: losses of
//! 200 steps, the scale of the losses, and what is rounded.
#![expect(clippy::print_stderr, reason = "docs/devices.md has these figures")]

use tandem_data::batch::BatchShape;
use tandem_model::Device;
use tandem_model::gradients::LocalGradients;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::{Optimizer, OptimizerState};
use tandem_model::train_batch::{AlignedBatch, DeviceBatch};
use tandem_model::weights::weights_of;
use tandem_model::{Module, Tensor};
use tandem_train::run::step::{StepMetrics, TrainState};
use tandem_train::train_settings::{OptimizerSettings, Precision, TrainSettings};
use tandem_units::Seed;

const STEPS: u64 = 200;

fn settings(precision: Precision) -> TrainSettings {
    TrainSettings {
        precision,
        optimizer: OptimizerSettings { lr: 2e-3, warmup_steps: 20, ..OptimizerSettings::default() },
        ..TrainSettings::default()
    }
}

fn config() -> VoiceConfig {
    VoiceConfig::of(ModelSize::Micro, 12, 1, 20)
}

/// A batch with a text, a sound and noise of its own; the second row is shorter than the first.
fn batch(number: u64) -> DeviceBatch {
    let shape = BatchShape { rows: 3, frames: 40, symbols: 10 };
    let mut batch = AlignedBatch::fullest(shape, &config(), 16);
    batch.seed = Seed(number);
    for (at, symbol) in batch.symbol_ids.iter_mut().enumerate() {
        *symbol = 1 + ((at as u64 * 7 + number * 5) % 11) as i32;
    }
    let wave = |at: usize| (at as f32 * 0.61 + number as f32).sin();
    batch.mel.iter_mut().enumerate().for_each(|(at, value)| *value = wave(at));
    batch.reference.iter_mut().enumerate().for_each(|(at, value)| *value = wave(at + 9));
    batch.to_device(&Device::flex())
}

fn start(precision: Precision) -> TrainState {
    let device = Device::flex().autodiff();
    let compute = precision.compute();
    let voice = Voice::with_compute(compute, &config(), Seed(2), &device);
    let optimizer = Optimizer::new(&voice);
    TrainState::new(voice, optimizer, 0, &settings(precision), STEPS)
}

fn step(state: &mut TrainState) -> StepMetrics {
    state.accumulate_gradients(&batch(state.step % 4));
    state.optimizer_step(state.step + 1, &mut LocalGradients).unwrap().expect("a step with a batch")
}

/// A value of a step by its name.
fn find(metrics: &StepMetrics, name: &str) -> Option<f32> {
    let at = metrics.names.iter().position(|known| *known == name)?;
    Some(metrics.values.clone().try_into_vec_as::<f32>().unwrap()[at])
}

fn number(metrics: &StepMetrics, name: &str) -> f32 {
    find(metrics, name).unwrap_or_else(|| panic!("no `{name}` in {:?}", metrics.names))
}

/// The total loss of each step.
fn losses(precision: Precision) -> Vec<f32> {
    let mut state = start(precision);
    (0..STEPS).map(|_| number(&step(&mut state), "total")).collect()
}

fn values(voice: &Voice) -> Vec<f32> {
    let values = weights_of(voice).into_iter().map(|weight| weight.values);
    values.flat_map(|values| values.try_into_vec_as::<f32>().unwrap()).collect()
}

/// Mean and largest difference of the losses from those in 32 bits, relative to these.
fn differences(precision: Precision) -> (f32, f32) {
    let (exact, rounded) = (losses(Precision::F32), losses(precision));
    let off: Vec<f32> = exact.iter().zip(&rounded).map(|(a, b)| (a - b).abs() / a).collect();
    let (mean, most) =
        (off.iter().sum::<f32>() / off.len() as f32, off.iter().copied().fold(0.0, f32::max));
    eprintln!(
        "{precision:?}: losses {} to {}, off by {mean:.2e}, at most {most:.2e}",
        exact[0], exact[199]
    );
    assert!(exact[199] < 0.7 * exact[0], "nothing was learned: {} to {}", exact[0], exact[199]);
    (mean, most)
}

#[test]
fn losses_in_bf16_follow_those_in_32_bits() {
    let (mean, most) = differences(Precision::Bf16);
    assert!(mean > 1e-5, "nothing was rounded");
    assert!(mean < 2e-2 && most < 0.15, "{mean} {most}");
}

#[test]
fn losses_in_f16_follow_those_in_32_bits() {
    let (mean, most) = differences(Precision::F16);
    assert!(mean > 1e-6, "nothing was rounded");
    assert!(mean < 1e-2 && most < 6e-2, "{mean} {most}");
}

#[test]
fn weights_move_in_32_bits_by_less_than_their_rounded_copies_can() {
    let mut state = start(Precision::Bf16);
    let before = values(&state.voice);
    step(&mut state);
    // The first step moves each weight by a twentieth of the rate, 1e-4: less than the last bit of a bf16 near 0.1.
    let after = values(&state.voice);
    let moved = before.iter().zip(&after).filter(|(a, b)| a.abs() > 0.1 && a != b).count();
    let large = before.iter().filter(|value| value.abs() > 0.1).count();
    assert!(moved * 10 > large * 9, "{moved} of {large} weights moved");
}

/// A state whose losses are scaled by so much.
fn scaled_by(scale: f32) -> TrainState {
    let mut state = start(Precision::F16);
    let OptimizerState { mean, square, ema, .. } = state.optimizer.state();
    let scale = Tensor::from_floats([scale, 0.0], &Device::flex());
    state.optimizer.restore(OptimizerState { mean, square, ema, loss_scale: Some(scale) });
    state
}

#[test]
fn a_scale_that_overflows_is_halved_until_steps_change_the_weights() {
    let mut state = scaled_by(16_777_216.0);
    let mut skipped = 0;
    loop {
        let before = values(&state.voice);
        let metrics = step(&mut state);
        let scale = number(&metrics, "loss_scale");
        assert_eq!(scale, 16_777_216.0 / 2f32.powi(skipped), "after {skipped} steps");
        let changed = before != values(&state.voice);
        let finite = number(&metrics, "gradient").is_finite();
        assert_eq!(changed, finite, "step {}", state.step);
        if finite {
            break;
        }
        skipped += 1;
        assert!(skipped < 24, "no scale is small enough");
    }
    assert!(skipped > 0, "the largest scale must overflow");
}

#[test]
fn the_scale_does_not_change_what_is_learned() {
    let norm_with = |scale: f32| {
        let mut state = scaled_by(scale);
        (number(&step(&mut state), "gradient"), values(&state.voice))
    };
    let ((small, _), (large, _)) = (norm_with(64.0), norm_with(1024.0));
    assert!((small / large - 1.0).abs() < 1e-2, "{small} {large}");
}

#[test]
fn only_half_floats_scale_their_losses() {
    for precision in [Precision::F32, Precision::Bf16] {
        assert_eq!(find(&step(&mut start(precision)), "loss_scale"), None);
    }
    let mut state = start(Precision::F16);
    assert_eq!(number(&step(&mut state), "loss_scale"), 1024.0);
    assert!(state.voice.devices().iter().all(|device| device.is_autodiff()));
}
