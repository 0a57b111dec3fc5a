//! The fused kernels behind [`super::inverse_spectra`] and [`super::spectral_distance`]: fast Fourier transforms instead
//! of matrix products.
//!
//! In and out: tensors of the backend `flex`. Rows of the batch run in parallel, each in order, so results do not depend
//! on the number of threads. The backward of the distance transforms again instead of storing spectra.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::tensor::Shape;
use rayon::prelude::*;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::sync::Arc;

use super::fused::{Recorded, rows, shape, tensor, values};
use super::plain_spectrum::{ERROR_FLOOR, NORM_FLOOR, POWER_FLOOR, hann, overlap_share};

/// Transforms of one size.
struct Plan {
    n_fft: usize,
    bins: usize,
    window: Vec<f32>,
    forward: Arc<dyn RealToComplex<f32>>,
    backward: Arc<dyn ComplexToReal<f32>>,
}

/// Scratch memory of one row.
struct Scratch {
    block: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    work: Vec<Complex<f32>>,
}

impl Plan {
    fn new(n_fft: usize) -> Plan {
        let mut planner = RealFftPlanner::new();
        Plan {
            n_fft,
            bins: n_fft / 2 + 1,
            window: hann(n_fft).into_iter().map(|value| value as f32).collect(),
            forward: planner.plan_fft_forward(n_fft),
            backward: planner.plan_fft_inverse(n_fft),
        }
    }

    fn scratch(&self) -> Scratch {
        let work = self.forward.get_scratch_len().max(self.backward.get_scratch_len());
        Scratch {
            block: self.forward.make_input_vec(),
            spectrum: self.forward.make_output_vec(),
            work: vec![Complex::default(); work],
        }
    }

    /// The spectrum of windowed samples.
    fn analyse(&self, samples: &[f32], scratch: &mut Scratch) {
        let inputs = samples.iter().zip(&self.window);
        scratch.block.iter_mut().zip(inputs).for_each(|(out, (x, w))| *out = x * w);
        let Scratch { block, spectrum, work } = scratch;
        // The lengths are those of the plan, which is all that can be wrong.
        let _ = self.forward.process_with_scratch(block, spectrum, work);
    }

    /// The unscaled inverse transform of the spectrum, windowed, added to `samples`. Each bin between the first and the
    /// last counts twice.
    fn add_inverse(&self, scratch: &mut Scratch, scale: f32, samples: &mut [f32]) {
        let Scratch { block, spectrum, work } = scratch;
        spectrum[0].im = 0.0;
        spectrum[self.bins - 1].im = 0.0;
        let _ = self.backward.process_with_scratch(spectrum, block, work);
        let pieces = block.iter().zip(&self.window);
        samples.iter_mut().zip(pieces).for_each(|(sum, (x, w))| *sum += x * w * scale);
    }
}

/// The samples of spectra, without autodiff.
pub(super) fn inverse(spectra: &FlexTensor, hop: usize) -> FlexTensor {
    let shape = rows(spectra);
    let plan = Plan::new(shape.width - 2);
    let (length, margin) = inverse_lengths(shape.positions, plan.n_fft, hop);
    let scale = (overlap_share(plan.n_fft, hop) / plan.n_fft as f64) as f32;
    let row = |spectra: &[f32]| {
        let mut scratch = plan.scratch();
        let mut samples = vec![0.0; (shape.positions - 1) * hop + plan.n_fft];
        for (frame, parts) in spectra.chunks_exact(shape.width).enumerate() {
            let (re, im) = parts.split_at(plan.bins);
            let bins = re.iter().zip(im).map(|(&re, &im)| Complex::new(re, im));
            scratch.spectrum.iter_mut().zip(bins).for_each(|(to, from)| *to = from);
            plan.add_inverse(&mut scratch, scale, &mut samples[frame * hop..][..plan.n_fft]);
        }
        samples[margin..][..length].to_vec()
    };
    let samples = values(spectra).par_chunks_exact(shape.positions * shape.width).map(row);
    let samples: Vec<Vec<f32>> = samples.collect();
    tensor(samples.concat(), Shape::new([shape.batch, length]))
}

/// Samples with full overlap, and the samples before them.
fn inverse_lengths(frames: usize, n_fft: usize, hop: usize) -> (usize, usize) {
    ((frames + 1 - n_fft / hop) * hop, n_fft - hop)
}

/// The same, with its backward registered.
pub(super) fn recorded_inverse<C: CheckpointStrategy>(spectra: Recorded, hop: usize) -> Recorded {
    let node = spectra.node();
    let spectra = spectra.into_primitive().to_contiguous();
    let result = inverse(&spectra, hop);
    match Inverse.prepare::<C>([node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((shape(&spectra), hop), result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

#[derive(Debug)]
struct Inverse;

impl Backward<Flex, 1> for Inverse {
    type State = (Shape, usize);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let [Some(node)] = ops.parents else { return };
        let (shape, hop) = ops.state;
        let (frames, width) = (shape[1], shape[2]);
        let plan = Plan::new(width - 2);
        let (length, margin) = inverse_lengths(frames, plan.n_fft, hop);
        let scale = (overlap_share(plan.n_fft, hop) / plan.n_fft as f64) as f32;
        let mut result = vec![0.0; shape[0] * frames * width];
        let pairs = result
            .par_chunks_exact_mut(frames * width)
            .zip(values(&gradient).par_chunks_exact(length));
        pairs.for_each(|(result, gradient)| {
            let mut scratch = plan.scratch();
            let mut padded = vec![0.0; (frames - 1) * hop + plan.n_fft];
            padded[margin..][..length].copy_from_slice(gradient);
            for (frame, parts) in result.chunks_exact_mut(width).enumerate() {
                plan.analyse(&padded[frame * hop..][..plan.n_fft], &mut scratch);
                let (re, im) = parts.split_at_mut(plan.bins);
                let last = plan.bins - 1;
                for (bin, value) in scratch.spectrum.iter().enumerate() {
                    let edge = bin == 0 || bin == last;
                    let scale = if edge { scale } else { 2.0 * scale };
                    re[bin] = value.re * scale;
                    im[bin] = if edge { 0.0 } else { value.im * scale };
                }
            }
        });
        grads.register::<Flex>(node.id, tensor(result, shape));
    }
}

/// The norms that the distance of one row depends on.
#[derive(Clone, Copy, Debug)]
struct RowNorms {
    /// Norm of the difference of magnitudes.
    error: f32,
    /// Norm of the true magnitudes.
    truth: f32,
}

/// The two distances, without autodiff.
pub(super) fn distance(guess: &FlexTensor, truth: &FlexTensor, n_fft: usize) -> FlexTensor {
    distance_and_norms(guess, truth, n_fft).0
}

fn distance_and_norms(
    guess: &FlexTensor,
    truth: &FlexTensor,
    n_fft: usize,
) -> (FlexTensor, Vec<RowNorms>) {
    let plan = Plan::new(n_fft);
    let samples = shape(truth)[1];
    let row = |(guess, truth): (&[f32], &[f32])| {
        let (mut squares, mut norm, mut logarithms) = (0.0f64, 0.0f64, 0.0f64);
        let (mut own, mut other) = (plan.scratch(), plan.scratch());
        let starts = frame_starts(samples, n_fft);
        let count = (starts.len() * plan.bins) as f64;
        for start in starts {
            plan.analyse(&guess[start..][..n_fft], &mut own);
            plan.analyse(&truth[start..][..n_fft], &mut other);
            let (mut s, mut n, mut l) = (0.0f32, 0.0f32, 0.0f32);
            for (own, other) in own.spectrum.iter().zip(&other.spectrum) {
                let (own, other) = (power(*own), power(*other));
                let difference = own.sqrt() - other.sqrt();
                s += difference * difference;
                n += other;
                l += (own.ln() - other.ln()).abs();
            }
            squares += f64::from(s);
            norm += f64::from(n);
            logarithms += f64::from(l) * 0.5;
        }
        let error = (squares + f64::from(ERROR_FLOOR)).sqrt();
        let truth = norm.sqrt().max(f64::from(NORM_FLOOR));
        let norms = RowNorms { error: error as f32, truth: truth as f32 };
        (error / truth, logarithms / count, norms)
    };
    let pairs =
        values(guess).par_chunks_exact(samples).zip(values(truth).par_chunks_exact(samples));
    let rows: Vec<(f64, f64, RowNorms)> = pairs.map(row).collect();
    let convergence: f64 = rows.iter().map(|row| row.0).sum();
    let logarithmic: f64 = rows.iter().map(|row| row.1).sum();
    let sums = vec![convergence as f32, logarithmic as f32];
    (tensor(sums, Shape::new([2])), rows.into_iter().map(|row| row.2).collect())
}

/// The first sample of each frame.
fn frame_starts(samples: usize, n_fft: usize) -> std::iter::StepBy<std::ops::Range<usize>> {
    let hop = n_fft / 4;
    let hops = samples / hop;
    (0..(hops - 3) * hop).step_by(hop)
}

fn power(value: Complex<f32>) -> f32 {
    (value.re * value.re + value.im * value.im).max(POWER_FLOOR)
}

/// The same, with its backward registered.
pub(super) fn recorded_distance<C: CheckpointStrategy>(
    guess: Recorded,
    truth: Recorded,
    n_fft: usize,
) -> Recorded {
    let node = guess.node();
    let [guess, truth] = [guess, truth].map(|input| input.into_primitive().to_contiguous());
    let (result, norms) = distance_and_norms(&guess, &truth, n_fft);
    match Distance.prepare::<C>([node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((guess, truth, norms, n_fft), result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

#[derive(Debug)]
struct Distance;

impl Backward<Flex, 1> for Distance {
    type State = (FlexTensor, FlexTensor, Vec<RowNorms>, usize);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let [Some(node)] = ops.parents else { return };
        let (guess, truth, norms, n_fft) = ops.state;
        let [of_convergence, of_logarithms] = [0, 1].map(|index: usize| values(&gradient)[index]);
        let plan = Plan::new(n_fft);
        let samples = shape(&truth)[1];
        let row = |((guess, truth), norms): ((&[f32], &[f32]), &RowNorms)| {
            let mut result = vec![0.0; samples];
            let (mut own, mut other) = (plan.scratch(), plan.scratch());
            let starts = frame_starts(samples, n_fft);
            let linear = of_convergence / (norms.error * norms.truth);
            let logarithmic = of_logarithms / (starts.len() * plan.bins) as f32;
            for start in starts {
                plan.analyse(&guess[start..][..n_fft], &mut own);
                plan.analyse(&truth[start..][..n_fft], &mut other);
                let last = plan.bins - 1;
                let bins = own.spectrum.iter_mut().zip(&other.spectrum).enumerate();
                for (bin, (value, other)) in bins {
                    let (size, other) = (power(*value), power(*other));
                    // Below the floor the magnitude is constant.
                    let slope = if value.re * value.re + value.im * value.im < POWER_FLOOR {
                        0.0
                    } else {
                        let (size, other) = (size.sqrt(), other.sqrt());
                        let sign = if size > other {
                            1.0
                        } else if size < other {
                            -1.0
                        } else {
                            0.0
                        };
                        (linear * (size - other) + logarithmic * sign / size) / size
                    };
                    // The inverse transform counts all bins but the first and the last twice.
                    let once = if bin == 0 || bin == last { 1.0 } else { 0.5 };
                    *value *= slope * once;
                }
                plan.add_inverse(&mut own, 1.0, &mut result[start..][..n_fft]);
            }
            result
        };
        let pairs =
            values(&guess).par_chunks_exact(samples).zip(values(&truth).par_chunks_exact(samples));
        let rows: Vec<Vec<f32>> = pairs.zip(norms.par_iter()).map(row).collect();
        grads.register::<Flex>(node.id, tensor(rows.concat(), shape(&truth)));
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;

    use crate::network::ops::check::{agrees, floats, noisy, repeats};
    use crate::network::ops::{inverse_spectra, plain_spectrum, spectral_distance};

    fn inverse(
        operation: fn(Tensor<3>, usize) -> Tensor<2>,
        [batch, frames, n_fft, hop]: [usize; 4],
    ) -> impl Fn(&[Tensor<1>]) -> Tensor<1> + Sync {
        move |inputs| {
            let spectra = inputs[0].clone().reshape([batch, frames, n_fft + 2]);
            operation(spectra, hop).flatten(0, 1)
        }
    }

    /// The truth is fixed: no gradient flows to it.
    fn distance(
        operation: fn(Tensor<2>, Tensor<2>, usize) -> Tensor<1>,
        [batch, samples, n_fft]: [usize; 3],
    ) -> impl Fn(&[Tensor<1>]) -> Tensor<1> + Sync {
        move |inputs| {
            let guess = inputs[0].clone().reshape([batch, samples]);
            let truth = noisy(batch * samples, 42).cast(guess.dtype()) * 0.7;
            operation(guess, truth.reshape([batch, samples]), n_fft)
        }
    }

    #[test]
    fn the_samples_agree_with_matrix_products() {
        for shape in [[2, 9, 16, 4], [1, 4, 32, 8], [3, 12, 16, 2]] {
            let fused = inverse(inverse_spectra, shape);
            let plain = inverse(plain_spectrum::inverse_spectra, shape);
            agrees(&[shape[0] * shape[1] * (shape[2] + 2)], &fused, &plain);
        }
    }

    #[test]
    fn the_distance_agrees_with_matrix_products() {
        for shape in [[2, 64, 16], [1, 33, 32], [3, 40, 8]] {
            let fused = distance(spectral_distance, shape);
            let plain = distance(plain_spectrum::spectral_distance, shape);
            agrees(&[shape[0] * shape[1]], &fused, &plain);
        }
    }

    #[test]
    fn equal_signals_are_no_distance_apart() {
        let signal = noisy(256, 3).reshape([2, 128]);
        let found = floats(spectral_distance(signal.clone(), signal, 32));
        assert!(found.iter().all(|value| value.abs() < 1e-4), "{found:?}");
    }

    #[test]
    fn it_is_the_same_on_any_number_of_threads() {
        repeats(&[3 * 9 * 18], &inverse(inverse_spectra, [3, 9, 16, 4]));
        repeats(&[3 * 256], &distance(spectral_distance, [3, 256, 32]));
    }

    /// A transform of samples and the inverse: the samples again.
    #[test]
    fn the_inverse_of_a_transform_gives_the_samples() {
        let (n_fft, hop, frames) = (64, 16, 20);
        let length = (frames - 1) * hop + n_fft;
        let signal: Vec<f64> = (0..length).map(|i| (i as f64 * 0.37).sin() * 0.5).collect();
        let window = plain_spectrum::hann(n_fft);
        let mut spectra = Vec::new();
        for frame in 0..frames {
            let part = |of: fn(f64) -> f64| {
                let signal = &signal[frame * hop..][..n_fft];
                let window = &window;
                (0..=n_fft / 2).map(move |bin| {
                    let angle = |i: usize| -std::f64::consts::TAU * (bin * i) as f64 / n_fft as f64;
                    (0..n_fft).map(|i| signal[i] * window[i] * of(angle(i))).sum::<f64>() as f32
                })
            };
            spectra.extend(part(f64::cos));
            spectra.extend(part(f64::sin));
        }
        let count = spectra.len();
        let device = burn::tensor::Device::flex();
        let spectra: Tensor<1> =
            Tensor::from_data(burn::tensor::TensorData::new(spectra, [count]), &device);
        let samples = inverse_spectra(spectra.reshape([1, frames, n_fft + 2]), hop);
        let found = floats(samples);
        for (found, truth) in found.iter().zip(&signal[n_fft - hop..]) {
            assert!((found - truth).abs() < 1e-5, "{found} {truth}");
        }
        assert_eq!(found.len(), (frames - 3) * hop);
    }
}
