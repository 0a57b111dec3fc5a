//! The weights of a module as a list of named tensors, and back.
//!
//! In: any module. Out: its weights in a fixed order, each flattened, named by its path. The
//! optimizer and checkpoints use this list. Moves nothing between devices. Next:
//! [`crate::gradients`].

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, FloatDType, Gradients, Tensor, TensorData};

/// One tensor of weights.
#[derive(Clone, Debug)]
pub struct Weight {
    /// The path, such as `decoder.blocks.0.ffn_out.weight`.
    pub name: String,
    pub shape: Vec<usize>,
    /// Flattened, without autodiff.
    pub values: Tensor<1>,
}

impl Weight {
    /// Whether it is the matrix of a [`Linear`](crate::network::layers::Linear): not a bias, nor a table of vectors.
    fn is_of_product(&self) -> bool {
        self.shape.len() == 2 && self.name.ends_with(".weight")
    }
}

/// The weights of a module, in the order of its fields.
pub fn weights_of<M: Module>(module: &M) -> Vec<Weight> {
    let mut walk = Collect { path: Path::default(), found: Vec::new() };
    module.visit(&mut walk);
    walk.found
}

/// The gradients of a module's weights, in the same order; `None` where no gradient flows.
pub fn gradients_of<M: Module>(module: &M, gradients: &mut Gradients) -> Vec<Option<Tensor<1>>> {
    let mut walk = Gather { gradients, found: Vec::new() };
    module.visit(&mut walk);
    walk.found
}

/// The module with these weights, in the same order, on the devices of the values. A weight is
/// trainable if it was before.
///
/// # Panics
/// If the number of weights or of their values is not that of the module.
pub fn with_weights<M: Module>(module: M, weights: Vec<Tensor<1>>) -> M {
    let mut walk = Replace { weights: weights.into_iter() };
    let module = module.map(&mut walk);
    assert!(walk.weights.next().is_none(), "more weights than the module has");
    module
}

/// A copy of a module for training in 16 bits: the weights of its products are rounded to this type, all other tensors are
/// shared. The optimizer changes the module itself, in 32 bits, and writes both.
pub fn rounded_copy<M: Module>(module: &M, dtype: FloatDType) -> M {
    let round = |weight: Weight| match weight.is_of_product() {
        true => weight.values.cast(dtype),
        false => weight.values,
    };
    with_weights(module.clone(), weights_of(module).into_iter().map(round).collect())
}

/// The module with shapes only. The weights that [`weights_of`] returned before have one reference less, and
/// [`with_weights`] puts them back.
pub fn without_values<M: Module>(module: M) -> M {
    module.map(&mut Clear)
}

/// The module with weights by name, on this device. The error names a tensor that is missing or has
/// another shape.
pub fn with_named<M: Module>(
    module: M,
    named: impl Fn(&str) -> Option<(Vec<usize>, Vec<f32>)>,
    device: &Device,
) -> Result<M, WeightsError> {
    let mut values = Vec::new();
    for Weight { name, shape, .. } in weights_of(&module) {
        let Some((found, floats)) = named(&name) else {
            return Err(WeightsError::Missing { name });
        };
        if found != shape {
            return Err(WeightsError::Shape { name, found, expected: shape });
        }
        let count = floats.len();
        values.push(Tensor::from_data(TensorData::new(floats, [count]), device));
    }
    Ok(with_weights(module, values))
}

/// Weights that do not match a module.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    #[error("there is no tensor `{name}`")]
    Missing { name: String },
    #[error("tensor `{name}` has shape {found:?}, expected {expected:?}")]
    Shape { name: String, found: Vec<usize>, expected: Vec<usize> },
}

impl tandem_units::Hint for WeightsError {
    fn hint(&self) -> Option<String> {
        Some("these weights belong to another model size, symbol table or version".into())
    }
}

#[derive(Default)]
struct Path(Vec<String>);

struct Collect {
    path: Path,
    found: Vec<Weight>,
}

impl ModuleVisitor for Collect {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.0.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.0.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val().inner();
        let shape = tensor.dims().to_vec();
        let values = tensor.reshape([shape.iter().product::<usize>()]);
        self.found.push(Weight { name: self.path.0.join("."), shape, values });
    }
}

struct Gather<'a> {
    gradients: &'a mut Gradients,
    found: Vec<Option<Tensor<1>>>,
}

impl ModuleVisitor for Gather<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad_remove(self.gradients);
        self.found.push(gradient.map(|gradient| {
            let count = gradient.shape().num_elements();
            gradient.reshape([count])
        }));
    }
}

struct Clear;

impl ModuleMapper for Clear {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|old| {
            let (shape, trained) = (old.dims(), old.is_require_grad());
            let (tracked, device) = (old.is_autodiff(), old.inner().device());
            // One value, repeated without memory.
            let zeros: Tensor<D> = Tensor::<D>::zeros([1; D], &device).expand(shape);
            if tracked { zeros.autodiff().set_require_grad(trained) } else { zeros }
        })
    }
}

/// The module with these parts of a GPU's memory as weights, in the same order and in their shapes; it keeps the others.
#[cfg(feature = "any-gpu")]
pub(crate) fn with_parts<M: Module>(module: M, parts: Vec<Option<Part>>) -> M {
    module.map(&mut PutParts { parts: parts.into_iter() })
}

#[cfg(feature = "any-gpu")]
type Part = burn::backend::tensor::FloatTensor<burn::backend::Cube>;

#[cfg(feature = "any-gpu")]
struct PutParts {
    parts: std::vec::IntoIter<Option<Part>>,
}

#[cfg(feature = "any-gpu")]
impl ModuleMapper for PutParts {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(part) = self.parts.next().expect("fewer parts than the module has weights") else {
            return param;
        };
        param.map(|old| {
            let trained = old.is_require_grad();
            let new = Tensor::<D>::from_primitive::<burn::backend::Cube>(part);
            if old.is_autodiff() { new.autodiff().set_require_grad(trained) } else { new }
        })
    }
}

struct Replace {
    weights: std::vec::IntoIter<Tensor<1>>,
}

impl ModuleMapper for Replace {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let values = self.weights.next().expect("fewer weights than the module has");
        param.map(|old| {
            let trained = old.is_require_grad();
            let new = values.reshape(old.dims());
            if old.is_autodiff() { new.autodiff().set_require_grad(trained) } else { new }
        })
    }
}
