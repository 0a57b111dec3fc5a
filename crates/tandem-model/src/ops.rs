//! The operations a training step spends its time in, each as one function.
//!
//! In and out: tensors of any device. On the CPU backend `flex` in single precision they run as one fused kernel
//! with a hand-written backward, anywhere else as the same maths from ordinary tensor operations
//! ([`plain`]); the two agree within rounding. Results are bit-equal from run to run and do not depend on the number
//! of threads. Prints nothing, starts no thread of its own (rayon's pool is used), reads no environment.

pub mod adamw; // the optimiser's step
pub mod lengths; // which positions are real
pub mod plain; // the same maths from ordinary operations

use burn::tensor::Tensor;

pub use adamw::{AdamW, Moments};
pub use lengths::Lengths;

/// Self-attention with rotary positions, over the real positions of each row.
///
/// `qkv` is `[batch, positions, 3 * width]`, straight out of one projection: all queries, then all keys, then all
/// values, each split into `heads`. The result is `[batch, positions, width]` with zeros at padded positions; what
/// stands at padded positions of `qkv` is never read.
pub fn attention(qkv: Tensor<3>, heads: usize, lengths: &Lengths) -> Tensor<3> {
    plain::attention(qkv, heads, lengths)
}

/// Layer norm over the width, then `* (1 + scale) + shift`.
///
/// `x` is `[batch, positions, width]`; `scale` and `shift` are `[batch, width]`, or `[1, width]` for all rows alike.
pub fn norm_film(x: Tensor<3>, scale: Tensor<2>, shift: Tensor<2>) -> Tensor<3> {
    plain::norm_film(x, scale, shift)
}

/// `x * weight + bias`. Shapes: `[batch, positions, from]`, `[from, to]`, `[to]`.
pub fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    plain::linear(x, weight, bias)
}

/// `silu(x * weight + bias)`. Shapes: `[batch, positions, from]`, `[from, to]`, `[to]`.
pub fn linear_silu(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    plain::linear_silu(x, weight, bias)
}

/// `x + gate * y`. Shapes: `[batch, positions, width]`, and `[batch, width]` or `[1, width]` for the gate.
pub fn gated_add(x: Tensor<3>, gate: Tensor<2>, y: Tensor<3>) -> Tensor<3> {
    plain::gated_add(x, gate, y)
}

/// Mean squared error over the real positions. Shapes: `[batch, positions, bands]` twice; the result has one element,
/// zero where no position is real.
pub fn squared_error(guess: Tensor<3>, truth: Tensor<3>, lengths: &Lengths) -> Tensor<1> {
    plain::squared_error(guess, truth, lengths)
}
