//! One step of the optimiser over one tensor: AdamW, with clipping and the running mean of the weights in the same
//! pass.
//!
//! In: weights, their gradient, their state. Out: the same, moved by one step. The caller walks the parameters;
//! for the global norm it first adds up [`sum_of_squares`] over all gradients.

use burn::tensor::Tensor;

/// What one step needs to know; the same for every tensor of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Learning rate of this step.
    pub rate: f32,
    /// Decay of the mean of the gradients.
    pub beta_1: f32,
    /// Decay of the mean of their squares.
    pub beta_2: f32,
    /// Keeps the division finite.
    pub epsilon: f32,
    /// Weight decay, apart from the gradient; zero for biases and norms.
    pub decay: f32,
    /// Decay of the running mean of the weights.
    pub ema: f32,
    /// Which step this is, from one, for the correction of the young means.
    pub step: u64,
    /// What each gradient is multiplied by before anything else: from [`clip_factor`].
    pub gradient_factor: f32,
}

/// The state that travels with one tensor of weights.
#[derive(Clone, Debug)]
pub struct Moments<const D: usize> {
    /// Mean of the gradients.
    pub mean: Tensor<D>,
    /// Mean of their squares.
    pub square: Tensor<D>,
    /// Running mean of the weights.
    pub ema: Tensor<D>,
}

impl<const D: usize> Moments<D> {
    /// The state before the first step: no gradient seen, the running mean at the weights themselves.
    pub fn new(weight: &Tensor<D>) -> Moments<D> {
        let weight = weight.clone().inner().detach();
        Moments { mean: weight.zeros_like(), square: weight.zeros_like(), ema: weight }
    }
}

/// Moves one tensor of weights by one step. No tensor here is on an autodiff device.
pub fn adamw_step<const D: usize>(
    weight: Tensor<D>,
    gradient: Tensor<D>,
    moments: Moments<D>,
    settings: &AdamW,
) -> (Tensor<D>, Moments<D>) {
    adamw_step_plain(weight, gradient, moments, settings)
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
    /// The learning rate corrected for a young mean, and the factor of the root of a young mean of squares.
    fn corrections(&self) -> (f32, f32) {
        let step = self.step.max(1) as f64;
        let young = |beta: f32| 1.0 - f64::from(beta).powf(step);
        (
            (f64::from(self.rate) / young(self.beta_1)) as f32,
            young(self.beta_2).sqrt().recip() as f32,
        )
    }
}

/// The sum of squares of one gradient, for the global norm. Reads the device back.
pub fn sum_of_squares<const D: usize>(gradient: &Tensor<D>) -> f64 {
    f64::from(gradient.clone().powi_scalar(2).sum().into_scalar::<f32>())
}

/// What gradients are multiplied by so that their global norm is at most `limit`.
pub fn clip_factor(sum_of_squares: f64, limit: f32) -> f32 {
    let norm = sum_of_squares.sqrt();
    if norm > f64::from(limit) { (f64::from(limit) / norm) as f32 } else { 1.0 }
}
