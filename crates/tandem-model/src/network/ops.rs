//! The operations that dominate the time of a training step, each as one function.
//!
//! In and out: tensors of any device. On the CPU backend `flex` in single precision they run as one fused kernel
//! with a hand-written backward. On a GPU some have kernels of our own (`ops/gpu.rs`), and the others are the same maths from
//! ordinary tensor operations ([`plain`]). All agree within rounding. Tensors of positions may have
//! 16 bits: then values between operations do, and so do products with weights, while sums, statistics and modulations have 32. Results are bit-equal from run to run and do not depend on the number
//! of threads. Prints nothing, starts no thread of its own (rayon's pool is used), reads no environment.

pub mod adamw; // the optimizer step
pub mod lengths; // which positions are real
mod film; // norms and gates that share a projection
#[cfg(feature = "any-gpu")]
pub(crate) mod gpu; // kernels for GPUs
pub mod plain; // the same maths from ordinary operations
mod fused; // dispatch to the fused CPU kernels
mod attention; // its kernels, one file each
mod norm;
mod linear;
mod conv;
mod gate;
mod error;
mod rows; // parallel iteration over a tensor
mod product; // small matrix products
mod matmul; // large ones
pub(crate) mod lanes; // vector arithmetic
#[cfg(test)]
mod check; // what their tests share

use burn::backend::Dispatch;
use burn::tensor::{DType, Tensor};

use fused::FusedOps;

pub use adamw::{AdamW, Moments};
pub use film::Film;
pub(crate) use fused::on_cpu;
pub use lengths::Lengths;

/// Self-attention with rotary positions, over the real positions of each row.
///
/// `qkv` is `[batch, positions, 3 * width]`, straight out of one projection: all queries, then all keys, then all
/// values, each split into `heads`. The result is `[batch, positions, width]` with zeros at padded positions. Padded
/// positions of `qkv` are never read.
pub fn attention(qkv: Tensor<3>, heads: usize, lengths: &Lengths) -> Tensor<3> {
    let [batch, positions, packed] = qkv.dims();
    check_lengths(batch, positions, lengths);
    assert_eq!(packed % (6 * heads), 0, "{packed} is not three times {heads} heads of even width");
    if fused::on_cpu(&qkv) {
        let mixed = Dispatch::fused_attention(qkv.into_dispatch(), heads, lengths.shared());
        return Tensor::from_dispatch(mixed);
    }
    #[cfg(feature = "any-gpu")]
    if gpu::is_supported(&qkv) && packed / 3 / heads <= gpu::WIDEST_HEAD {
        return gpu::attention(qkv, heads, lengths);
    }
    if is_16_bit(&qkv) {
        return in_32_bits(qkv, |qkv| attention(qkv, heads, lengths));
    }
    plain::attention(qkv, heads, lengths)
}

/// Layer norm over the width, then `* (1 + scale) + shift`.
///
/// `x` is `[batch, positions, width]`; `scale` and `shift` are `[batch, width]`, or `[1, width]` for all rows alike.
pub fn norm_film(x: Tensor<3>, scale: Tensor<2>, shift: Tensor<2>) -> Tensor<3> {
    check_film(&x, &scale);
    check_film(&x, &shift);
    if fused::on_cpu(&x) {
        return Tensor::from_dispatch(Dispatch::fused_norm_film(
            x.into_dispatch(),
            scale.into_dispatch(),
            shift.into_dispatch(),
        ));
    }
    #[cfg(feature = "any-gpu")]
    if gpu::is_supported(&x) {
        return gpu::FilmParts::new(Tensor::cat(vec![scale, shift], 1), 2).norm(x, 0);
    }
    if is_16_bit(&x) {
        return in_32_bits(x, |x| norm_film(x, scale, shift));
    }
    plain::norm_film(x, scale, shift)
}

/// `x * weight + bias`. Shapes: `[batch, positions, from]`, `[from, to]`, `[to]`.
pub fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    check_linear(&x, &weight, &bias);
    if fused::on_cpu(&x) {
        return Tensor::from_dispatch(Dispatch::fused_linear(
            x.into_dispatch(),
            weight.into_dispatch(),
            bias.into_dispatch(),
        ));
    }
    if is_16_bit(&x) && fused::on_host(&x) {
        return in_32_bits(x, |x| linear(x, weight.cast(DType::F32), bias));
    }
    plain::linear(x, weight, bias)
}

/// `silu(x * weight + bias)`. Shapes: `[batch, positions, from]`, `[from, to]`, `[to]`.
pub fn linear_silu(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    check_linear(&x, &weight, &bias);
    if fused::on_cpu(&x) {
        return Tensor::from_dispatch(Dispatch::fused_linear_silu(
            x.into_dispatch(),
            weight.into_dispatch(),
            bias.into_dispatch(),
        ));
    }
    if is_16_bit(&x) && fused::on_host(&x) {
        return in_32_bits(x, |x| linear_silu(x, weight.cast(DType::F32), bias));
    }
    plain::linear_silu(x, weight, bias)
}

/// `silu` of a convolution over three positions: each position, joined with the one before and the one after it, times
/// `weight`, plus `bias`. Beyond the ends of a row, and at padded positions of `lengths`, the input counts as zero. Without
/// `lengths`, padded positions of `x` must be zero already.
///
/// Shapes: `[batch, positions, from]`, `[3 * from, to]`, `[to]`.
pub fn conv_silu(
    x: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    lengths: Option<&Lengths>,
) -> Tensor<3> {
    let ([batch, positions, from], [weight_from, to]) = (x.dims(), weight.dims());
    assert_eq!([3 * from, to], [weight_from, bias.dims()[0]], "weight or bias has another width");
    if let Some(lengths) = lengths {
        check_lengths(batch, positions, lengths);
    }
    if fused::on_cpu(&x) {
        return Tensor::from_dispatch(Dispatch::fused_conv_silu(
            x.into_dispatch(),
            weight.into_dispatch(),
            bias.into_dispatch(),
            lengths.map(Lengths::shared),
        ));
    }
    if is_16_bit(&x) && fused::on_host(&x) {
        return in_32_bits(x, |x| conv_silu(x, weight.cast(DType::F32), bias, lengths));
    }
    linear_silu(neighbours(x, lengths), weight, bias)
}

/// Each position joined with the one before and the one after it, zero beyond the ends of a row and at padded positions
/// of `lengths`: `[batch, positions, width]` to `[batch, positions, 3 * width]`.
pub fn neighbours(x: Tensor<3>, lengths: Option<&Lengths>) -> Tensor<3> {
    #[cfg(feature = "any-gpu")]
    if gpu::is_supported(&x) {
        return gpu::neighbours(x, lengths);
    }
    plain::with_neighbours(x, lengths)
}

/// `x + gate * y`. Shapes: `[batch, positions, width]`, and `[batch, width]` or `[1, width]` for the gate.
pub fn gated_add(x: Tensor<3>, gate: Tensor<2>, y: Tensor<3>) -> Tensor<3> {
    check_film(&x, &gate);
    assert_eq!(x.dims(), y.dims(), "different shapes");
    if fused::on_cpu(&x) {
        return Tensor::from_dispatch(Dispatch::fused_gated_add(
            x.into_dispatch(),
            gate.into_dispatch(),
            y.into_dispatch(),
        ));
    }
    #[cfg(feature = "any-gpu")]
    if gpu::is_supported(&x) {
        return gpu::FilmParts::new(gate, 1).gated_add(x, 0, y);
    }
    if is_16_bit(&x) {
        return in_32_bits(x, |x| gated_add(x, gate, y.cast(DType::F32)));
    }
    plain::gated_add(x, gate, y)
}

/// Mean squared error over the real positions. Shapes: `[batch, positions, bands]` twice; the result has one element,
/// zero if no position is real.
pub fn squared_error(guess: Tensor<3>, truth: Tensor<3>, lengths: &Lengths) -> Tensor<1> {
    let [batch, positions, _] = truth.dims();
    assert_eq!(guess.dims(), truth.dims(), "different shapes");
    check_lengths(batch, positions, lengths);
    if fused::on_cpu(&guess) {
        return Tensor::from_dispatch(Dispatch::fused_squared_error(
            guess.into_dispatch(),
            truth.into_dispatch(),
            lengths.shared(),
        ));
    }
    plain::squared_error(guess, truth, lengths)
}

/// Whether a tensor has a type of 16 bits. Modulations and biases have 32 bits in any case.
fn is_16_bit<const D: usize>(tensor: &Tensor<D>) -> bool {
    matches!(tensor.dtype(), DType::F16 | DType::BF16)
}

/// Computes in 32 bits and rounds the result to the type of the input, as the kernels for GPUs do with 16 bits.
fn in_32_bits(x: Tensor<3>, operation: impl FnOnce(Tensor<3>) -> Tensor<3>) -> Tensor<3> {
    let dtype = x.dtype();
    operation(x.cast(DType::F32)).cast(dtype)
}

#[track_caller]
fn check_film(x: &Tensor<3>, film: &Tensor<2>) {
    let [batch, _, width] = x.dims();
    let dims = film.dims();
    assert!(dims == [batch, width] || dims == [1, width], "{dims:?} for {:?}", x.dims());
}

#[track_caller]
fn check_linear(x: &Tensor<3>, weight: &Tensor<2>, bias: &Tensor<1>) {
    let ([_, _, from], [weight_from, to]) = (x.dims(), weight.dims());
    assert_eq!([from, to], [weight_from, bias.dims()[0]], "weight or bias has another width");
}

#[track_caller]
fn check_lengths(batch: usize, positions: usize, lengths: &Lengths) {
    let known = [lengths.real().len(), lengths.positions()];
    assert_eq!([batch, positions], known, "lengths belong to another batch");
}
