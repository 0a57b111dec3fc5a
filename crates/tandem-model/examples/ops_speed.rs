//! Measures the speed-up of the fused operations over the plain ones.
//!
//! Out: one line per operation, forward and backward together: milliseconds of the plain and the fused one, and their ratio.
//! The two alternate, and the fastest of many runs counts, so that other work on the machine has little effect.
//! Run: `cargo run --release -p tandem-model --example ops_speed [turns] [batch positions width heads]`.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use burn::tensor::{Device, Distribution, Tensor};
use tandem_model::network::ops::{self, AdamW, Lengths, Moments, adamw, plain};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let numbers: Vec<usize> =
        std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let turns = number(0, 20);
    let sizes = Sizes {
        batch: number(1, 8),
        positions: number(2, 150),
        width: number(3, 192),
        heads: number(4, 6),
    };
    // The training thread should be one of the rayon pool: otherwise each operation wakes another thread.
    let inside = !std::env::args().any(|word| word == "outside");
    if inside { rayon::scope(|_| run(turns, &sizes)) } else { run(turns, &sizes) }
}

struct Sizes {
    batch: usize,
    positions: usize,
    width: usize,
    heads: usize,
}

fn run(turns: usize, sizes: &Sizes) {
    let Sizes { batch, positions, width, heads } = *sizes;
    let device = Device::flex().autodiff();
    let random = |shape: [usize; 3]| {
        Tensor::<3>::random(shape, Distribution::Default, &device).require_grad()
    };
    let film =
        || Tensor::<2>::random([batch, width], Distribution::Default, &device).require_grad();
    let real: Vec<usize> =
        (0..batch).map(|row| positions - row * positions / (8 * batch)).collect();
    let lengths = Lengths::new(&real, positions, &device);
    let x = random([batch, positions, width]);
    let wide = random([batch, positions, 3 * width]);
    let (scale, shift) = (film(), film());
    let weight = random([1, width, 4 * width]).reshape([width, 4 * width]).detach().require_grad();
    let bias = random([1, 1, 4 * width]).reshape([4 * width]).detach().require_grad();

    println!("{batch} x {positions} x {width}, {heads} heads, ms forward and backward");
    compare(
        "attention",
        turns,
        &[&|| finish(plain::attention(wide.clone(), heads, &lengths)), &|| {
            finish(ops::attention(wide.clone(), heads, &lengths))
        }],
    );
    compare(
        "norm_film",
        turns,
        &[&|| finish(plain::norm_film(x.clone(), scale.clone(), shift.clone())), &|| {
            finish(ops::norm_film(x.clone(), scale.clone(), shift.clone()))
        }],
    );
    compare(
        "linear",
        turns,
        &[&|| finish(plain::linear(x.clone(), weight.clone(), bias.clone())), &|| {
            finish(ops::linear(x.clone(), weight.clone(), bias.clone()))
        }],
    );
    compare(
        "linear_silu",
        turns,
        &[&|| finish(plain::linear_silu(x.clone(), weight.clone(), bias.clone())), &|| {
            finish(ops::linear_silu(x.clone(), weight.clone(), bias.clone()))
        }],
    );
    compare(
        "gated_add",
        turns,
        &[&|| finish(plain::gated_add(x.clone(), scale.clone(), x.clone())), &|| {
            finish(ops::gated_add(x.clone(), scale.clone(), x.clone()))
        }],
    );
    compare(
        "squared_error",
        turns,
        &[&|| drop(plain::squared_error(x.clone(), x.clone(), &lengths).backward()), &|| {
            drop(ops::squared_error(x.clone(), x.clone(), &lengths).backward())
        }],
    );
    compare_steps(turns, width);
    let blocks: Vec<Block> = (0..4).map(|_| Block::new(width, &device)).collect();
    let through = |operations: &Operations| {
        let mut x = x.clone();
        for block in &blocks {
            x = block.forward(operations, x, heads, &lengths);
        }
        drop((operations.error)(x, wide.clone().narrow(2, 0, width), &lengths).backward());
    };
    compare("four blocks", turns, &[&|| through(&PLAIN), &|| through(&FUSED)]);
}

/// An optimizer step over as many weights as four blocks have.
fn compare_steps(turns: usize, width: usize) {
    let device = Device::flex();
    let new = || Tensor::<2>::random([width, 4 * width], Distribution::Default, &device);
    let settings = AdamW {
        rate: 1e-3,
        beta_1: 0.9,
        beta_2: 0.99,
        epsilon: 1e-8,
        decay: 0.01,
        ema: 0.999,
        step: 10,
        gradient_factor: 1.0,
    };
    let weights: Vec<_> = (0..12).map(|_| new()).collect();
    let states = || {
        let states = weights.iter().map(|weight| (weight.clone() + 0.0, Moments::new(weight)));
        std::cell::RefCell::new(states.collect::<Vec<_>>())
    };
    let (plain, fused) = (states(), states());
    compare(
        "AdamW",
        turns,
        &[
            &|| {
                for (weight, state) in weights.iter().zip(plain.borrow_mut().iter_mut()) {
                    let (old, moments) = state.clone();
                    *state = adamw::adamw_step_plain(old, weight.clone(), moments, &settings);
                }
            },
            &|| {
                let taken = std::mem::take(&mut *fused.borrow_mut());
                let moved = taken.into_iter().zip(&weights).map(|((old, moments), weight)| {
                    adamw::adamw_step(old, weight.clone(), moments, &settings)
                });
                *fused.borrow_mut() = moved.collect();
            },
        ],
    );
}

/// A cheap loss.
fn finish(result: Tensor<3>) {
    drop(result.sum().backward());
}

fn compare(name: &str, turns: usize, both: &[&dyn Fn(); 2]) {
    let mut best = [f64::MAX; 2];
    for _ in 0..turns {
        for (best, work) in best.iter_mut().zip(both) {
            let start = Instant::now();
            work();
            *best = best.min(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    println!("{name:14} {:8.2} {:8.2}   {:5.2} x", best[0], best[1], best[0] / best[1]);
}

struct Operations {
    attention: fn(Tensor<3>, usize, &Lengths) -> Tensor<3>,
    norm_film: fn(Tensor<3>, Tensor<2>, Tensor<2>) -> Tensor<3>,
    linear: fn(Tensor<3>, Tensor<2>, Tensor<1>) -> Tensor<3>,
    linear_silu: fn(Tensor<3>, Tensor<2>, Tensor<1>) -> Tensor<3>,
    gated_add: fn(Tensor<3>, Tensor<2>, Tensor<3>) -> Tensor<3>,
    error: fn(Tensor<3>, Tensor<3>, &Lengths) -> Tensor<1>,
}

const PLAIN: Operations = Operations {
    attention: plain::attention,
    norm_film: plain::norm_film,
    linear: plain::linear,
    linear_silu: plain::linear_silu,
    gated_add: plain::gated_add,
    error: plain::squared_error,
};

const FUSED: Operations = Operations {
    attention: ops::attention,
    norm_film: ops::norm_film,
    linear: ops::linear,
    linear_silu: ops::linear_silu,
    gated_add: ops::gated_add,
    error: ops::squared_error,
};

/// A transformer block with FiLM.
struct Block {
    projections: [(Tensor<2>, Tensor<1>); 4],
    films: [Tensor<2>; 6],
}

impl Block {
    fn new(width: usize, device: &Device) -> Block {
        let spread = Distribution::Normal(0.0, 0.02);
        let linear = |from: usize, to: usize| {
            let weight = Tensor::random([from, to], spread, device).require_grad();
            (weight, Tensor::zeros([to], device).require_grad())
        };
        Block {
            projections: [
                linear(width, 3 * width),
                linear(width, width),
                linear(width, 4 * width),
                linear(4 * width, width),
            ],
            films: [(); 6].map(|()| Tensor::random([1, width], spread, device).require_grad()),
        }
    }

    fn forward(
        &self,
        with: &Operations,
        x: Tensor<3>,
        heads: usize,
        lengths: &Lengths,
    ) -> Tensor<3> {
        let film = |index: usize| self.films[index].clone();
        let through = |linear: fn(Tensor<3>, Tensor<2>, Tensor<1>) -> Tensor<3>,
                       index: usize,
                       x: Tensor<3>| {
            let (weight, bias) = self.projections[index].clone();
            linear(x, weight, bias)
        };
        let normal = (with.norm_film)(x.clone(), film(0), film(1));
        let mixed = (with.attention)(through(with.linear, 0, normal), heads, lengths);
        let x = (with.gated_add)(x, film(2), through(with.linear, 1, mixed));
        let normal = (with.norm_film)(x.clone(), film(3), film(4));
        let hidden = through(with.linear_silu, 2, normal);
        (with.gated_add)(x, film(5), through(with.linear, 3, hidden))
    }
}
