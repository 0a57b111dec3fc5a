//! The arrays of an upload on a GPU.
//!
//! In: packed values, on the stream of the thread that packed them. Out: tensors of the thread that uses them, as parts of
//! one copy. Both go through the queues of the library; nothing is waited for.

use super::{ALIGNMENT, Array, Kind, Pack, PackedArray, Values};
use burn::backend::fusion::client::GlobalFusionClient;
use burn::backend::fusion::custom::{
    CustomOpIr, HandleContainer, OperationFn, OperationIr, StreamId, TensorIr,
};
use burn::backend::fusion::{FusionBackend, FusionRuntime};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Cube, DispatchDevice};
use burn::tensor::{DType, Device, Shape, TensorData};
use burn_cubecl::cubecl; // the name that the macro `cube` expands to
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use std::sync::Arc;

pub(super) type FusedTensor = FloatTensor<Cube>;
type Runtime = <CubeBackend as FusionBackend>::FusionRuntime;
type Handles = HandleContainer<<Runtime as FusionRuntime>::FusionHandle>;

/// The GPU behind a device.
pub(crate) fn device_of(device: &Device) -> Option<CubeDevice> {
    match device.as_dispatch() {
        DispatchDevice::Cube(device) => Some(device.clone()),
        DispatchDevice::Autodiff(inner) => match &**inner {
            DispatchDevice::Cube(device) => Some(device.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// See [`crate::between_threads::flush`].
pub(crate) fn flush(device: &Device) {
    if let Some(device) = device_of(device) {
        GlobalFusionClient::<Runtime>::load(&device).sync(|| ());
    }
}

/// Packed arrays in device memory.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    values: CubeTensor,
    arrays: Arc<[PackedArray]>,
}

impl Buffer {
    pub(super) fn upload(pack: Pack, device: CubeDevice) -> Buffer {
        let Pack { mut values, arrays } = pack;
        values.resize(values.len().next_multiple_of(ALIGNMENT), 0.0);
        let shape = Shape::new([values.len()]);
        let (bytes, _, _) = TensorData::new(values, shape.clone()).into_parts();
        let client = device.client();
        let handle = client.create(bytes);
        let values = CubeTensor::new_contiguous(client, device, shape, handle, DType::F32);
        Buffer { values, arrays: arrays.into() }
    }

    /// Enters into the queue of this thread that its tensors are parts of a copy of this buffer.
    pub(super) fn tensors(&self) -> Vec<Array> {
        let client = GlobalFusionClient::<Runtime>::load(&self.values.device);
        let output = |array: &PackedArray| {
            let shape = Shape::from(array.shape.clone());
            TensorIr::uninit(client.create_empty_handle(), shape, array.kind.dtype())
        };
        let outputs: Vec<TensorIr> = self.arrays.iter().map(output).collect();
        let (buffer, made) = (self.clone(), outputs.clone());
        let run = OperationFn(move |handles: &mut Handles| {
            let own = buffer.own_copy();
            for (output, array) in made.iter().zip(&*buffer.arrays) {
                match array.kind {
                    Kind::Float => {
                        handles.register_float_tensor::<CubeBackend>(&output.id, part(&own, array))
                    }
                    Kind::Int => {
                        handles.register_int_tensor::<CubeBackend>(&output.id, part(&own, array));
                    }
                }
            }
            Ok(())
        });
        let (inputs, scalars) = (Vec::new(), Vec::new());
        let entry = CustomOpIr { id: "upload".into(), inputs, outputs, scalars };
        let made = client.register(StreamId::current(), OperationIr::Custom(entry), run);
        let array = |(tensor, array): (FusedTensor, &PackedArray)| Array {
            shape: array.shape.clone(),
            values: match array.kind {
                Kind::Float => Values::FloatOnGpu(tensor),
                Kind::Int => Values::IntOnGpu(tensor),
            },
        };
        made.into_iter().zip(&*self.arrays).map(array).collect()
    }

    /// A copy in memory of this thread, which [`Buffer::fill`] can fill again.
    pub(super) fn for_this_thread(&self) -> Buffer {
        Buffer { values: self.values.copy(), arrays: self.arrays.clone() }
    }

    /// Whether both have the same arrays, except for their values.
    pub(super) fn has_shapes_of(&self, other: &Buffer) -> bool {
        *self.arrays == *other.arrays && self.values.device == other.values.device
    }

    /// Takes over the values of another buffer with the same arrays.
    pub(super) fn fill(&self, from: &Buffer) {
        assert!(self.has_shapes_of(from), "arrays of other shapes");
        let values = self.values.meta.num_elements();
        copy_kernel::launch(
            &self.values.client,
            CubeCount::Static(values.div_ceil(COPIED_BY_CUBE) as u32, 1, 1),
            CubeDim::new_1d(256),
            from.values.clone().into_tensor_arg(),
            self.values.clone().into_tensor_arg(),
        );
    }

    /// The values in memory of the stream that runs this.
    fn own_copy(&self) -> CubeTensor {
        match self.values.handle.stream == StreamId::current() {
            true => self.values.clone(),
            false => self.values.copy(),
        }
    }
}

/// Values that a cube copies.
const COPIED_BY_CUBE: usize = 8 * 256;

/// Copies bits: some are those of integers.
#[cube(launch)]
fn copy_kernel(from: &Tensor<u32>, to: &mut Tensor<u32>) {
    let start = CUBE_POS_X as usize * 2048 + UNIT_POS as usize;
    for round in 0..8 {
        let at = start + round * 256;
        if at < from.len() {
            to[at] = from[at];
        }
    }
}

impl Kind {
    fn dtype(self) -> DType {
        match self {
            Kind::Float => DType::F32,
            Kind::Int => DType::I32,
        }
    }
}

/// An array as a part of the buffer, without a copy. Its memory includes the gap to the next one, so that both ends are
/// aligned.
fn part(buffer: &CubeTensor, array: &PackedArray) -> CubeTensor {
    let end = array.start + array.length().next_multiple_of(ALIGNMENT);
    let bytes = |values: usize| (values * size_of::<f32>()) as u64;
    let handle = buffer.handle.clone().offset_start(bytes(array.start));
    CubeTensor::new_contiguous(
        buffer.client.clone(),
        buffer.device.clone(),
        Shape::from(array.shape.clone()),
        handle.offset_end(bytes(buffer.meta.num_elements() - end)),
        array.kind.dtype(),
    )
}
