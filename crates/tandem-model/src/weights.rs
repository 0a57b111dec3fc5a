//! The weights of a module as a list of named tensors, and back.
//!
//! In: any module. Out: its weights in a fixed order, each flat and with its path as a name:
//! what optimisers walk over and checkpoints keep. Moves nothing between devices.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

/// One tensor of weights.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Its path, such as `decoder.blocks.0.join.weight`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values, flat, without autodiff.
    pub values: Tensor<1>,
}

/// The weights of a module, in the order of its fields.
pub fn weights_of<M: Module>(module: &M) -> Vec<Weight> {
    let mut walk = Collect { path: Path::default(), found: Vec::new() };
    module.visit(&mut walk);
    walk.found
}

/// The gradients of a module's weights, in the same order; none where nothing flowed.
pub fn gradients_of<M: Module>(module: &M, gradients: &mut Gradients) -> Vec<Option<Tensor<1>>> {
    let mut walk = Gather { gradients, found: Vec::new() };
    module.visit(&mut walk);
    walk.found
}

/// The module with these weights, in the same order, on the devices of the values. Trainable
/// where the module was.
///
/// # Panics
/// Where the number of weights or of their values is not the module's.
pub fn with_weights<M: Module>(module: M, weights: Vec<Tensor<1>>) -> M {
    let mut walk = Replace { weights: weights.into_iter() };
    let module = module.map(&mut walk);
    assert!(walk.weights.next().is_none(), "more weights than the module has");
    module
}

/// The module with weights from a list by name, on this device. Says which one is missing or of
/// another shape.
pub fn with_named<M: Module>(
    module: M,
    named: impl Fn(&str) -> Option<(Vec<usize>, Vec<f32>)>,
    device: &Device,
) -> Result<M, WeightsError> {
    let mut values = Vec::new();
    for Weight { name, shape, .. } in weights_of(&module) {
        let Some((found, numbers)) = named(&name) else {
            return Err(WeightsError::Missing { name });
        };
        if found != shape {
            return Err(WeightsError::Shape { name, found, expected: shape });
        }
        let count = numbers.len();
        values.push(Tensor::from_data(TensorData::new(numbers, [count]), device));
    }
    Ok(with_weights(module, values))
}

/// Weights that do not fit a module.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// A tensor is not there.
    #[error("there is no tensor `{name}`")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A tensor has another shape.
    #[error("tensor `{name}` has shape {found:?}, expected {expected:?}")]
    Shape {
        /// Its name.
        name: String,
        /// The shape it has.
        found: Vec<usize>,
        /// The shape it should have.
        expected: Vec<usize>,
    },
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
