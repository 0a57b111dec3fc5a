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
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use std::sync::Arc;

pub(super) type FusedTensor = FloatTensor<Cube>;
type Runtime = <CubeBackend as FusionBackend>::FusionRuntime;
type Handles = HandleContainer<<Runtime as FusionRuntime>::FusionHandle>;

/// The GPU behind a device.
pub(super) fn device_of(device: &Device) -> Option<CubeDevice> {
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

    /// The values in memory of the stream that runs this.
    fn own_copy(&self) -> CubeTensor {
        match self.values.handle.stream == StreamId::current() {
            true => self.values.clone(),
            false => self.values.copy(),
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
