//! Many arrays in one upload, as tensors of the thread that uses them.
//!
//! In: arrays on the host, packed one after another by any thread. Out: tensors on a device that belong to the thread that
//! calls [`Upload::tensors`]. On a GPU a tensor belongs to the stream of the thread that made it. Each launch that reads
//! another stream's tensor records events and waits for a place in a short queue of the library, and each clone is a round
//! trip to the device's thread. So the upload runs on the stream of the thread that packed it, beside the kernels of the
//! others, and one launch copies it into memory of the thread that uses it. That thread waits for nothing.

#[cfg(feature = "any-gpu")]
mod gpu;

#[cfg(feature = "any-gpu")]
pub(crate) use gpu::{device_of as gpu_of, flush as flush_gpu};

use burn::tensor::{Device, Int, Tensor, TensorData};
use tandem_units::Bytes;

/// Every array starts at a multiple of so many values: 512 bytes, the alignment of CUDA.
const ALIGNMENT: usize = 128;

/// Arrays in host memory, packed for one upload.
#[derive(Clone, Debug, Default)]
pub struct Pack {
    /// Integers by their bits.
    values: Vec<f32>,
    arrays: Vec<PackedArray>,
}

/// Where an array is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PackedArray {
    start: usize,
    shape: Vec<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Float,
    Int,
}

impl PackedArray {
    fn length(&self) -> usize {
        self.shape.iter().product()
    }
}

impl Pack {
    /// With room for so many values.
    pub fn with_capacity(values: usize) -> Pack {
        Pack { values: Vec::with_capacity(values), arrays: Vec::new() }
    }

    /// Adds an array of floats.
    pub fn floats<const D: usize>(
        &mut self,
        shape: [usize; D],
        values: impl IntoIterator<Item = f32>,
    ) {
        let start = self.begin();
        self.values.extend(values);
        self.end(start, &shape, Kind::Float);
    }

    /// Adds an array of floats that a function fills.
    pub fn filled<const D: usize>(&mut self, shape: [usize; D], fill: impl FnOnce(&mut [f32])) {
        let start = self.begin();
        self.values.resize(start + shape.iter().product::<usize>(), 0.0);
        fill(&mut self.values[start..]);
        self.end(start, &shape, Kind::Float);
    }

    /// Adds an array of integers.
    pub fn ints<const D: usize>(
        &mut self,
        shape: [usize; D],
        values: impl IntoIterator<Item = i32>,
    ) {
        let start = self.begin();
        self.values.extend(values.into_iter().map(|value| f32::from_bits(value.cast_unsigned())));
        self.end(start, &shape, Kind::Int);
    }

    /// The device memory that it takes.
    pub fn size(&self) -> Bytes {
        Bytes::of_slice(&self.values)
    }

    /// Starts the copy to a device.
    pub fn upload(self, device: &Device) -> Upload {
        let size = self.size();
        #[cfg(feature = "any-gpu")]
        if let Some(device) = gpu::device_of(device) {
            return Upload { size, place: UploadMemory::Gpu(gpu::Buffer::upload(self, device)) };
        }
        Upload { size, place: UploadMemory::Host(self.on_host(device)) }
    }

    fn begin(&mut self) -> usize {
        let start = self.values.len().next_multiple_of(ALIGNMENT);
        self.values.resize(start, 0.0);
        start
    }

    fn end(&mut self, start: usize, shape: &[usize], kind: Kind) {
        let array = PackedArray { start, shape: shape.to_vec(), kind };
        assert_eq!(array.length(), self.values.len() - start, "values for the shape {shape:?}");
        self.arrays.push(array);
    }

    fn on_host(self, device: &Device) -> Vec<Array> {
        let tensor = |array: &PackedArray| {
            let shape = [array.length()];
            let values = &self.values[array.start..][..array.length()];
            let values = match array.kind {
                Kind::Float => {
                    let data = TensorData::new(values.to_vec(), shape);
                    Values::Float(Tensor::from_data(data, device))
                }
                Kind::Int => {
                    let ints = values.iter().map(|value| value.to_bits().cast_signed()).collect();
                    let data = TensorData::new::<i32, _>(ints, shape);
                    Values::Int(Tensor::from_data(data, device))
                }
            };
            Array { shape: array.shape.clone(), values }
        };
        self.arrays.iter().map(tensor).collect()
    }
}

/// Arrays on their way to a device, or there. Clones share them.
#[derive(Clone, Debug)]
pub struct Upload {
    size: Bytes,
    place: UploadMemory,
}

#[derive(Clone, Debug)]
enum UploadMemory {
    Host(Vec<Array>),
    #[cfg(feature = "any-gpu")]
    Gpu(gpu::Buffer),
}

impl Upload {
    /// Its device memory.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// A copy on the GPU in memory of this thread, which stays where it is while [`Upload::fill`] fills it again; `None` in
    /// host memory.
    #[cfg(feature = "any-gpu")]
    pub fn for_this_thread(&self) -> Option<Upload> {
        let UploadMemory::Gpu(buffer) = &self.place else { return None };
        Some(Upload { size: self.size, place: UploadMemory::Gpu(buffer.for_this_thread()) })
    }

    /// Whether both have the same arrays on a GPU, except for their values.
    #[cfg(feature = "any-gpu")]
    pub fn has_shapes_of(&self, other: &Upload) -> bool {
        match (&self.place, &other.place) {
            (UploadMemory::Gpu(own), UploadMemory::Gpu(other)) => own.has_shapes_of(other),
            _ => false,
        }
    }

    /// Takes over the arrays of another upload, which must have the same shapes, on the same GPU. Waits for nothing.
    #[cfg(feature = "any-gpu")]
    pub fn fill(&self, from: &Upload) {
        match (&self.place, &from.place) {
            (UploadMemory::Gpu(own), UploadMemory::Gpu(from)) => own.fill(from),
            _ => panic!("uploads in host memory are not filled again"),
        }
    }

    /// The arrays in the order in which they were packed, as tensors of this thread. Waits for nothing.
    pub fn tensors(&self) -> Arrays {
        let arrays = match &self.place {
            UploadMemory::Host(arrays) => arrays.clone(),
            #[cfg(feature = "any-gpu")]
            UploadMemory::Gpu(buffer) => buffer.tensors(),
        };
        Arrays(arrays.into_iter())
    }
}

/// Tensors to be taken one after another, each as what it was packed as.
pub struct Arrays(std::vec::IntoIter<Array>);

#[derive(Clone, Debug)]
struct Array {
    shape: Vec<usize>,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    /// Flat.
    Float(Tensor<1>),
    Int(Tensor<1, Int>),
    /// In their shape.
    #[cfg(feature = "any-gpu")]
    FloatOnGpu(gpu::FusedTensor),
    #[cfg(feature = "any-gpu")]
    IntOnGpu(gpu::FusedTensor),
}

impl Arrays {
    /// The next array.
    ///
    /// # Panics
    /// If it has another kind or another number of dimensions.
    pub fn floats<const D: usize>(&mut self) -> Tensor<D> {
        let Array { shape, values } = self.0.next().expect("as many arrays as were packed");
        let shape: [usize; D] = shape.try_into().expect("the dimensions that were packed");
        match values {
            Values::Float(flat) => flat.reshape(shape),
            #[cfg(feature = "any-gpu")]
            Values::FloatOnGpu(tensor) => Tensor::from_primitive::<burn::backend::Cube>(tensor),
            _ => panic!("floats were packed as integers"),
        }
    }

    /// The same for integers.
    pub fn ints<const D: usize>(&mut self) -> Tensor<D, Int> {
        let Array { shape, values } = self.0.next().expect("as many arrays as were packed");
        let shape: [usize; D] = shape.try_into().expect("the dimensions that were packed");
        match values {
            Values::Int(flat) => flat.reshape(shape),
            #[cfg(feature = "any-gpu")]
            Values::IntOnGpu(tensor) => Tensor::from_primitive::<burn::backend::Cube>(tensor),
            _ => panic!("integers were packed as floats"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_back_in_order_with_their_shapes() {
        let mut pack = Pack::default();
        pack.floats([2, 3], (0..6).map(|value| value as f32 / 3.0));
        pack.ints([3, 1], [7, -1, i32::MAX]);
        pack.filled([1, 1, 2], |values| values.copy_from_slice(&[f32::MIN, -0.0]));
        assert!(pack.arrays.iter().all(|array| array.start.is_multiple_of(ALIGNMENT)));
        let mut arrays = pack.upload(&Device::flex()).tensors();
        let floats = arrays.floats::<2>();
        assert_eq!(floats.dims(), [2, 3]);
        let expected: Vec<f32> = (0..6).map(|value| value as f32 / 3.0).collect();
        assert_eq!(floats.try_into_vec_as::<f32>().unwrap(), expected);
        assert_eq!(arrays.ints::<2>().try_into_vec_as::<i32>().unwrap(), [7, -1, i32::MAX]);
        let last = arrays.floats::<3>();
        assert_eq!(last.dims(), [1, 1, 2]);
        let bits: Vec<u32> =
            last.try_into_vec_as::<f32>().unwrap().into_iter().map(f32::to_bits).collect();
        assert_eq!(bits, [f32::MIN.to_bits(), (-0.0f32).to_bits()]);
    }

    #[test]
    #[should_panic(expected = "values for the shape [2, 2]")]
    fn an_array_of_another_length_than_its_shape_is_refused() {
        Pack::default().floats([2, 2], [1.0; 3]);
    }
}
