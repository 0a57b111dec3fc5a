//! Our own kernels on a GPU against the fused kernels of the CPU: results and gradients, odd sizes, NaN in padding.

use crate::{alone, placed};
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use tandem_model::network::ops::{self, Film, Lengths};

/// The largest difference, as a share of the largest value.
const TOLERANCE: f32 = 2e-5;

/// An operation on flat inputs, on a device.
type Operation<'a> = &'a dyn Fn(&[Tensor<1>], &Device) -> Tensor<1>;

/// Pseudo-random values between -1 and 1, the same in every run.
fn noise(length: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    };
    (0..length).map(|_| next()).collect()
}

fn flat(values: &[f32], device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), device)
}

/// The result of an operation and the gradients of its inputs, for a loss that weighs each element differently. Other
/// operations before and after it, so that the library has something to fuse.
fn run(inputs: &[Vec<f32>], operation: Operation<'_>, device: &Device) -> Vec<Vec<f32>> {
    let device = device.clone().autodiff();
    let inputs: Vec<_> = inputs.iter().map(|values| flat(values, &device).require_grad()).collect();
    let turned: Vec<_> = inputs.iter().map(|input| input.clone() * 1.5 + 0.1).collect();
    let result = operation(&turned, &device);
    let weights = flat(&noise(result.dims()[0], 77), &device);
    let mut gradients = (result.clone() * 2.0 * weights).sum().backward();
    let mut found = vec![result];
    found.extend(inputs.iter().map(|input| {
        let gradient = input.grad_remove(&mut gradients).expect("a gradient");
        Tensor::from_inner(gradient)
    }));
    found.into_iter().map(|tensor| tensor.try_into_vec_as().unwrap()).collect()
}

/// Checks an operation with inputs of these lengths.
#[track_caller]
fn agrees(what: &str, lengths: &[usize], operation: Operation<'_>) {
    agrees_within(TOLERANCE, what, lengths, operation);
}

#[track_caller]
fn agrees_within(tolerance: f32, what: &str, lengths: &[usize], operation: Operation<'_>) {
    let inputs: Vec<_> =
        lengths.iter().enumerate().map(|(seed, &length)| noise(length, seed as u64)).collect();
    let gpu = placed(0, 1).open().unwrap().model;
    let truth = run(&inputs, operation, &Device::flex());
    let found = run(&inputs, operation, &gpu);
    assert!(run(&inputs, operation, &gpu) == found, "{what}: not the same from run to run");
    for (at, (found, truth)) in found.iter().zip(&truth).enumerate() {
        let most = truth.iter().fold(1e-3, |most: f32, value| most.max(value.abs()));
        let off = crate::largest(found, truth);
        let part = if at == 0 { "result".into() } else { format!("gradient {at}") };
        eprintln!("{what}, {part}: off by {off:.2e} of {most:.2e}");
        assert!(found.iter().all(|value| value.is_finite()), "{what}, {part}");
        assert!(off <= tolerance * most, "{what}, {part}: {off} of {most}");
    }
}

/// Values with NaN at the padded positions.
fn spoilt(mut values: Vec<f32>, real: &[usize], positions: usize) -> Vec<f32> {
    let width = values.len() / real.len() / positions;
    for (row, &length) in real.iter().enumerate() {
        values[(row * positions + length) * width..(row + 1) * positions * width].fill(f32::NAN);
    }
    values
}

/// `[positions, heads, head]` and the real lengths.
fn attention(
    [positions, heads, head]: [usize; 3],
    real: &[usize],
) -> impl Fn(&[Tensor<1>], &Device) -> Tensor<1> {
    let real = real.to_vec();
    move |inputs, device| {
        let lengths = Lengths::new(&real, positions, device);
        let qkv = inputs[0].clone().reshape([real.len(), positions, 3 * heads * head]);
        ops::attention(qkv, heads, &lengths).flatten(0, 2)
    }
}

#[test]
fn attention_agrees_with_the_cpu() {
    let _alone = alone();
    // Heads of every size of voice, and odd ones; more positions than a tile; rows without a real position.
    let cases: [([usize; 3], &[usize]); 5] = [
        ([37, 3, 32], &[37, 1, 0, 20]),
        ([71, 2, 64], &[71, 33, 65]),
        ([9, 1, 16], &[9, 4]),
        ([33, 2, 6], &[33]),
        ([1, 1, 40], &[1]),
    ];
    for (shape @ [positions, heads, head], real) in cases {
        let length = real.len() * positions * 3 * heads * head;
        agrees(&format!("attention {shape:?} {real:?}"), &[length], &attention(shape, real));
    }
}

#[test]
fn attention_never_reads_padding() {
    let _alone = alone();
    let gpu = placed(0, 1).open().unwrap().model;
    let (shape, real) = ([19, 2, 32], [5, 19]);
    let clean = noise(2 * 19 * 3 * 64, 1);
    let broken = spoilt(clean.clone(), &real, 19);
    let operation = attention(shape, &real);
    assert!(run(&[clean], &operation, &gpu) == run(&[broken], &operation, &gpu));
}

#[test]
fn attention_without_autodiff_has_the_same_bits() {
    let _alone = alone();
    let gpu = placed(0, 1).open().unwrap().model;
    let operation = attention([9, 2, 32], &[9, 4]);
    let values = noise(2 * 9 * 3 * 64, 3);
    let on = |device: &Device| -> Vec<f32> {
        operation(&[flat(&values, device)], device).try_into_vec_as().unwrap()
    };
    assert!(on(&gpu) == on(&gpu.clone().autodiff()));
}

#[test]
fn modulated_norms_and_gates_agree_with_the_cpu() {
    let _alone = alone();
    // Wider and narrower than a cube, more positions than one; a modulation for each row, and one for all. Not one or two
    // wide: the exact gradient of a norm is zero there, and what is left is rounding.
    for ([rows, positions, width], films) in
        [([3, 11, 96], 3), ([2, 5, 33], 1), ([1, 1, 5], 1), ([2, 40, 16], 2)]
    {
        let (all, film) = (rows * positions * width, films * width);
        let shaped = move |x: &Tensor<1>| x.clone().reshape([rows, positions, width]);
        let row = move |film: &Tensor<1>| film.clone().reshape([films, width]);
        let what = format!("[{rows}, {positions}, {width}], {films} modulations");
        agrees(&format!("norm {what}"), &[all, film, film], &|inputs, _| {
            ops::norm_film(shaped(&inputs[0]), row(&inputs[1]), row(&inputs[2])).flatten(0, 2)
        });
        agrees(&format!("gate {what}"), &[all, film, all], &|inputs, _| {
            ops::gated_add(shaped(&inputs[0]), row(&inputs[1]), shaped(&inputs[2])).flatten(0, 2)
        });
    }
}

#[test]
fn the_parts_of_one_projection_agree_with_the_cpu() {
    let _alone = alone();
    let [rows, positions, width] = [3, 7, 48];
    agrees("six parts", &[rows * positions * width, rows * 6 * width], &|inputs, _| {
        let film = Film::new(inputs[1].clone().reshape([rows, 6 * width]), 6);
        let x = inputs[0].clone().reshape([rows, positions, width]);
        let x = film.gated_add(x.clone(), 2, film.norm(x, 0));
        film.gated_add(x.clone(), 5, film.norm(x, 3)).flatten(0, 2)
    });
}

/// `[positions, from, to]` and the real lengths, if padding is not zero already.
fn conv_silu(
    [positions, from, to]: [usize; 3],
    rows: usize,
    real: Option<&[usize]>,
) -> impl Fn(&[Tensor<1>], &Device) -> Tensor<1> {
    let real = real.map(<[usize]>::to_vec);
    move |inputs, device| {
        let lengths = real.as_ref().map(|real| Lengths::new(real, positions, device));
        let x = inputs[0].clone().reshape([rows, positions, from]);
        let weight = inputs[1].clone().reshape([3 * from, to]);
        ops::conv_silu(x, weight, inputs[2].clone(), lengths.as_ref()).flatten(0, 2)
    }
}

#[test]
fn convolutions_agree_with_the_cpu() {
    let _alone = alone();
    for (shape @ [positions, from, to], rows, real) in [
        ([9, 16, 8], 3, Some([9, 1, 0].as_slice())),
        ([5, 7, 3], 2, None),
        ([1, 4, 4], 2, Some([1, 0].as_slice())),
    ] {
        let lengths = [rows * positions * from, 3 * from * to, to];
        let what = format!("convolution {shape:?}, {rows} rows, {real:?}");
        agrees(&what, &lengths, &conv_silu(shape, rows, real));
    }
}

#[test]
fn convolutions_never_read_padding() {
    let _alone = alone();
    let gpu = placed(0, 1).open().unwrap().model;
    let (shape, real) = ([9, 8, 4], [3, 9]);
    let (clean, weight, bias) = (noise(2 * 9 * 8, 1), noise(24 * 4, 2), noise(4, 3));
    let broken = spoilt(clean.clone(), &real, 9);
    let operation = conv_silu(shape, 2, Some(&real));
    let on = |x: Vec<f32>| run(&[x, weight.clone(), bias.clone()], &operation, &gpu);
    assert!(on(clean) == on(broken));
}

/// The types of 16 bits that the device computes in, and the largest difference for each: values are rounded at the same
/// places as on the CPU, and one in a few is rounded to the other side. Gradients add up several roundings.
fn half_types() -> Vec<(FloatDType, f32)> {
    let gpu = placed(0, 1).open().unwrap().model;
    let all = [(FloatDType::F16, 4e-3), (FloatDType::BF16, 3e-2)];
    let known: Vec<_> =
        all.into_iter().filter(|(dtype, _)| gpu.supports_dtype(DType::from(*dtype))).collect();
    assert!(!known.is_empty(), "the device has no type of 16 bits, so nothing is tested");
    known
}

#[test]
fn attention_in_16_bits_agrees_with_the_rounded_values_of_the_cpu() {
    let _alone = alone();
    for (dtype, tolerance) in half_types() {
        for (shape @ [positions, heads, head], real) in
            [([37, 3, 32], [37, 1, 0, 20].as_slice()), ([33, 2, 6], [33].as_slice())]
        {
            let length = real.len() * positions * 3 * heads * head;
            let operation = |inputs: &[Tensor<1>], device: &Device| {
                attention(shape, real)(&[inputs[0].clone().cast(dtype)], device)
                    .cast(FloatDType::F32)
            };
            agrees_within(
                tolerance,
                &format!("attention {shape:?} {dtype:?}"),
                &[length],
                &operation,
            );
        }
    }
}

#[test]
fn norms_gates_and_convolutions_in_16_bits_agree_with_the_rounded_values_of_the_cpu() {
    let _alone = alone();
    let ([rows, positions, width], films) = ([3, 11, 34], 3);
    let all = rows * positions * width;
    for (dtype, tolerance) in half_types() {
        let shaped = |x: &Tensor<1>| x.clone().reshape([rows, positions, width]).cast(dtype);
        let wide = |y: Tensor<3>| y.cast(FloatDType::F32).flatten(0, 2);
        agrees_within(
            tolerance,
            &format!("block {dtype:?}"),
            &[all, films * 3 * width],
            &|inputs, _| {
                // Modulations stay in 32 bits.
                let film = Film::new(inputs[1].clone().reshape([films, 3 * width]), 3);
                let x = shaped(&inputs[0]);
                wide(film.gated_add(x.clone(), 2, film.norm(x, 0)))
            },
        );
        let lengths = [all, 3 * width * 8, 8];
        agrees_within(tolerance, &format!("convolution {dtype:?}"), &lengths, &|inputs, device| {
            let lengths = Lengths::new(&[11, 4, 0], positions, device);
            let weight = inputs[1].clone().reshape([3 * width, 8]).cast(dtype);
            wide(ops::conv_silu(shaped(&inputs[0]), weight, inputs[2].clone(), Some(&lengths)))
        });
    }
}
