//! One AdamW step over one tensor, with clipping and the moving average of the weights in the same pass.
//!
//! In: weights, their gradient, their state. Out: the updated weights and state. The caller iterates over the parameters;
//! for the global norm it first sums [`sum_of_squares`] over all gradients. On the CPU, tensors without another
//! reference are changed in place; elsewhere the same maths runs as ordinary operations.

use burn::backend::flex::FlexTensor;
use burn::backend::{DispatchDevice, Flex};
use burn::tensor::{DType, Tensor};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::fused::values;
use super::lanes::{run, sum_of};

/// Settings of one step, the same for every tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Learning rate.
    pub rate: f32,
    /// Decay of the first moment.
    pub beta_1: f32,
    /// Decay of the second moment.
    pub beta_2: f32,
    pub epsilon: f32,
    /// Decoupled weight decay; zero for biases and norms.
    pub decay: f32,
    /// Decay of the moving average of the weights.
    pub ema: f32,
    /// From 1, for the bias correction.
    pub step: u64,
    /// Factor of each gradient, from [`clip_factor`].
    pub gradient_factor: f32,
}

/// The optimizer state of one tensor.
#[derive(Clone, Debug)]
pub struct Moments<const D: usize> {
    /// First moment of the gradients.
    pub mean: Tensor<D>,
    /// Second moment of the gradients.
    pub square: Tensor<D>,
    /// Moving average of the weights.
    pub ema: Tensor<D>,
}

impl<const D: usize> Moments<D> {
    /// The state before the first step: zero moments, and the weights as moving average.
    pub fn new(weight: &Tensor<D>) -> Moments<D> {
        let weight = weight.clone().inner().detach();
        Moments { mean: weight.zeros_like(), square: weight.zeros_like(), ema: weight }
    }
}

/// Elements of one task.
const CHUNK: usize = 16_384;

/// Updates one tensor of weights. No tensor here is on an autodiff device.
pub fn adamw_step<const D: usize>(
    weight: Tensor<D>,
    gradient: Tensor<D>,
    moments: Moments<D>,
    settings: &AdamW,
) -> (Tensor<D>, Moments<D>) {
    let Moments { mean, square, ema } = moments;
    if ![&weight, &gradient, &mean, &square, &ema].into_iter().all(on_cpu) {
        return adamw_step_plain(weight, gradient, Moments { mean, square, ema }, settings);
    }
    let gradient = readable(gradient);
    let mut state = [weight, mean, square, ema].map(primitive);
    {
        let [weight, mean, square, ema] = state.each_mut().map(FlexTensor::storage_mut::<f32>);
        step_in_parallel(Step { weight, mean, square, ema, gradient: values(&gradient), settings });
    }
    let [weight, mean, square, ema] = state.map(Tensor::from_primitive::<Flex>);
    (weight, Moments { mean, square, ema })
}

/// [`adamw_step`] from ordinary operations.
pub fn adamw_step_plain<const D: usize>(
    weight: Tensor<D>,
    gradient: Tensor<D>,
    moments: Moments<D>,
    settings: &AdamW,
) -> (Tensor<D>, Moments<D>) {
    let s = settings;
    let gradient = gradient * s.gradient_factor;
    let mean = moments.mean * s.beta_1 + gradient.clone() * (1.0 - s.beta_1);
    let square = moments.square * s.beta_2 + gradient.powi_scalar(2) * (1.0 - s.beta_2);
    let (mean_rate, square_factor) = s.corrections();
    let move_by = mean.clone() * mean_rate / (square.clone().sqrt() * square_factor + s.epsilon);
    let weight = weight * (1.0 - s.rate * s.decay) - move_by;
    let ema = moments.ema * s.ema + weight.clone() * (1.0 - s.ema);
    (weight, Moments { mean, square, ema })
}

impl AdamW {
    /// The bias-corrected learning rate, and the bias correction of the square root of the second moment.
    pub(super) fn corrections(&self) -> (f32, f32) {
        let step = self.step.max(1) as f64;
        let young = |beta: f32| 1.0 - f64::from(beta).powf(step);
        let rate = f64::from(self.rate) / young(self.beta_1);
        (rate as f32, young(self.beta_2).sqrt().recip() as f32)
    }
}

/// The sum of squares of one gradient, for the global norm. Waits for the device.
pub fn sum_of_squares<const D: usize>(gradient: &Tensor<D>) -> f64 {
    if !on_cpu(gradient) {
        return f64::from(gradient.clone().powi_scalar(2).sum().into_scalar::<f32>());
    }
    let gradient = readable(gradient.clone());
    let chunk = |chunk: &[f32]| f64::from(run(Squares(chunk)));
    match values(&gradient) {
        small if small.len() <= CHUNK => chunk(small),
        large => large.par_chunks(CHUNK).map(chunk).collect::<Vec<_>>().into_iter().sum(),
    }
}

/// The factor of gradients that limits their global norm to `limit`.
pub fn clip_factor(sum_of_squares: f64, limit: f32) -> f32 {
    let norm = sum_of_squares.sqrt();
    if norm > f64::from(limit) { (f64::from(limit) / norm) as f32 } else { 1.0 }
}

/// Whether a tensor is on the CPU backend itself, in single precision.
fn on_cpu<const D: usize>(tensor: &Tensor<D>) -> bool {
    let flex = matches!(tensor.device().as_dispatch(), DispatchDevice::Flex(_));
    flex && tensor.dtype() == DType::F32
}

fn primitive<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    tensor.try_into_primitive::<Flex>().expect("a tensor that is on the CPU").to_contiguous()
}

/// A tensor to read from: a part of another tensor is read where it is.
fn readable<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    let tensor = tensor.try_into_primitive::<Flex>().expect("a tensor that is on the CPU");
    if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

fn step_in_parallel(step: Step<'_>) {
    let Step { weight, mean, square, ema, gradient, settings } = step;
    // Shorter ones would leave the rest of the weight as it is, without a word.
    let lengths = [mean.len(), square.len(), ema.len(), gradient.len()];
    assert_eq!(lengths, [weight.len(); 4], "a weight has other sizes than its state");
    // For a small tensor, waking other threads takes longer than the work.
    if weight.len() <= CHUNK {
        return run(Step { weight, mean, square, ema, gradient, settings });
    }
    weight
        .par_chunks_mut(CHUNK)
        .zip(mean.par_chunks_mut(CHUNK))
        .zip(square.par_chunks_mut(CHUNK))
        .zip(ema.par_chunks_mut(CHUNK))
        .zip(gradient.par_chunks(CHUNK))
        .for_each(|((((weight, mean), square), ema), gradient)| {
            run(Step { weight, mean, square, ema, gradient, settings });
        });
}

struct Step<'a> {
    weight: &'a mut [f32],
    mean: &'a mut [f32],
    square: &'a mut [f32],
    ema: &'a mut [f32],
    gradient: &'a [f32],
    settings: &'a AdamW,
}

impl WithSimd for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let s = *self.settings;
        let (mean_rate, square_factor) = s.corrections();
        let keep = 1.0 - s.rate * s.decay;
        let length = self.weight.len();
        let (weight, mean) = (&mut self.weight[..length], &mut self.mean[..length]);
        let (square, ema) = (&mut self.square[..length], &mut self.ema[..length]);
        let gradient = &self.gradient[..length];
        for index in 0..length {
            let slope = gradient[index] * s.gradient_factor;
            mean[index] = s.beta_1.mul_add(mean[index], (1.0 - s.beta_1) * slope);
            square[index] = s.beta_2.mul_add(square[index], (1.0 - s.beta_2) * slope * slope);
            let size = square[index].sqrt().mul_add(square_factor, s.epsilon);
            weight[index] = weight[index].mul_add(keep, -(mean_rate * mean[index] / size));
            ema[index] = s.ema.mul_add(ema[index], (1.0 - s.ema) * weight[index]);
        }
    }
}

struct Squares<'a>(&'a [f32]);

impl WithSimd for Squares<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> f32 {
        sum_of(self.0, |value| value * value)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor, TensorData};

    use super::*;
    use crate::network::ops::check::{close, floats, noise, on_threads};

    const SETTINGS: AdamW = AdamW {
        rate: 0.01,
        beta_1: 0.9,
        beta_2: 0.99,
        epsilon: 1e-8,
        decay: 0.1,
        ema: 0.95,
        step: 1,
        gradient_factor: 0.5,
    };

    fn tensor(length: usize, seed: u64) -> Tensor<1> {
        Tensor::from_data(TensorData::new(noise(length, seed), [length]), &Device::flex())
    }

    type StepOn = fn(Tensor<1>, Tensor<1>, Moments<1>, &AdamW) -> (Tensor<1>, Moments<1>);

    fn three_steps(step_on: StepOn, length: usize) -> [Vec<f64>; 4] {
        let mut weight = tensor(length, 1);
        let mut moments = Moments::new(&weight);
        for step in 1..4 {
            let settings = AdamW { step, ..SETTINGS };
            (weight, moments) = step_on(weight, tensor(length, 1 + step), moments, &settings);
        }
        [weight, moments.mean, moments.square, moments.ema].map(floats)
    }

    #[test]
    fn it_agrees_with_the_plain_operation() {
        for length in [1, 100, 40_000] {
            let plain = three_steps(adamw_step_plain, length);
            for (found, truth) in three_steps(adamw_step, length).iter().zip(&plain) {
                close("after three steps", found, truth);
            }
        }
    }

    /// AdamW as in its paper (Loshchilov and Hutter, Algorithm 2), for one weight in double precision.
    fn three_steps_by_the_paper(length: usize) -> [Vec<f64>; 4] {
        let all = |seed: u64| noise(length, seed).into_iter().map(f64::from).collect::<Vec<_>>();
        let (mut weight, mut average) = (all(1), all(1));
        let (mut mean, mut square) = (vec![0.0; length], vec![0.0; length]);
        for step in 1..4 {
            let gradient = all(1 + step);
            for i in 0..length {
                let slope = 0.5 * gradient[i];
                mean[i] = 0.9 * mean[i] + 0.1 * slope;
                square[i] = 0.99 * square[i] + 0.01 * slope * slope;
                let unbiased_mean = mean[i] / (1.0 - 0.9_f64.powi(step as i32));
                let unbiased_square: f64 = square[i] / (1.0 - 0.99_f64.powi(step as i32));
                let adam = unbiased_mean / (unbiased_square.sqrt() + 1e-8);
                weight[i] -= 0.01 * (adam + 0.1 * weight[i]);
                average[i] = 0.95 * average[i] + 0.05 * weight[i];
            }
        }
        [weight, mean, square, average]
    }

    #[test]
    fn steps_have_the_numbers_of_the_paper() {
        let truth = three_steps_by_the_paper(50);
        for step_on in [adamw_step as StepOn, adamw_step_plain] {
            let found = three_steps(step_on, 50);
            for (part, (found, truth)) in found.iter().zip(&truth).enumerate() {
                let off = found.iter().zip(truth).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-6, "part {part}: {off}");
            }
        }
    }

    /// One step of one weight, computed by hand: weight 0.5, gradient 0.2 times factor 0.5.
    #[test]
    fn the_first_step_has_the_numbers_computed_by_hand() {
        let one = |value: f32| Tensor::<1>::from_floats([value], &Device::flex());
        let moments = Moments::new(&one(0.5));
        let (weight, moments) = adamw_step(one(0.5), one(0.2), moments, &SETTINGS);
        let found = [weight, moments.mean, moments.square, moments.ema].map(|t| floats(t)[0]);
        // 0.5 - 0.01 * (1 + 0.1 * 0.5); 0.1 * 0.1; 0.01 * 0.1^2; 0.95 * 0.5 + 0.05 * weight.
        for (found, truth) in found.into_iter().zip([0.4895, 0.01, 1e-4, 0.499_475]) {
            assert!((found - truth).abs() < 1e-7, "{found} {truth}");
        }
    }

    #[test]
    fn tensors_with_other_references_are_not_changed() {
        let (weight, gradient) = (tensor(30, 1), tensor(30, 2));
        let other = weight.clone();
        adamw_step(weight, gradient.clone(), Moments::new(&other), &SETTINGS);
        assert_eq!(floats(other), floats(tensor(30, 1)));
        assert_eq!(floats(gradient), floats(tensor(30, 2)));
    }

    #[test]
    fn a_part_of_a_longer_gradient_has_the_bits_of_a_tensor_of_its_own() {
        let whole = tensor(60_000, 2);
        let (part, own) = (whole.clone().slice(17..40_017), noise(60_000, 2)[17..40_017].to_vec());
        let own = Tensor::from_data(TensorData::new(own, [40_000]), &Device::flex());
        assert_eq!(sum_of_squares(&part), sum_of_squares(&own));
        let step = |gradient| {
            let weight = tensor(40_000, 1);
            let moments = Moments::new(&weight);
            let (weight, moments) = adamw_step(weight, gradient, moments, &SETTINGS);
            [weight, moments.mean, moments.square, moments.ema].map(floats)
        };
        assert_eq!(step(part), step(own));
    }

    #[test]
    fn it_is_the_same_on_any_number_of_threads() {
        let once = |threads| {
            on_threads(threads, || {
                (three_steps(adamw_step, 50_000), sum_of_squares(&tensor(50_000, 1)))
            })
        };
        let first = once(1);
        assert!([1, 2, 3].into_iter().all(|threads| once(threads) == first));
    }

    #[test]
    fn clipping_limits_the_norm_and_does_not_change_small_ones() {
        let gradient = tensor(40_000, 1);
        let squares = sum_of_squares(&gradient);
        let truth: f64 = floats(gradient.clone()).iter().map(|value| value * value).sum();
        assert!((squares - truth).abs() < 1e-6 * truth);
        let clipped = gradient * clip_factor(squares, 1.0);
        assert!((sum_of_squares(&clipped) - 1.0).abs() < 1e-5);
        assert_eq!(clip_factor(squares, 1e6), 1.0);
    }
}
