//! Modulated norms and gates on a GPU: one launch forward, one or two backward.
//!
//! In and out: as [`super::super::film::Film`]. The modulations are read where they are in the projection; their
//! gradients are joined into one when the backward pass has reached all of them.

mod kernels;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::CubeBackend;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A projection whose parts modulate tensors.
pub(in super::super) struct FilmParts {
    projection: Tensor<2>,
    pieces: Arc<Pieces>,
}

impl FilmParts {
    pub(in super::super) fn new(projection: Tensor<2>, parts: usize) -> FilmParts {
        let pieces = Arc::new(Pieces { parts, gradients: Mutex::default() });
        FilmParts { projection, pieces }
    }

    /// See [`super::super::film::Film::norm`].
    pub(in super::super) fn norm(&self, x: Tensor<3>, part: usize) -> Tensor<3> {
        self.check(&x, part + 2);
        Tensor::from_dispatch(Dispatch::gpu_norm_film(
            x.into_dispatch(),
            self.projection.clone().into_dispatch(),
            self.pieces.clone(),
            part,
        ))
    }

    /// See [`super::super::film::Film::gated_add`].
    pub(in super::super) fn gated_add(&self, x: Tensor<3>, part: usize, y: Tensor<3>) -> Tensor<3> {
        self.check(&x, part + 1);
        assert_eq!(x.dims(), y.dims(), "different shapes");
        Tensor::from_dispatch(Dispatch::gpu_gated_add(
            x.into_dispatch(),
            self.projection.clone().into_dispatch(),
            y.into_dispatch(),
            self.pieces.clone(),
            part,
        ))
    }

    #[track_caller]
    fn check(&self, x: &Tensor<3>, parts: usize) {
        let ([batch, _, width], [films, all]) = (x.dims(), self.projection.dims());
        assert!(films == batch || films == 1, "{films} modulations for {batch} rows");
        assert_eq!(all, self.pieces.parts * width, "parts of another width");
        assert!(parts <= self.pieces.parts, "part {parts} of {}", self.pieces.parts);
    }
}

/// The gradients of a projection that the backward pass has reached.
#[derive(Debug)]
pub struct Pieces {
    /// Parts of the projection.
    parts: usize,
    /// First part, number of parts, gradient.
    gradients: Mutex<Vec<(usize, usize, FloatTensor<Cube>)>>,
}

impl Pieces {
    fn gradients(&self) -> MutexGuard<'_, Vec<(usize, usize, FloatTensor<Cube>)>> {
        self.gradients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the gradient of some parts; returns that of the whole after the last of them.
    fn add(
        &self,
        part: usize,
        count: usize,
        gradient: FloatTensor<Cube>,
    ) -> Option<FloatTensor<Cube>> {
        let mut found = self.gradients();
        found.push((part, count, gradient));
        if found.iter().map(|(_, count, _)| count).sum::<usize>() < self.parts {
            return None;
        }
        let mut all = std::mem::take(&mut *found);
        all.sort_by_key(|(part, ..)| *part);
        Some(Cube::float_cat(all.into_iter().map(|(_, _, gradient)| gradient).collect(), 1))
    }
}

impl Drop for Pieces {
    /// A part that the loss does not depend on would cost the others their gradients, without a word.
    fn drop(&mut self) {
        let waiting = self.gradients().len();
        assert!(
            waiting == 0 || std::thread::panicking(),
            "{waiting} parts of a projection have a gradient, and the others have none"
        );
    }
}

/// What runs on the device. `part` counts widths of `x` in the projection `film`.
#[backend_extension(Cube, Fusion)]
pub trait FilmKernels: Backend {
    /// The result, and each position's mean and inverse deviation, `[batch, positions, 2]`.
    #[fusion(meta = norm_outputs)]
    fn norm_film_forward(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        part: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of `x`.
    #[fusion(dtype = x, shape = x)]
    fn norm_film_to_input(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        part: usize,
    ) -> FloatTensor<Self>;

    /// The gradients of scale and shift, side by side, for this number of rows of the projection.
    #[fusion(dtype = stats, shape = Shape::new([*films, 2 * x[2]]))]
    fn norm_film_to_film(
        x: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        films: usize,
    ) -> FloatTensor<Self>;

    /// See [`super::super::gated_add`].
    #[fusion(dtype = x, shape = x)]
    fn gated_add_forward(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        y: FloatTensor<Self>,
        part: usize,
    ) -> FloatTensor<Self>;

    /// The gradients of `y` and of the gate.
    #[fusion(meta = gate_outputs)]
    fn gated_add_backward(
        film: FloatTensor<Self>,
        y: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        part: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

fn norm_outputs(x: &TensorSpec, _film: &TensorSpec, _part: &usize) -> (TensorSpec, TensorSpec) {
    (x.clone(), TensorSpec::new(kernels::stats_shape(&x.shape), DType::F32))
}

fn gate_outputs(
    film: &TensorSpec,
    y: &TensorSpec,
    _gradient: &TensorSpec,
    _part: &usize,
) -> (TensorSpec, TensorSpec) {
    (y.clone(), TensorSpec::new(Shape::new([film.shape[0], y.shape[2]]), film.dtype))
}

impl FilmKernels for CubeBackend {
    fn norm_film_forward(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        part: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        kernels::norm(x, film, part)
    }

    fn norm_film_to_input(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        part: usize,
    ) -> FloatTensor<Self> {
        kernels::norm_to_input(x, film, stats, gradient, part)
    }

    fn norm_film_to_film(
        x: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        films: usize,
    ) -> FloatTensor<Self> {
        kernels::norm_to_film(x, stats, gradient, films)
    }

    fn gated_add_forward(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        y: FloatTensor<Self>,
        part: usize,
    ) -> FloatTensor<Self> {
        kernels::gated_add(x, film, y, part)
    }

    fn gated_add_backward(
        film: FloatTensor<Self>,
        y: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        part: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        kernels::gated_add_backward(film, y, gradient, part)
    }
}

/// What tensors call.
#[backend_extension(Cube, Autodiff)]
pub trait FilmOps: Backend {
    /// See [`FilmParts::norm`].
    fn gpu_norm_film(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        pieces: Arc<Pieces>,
        part: usize,
    ) -> FloatTensor<Self>;

    /// See [`FilmParts::gated_add`].
    fn gpu_gated_add(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        y: FloatTensor<Self>,
        pieces: Arc<Pieces>,
        part: usize,
    ) -> FloatTensor<Self>;
}

impl FilmOps for Cube {
    fn gpu_norm_film(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        _pieces: Arc<Pieces>,
        part: usize,
    ) -> FloatTensor<Self> {
        Cube::norm_film_forward(x, film, part).0
    }

    fn gpu_gated_add(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        y: FloatTensor<Self>,
        _pieces: Arc<Pieces>,
        part: usize,
    ) -> FloatTensor<Self> {
        Cube::gated_add_forward(x, film, y, part)
    }
}

impl<C: CheckpointStrategy> FilmOps for Autodiff<Cube, C> {
    fn gpu_norm_film(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        pieces: Arc<Pieces>,
        part: usize,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), film.node()];
        let (x, film) = (x.into_primitive(), film.into_primitive());
        let (y, stats) = Cube::norm_film_forward(x.clone(), film.clone(), part);
        match NormFilm.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(NormState { x, film, stats, pieces, part }, y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn gpu_gated_add(
        x: FloatTensor<Self>,
        film: FloatTensor<Self>,
        y: FloatTensor<Self>,
        pieces: Arc<Pieces>,
        part: usize,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), film.node(), y.node()];
        let [x, film, y] = [x, film, y].map(|tensor| tensor.into_primitive());
        let sum = Cube::gated_add_forward(x, film.clone(), y.clone(), part);
        match GatedAdd.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(GateState { film, y, pieces, part }, sum),
            OpsKind::UnTracked(prep) => prep.finish(sum),
        }
    }
}

#[derive(Debug)]
struct NormFilm;

#[derive(Clone, Debug)]
struct NormState {
    x: FloatTensor<Cube>,
    film: FloatTensor<Cube>,
    stats: FloatTensor<Cube>,
    pieces: Arc<Pieces>,
    part: usize,
}

impl Backward<Cube, 2> for NormFilm {
    type State = NormState;

    fn backward(self, ops: Ops<NormState, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let NormState { x, film, stats, pieces, part } = ops.state;
        let [to_x, to_film] = ops.parents;
        if let Some(node) = to_film {
            let films = film.shape()[0];
            let found = Cube::norm_film_to_film(x.clone(), stats.clone(), gradient.clone(), films);
            if let Some(whole) = pieces.add(part, 2, found) {
                grads.register::<Cube>(node.id, whole);
            }
        }
        if let Some(node) = to_x {
            let found = Cube::norm_film_to_input(x, film, stats, gradient, part);
            grads.register::<Cube>(node.id, found);
        }
    }
}

#[derive(Debug)]
struct GatedAdd;

#[derive(Clone, Debug)]
struct GateState {
    film: FloatTensor<Cube>,
    y: FloatTensor<Cube>,
    pieces: Arc<Pieces>,
    part: usize,
}

impl Backward<Cube, 3> for GatedAdd {
    type State = GateState;

    fn backward(self, ops: Ops<GateState, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let GateState { film, y, pieces, part } = ops.state;
        let [to_x, to_film, to_y] = ops.parents;
        let (y, gate) = Cube::gated_add_backward(film, y, gradient.clone(), part);
        if let Some(node) = to_x {
            grads.register::<Cube>(node.id, gradient);
        }
        if let Some(node) = to_film {
            if let Some(whole) = pieces.add(part, 1, gate) {
                grads.register::<Cube>(node.id, whole);
            }
        }
        if let Some(node) = to_y {
            grads.register::<Cube>(node.id, y);
        }
    }
}
