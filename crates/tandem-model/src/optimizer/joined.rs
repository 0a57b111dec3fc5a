//! The optimizer on a GPU: weights and their state joined into a few buffers.
//!
//! In: weights and gradients. Out: updated weights, as parts of one buffer. A step over each weight by itself takes several
//! launches for every weight; here it takes a few for all of them, besides joining. Nothing is read back: the clipping
//! factor and the check for finite values stay tensors.

use super::StepSettings;
use crate::network::ops::adamw::{self, Moments};
use burn::tensor::{Device, Tensor, TensorData};

/// A part of a buffer is used without a copy where it starts at a multiple of so many floats: 512 bytes, the
/// alignment of CUDA.
const ALIGNMENT: usize = 128;
/// Tensors that one launch joins. A kernel has a limited number of parameters.
const JOINED_AT_ONCE: usize = 16;

/// The state of all weights that have a gradient.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    /// Weights with decay, and those without.
    groups: Vec<Group>,
}

/// Weights in one buffer.
#[derive(Clone, Debug)]
struct Group {
    /// Dimensions of its weights, which decide on decay: 2 for two or more.
    dimensions: usize,
    places: Vec<Place>,
    moments: Moments<1>,
}

/// Where a weight is.
#[derive(Clone, Debug)]
struct Place {
    /// Its number among all weights of the module.
    weight: usize,
    start: usize,
    length: usize,
    /// Zeros up to the next weight.
    padding: Option<Tensor<1>>,
}

impl Joined {
    /// Joins the state of these weights: number, dimensions, state.
    pub(super) fn new(weights: Vec<(usize, usize, Moments<1>)>, device: &Device) -> Joined {
        let mut kinds: [Vec<(usize, Moments<1>)>; 2] = Default::default();
        for (weight, dimensions, moments) in weights {
            kinds[usize::from(dimensions > 1)].push((weight, moments));
        }
        let groups = kinds.into_iter().enumerate().filter(|(_, weights)| !weights.is_empty());
        let groups = groups.map(|(many, weights)| Group::new(1 + many, weights, device));
        Joined { groups: groups.collect() }
    }

    /// Whether exactly these weights are joined.
    pub(super) fn holds(&self, gradients: &[Option<Tensor<1>>]) -> bool {
        let places = || self.groups.iter().flat_map(|group| &group.places);
        places().count() == gradients.iter().flatten().count()
            && places().all(|place| gradients.get(place.weight).is_some_and(Option::is_some))
    }

    /// Updates the weights; returns the norm of the mean gradient.
    pub(super) fn step(
        &mut self,
        weights: &mut [Tensor<1>],
        gradients: &[Option<Tensor<1>>],
        share: f64,
        settings: &StepSettings,
    ) -> Tensor<1> {
        let of = |place: &Place| gradients[place.weight].clone().expect("checked by `holds`");
        let gradients: Vec<_> = self.groups.iter().map(|group| group.join(of)).collect();
        let squares = gradients.iter().map(|gradient| {
            // Many short rows: a row is summed by one block of threads, so few long ones leave most of a card idle.
            let rows = [gradient.dims()[0] / ALIGNMENT, ALIGNMENT];
            gradient.clone().square().reshape(rows).sum_dim(1).sum()
        });
        let squares = squares.reduce(|sum, one| sum + one).expect("a weight has a gradient");
        let norm = squares.sqrt() * share;
        let usable = norm.clone().is_finite();
        let factor = match settings.clip > 0.0 {
            true => (norm.clone().recip() * settings.clip).clamp_max(1.0) * share,
            false => norm.ones_like() * share,
        };
        for (group, gradient) in self.groups.iter_mut().zip(gradients) {
            let old = group.join(|place| weights[place.weight].clone());
            let before = group.moments.clone();
            let settings = settings.for_tensor(group.dimensions, 1.0);
            let gradient = gradient * factor.clone();
            let (new, moments) =
                adamw::adamw_step_plain(old.clone(), gradient, before.clone(), &settings);
            let keep = |new: Tensor<1>, old: Tensor<1>| {
                let usable = usable.clone().expand(new.dims());
                old.mask_where(usable, new)
            };
            group.moments = Moments {
                mean: keep(moments.mean, before.mean),
                square: keep(moments.square, before.square),
                ema: keep(moments.ema, before.ema),
            };
            let new = keep(new, old);
            for place in &group.places {
                weights[place.weight] = place.of(&new);
            }
        }
        norm
    }

    /// The state of one weight; `None` if it has no gradient.
    pub(super) fn moments(&self, weight: usize) -> Option<Moments<1>> {
        let place = |group: &Group| {
            let place = group.places.iter().find(|place| place.weight == weight)?;
            let Moments { mean, square, ema } = &group.moments;
            Some(Moments { mean: place.of(mean), square: place.of(square), ema: place.of(ema) })
        };
        self.groups.iter().find_map(place)
    }
}

impl Group {
    fn new(dimensions: usize, weights: Vec<(usize, Moments<1>)>, device: &Device) -> Group {
        let mut start = 0;
        let place = |(weight, moments): &(usize, Moments<1>)| {
            let [length] = moments.mean.dims();
            let room = length.next_multiple_of(ALIGNMENT);
            let padding = (room > length).then(|| {
                let zeros = TensorData::zeros::<f32, _>([room - length]);
                Tensor::from_data(zeros, device)
            });
            let place = Place { weight: *weight, start, length, padding };
            start += room;
            place
        };
        let places: Vec<Place> = weights.iter().map(place).collect();
        let join = |part: fn(&Moments<1>) -> &Tensor<1>| {
            let parts = weights.iter().map(|(_, moments)| part(moments).clone());
            join(parts.zip(&places))
        };
        let moments = Moments {
            mean: join(|moments| &moments.mean),
            square: join(|moments| &moments.square),
            ema: join(|moments| &moments.ema),
        };
        Group { dimensions, places, moments }
    }

    fn join(&self, of: impl Fn(&Place) -> Tensor<1>) -> Tensor<1> {
        join(self.places.iter().map(|place| (of(place), place)))
    }
}

impl Place {
    fn of(&self, joined: &Tensor<1>) -> Tensor<1> {
        joined.clone().narrow(0, self.start, self.length)
    }
}

/// One buffer of all these, each at its place.
fn join<'a>(parts: impl Iterator<Item = (Tensor<1>, &'a Place)>) -> Tensor<1> {
    let mut tensors: Vec<Tensor<1>> =
        parts.flat_map(|(part, place)| [Some(part), place.padding.clone()]).flatten().collect();
    while tensors.len() > 1 {
        tensors = tensors.chunks(JOINED_AT_ONCE).map(|few| Tensor::cat(few.to_vec(), 0)).collect();
    }
    tensors.remove(0)
}
