//! Modulation by a condition (FiLM): norms and gates that share one projection of the condition.
//!
//! In: a projection `[rows, parts * width]`, or with one row for all. Out: [`Film`], whose parts modulate tensors
//! `[rows, positions, width]`. On a GPU kernels read their part out of the projection, and the gradients of all parts are
//! joined once; elsewhere each part is a tensor of its own.

use super::{gated_add, norm_film};
use burn::tensor::Tensor;

/// The parts of a projection. **All of them must be used once**: on a GPU the backward pass waits for the gradient of each.
pub struct Film {
    #[cfg(feature = "any-gpu")]
    gpu: Option<super::gpu::FilmParts>,
    parts: Vec<Tensor<2>>,
}

impl Film {
    /// Equal parts of a projection.
    pub fn new(projection: Tensor<2>, parts: usize) -> Film {
        #[cfg(feature = "any-gpu")]
        if super::gpu::is_supported(&projection) {
            let gpu = Some(super::gpu::FilmParts::new(projection, parts));
            return Film { gpu, parts: Vec::new() };
        }
        let width = projection.dims()[1] / parts;
        let part = |number| projection.clone().narrow(1, number * width, width);
        Film {
            #[cfg(feature = "any-gpu")]
            gpu: None,
            parts: (0..parts).map(part).collect(),
        }
    }

    /// [`norm_film`], with this part as scale and the next one as shift.
    pub fn norm(&self, x: Tensor<3>, part: usize) -> Tensor<3> {
        #[cfg(feature = "any-gpu")]
        if let Some(film) = &self.gpu {
            return film.norm(x, part);
        }
        norm_film(x, self.parts[part].clone(), self.parts[part + 1].clone())
    }

    /// [`gated_add`], with this part as gate.
    pub fn gated_add(&self, x: Tensor<3>, part: usize, y: Tensor<3>) -> Tensor<3> {
        #[cfg(feature = "any-gpu")]
        if let Some(film) = &self.gpu {
            return film.gated_add(x, part, y);
        }
        gated_add(x, self.parts[part].clone(), y)
    }
}
