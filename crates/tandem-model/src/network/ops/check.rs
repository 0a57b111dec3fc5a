//! Shared by the tests of fused operations: inputs, and the comparison with the plain operation.
//!
//! Inputs are flat tensors that each test reshapes, so that one check works for all shapes. The reference is the plain operation
//! in double precision, its gradient verified by finite differences.

use burn::tensor::{DType, Device, Tensor, TensorData};

/// The CPU with autodiff.
pub(super) fn device() -> Device {
    Device::flex().autodiff()
}

/// Pseudo-random values between -1 and 1, the same in every run.
pub(super) fn noise(length: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    };
    (0..length).map(|_| next()).collect()
}

/// A tensor of [`noise`].
pub(super) fn noisy(length: usize, seed: u64) -> Tensor<1> {
    Tensor::from_data(TensorData::new(noise(length, seed), [length]), &device())
}

/// An operation on flat tensors.
pub(super) type Operation<'a> = &'a dyn Fn(&[Tensor<1>]) -> Tensor<1>;

/// The result of an operation and the gradients of its inputs, for a loss that weighs each element differently.
pub(super) fn result_and_gradients(
    inputs: &[Tensor<1>],
    operation: Operation<'_>,
) -> (Vec<f64>, Vec<Vec<f64>>) {
    let inputs: Vec<_> = inputs.iter().map(|input| input.clone().require_grad()).collect();
    let result = operation(&inputs);
    let gradients = loss(result.clone()).backward();
    let gradients = inputs.iter().map(|input| floats(input.grad(&gradients).unwrap())).collect();
    (floats(result), gradients)
}

/// Checks an operation with inputs of these lengths: its result and gradients against those of `plain` in double
/// precision, and those gradients against finite differences.
#[track_caller]
pub(super) fn agrees(lengths: &[usize], fused: Operation<'_>, plain: Operation<'_>) {
    let inputs: Vec<_> =
        lengths.iter().enumerate().map(|(seed, &length)| noisy(length, seed as u64)).collect();
    let (found, found_gradients) = result_and_gradients(&inputs, fused);
    let exact: Vec<_> = inputs.iter().map(|input| input.clone().cast(DType::F64)).collect();
    let (truth, true_gradients) = result_and_gradients(&exact, plain);
    close("result", &found, &truth);
    for (index, (found, truth)) in found_gradients.iter().zip(&true_gradients).enumerate() {
        close(&format!("gradient of input {index}"), found, truth);
        let slope = difference(&exact, index, plain);
        let direction = noise(truth.len(), 99);
        let along: f64 = truth.iter().zip(&direction).map(|(g, &d)| g * f64::from(d)).sum();
        let size = truth.iter().map(|g| g.abs()).sum::<f64>().max(1.0);
        assert!((slope - along).abs() < 1e-6 * size, "input {index}: {slope} against {along}");
    }
}

/// Compares two lists of values, relative to the largest.
#[track_caller]
pub(super) fn close(what: &str, found: &[f64], truth: &[f64]) {
    assert_eq!(found.len(), truth.len(), "{what}");
    let size = truth.iter().fold(1e-3, |most: f64, value| most.max(value.abs()));
    for (index, (found, truth)) in found.iter().zip(truth).enumerate() {
        let error = (found - truth).abs() / size;
        assert!(error < 2e-5, "{what}: element {index} is {found}, not {truth} (off by {error:e})");
    }
}

/// Runs a function on this number of threads.
pub(super) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// Checks that an operation gives the same bits on one, two and three threads, and each time.
#[track_caller]
pub(super) fn repeats(lengths: &[usize], operation: &(dyn Fn(&[Tensor<1>]) -> Tensor<1> + Sync)) {
    let once = |threads| {
        on_threads(threads, || {
            let inputs: Vec<_> = lengths
                .iter()
                .enumerate()
                .map(|(seed, &length)| noisy(length, seed as u64))
                .collect();
            result_and_gradients(&inputs, &operation)
        })
    };
    let first = once(1);
    for threads in [1, 2, 3] {
        assert!(once(threads) == first, "another result on {threads} threads");
    }
}

/// The values of a tensor.
pub(super) fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().convert::<f64>().try_to_vec().unwrap()
}

fn loss(result: Tensor<1>) -> Tensor<1> {
    let weights = noisy(result.dims()[0], 77).cast(result.dtype());
    (result * weights).sum()
}

/// The slope of the loss along a fixed direction of one input.
fn difference(inputs: &[Tensor<1>], index: usize, operation: Operation<'_>) -> f64 {
    let step = 1e-5;
    let direction = noisy(inputs[index].dims()[0], 99).cast(DType::F64);
    let at = |offset: f64| {
        let mut moved = inputs.to_vec();
        moved[index] = moved[index].clone() + direction.clone() * offset;
        floats(loss(operation(&moved)))[0]
    };
    (at(step) - at(-step)) / (2.0 * step)
}
