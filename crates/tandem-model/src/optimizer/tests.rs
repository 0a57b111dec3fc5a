//! The step over joined weights, which GPUs take, against the step over each weight.

use super::*;
use crate::network::layers::{Init, Linear};
use burn::tensor::TensorData;
use tandem_units::Seed;

/// Lengths that fill their place in a buffer, and lengths that do not.
#[derive(Module, Debug)]
struct Layers {
    wide: Linear,
    narrow: Linear,
    unused: Linear,
}

fn layers() -> Layers {
    let device = Device::flex();
    let mut init = Init::new(Seed(3), &device);
    Layers {
        wide: Linear::new(&mut init, 16, 128),
        narrow: Linear::new(&mut init, 5, 7),
        unused: Linear::new(&mut init, 3, 3),
    }
}

fn settings(step: u64, clip: f64) -> StepSettings {
    StepSettings {
        rate: 0.01,
        weight_decay: 0.1,
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-8,
        clip,
        ema: 0.9,
        step,
        loss_scale: 1.0,
    }
}

/// Gradients of all weights except the last `without`.
fn gradients(step: u64, without: usize) -> GradientSum {
    let weights = weights_of(&layers());
    let with = weights.len() - without;
    let tensors = weights.iter().enumerate().map(|(at, weight)| {
        let [count] = weight.values.dims();
        let value = |i: usize| ((i * 7 + at * 13 + step as usize * 5) % 11) as f32 / 11.0 - 0.4;
        let values: Vec<f32> = (0..count).map(value).collect();
        (at < with).then(|| Tensor::from_data(TensorData::new(values, [count]), &Device::flex()))
    });
    GradientSum::new(tensors.collect(), 4, None)
}

type StepOn = fn(
    &mut Optimizer,
    Vec<Tensor<1>>,
    GradientSum,
    f64,
    &StepSettings,
) -> (Vec<Tensor<1>>, Tensor<1>);

/// Weights, state and norms after these gradients, one step each.
fn train(step_on: StepOn, sums: Vec<GradientSum>, clip: f64) -> Vec<Vec<f32>> {
    let layers = layers();
    let mut optimizer = Optimizer::new(&layers);
    let mut weights: Vec<Tensor<1>> = weights_of(&layers).into_iter().map(|w| w.values).collect();
    let mut norms = Vec::new();
    for (step, sum) in sums.into_iter().enumerate() {
        let settings = settings(step as u64 + 1, clip);
        let (moved, norm) = step_on(&mut optimizer, weights, sum, 0.25, &settings);
        weights = moved;
        norms.push(norm);
    }
    let OptimizerState { mean, square, ema } = optimizer.state();
    let state = [mean, square, ema].into_iter().flatten().map(|weight| weight.values);
    let all = weights.into_iter().chain(state).chain(norms);
    all.map(|tensor| tensor.try_into_vec_as().unwrap()).collect()
}

#[track_caller]
fn check_equal(sums: impl Fn() -> Vec<GradientSum>, clip: f64) {
    let each = train(Optimizer::step_on_host, sums(), clip);
    let joined = train(Optimizer::step_on_device, sums(), clip);
    assert_eq!(each.len(), joined.len());
    for (each, joined) in each.iter().zip(&joined) {
        assert_eq!(each.len(), joined.len());
        let off = each.iter().zip(joined).map(|(a, b)| (a - b).abs());
        assert!(off.clone().all(|off| off < 1e-6), "{:?}", off.fold(0.0, f32::max));
    }
}

#[test]
fn joined_weights_move_as_each_by_itself() {
    for clip in [0.0, 0.5, 100.0] {
        check_equal(|| (0..3).map(|step| gradients(step, 0)).collect(), clip);
    }
}

#[test]
fn weights_without_a_gradient_keep_their_values_and_state() {
    check_equal(|| (0..3).map(|step| gradients(step, 2)).collect(), 0.5);
}

#[test]
fn a_weight_may_lose_its_gradient_and_get_it_again() {
    check_equal(|| vec![gradients(0, 0), gradients(1, 2), gradients(2, 0)], 0.5);
}

#[test]
fn a_step_with_a_non_finite_gradient_changes_nothing() {
    let broken = || {
        let mut tensors = gradients(1, 0).into_tensors();
        tensors[0] = tensors[0].clone().map(|gradient| gradient * f32::NAN);
        GradientSum::new(tensors, 4, None)
    };
    let [with, without] = [
        train(Optimizer::step_on_device, vec![gradients(0, 0), broken()], 0.5),
        train(Optimizer::step_on_device, vec![gradients(0, 0)], 0.5),
    ];
    assert_eq!(with[..without.len() - 1], without[..without.len() - 1]);
    assert!(with.last().unwrap()[0].is_nan());
}

#[test]
fn a_restored_state_continues_as_the_saved_one() {
    let layers = layers();
    let weights: Vec<Tensor<1>> = weights_of(&layers).into_iter().map(|w| w.values).collect();
    let mut first = Optimizer::new(&layers);
    let (weights, _) = first.step_on_device(weights, gradients(0, 0), 0.25, &settings(1, 0.5));
    let mut second = Optimizer::new(&layers);
    second.restore(first.state());
    let next = |mut optimizer: Optimizer, weights: Vec<Tensor<1>>| -> Vec<Vec<f32>> {
        let settings = settings(2, 0.5);
        let (moved, _) = optimizer.step_on_device(weights, gradients(1, 0), 0.25, &settings);
        moved.into_iter().map(|weight| weight.try_into_vec_as().unwrap()).collect()
    };
    assert_eq!(next(first, weights.clone()), next(second, weights));
}
