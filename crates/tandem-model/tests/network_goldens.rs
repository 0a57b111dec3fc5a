//! The network against NumPy (`xtask/generators/make_network_goldens.py`), part by part and as losses.
//!
//! The reference computes every utterance alone, in 64 bits; here both are one padded batch, in 32 bits.
//! So the test covers the maths, the names of the weights, and that padding has no influence.

use serde::Deserialize;
use tandem_model::network::decoder::{DecoderContext, time_features};
use tandem_model::network::size::VoiceConfig;
use tandem_model::network::text_encoder::Encoded;
use tandem_model::network::voice::{Voice, expand};
use tandem_model::train_batch::{AlignedBatch, DeviceBatch};
use tandem_model::weights::{weights_of, with_named};
use tandem_model::{Device, Tensor, TensorData};
use tandem_units::Seed;

/// Rounding of 32-bit floats through about twenty layers, and to the six digits of the file, with a margin.
const TOLERANCE: f32 = 1e-4;

#[derive(Deserialize)]
struct Golden {
    config: VoiceConfig,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    language: i32,
    symbols: Vec<i32>,
    durations: Vec<u32>,
    time: f32,
    mel: Vec<f32>,
    noise: Vec<f32>,
    reference: Vec<f32>,
    voice: Vec<f32>,
    condition: Vec<f32>,
    hidden: Vec<f32>,
    prior: Vec<f32>,
    log_durations: Vec<f32>,
    velocity: Vec<f32>,
    losses: GoldenLosses,
}

#[derive(Deserialize)]
struct GoldenLosses {
    prior: f32,
    duration: f32,
    flow: f32,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("goldens/network.json")).expect("the golden file")
}

/// Values from -1 to 1 that depend on a name, as in the script.
fn uniform(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let fold = |seed: u32, byte: u8| (seed ^ u32::from(byte)).wrapping_mul(16_777_619);
    let seed = name.bytes().fold(2_166_136_261, fold);
    (0..count as u32).map(move |at| {
        let mix = |x: u32| (x ^ x >> 16).wrapping_mul(0x045D_9F3B);
        let x = mix(mix(seed.wrapping_add(at.wrapping_mul(2_654_435_761))));
        f64::from(x ^ x >> 16) / f64::from(1u32 << 31) - 1.0
    })
}

fn weight(name: &str, shape: &[usize]) -> Vec<f32> {
    let bound = if name.ends_with("weight") { (3.0 / shape[0] as f64).sqrt() } else { 0.5 };
    uniform(name, shape.iter().product()).map(|value| (bound * value) as f32).collect()
}

fn voice(config: &VoiceConfig, device: &Device) -> Voice {
    let fresh = Voice::new(config, Seed(0), device);
    let shapes: Vec<_> =
        weights_of(&fresh).into_iter().map(|weight| (weight.name, weight.shape)).collect();
    let named = |name: &str| {
        let (_, shape) = shapes.iter().find(|(other, _)| other == name)?;
        Some((shape.clone(), weight(name, shape)))
    };
    with_named(fresh, named, device).expect("weights of the right shapes")
}

/// Both rows in one batch, with padding after the longer one too.
struct Batch {
    batch: DeviceBatch,
    symbols: usize,
    frames: usize,
}

fn batch(golden: &Golden, device: &Device) -> Batch {
    let Golden { config, rows } = golden;
    let bands = config.bands;
    let (symbols, frames, reference_frames) = (7, 16, 16);
    let mut host = AlignedBatch {
        rows: rows.len(),
        symbols,
        frames,
        bands,
        patch: config.patch,
        reference_frames,
        ..AlignedBatch::default()
    };
    let mut noise = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        // Padding must not matter.
        let garbage = 9.0 + number as f32;
        let padded = |values: &[f32], count: usize| {
            let mut values = values.to_vec();
            values.resize(count * bands, garbage);
            values
        };
        host.symbol_counts.push(row.symbols.len());
        host.frame_counts.push(row.mel.len() / bands);
        host.reference_counts.push(row.reference.len() / bands);
        host.languages.push(row.language);
        host.symbol_ids.extend(&row.symbols);
        host.symbol_ids.resize((number + 1) * symbols, 5);
        host.durations.extend(&row.durations);
        host.durations.resize((number + 1) * symbols, 0);
        // The last patch is filled with zeros; the padding after it is arbitrary.
        let mut mel = row.mel.clone();
        mel.resize((row.mel.len() / bands).next_multiple_of(config.patch) * bands, 0.0);
        host.mel.extend(padded(&mel, frames));
        host.reference.extend(padded(&row.reference, reference_frames));
        noise.extend(padded(&row.noise, frames));
    }
    let times: Vec<f32> = rows.iter().map(|row| row.time).collect();
    let shape = [rows.len(), frames, bands];
    let mut batch = host.to_device(device);
    batch.noise = Tensor::from_data(TensorData::new(noise, shape), device);
    batch.time_features = Tensor::from_data(time_features(&times), device);
    batch.times = Tensor::from_data(TensorData::new(times, [rows.len(), 1, 1]), device);
    Batch { batch, symbols, frames }
}

/// Compares the rows of a tensor with the reference, each up to its real length.
#[track_caller]
fn check<const D: usize>(what: &str, found: Tensor<D>, golden: &Golden, of: fn(&Row) -> &[f32]) {
    let values = found.try_into_vec_as::<f32>().expect("32-bit floats");
    let rows = values.chunks_exact(values.len() / golden.rows.len());
    for (number, (found, row)) in rows.zip(&golden.rows).enumerate() {
        let expected = of(row);
        assert!(!expected.is_empty() && found.len() >= expected.len());
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            let off = (found - expected).abs();
            assert!(off < TOLERANCE, "{what}, row {number}, {at}: {found}, expected {expected}");
        }
    }
}

#[test]
fn every_part_equals_the_reference() {
    let (golden, device) = (golden(), Device::flex());
    let (voice, Batch { batch, frames, symbols }) =
        (voice(&golden.config, &device), batch(&golden, &device));
    let encoder = &voice.encoder;
    let speaker = encoder.speaker_embedding(batch.reference.clone(), batch.reference_mask.clone());
    check("voice", speaker.clone(), &golden, |row| &row.voice);
    let condition = encoder.condition(speaker, batch.languages.clone());
    check("condition", condition.clone(), &golden, |row| &row.condition);
    let Encoded { hidden, prior } =
        encoder.encode_text(batch.symbols.clone(), condition.clone(), &batch.text);
    assert_eq!(hidden.dims()[1], symbols);
    check("hidden", hidden.clone(), &golden, |row| &row.hidden);
    check("prior", prior.clone(), &golden, |row| &row.prior);
    let durations = voice.durations(hidden.clone(), &batch.text);
    check("durations", durations, &golden, |row| &row.log_durations);
    let (rows, positions) = (golden.rows.len(), frames / golden.config.patch);
    let prior = expand(prior, batch.frame_symbols.clone(), [rows, frames]);
    let hidden = expand(hidden, batch.position_symbols.clone(), [rows, positions]);
    let start = prior.clone() + batch.noise.clone();
    let point = start.clone() + (batch.mel.clone() - start) * batch.times.clone();
    let context = DecoderContext { prior, hidden, condition };
    let velocity = voice.velocity(point, batch.time_features, &context, &batch.positions);
    check("velocity", velocity, &golden, |row| &row.velocity);
}

#[test]
fn the_losses_of_a_batch_are_the_sums_of_its_rows() {
    let (golden, device) = (golden(), Device::flex());
    let losses = voice(&golden.config, &device).losses(&batch(&golden, &device).batch);
    let sum = |of: fn(&GoldenLosses) -> f32| -> f32 {
        golden.rows.iter().map(|row| of(&row.losses)).sum()
    };
    for (what, found, expected) in [
        ("prior", losses.prior, sum(|losses| losses.prior)),
        ("duration", losses.duration, sum(|losses| losses.duration)),
        ("flow", losses.flow, sum(|losses| losses.flow)),
    ] {
        let found = found.into_scalar::<f32>();
        assert!(
            (found - expected).abs() < TOLERANCE * expected.max(1.0),
            "{what}: {found}, expected {expected}"
        );
    }
}
