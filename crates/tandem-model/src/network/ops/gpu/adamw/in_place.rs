//! Weights and state that a step changes where they are.
//!
//! In: weights and state of any memory. Out: the same in one buffer per kind, at addresses that stay, as a CUDA graph needs
//! them. The library does not know that a step changes them: a caller that keeps a value takes a copy, and a step runs between
//! two points where the queue is flushed.

use super::super::super::adamw::Moments;
use super::kernels::{self, Buffers, part, part_of_shape};
use super::{ALIGNMENT, Handles, Place, Runtime, Step};
use burn::backend::Cube;
use burn::backend::fusion::FusionTensor;
use burn::backend::fusion::client::GlobalFusionClient;
use burn::backend::fusion::custom::{CustomOpIr, OperationFn, OperationIr, StreamId, TensorIr};
use burn::backend::tensor::FloatTensor;
use burn::tensor::{Bytes, DType, Shape, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use std::ops::Range;

/// Weights, state, and the values of the next step.
#[derive(Clone, Debug)]
pub(crate) struct InPlace {
    places: Vec<Place>,
    buffers: Buffers,
}

impl InPlace {
    /// Copies weights, state and the scale of the losses, if there is one; with a further copy of the weights in a type.
    pub(crate) fn new(
        places: &[Place],
        weights: Tensor<1>,
        moments: Moments<1>,
        loss_scale: Option<Tensor<1>>,
        copies: Option<DType>,
    ) -> InPlace {
        let copies = copies.map(|dtype| own(weights.clone().cast(dtype)));
        let Moments { mean, square, ema } = moments;
        let state = [mean, square, ema].into_iter().chain(loss_scale).map(own).collect();
        let new = own(weights);
        let values = super::super::buffers::empty(&new, Shape::new([super::VALUES]));
        InPlace { places: places.to_vec(), buffers: Buffers { new, state, copies, values } }
    }

    /// The weights in these shapes, where they are.
    pub(crate) fn weights(&self, shapes: &[Vec<usize>]) -> Vec<FloatTensor<Cube>> {
        self.parts(&self.buffers.new, shapes)
    }

    /// Their copies in another type.
    pub(crate) fn copies(&self, shapes: &[Vec<usize>]) -> Option<Vec<FloatTensor<Cube>>> {
        self.buffers.copies.as_ref().map(|copies| self.parts(copies, shapes))
    }

    fn parts(&self, buffer: &CubeTensor, shapes: &[Vec<usize>]) -> Vec<FloatTensor<Cube>> {
        let part = |(place, shape): (&Place, &Vec<usize>)| {
            part_of_shape(buffer, *place, Shape::from(shape.clone()))
        };
        tensors(self.places.iter().zip(shapes).map(part).collect())
    }

    /// The scale of the losses, where it is.
    pub(crate) fn loss_scale(&self) -> Option<Tensor<1>> {
        Some(tensor(self.buffers.state.get(3)?.clone()))
    }

    /// The share of the next step, where it is: `[1]`.
    pub(crate) fn share(&self) -> Tensor<1> {
        tensor(self.buffers.values.clone()).narrow(0, 0, 1)
    }

    /// Values of some of the weights now, in one copy.
    pub(crate) fn copied_weights(&self, which: Range<usize>) -> Vec<Tensor<1>> {
        self.copied(&self.buffers.new, which)
    }

    /// Averages of all weights now.
    pub(crate) fn copied_averages(&self) -> Vec<Tensor<1>> {
        self.copied(&self.buffers.state[2], 0..self.places.len())
    }

    /// Means, squares and averages of all weights now.
    pub(crate) fn copied_state(&self) -> [Vec<Tensor<1>>; 3] {
        [0, 1, 2].map(|kind| self.copied(&self.buffers.state[kind], 0..self.places.len()))
    }

    fn copied(&self, buffer: &CubeTensor, which: Range<usize>) -> Vec<Tensor<1>> {
        let places = &self.places[which];
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return Vec::new() };
        let (start, end) = (first.start, last.start + last.length.next_multiple_of(ALIGNMENT));
        let copy = part(buffer, Place { start, length: end - start }).copy();
        let whole = |place: &Place| Place { start: place.start - start, ..*place };
        let parts = places.iter().map(|place| part(&copy, whole(place))).collect();
        tensors(parts).into_iter().map(Tensor::from_primitive::<Cube>).collect()
    }

    /// The state now.
    pub(crate) fn copied_moments(&self) -> Moments<1> {
        let [mean, square, ema] = [0, 1, 2].map(|at| tensor(self.buffers.state[at].copy()));
        Moments { mean, square, ema }
    }

    /// The scale of the losses now.
    pub(crate) fn copied_loss_scale(&self) -> Option<Tensor<1>> {
        Some(tensor(self.buffers.state.get(3)?.copy()))
    }

    /// Changes the scale of the losses, if there is one, behind what this thread has entered so far.
    pub(crate) fn write_loss_scale(&self, scale: Vec<f32>) {
        if let Some(buffer) = self.buffers.state.get(3) {
            buffer.client.write(&buffer.handle, Bytes::from_elems(scale));
        }
    }

    /// Makes the library run all operations that this thread has entered so far.
    pub(crate) fn flush(&self) {
        GlobalFusionClient::<Runtime>::load(&self.buffers.new.device).sync(|| ());
    }

    /// Gives the next step its values, behind what this thread has entered so far.
    pub(crate) fn write_values(&self, step: &Step) {
        kernels::write_values(&self.buffers.values, step);
    }

    /// Gives the next step a share of NaN, so that it changes nothing except the scale of the losses.
    pub(crate) fn write_no_step(&self) {
        let values = &self.buffers.values;
        values.client.write(&values.handle, Bytes::from_elems(vec![f32::NAN; super::VALUES]));
    }

    /// A step; returns the norm of the mean gradient.
    pub(crate) fn step(&self, gradients: Vec<Tensor<1>>, step: &Step) -> Tensor<1> {
        let inputs: Vec<FloatTensor<Cube>> = gradients.into_iter().map(primitive).collect();
        let client = inputs[0].client.clone();
        // What reads the weights of before must have run: the queue knows no order between it and this.
        client.sync(|| ());
        let inputs: Vec<TensorIr> = inputs.into_iter().map(FusionTensor::into_ir).collect();
        let shape = (Shape::new([1]), DType::F32);
        let output = TensorIr::uninit(client.create_empty_handle(), shape.0, shape.1);
        let (taken, made) = (inputs.clone(), output.id);
        let (buffers, step) = (self.buffers.clone(), step.clone());
        let run = OperationFn(move |handles: &mut Handles| {
            let gradients =
                taken.iter().map(|taken| handles.get_float_tensor::<CubeBackend>(taken));
            let norm = kernels::step_in_place(gradients.collect(), &buffers, &step);
            handles.register_float_tensor::<CubeBackend>(&made, norm);
            Ok(())
        });
        let id = "adamw_in_place".into();
        let entry = CustomOpIr { id, inputs, outputs: vec![output], scalars: Vec::new() };
        let made = client.register(StreamId::current(), OperationIr::Custom(entry), run);
        // And what reads those of after must not run before it.
        client.sync(|| ());
        made.into_iter().map(Tensor::from_primitive::<Cube>).next().expect("the norm")
    }
}

fn primitive(tensor: Tensor<1>) -> FloatTensor<Cube> {
    tensor.try_into_primitive::<Cube>().expect("a tensor on a GPU, without autodiff")
}

/// A tensor in memory of its own.
fn own(tensor: Tensor<1>) -> CubeTensor {
    let tensor = primitive(tensor);
    let client = tensor.client.clone();
    let resolved = client.resolve_tensor_float::<CubeBackend>(tensor);
    super::super::buffers::dense(resolved).copy()
}

fn tensor(part: CubeTensor) -> Tensor<1> {
    let made = tensors(vec![part]).into_iter().map(Tensor::from_primitive::<Cube>);
    made.into_iter().next().expect("one for each")
}

/// Memory as tensors of this thread's queue.
fn tensors(parts: Vec<CubeTensor>) -> Vec<FloatTensor<Cube>> {
    let Some(first) = parts.first() else { return Vec::new() };
    let client = GlobalFusionClient::<Runtime>::load(&first.device);
    let output = |part: &CubeTensor| {
        TensorIr::uninit(client.create_empty_handle(), part.meta.shape().clone(), part.dtype)
    };
    let outputs: Vec<TensorIr> = parts.iter().map(output).collect();
    let made = outputs.clone();
    let run = OperationFn(move |handles: &mut Handles| {
        for (output, part) in made.iter().zip(&parts) {
            handles.register_float_tensor::<CubeBackend>(&output.id, part.clone());
        }
        Ok(())
    });
    let entry =
        CustomOpIr { id: "in_place".into(), inputs: Vec::new(), outputs, scalars: Vec::new() };
    let made = client.register(StreamId::current(), OperationIr::Custom(entry), run);
    // By itself: nothing is fused with it, which could move it.
    client.sync(|| ());
    made
}
