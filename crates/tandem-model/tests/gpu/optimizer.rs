//! The optimizer's step on a GPU, over all weights at once, against the step of the CPU, over each weight.

use crate::{alone, placed};
use burn::module::Module;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use tandem_model::gradients::GradientSum;
use tandem_model::network::layers::{Init, Linear};
use tandem_model::optimizer::{Optimizer, OptimizerState, StepSettings};
use tandem_model::weights::{rounded_copy, weights_of};
use tandem_units::Seed;

/// Lengths that fill their place in a buffer, and lengths that do not; longer than a cube's part, and more weights than
/// one launch takes on every device.
#[derive(Module, Debug)]
struct Layers {
    large: Linear,
    wide: Linear,
    narrow: Linear,
    many: Vec<Linear>,
    unused: Linear,
}

fn layers(device: &Device) -> Layers {
    let mut init = Init::new(Seed(3), device);
    Layers {
        large: Linear::new(&mut init, 100, 200),
        wide: Linear::new(&mut init, 16, 128),
        narrow: Linear::new(&mut init, 5, 7),
        many: (0..32).map(|_| Linear::new(&mut init, 2, 3)).collect(),
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
    }
}

/// Gradients of all weights except the last `without`.
fn gradients(step: u64, without: usize, device: &Device) -> GradientSum {
    let weights = weights_of(&layers(device));
    let with = weights.len() - without;
    let tensors = weights.iter().enumerate().map(|(at, weight)| {
        let [count] = weight.values.dims();
        let value = |i: usize| ((i * 7 + at * 13 + step as usize * 5) % 11) as f32 / 11.0 - 0.4;
        let values: Vec<f32> = (0..count).map(value).collect();
        (at < with).then(|| Tensor::from_data(TensorData::new(values, [count]), device))
    });
    GradientSum::new(tensors.collect(), 4, None)
}

/// A step with a gradient that is not finite.
fn broken(value: f32, device: &Device) -> GradientSum {
    let mut tensors = gradients(1, 0, device).into_tensors();
    tensors[0] = tensors[0].clone().map(|gradient| gradient * value);
    GradientSum::new(tensors, 4, None)
}

/// Weights, state and norms after these gradients, one step each.
fn train(sums: Vec<GradientSum>, clip: f64, device: &Device) -> Vec<Vec<f32>> {
    let mut layers = layers(device);
    let mut optimizer = Optimizer::new(&layers);
    let mut norms = Vec::new();
    for (step, sum) in sums.into_iter().enumerate() {
        let (moved, result) = optimizer.step(layers, sum, &settings(step as u64 + 1, clip));
        layers = moved;
        norms.push(result.gradient_norm);
    }
    let OptimizerState { mean, square, ema, .. } = optimizer.state();
    let all = [weights_of(&layers), mean, square, ema].into_iter().flatten();
    let all = all.map(|weight| weight.values).chain(norms);
    all.map(|tensor| tensor.try_into_vec_as().unwrap()).collect()
}

/// Steps with these numbers of weights without a gradient, on the CPU and on a GPU.
#[track_caller]
fn check_equal(without: &[usize], clip: f64) {
    let on = |device: &Device| {
        let steps = without.iter().enumerate();
        let sums = steps.map(|(step, &without)| gradients(step as u64, without, device));
        train(sums.collect(), clip, device)
    };
    let (each, joined) = (on(&Device::flex()), on(&placed(0, 1).open().unwrap().model));
    assert_eq!(each.len(), joined.len());
    for (each, joined) in each.iter().zip(&joined) {
        let most = each.iter().fold(1.0, |most: f32, value| most.max(value.abs()));
        let off = crate::largest(each, joined);
        assert!(off <= 2e-6 * most, "clip {clip}, without {without:?}: off by {off} of {most}");
    }
}

#[test]
fn weights_on_a_gpu_move_as_on_the_cpu() {
    let _alone = alone();
    for clip in [0.0, 0.5, 1000.0] {
        check_equal(&[0, 0, 0], clip);
    }
}

#[test]
fn weights_on_a_gpu_without_a_gradient_keep_their_values_and_state() {
    let _alone = alone();
    check_equal(&[2, 2, 2], 0.5);
}

#[test]
fn a_weight_on_a_gpu_may_lose_its_gradient_and_get_it_again() {
    let _alone = alone();
    check_equal(&[0, 2, 0], 0.5);
}

#[test]
fn a_step_on_a_gpu_with_a_non_finite_gradient_changes_nothing() {
    let _alone = alone();
    let gpu = placed(0, 1).open().unwrap().model;
    let without = train(vec![gradients(0, 0, &gpu)], 0.5, &gpu);
    let same = without.len() - 1;
    for value in [f32::NAN, f32::INFINITY] {
        let with = train(vec![gradients(0, 0, &gpu), broken(value, &gpu)], 0.5, &gpu);
        assert!(with[..same] == without[..same], "{value}");
        assert!(!with.last().unwrap()[0].is_finite());
    }
}

#[test]
fn a_restored_state_on_a_gpu_continues_as_the_saved_one() {
    let _alone = alone();
    let gpu = placed(0, 1).open().unwrap().model;
    let mut first = Optimizer::new(&layers(&gpu));
    let (moved, _) = first.step(layers(&gpu), gradients(0, 0, &gpu), &settings(1, 0.5));
    let saved = first.state();
    let mut second = Optimizer::new(&moved);
    second.restore(saved.clone());
    let next = |mut optimizer: Optimizer| -> Vec<Vec<f32>> {
        let moved = optimizer.step(moved.clone(), gradients(1, 0, &gpu), &settings(2, 0.5)).0;
        let values = weights_of(&moved).into_iter().map(|weight| weight.values);
        values.map(|values| values.try_into_vec_as().unwrap()).collect()
    };
    let before: Vec<f32> = saved.mean[0].values.clone().try_into_vec_as().unwrap();
    assert!(next(first) == next(second));
    // The step changed the state in place; who holds the old one still has it.
    let after: Vec<f32> = saved.mean[0].values.clone().try_into_vec_as().unwrap();
    assert!(before == after && before.iter().any(|&value| value != 0.0));
}

/// Steps in 16 bits: gradients of products in this type, rounded copies of their weights, a scale of the losses. Returns the
/// weights, then their copies, then the scale after each step.
fn train_rounded(dtype: FloatDType, factors: &[f32], device: &Device) -> Vec<Vec<f32>> {
    let mut layers = layers(device);
    let mut copy = rounded_copy(&layers, dtype);
    let mut optimizer = Optimizer::new(&layers).scaling_losses(device);
    let mut found = Vec::new();
    for (step, factor) in factors.iter().enumerate() {
        let types: Vec<DType> =
            weights_of(&copy).iter().map(|weight| weight.values.dtype()).collect();
        assert!(types.contains(&DType::F32) && types.contains(&DType::from(dtype)));
        let tensors = gradients(step as u64, 0, device).into_tensors().into_iter().zip(types);
        let round = |(tensor, dtype): (Option<Tensor<1>>, DType)| {
            tensor.map(|gradient| (gradient * *factor).cast(dtype))
        };
        let sum = GradientSum::new(tensors.map(round).collect(), 4, None);
        let settings = settings(step as u64 + 1, 0.5);
        optimizer.step_both(&mut layers, Some(&mut copy), sum, &settings);
        found.push(optimizer.state().loss_scale.unwrap());
    }
    let all = [weights_of(&layers), weights_of(&copy)].into_iter().flatten();
    let all = all.map(|weight| weight.values).chain(found);
    all.map(|tensor| tensor.try_into_vec_as().unwrap()).collect()
}

#[test]
fn a_step_in_16_bits_on_a_gpu_writes_rounded_copies_and_keeps_the_scale_of_the_losses() {
    let _alone = alone();
    let gpu = placed(0, 1).open().unwrap().model;
    let types = [FloatDType::F16, FloatDType::BF16];
    let mut tested = 0;
    for dtype in types.into_iter().filter(|dtype| gpu.supports_dtype(DType::from(*dtype))) {
        tested += 1;
        // The second step overflows: it changes nothing but the scale.
        let factors = [1024.0, f32::INFINITY, 512.0];
        let on = |device: &Device| train_rounded(dtype, &factors, device);
        let (host, device) = (on(&Device::flex()), on(&gpu));
        let weights = (host.len() - factors.len()) / 2;
        for (at, (host, device)) in host.iter().zip(&device).enumerate() {
            let tolerance = if at < weights { 4e-6 } else { 1e-2 };
            let most = host.iter().fold(1.0, |most: f32, value| most.max(value.abs()));
            let off = crate::largest(host, device);
            assert!(off <= tolerance * most, "{dtype:?} {at}: off by {off} of {most}");
        }
        let scales = &device[2 * weights..];
        assert_eq!(scales, [[1024.0, 1.0], [512.0, 0.0], [512.0, 1.0]], "{dtype:?}");
        // Copies are the rounded weights of the same step, to the last bit.
        for (weight, copy) in device[..weights].iter().zip(&device[weights..2 * weights]) {
            let weight = Tensor::<1>::from_floats(weight.as_slice(), &Device::flex());
            let rounded: Vec<f32> =
                weight.clone().cast(dtype).cast(FloatDType::F32).try_into_vec_as().unwrap();
            let same: Vec<f32> = weight.try_into_vec_as().unwrap();
            assert!(*copy == rounded || *copy == same, "{dtype:?}");
        }
    }
    assert!(tested > 0, "the device has no type of 16 bits, so nothing is tested");
}
