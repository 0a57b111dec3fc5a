//! One AdamW step over all weights on a GPU: clipping, the check for finite gradients and the moving average of the
//! weights included, in a few launches however many weights there are.
//!
//! In: weights and gradients, each a tensor of its own; their state, joined in one buffer per kind. Out: the updated
//! weights, as parts of one new buffer, and the state, changed in place where nobody else holds it. For training in 16 bits
//! the same launches read gradients of 16 bits, write a rounded copy of each weight, and keep the scale of the losses.
//! Nothing is read back.

mod in_place; // the same, with weights that never move
mod kernels;

use super::super::adamw::{AdamW, Moments};
use burn::backend::fusion::custom::{
    CustomOpIr, HandleContainer, OperationFn, OperationIr, StreamId, TensorIr,
};
use burn::backend::fusion::{FusionBackend, FusionRuntime, FusionTensor};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::CubeBackend;
use std::sync::Arc;

pub(crate) use in_place::InPlace;

/// The number of [`Step::values`], and the places of two of them.
const VALUES: usize = 6;
const DECAYED: usize = 4;
const NOT_DECAYED: usize = 5;

/// A part of a buffer is used without a copy where it starts at a multiple of so many values: 512 bytes of 16 bits each,
/// the alignment of CUDA.
const ALIGNMENT: usize = 256;

/// Where a weight is in the buffers of the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) length: usize,
}

impl Place {
    /// Places for weights of these lengths, one after another, and the length of a buffer for all.
    pub(crate) fn all(lengths: impl IntoIterator<Item = usize>) -> (Vec<Place>, usize) {
        let mut start = 0;
        let place = |length: usize| {
            let place = Place { start, length };
            start += length.next_multiple_of(ALIGNMENT);
            place
        };
        let places = lengths.into_iter().map(place).collect();
        (places, start)
    }
}

/// A step over all weights.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    places: Arc<[Place]>,
    /// For each weight, as its decay may differ.
    settings: Arc<[AdamW]>,
    /// The factor of the sum of gradients that makes it their mean.
    share: f32,
    /// The largest norm of the mean gradient; 0 for no limit.
    clip: f32,
    /// The type of a copy of each weight, if there is one.
    copies: Option<DType>,
}

/// What a step gives. The norm is that of the mean gradient before clipping.
pub(crate) struct Stepped {
    pub(crate) weights: Vec<Tensor<1>>,
    /// Of all weights or none.
    pub(crate) copies: Vec<Tensor<1>>,
    pub(crate) moments: Moments<1>,
    pub(crate) loss_scale: Option<Tensor<1>>,
    pub(crate) norm: Tensor<1>,
}

impl Step {
    /// `settings` belong to the weights at `places`; their gradient factor is not used.
    pub(crate) fn new(places: &[Place], settings: Vec<AdamW>, share: f32, clip: f32) -> Step {
        assert_eq!(places.len(), settings.len(), "settings of other weights");
        Step { places: places.into(), settings: settings.into(), share, clip, copies: None }
    }

    /// Also writes a copy of each weight in this type.
    pub(crate) fn copied_to(self, copies: Option<DType>) -> Step {
        Step { copies, ..self }
    }

    /// What differs from step to step. Kernels read it from memory of the device, so that a CUDA graph can be launched for
    /// each step: the share; rate, factor of squares and decay of the average; what decay leaves of a weight, and all of it.
    fn values(&self) -> [f32; VALUES] {
        let all = self.settings[0];
        let (mean_rate, square_factor) = all.corrections();
        let decay = self.settings.iter().fold(0.0, |most: f32, own| most.max(own.decay));
        let two = self.settings.iter().all(|own| own.decay == 0.0 || own.decay == decay);
        assert!(two, "weights decay alike, or not at all");
        [self.share, mean_rate, square_factor, all.ema, 1.0 - all.rate * decay, 1.0]
    }

    /// Updates weights, state and the scale of the losses, if there is one. A norm that is not finite changes only the scale.
    pub(crate) fn run(
        self,
        weights: Vec<Tensor<1>>,
        gradients: Vec<Tensor<1>>,
        moments: Moments<1>,
        loss_scale: Option<Tensor<1>>,
    ) -> Stepped {
        let count = self.places.len();
        assert_eq!([weights.len(), gradients.len()], [count, count], "other weights");
        let Moments { mean, square, ema } = moments;
        let (copied, scaled) = (self.copies.is_some(), loss_scale.is_some());
        let state = [mean, square, ema].into_iter().chain(loss_scale);
        let inputs = weights.into_iter().chain(gradients).chain(state);
        let inputs = inputs.map(|tensor| {
            tensor.try_into_primitive::<Cube>().expect("a tensor on a GPU, without autodiff")
        });
        let results = queue(inputs.collect(), self);
        let mut results = results.into_iter().map(Tensor::from_primitive::<Cube>);
        let weights = results.by_ref().take(count).collect();
        let copies = results.by_ref().take(if copied { count } else { 0 }).collect();
        let mut next = || results.next().expect("a result for each output");
        let moments = Moments { mean: next(), square: next(), ema: next() };
        let loss_scale = scaled.then(&mut next);
        Stepped { weights, copies, moments, loss_scale, norm: next() }
    }
}

type Runtime = <CubeBackend as FusionBackend>::FusionRuntime;
type Handles = HandleContainer<<Runtime as FusionRuntime>::FusionHandle>;

/// Puts a step into the fusion queue, by hand: the library's macro does not take lists of tensors.
///
/// In: all weights, all gradients, then means, squares and averages, then the scale of the losses, if there is one. Out: all
/// weights, all copies, if there are any, then the state as it came in, and the norm.
fn queue(inputs: Vec<FloatTensor<Cube>>, step: Step) -> Vec<FloatTensor<Cube>> {
    let client = inputs[0].client.clone();
    let weights = step.places.len();
    let shapes = |tensors: &[FloatTensor<Cube>], dtype: DType| -> Vec<(Shape, DType)> {
        tensors.iter().map(|tensor| (tensor.shape(), dtype)).collect()
    };
    let (weights, state) = (&inputs[..weights], &inputs[2 * weights..]);
    let copies = step.copies.map(|dtype| shapes(weights, dtype)).unwrap_or_default();
    let outputs: Vec<TensorIr> = shapes(weights, DType::F32)
        .into_iter()
        .chain(copies)
        .chain(shapes(state, DType::F32))
        .chain([(Shape::new([1]), DType::F32)])
        .map(|(shape, dtype)| TensorIr::uninit(client.create_empty_handle(), shape, dtype))
        .collect();
    let inputs: Vec<TensorIr> = inputs.into_iter().map(FusionTensor::into_ir).collect();
    let (taken, made) = (inputs.clone(), outputs.clone());
    let run = OperationFn(move |handles: &mut Handles| {
        let inputs = taken.iter().map(|input| handles.get_float_tensor::<CubeBackend>(input));
        let results = kernels::step(inputs.collect(), &step);
        for (output, result) in made.iter().zip(results) {
            handles.register_float_tensor::<CubeBackend>(&output.id, result);
        }
        Ok(())
    });
    let entry = CustomOpIr { id: "adamw".into(), inputs, outputs, scalars: Vec::new() };
    client.register(StreamId::current(), OperationIr::Custom(entry), run)
}
