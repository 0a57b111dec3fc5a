//! The optimizer on a GPU: the state of all weights joined in one buffer per kind.
//!
//! In: weights and gradients. Out: updated weights, as parts of one buffer. A step takes a few launches for all weights
//! together. Nothing is read back: the clipping factor and the check for finite values stay on the device.

use super::StepSettings;
use crate::loss_scale::LossScale;
use crate::network::ops::adamw::Moments;
use crate::network::ops::gpu::adamw::{InPlace, Place, Step};
use burn::tensor::{DType, Device, Tensor};

/// The state of all weights that have a gradient.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    weights: Vec<Member>,
    places: Vec<Place>,
    /// `None` only during a step, which changes it in place.
    moments: Option<Moments<1>>,
}

/// A weight whose state is joined.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Its number among all weights of the module.
    number: usize,
    /// Its dimensions, which decide on decay.
    dimensions: usize,
}

impl Joined {
    /// Joins the state of these weights: number, dimensions, state.
    pub(super) fn new(weights: Vec<(usize, usize, Moments<1>)>, device: &Device) -> Joined {
        let lengths = weights.iter().map(|(_, _, moments)| moments.mean.dims()[0]);
        let (places, length) = Place::all(lengths);
        let join = |part: fn(&Moments<1>) -> &Tensor<1>| {
            let parts = weights.iter().map(|(_, _, moments)| part(moments).clone());
            joined(parts, &places, length, device)
        };
        let moments = Moments {
            mean: join(|moments| &moments.mean),
            square: join(|moments| &moments.square),
            ema: join(|moments| &moments.ema),
        };
        let member = |(number, dimensions, _)| Member { number, dimensions };
        Joined {
            weights: weights.into_iter().map(member).collect(),
            places,
            moments: Some(moments),
        }
    }

    /// The same weights, with their values joined like their state, to be changed where they are. Also a copy of them in a
    /// type.
    pub(super) fn in_place(
        &self,
        weights: &[Tensor<1>],
        loss_scale: Option<Tensor<1>>,
        copies: Option<DType>,
    ) -> InPlace {
        let moments = self.moments.clone().expect("the state is there between steps");
        let length = moments.mean.dims()[0];
        let values = self.weights.iter().map(|member| weights[member.number].clone());
        let values = joined(values, &self.places, length, &moments.mean.device());
        InPlace::new(&self.places, values, moments, loss_scale, copies)
    }

    /// The same weights with another state.
    pub(super) fn with_moments(&self, moments: Option<Moments<1>>) -> Joined {
        Joined { moments, ..self.clone() }
    }

    /// The numbers of the weights among all weights of the module.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        self.weights.iter().map(|member| member.number)
    }

    /// The step with these settings.
    pub(super) fn settings(&self, share: f64, settings: &StepSettings) -> Step {
        let of_each = self.weights.iter().map(|member| settings.for_tensor(member.dimensions, 1.0));
        Step::new(&self.places, of_each.collect(), share as f32, settings.clip as f32)
    }

    /// Whether exactly these weights are joined.
    pub(super) fn holds(&self, gradients: &[Option<Tensor<1>>]) -> bool {
        let has_gradient =
            |member: &Member| gradients.get(member.number).is_some_and(Option::is_some);
        self.weights.len() == gradients.iter().flatten().count()
            && self.weights.iter().all(has_gradient)
    }

    /// Updates the weights; returns copies of them in this type, and the norm of the mean gradient.
    pub(super) fn step(
        &mut self,
        weights: &mut [Tensor<1>],
        gradients: Vec<Option<Tensor<1>>>,
        share: f64,
        settings: &StepSettings,
        scale: &mut Option<LossScale>,
        copies: Option<DType>,
    ) -> (Vec<Option<Tensor<1>>>, Tensor<1>) {
        let step = self.settings(share, settings).copied_to(copies);
        let old = self.weights.iter().map(|member| weights[member.number].clone()).collect();
        let gradients = gradients.into_iter().flatten().collect();
        let moments = self.moments.take().expect("the state is there between steps");
        let found = step.run(old, gradients, moments, scale.take().map(|scale| scale.state()));
        self.moments = Some(found.moments);
        *scale = found.loss_scale.map(LossScale::restored);
        let mut rounded = vec![None; weights.len()];
        for (member, new) in self.weights.iter().zip(found.weights) {
            weights[member.number] = new;
        }
        for (member, copy) in self.weights.iter().zip(found.copies) {
            rounded[member.number] = Some(copy);
        }
        (rounded, found.norm)
    }

    /// The state of one weight; `None` if it has no gradient.
    pub(super) fn moments(&self, weight: usize) -> Option<Moments<1>> {
        let at = self.weights.iter().position(|member| member.number == weight)?;
        let (Place { start, length }, moments) = (self.places[at], self.moments.as_ref()?);
        let part = |joined: &Tensor<1>| joined.clone().narrow(0, start, length);
        let Moments { mean, square, ema } = moments;
        Some(Moments { mean: part(mean), square: part(square), ema: part(ema) })
    }
}

/// Values at their places in one buffer.
fn joined(
    parts: impl Iterator<Item = Tensor<1>>,
    places: &[Place],
    length: usize,
    device: &Device,
) -> Tensor<1> {
    let joined = Tensor::<1>::zeros([length], device);
    parts.zip(places).fold(joined, |joined, (part, place)| {
        joined.slice_assign(place.start..place.start + place.length, part)
    })
}
