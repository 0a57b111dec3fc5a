//! The kernels of [`super`] and their launches.
//!
//! A launch takes as many weights as the device binds buffers; a cube works on one chunk of one of them. Sums are
//! added in a fixed order.

use super::super::buffers::{dense, element, empty, empty_of};
use super::{ALIGNMENT, DECAYED, NOT_DECAYED, Place, Step, VALUES};
use crate::loss_scale::{GOOD_STEPS, LARGEST, SMALLEST};
use burn::tensor::{Bytes, DType, Shape};
use burn_cubecl::cubecl; // the name that the macro `cube` expands to
use burn_cubecl::cubecl::ir::ElemType;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

/// Units of a cube.
const UNITS: usize = 256;
/// Floats of a weight that a cube works on.
const CHUNK: usize = 32 * UNITS;
/// Weights and gradients of one launch at most: each gradient is code of its own in the kernel.
const MOST_AT_ONCE: usize = 64;
/// Buffers of a launch besides weights and gradients.
const OTHER_BUFFERS: usize = 7;

/// The launches of a step; for in and out, see [`super::queue`].
pub(super) fn step(inputs: Vec<CubeTensor>, step: &Step) -> Vec<CubeTensor> {
    let mut inputs = inputs.into_iter();
    let count = step.places.len();
    let weights: Vec<CubeTensor> = inputs.by_ref().take(count).map(dense).collect();
    let gradients: Vec<CubeTensor> = inputs.by_ref().take(count).map(dense).collect();
    let state: Vec<CubeTensor> = inputs.map(changeable).collect();
    let shape = state[0].meta.shape().clone();
    let new = empty(&state[0], shape.clone());
    let copies = step.copies.map(|dtype| empty_of(&new, shape, dtype));
    let values = empty(&new, Shape::new([VALUES]));
    write_values(&values, step);
    let buffers = Buffers { new, state, copies, values };
    let norm = launch(Old::Weights(&weights), gradients, &buffers, step);
    let moved = step.places.iter().map(|place| part(&buffers.new, *place));
    let copied = buffers.copies.iter();
    let copied = copied.flat_map(|copies| step.places.iter().map(|place| part(copies, *place)));
    moved.chain(copied).chain(buffers.state.iter().cloned()).chain([norm]).collect()
}

/// The launches of a step that changes weights where they are; returns the norm. The values of the step must have been
/// [written](write_values).
pub(super) fn step_in_place(
    gradients: Vec<CubeTensor>,
    buffers: &Buffers,
    step: &Step,
) -> CubeTensor {
    launch(Old::InPlace, gradients.into_iter().map(dense).collect(), buffers, step)
}

/// What a step writes, and the values that differ from step to step.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    /// Weights.
    pub(super) new: CubeTensor,
    /// Means, squares, averages; the scale of the losses, if there is one.
    pub(super) state: Vec<CubeTensor>,
    pub(super) copies: Option<CubeTensor>,
    /// [`Step::values`].
    pub(super) values: CubeTensor,
}

/// Where the weights before a step are.
#[derive(Clone, Copy)]
enum Old<'a> {
    Weights(&'a [CubeTensor]),
    /// In the buffer that the step writes.
    InPlace,
}

/// Writes the values of a step into their buffer, behind what this thread has entered so far.
pub(super) fn write_values(buffer: &CubeTensor, step: &Step) {
    buffer.client.write(&buffer.handle, Bytes::from_elems(step.values().to_vec()));
}

fn launch(old: Old<'_>, gradients: Vec<CubeTensor>, buffers: &Buffers, step: &Step) -> CubeTensor {
    let Buffers { new, state, values, .. } = buffers;
    let (norm, factor) = norm(&gradients, state.get(3), values, step);
    // The kernel takes a tensor there in any case.
    let copies = buffers.copies.clone().unwrap_or_else(|| empty(new, Shape::new([1])));
    // Buffers of each weight.
    let buffers_of_one = match old {
        Old::Weights(_) => 2,
        Old::InPlace => 1,
    };
    let bindings = bindings(new).saturating_sub(OTHER_BUFFERS).clamp(2, MOST_AT_ONCE);
    let each = bindings / buffers_of_one;
    for some in by_type(&gradients).iter().flat_map(|numbers| numbers.chunks(each)) {
        let weights: Vec<CubeTensor> = match old {
            Old::Weights(weights) => some.iter().map(|&at| weights[at].clone()).collect(),
            Old::InPlace => Vec::new(),
        };
        let gradients: Vec<CubeTensor> =
            some.iter().map(|&number| gradients[number].clone()).collect();
        let settings = some.iter().map(|&number| step.settings[number]);
        let all = step.settings[some[0]];
        adamw_kernel::launch(
            &new.client.clone(),
            CubeCount::Static(chunks(&gradients).sum::<usize>() as u32, 1, 1),
            CubeDim::new_1d(UNITS as u32),
            weights.into_iter().map(CubeTensor::into_tensor_arg).collect(),
            gradients.iter().map(|gradient| gradient.clone().into_tensor_arg()).collect(),
            firsts(&gradients).collect(),
            some.iter().map(|&number| step.places[number].start).collect(),
            settings.map(|own| if own.decay > 0.0 { DECAYED } else { NOT_DECAYED }).collect(),
            values.clone().into_tensor_arg(),
            factor.clone().into_tensor_arg(),
            new.clone().into_tensor_arg(),
            state[0].clone().into_tensor_arg(),
            state[1].clone().into_tensor_arg(),
            state[2].clone().into_tensor_arg(),
            copies.clone().into_tensor_arg(),
            all.beta_1,
            all.beta_2,
            all.epsilon,
            matches!(old, Old::InPlace),
            buffers.copies.is_some(),
            [element(&gradients[0]), element(&copies)],
        );
    }
    norm
}

/// The numbers of the gradients of each type: a launch takes only one.
fn by_type(gradients: &[CubeTensor]) -> Vec<Vec<usize>> {
    let numbers = |dtype: DType| -> Vec<usize> {
        (0..gradients.len()).filter(|&number| gradients[number].dtype == dtype).collect()
    };
    let found = [DType::F32, DType::BF16, DType::F16].map(numbers);
    let known: usize = found.iter().map(Vec::len).sum();
    assert_eq!(known, gradients.len(), "gradients of another type");
    found.into_iter().filter(|numbers| !numbers.is_empty()).collect()
}

/// The norm of the mean gradient, and a tensor of the factor for each gradient and of a one if the norm is finite. Also
/// changes the scale of the losses, if there is one.
fn norm(
    gradients: &[CubeTensor],
    loss_scale: Option<&CubeTensor>,
    values: &CubeTensor,
    step: &Step,
) -> (CubeTensor, CubeTensor) {
    let like = &gradients[0];
    let client = like.client.clone();
    let sums = empty(like, Shape::new([chunks(gradients).sum::<usize>()]));
    let each = bindings(like).saturating_sub(1).clamp(1, MOST_AT_ONCE);
    let mut done = 0;
    for some in by_type(gradients).iter().flat_map(|numbers| numbers.chunks(each)) {
        let gradients: Vec<CubeTensor> =
            some.iter().map(|&number| gradients[number].clone()).collect();
        let cubes = chunks(&gradients).sum::<usize>();
        squares_kernel::launch(
            &client,
            CubeCount::Static(cubes as u32, 1, 1),
            CubeDim::new_1d(UNITS as u32),
            gradients.iter().map(|gradient| gradient.clone().into_tensor_arg()).collect(),
            firsts(&gradients).collect(),
            sums.clone().into_tensor_arg(),
            done,
            element(&gradients[0]),
        );
        done += cubes;
    }
    let (norm, factor) = (empty(like, Shape::new([1])), empty(like, Shape::new([2])));
    let scaled = loss_scale.is_some();
    // The kernel takes a tensor there in any case.
    let loss_scale = loss_scale.cloned().unwrap_or_else(|| empty(like, Shape::new([2])));
    norm_kernel::launch(
        &client,
        CubeCount::Static(1, 1, 1),
        CubeDim::new_1d(UNITS as u32),
        sums.into_tensor_arg(),
        norm.clone().into_tensor_arg(),
        factor.clone().into_tensor_arg(),
        loss_scale.into_tensor_arg(),
        values.clone().into_tensor_arg(),
        step.clip,
        [SMALLEST, LARGEST, GOOD_STEPS].into_iter().collect(),
        scaled,
    );
    (norm, factor)
}

/// The number of chunks of each of these.
fn chunks(tensors: &[CubeTensor]) -> impl Iterator<Item = usize> + '_ {
    tensors.iter().map(|tensor| tensor.meta.num_elements().div_ceil(CHUNK))
}

/// The first cube of each of these.
fn firsts(tensors: &[CubeTensor]) -> impl Iterator<Item = usize> + '_ {
    chunks(tensors).scan(0, |next, count| {
        let first = *next;
        *next += count;
        Some(first)
    })
}

/// Buffers of a launch, without the one for shapes.
fn bindings(tensor: &CubeTensor) -> usize {
    (tensor.client.properties().hardware.max_bindings as usize).saturating_sub(1)
}

/// A tensor whose memory may be changed: itself, or a copy where another one shares it.
fn changeable(tensor: CubeTensor) -> CubeTensor {
    let tensor = dense(tensor);
    if tensor.can_mut() { tensor } else { tensor.copy() }
}

/// A weight as a part of a buffer, without a copy. Its memory includes the gap to the next one, so that both ends are
/// aligned.
pub(super) fn part(buffer: &CubeTensor, place: Place) -> CubeTensor {
    part_of_shape(buffer, place, Shape::new([place.length]))
}

/// The same in a shape of its own.
pub(super) fn part_of_shape(
    buffer: &CubeTensor,
    Place { start, length }: Place,
    shape: Shape,
) -> CubeTensor {
    let end = start + length.next_multiple_of(ALIGNMENT);
    let bytes = |values: usize| (values * buffer.dtype.size()) as u64;
    let handle = buffer.handle.clone().offset_start(bytes(start));
    CubeTensor::new_contiguous(
        buffer.client.clone(),
        buffer.device.clone(),
        shape,
        handle.offset_end(bytes(buffer.meta.num_elements() - end)),
        buffer.dtype,
    )
}

/// The sum over all units of the cube.
#[cube]
fn sum_of_cube(value: f32) -> f32 {
    let mut parts = Shared::<[f32]>::new_slice(256usize);
    parts[UNIT_POS as usize] = value;
    sync_cube();
    let mut sum = 0.0f32;
    for k in 0..256 {
        sum += parts[k];
    }
    sum
}

/// The sum of squares of each chunk of each gradient, from place `done` on.
#[cube(launch)]
fn squares_kernel<G: Float>(
    gradients: &Sequence<OwnedTensor<G>>,
    firsts: &Sequence<usize>,
    sums: &mut Tensor<f32>,
    done: usize,
    #[define(G)] _gradient: ElemType,
) {
    let cube = CUBE_POS_X as usize;
    let mut sum = 0.0f32;
    #[unroll]
    for number in 0..gradients.len() {
        let (gradient, first) = (gradients.index(number), *firsts.index(number));
        if cube >= first && (cube - first) * 8192 < gradient.len() {
            let start = (cube - first) * 8192 + UNIT_POS as usize;
            for round in 0..32 {
                let at = start + round * 256;
                if at < gradient.len() {
                    let slope = f32::cast_from(gradient[at]);
                    sum += slope * slope;
                }
            }
        }
    }
    let sum = sum_of_cube(sum);
    if UNIT_POS == 0 {
        sums[done + cube] = sum;
    }
}

#[cube(launch)]
fn norm_kernel(
    sums: &Tensor<f32>,
    norm: &mut Tensor<f32>,
    factor: &mut Tensor<f32>,
    loss_scale: &mut Tensor<f32>,
    values: &Tensor<f32>,
    clip: f32,
    limits: &Sequence<f32>,
    #[comptime] scaled: bool,
) {
    let mut sum = 0.0f32;
    let mut at = UNIT_POS as usize;
    while at < sums.len() {
        sum += sums[at];
        at += 256;
    }
    let sum = sum_of_cube(sum);
    if UNIT_POS == 0 {
        let mut share = values[0];
        if scaled {
            share /= loss_scale[0];
        }
        let length = sum.sqrt() * share;
        norm[0] = length;
        let mut limit = 1.0f32;
        if clip > 0.0f32 && length > clip {
            limit = clip / length;
        }
        factor[0] = limit * share;
        // By its bits: compilers of some backends take every float for a finite one.
        let exponent = u32::reinterpret(length) & 0x7f80_0000u32;
        let finite = exponent != 0x7f80_0000u32;
        factor[1] = select(finite, 1.0f32, 0.0f32);
        // The rule of `crate::loss_scale`.
        if scaled {
            let scale = loss_scale[0];
            let good = loss_scale[1] + 1.0f32;
            let grows = good >= *limits.index(2);
            let grown = select(grows, min(scale * 2.0f32, *limits.index(1)), scale);
            let halved = max(scale * 0.5f32, *limits.index(0));
            loss_scale[0] = select(finite, grown, halved);
            loss_scale[1] = select(finite && !grows, good, 0.0f32);
        }
    }
}

#[cube(launch)]
fn adamw_kernel<G: Float, R: Float>(
    weights: &Sequence<OwnedTensor<f32>>,
    gradients: &Sequence<OwnedTensor<G>>,
    firsts: &Sequence<usize>,
    starts: &Sequence<usize>,
    kept: &Sequence<usize>,
    values: &Tensor<f32>,
    factor: &Tensor<f32>,
    new: &mut Tensor<f32>,
    means: &mut Tensor<f32>,
    squares: &mut Tensor<f32>,
    averages: &mut Tensor<f32>,
    copies: &mut Tensor<R>,
    beta_1: f32,
    beta_2: f32,
    epsilon: f32,
    #[comptime] in_place: bool,
    #[comptime] copied: bool,
    #[define(G, R)] _types: [ElemType; 2],
) {
    let cube = CUBE_POS_X as usize;
    let (factor, usable) = (factor[0], factor[1] > 0.0f32);
    let (mean_rate, square_factor, ema) = (values[1], values[2], values[3]);
    #[unroll]
    for number in 0..gradients.len() {
        let (gradient, first) = (gradients.index(number), *firsts.index(number));
        if cube >= first && (cube - first) * 8192 < gradient.len() {
            let start = (cube - first) * 8192 + UNIT_POS as usize;
            let (place, keep) = (*starts.index(number), values[*kept.index(number)]);
            for round in 0..32 {
                let at = start + round * 256;
                if at < gradient.len() {
                    let to = place + at;
                    let old = if in_place { new[to] } else { weights.index(number)[at] };
                    let mut moved = old;
                    if usable {
                        let slope = f32::cast_from(gradient[at]) * factor;
                        let mean = beta_1 * means[to] + (1.0f32 - beta_1) * slope;
                        let square = beta_2 * squares[to] + (1.0f32 - beta_2) * slope * slope;
                        let size = square.sqrt() * square_factor + epsilon;
                        moved = old * keep - mean_rate * mean / size;
                        means[to] = mean;
                        squares[to] = square;
                        averages[to] = ema * averages[to] + (1.0f32 - ema) * moved;
                    }
                    new[to] = moved;
                    if copied {
                        copies[to] = R::cast_from(moved);
                    }
                }
            }
        }
    }
}
