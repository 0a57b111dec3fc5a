//! The whole voice with a few hundred weights: padding, gradients, optimizer steps, synthesis.

use tandem_data::batch::BatchShape;
use tandem_model::alignment::{Aligner, log_likelihoods};
use tandem_model::gradients::{GradientReducer, GradientSum, LocalGradients, ReduceError};
use tandem_model::micro_batches::batch_gradients;
use tandem_model::network::ops::Lengths;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::{Voice, expand};
use tandem_model::optimizer::{Optimizer, StepSettings};
use tandem_model::synthesis::mel::{MelSynthesizer, Reference, SamplingOptions};
use tandem_model::train_batch::{AlignedBatch, DeviceBatch};
use tandem_model::weights::{weights_of, with_weights};
use tandem_model::{Device, Module, Tensor, TensorData};
use tandem_units::Seed;

fn micro() -> VoiceConfig {
    VoiceConfig {
        symbols: 11,
        languages: 2,
        bands: 4,
        text_width: 8,
        text_blocks: 2,
        decoder_width: 8,
        decoder_blocks: 2,
        head_width: 4,
        voice_width: 4,
        patch: 2,
    }
}

fn device() -> Device {
    Device::flex()
}

/// A voice without zero weights, so that every part has an effect.
fn perturbed(seed: u64) -> Voice {
    let voice = Voice::new(&micro(), Seed(seed), &device().autodiff());
    let mut number = 0u32;
    let weights = weights_of(&voice).into_iter().map(|weight| {
        let count = weight.values.dims()[0];
        let extra: Vec<f32> = (0..count)
            .map(|_| {
                number += 1;
                ((number as f32 * 0.7).sin()) * 0.2
            })
            .collect();
        weight.values + Tensor::from_data(TensorData::new(extra, [count]), &device())
    });
    with_weights(voice, weights.collect())
}

/// Rows of `[symbols, frames, reference frames]`, padded to the longest or to `room`.
fn batch(rows: &[[usize; 3]], room: [usize; 3]) -> AlignedBatch {
    let (config, [symbols, frames, reference]) = (micro(), room);
    let wave = |row: usize, at: usize| ((row * 31 + at) as f32 * 0.37).sin();
    let mut made = AlignedBatch {
        rows: rows.len(),
        symbols,
        frames,
        bands: config.bands,
        patch: config.patch,
        symbol_ids: vec![0; rows.len() * symbols],
        durations: vec![0; rows.len() * symbols],
        languages: (0..rows.len()).map(|row| (row % 2) as i32).collect(),
        mel: vec![0.0; rows.len() * frames * config.bands],
        reference_frames: reference,
        reference: vec![0.0; rows.len() * reference * config.bands],
        seed: Seed(5),
        ..AlignedBatch::default()
    };
    for (row, &[text, sound, segment]) in rows.iter().enumerate() {
        made.symbol_counts.push(text);
        made.frame_counts.push(sound);
        made.reference_counts.push(segment);
        for symbol in 0..text {
            made.symbol_ids[row * symbols + symbol] = (1 + (row + 3 * symbol) % 10) as i32;
            let rest = if symbol + 1 == text { sound % text } else { 0 };
            made.durations[row * symbols + symbol] = (sound / text + rest) as u32;
        }
        for at in 0..sound * config.bands {
            made.mel[row * frames * config.bands + at] = wave(row, at);
        }
        for at in 0..segment * config.bands {
            made.reference[row * reference * config.bands + at] = wave(row + 7, at);
        }
    }
    made
}

/// Noise and time that depend on the row, not on its padding.
fn with_noise_by_row(mut batch: DeviceBatch, numbers: &[usize]) -> DeviceBatch {
    let [rows, frames, bands] = batch.noise.dims();
    let noise: Vec<f32> = (0..rows * frames * bands)
        .map(|at| {
            let (row, place) = (numbers[at / (frames * bands)], at % (frames * bands));
            ((row * 1009 + place) as f32 * 1.3).cos()
        })
        .collect();
    let times: Vec<f32> = numbers.iter().map(|&row| 0.2 + 0.25 * row as f32).collect();
    batch.noise = Tensor::from_data(TensorData::new(noise, [rows, frames, bands]), &device());
    batch.time_features =
        Tensor::from_data(tandem_model::network::decoder::time_features(&times), &device());
    batch.times = Tensor::from_data(TensorData::new(times, [rows, 1, 1]), &device());
    batch
}

fn losses(voice: &Voice, batch: &DeviceBatch) -> [f32; 3] {
    let losses = voice.losses(batch);
    [losses.prior, losses.duration, losses.flow].map(|loss| loss.into_scalar::<f32>())
}

const ROWS: [[usize; 3]; 3] = [[5, 12, 8], [3, 7, 12], [6, 16, 0]];

#[test]
fn padding_changes_nothing() {
    let voice = perturbed(1);
    for (row, [symbols, frames, segment]) in ROWS.into_iter().enumerate() {
        let room = [symbols, frames.next_multiple_of(2), segment.max(4)];
        let mut alone = batch(&ROWS, [6, 16, 12]);
        alone = one_row(&alone, row, room);
        let alone = with_noise_by_row(alone.to_device(&device()), &[row]);
        let alone = losses(&voice, &alone);

        let padded = batch(&ROWS, [9, 24, 16]).to_device(&device());
        let padded = with_noise_by_row(padded, &[0, 1, 2]);
        let padded = losses(&voice, &counting_only(padded, row));
        for (alone, padded) in alone.into_iter().zip(padded) {
            assert!((alone - padded).abs() < 2e-5 * alone.max(1.0), "row {row}: {alone} {padded}");
            assert!(alone > 1e-3, "a zero loss proves nothing");
        }
    }
}

/// One row of a batch, with less padding.
fn one_row(
    from: &AlignedBatch,
    row: usize,
    [symbols, frames, reference]: [usize; 3],
) -> AlignedBatch {
    let bands = from.bands;
    let part = |list: &[f32], padded: usize, wanted: usize| {
        list[row * padded * bands..][..wanted * bands].to_vec()
    };
    AlignedBatch {
        rows: 1,
        symbols,
        frames,
        symbol_counts: vec![from.symbol_counts[row]],
        frame_counts: vec![from.frame_counts[row]],
        symbol_ids: from.symbol_ids[row * from.symbols..][..symbols].to_vec(),
        languages: vec![from.languages[row]],
        durations: from.durations[row * from.symbols..][..symbols].to_vec(),
        mel: part(&from.mel, from.frames, frames),
        reference_frames: reference,
        reference: part(&from.reference, from.reference_frames, reference),
        reference_counts: vec![from.reference_counts[row]],
        ..from.clone()
    }
}

/// The same batch with weights for one row only.
fn counting_only(mut batch: DeviceBatch, row: usize) -> DeviceBatch {
    let rows = batch.mel.dims()[0];
    let mut one = vec![0f32; rows];
    one[row] = 1.0;
    let one = Tensor::<1>::from_data(TensorData::new(one, [rows]), &device());
    batch.frame_weight = batch.frame_weight * one.clone().reshape([rows, 1, 1]);
    batch.symbol_weight = batch.symbol_weight * one.reshape([rows, 1]);
    batch
}

/// The prior of each frame.
fn prior(voice: &Voice, batch: &DeviceBatch) -> Tensor<3> {
    let encoder = &voice.encoder;
    let speaker = encoder.speaker_embedding(batch.reference.clone(), batch.reference_mask.clone());
    let condition = encoder.condition(speaker, batch.languages.clone());
    let encoded = encoder.encode_text(batch.symbols.clone(), condition, &batch.text);
    let [rows, frames, _] = batch.mel.dims();
    expand(encoded.prior, batch.frame_symbols.clone(), [rows, frames]).inner()
}

#[test]
fn gradients_equal_finite_differences_of_the_loss() {
    let voice = perturbed(2);
    let batch = batch(&ROWS, [7, 18, 12]).to_device(&device());
    let mut gradients = voice.losses(&batch).total().backward();
    let gradients = tandem_model::weights::gradients_of(&voice, &mut gradients);
    let weights = weights_of(&voice);
    let unmoved = prior(&voice, &batch);
    // The start of the flow, prior plus noise, is detached. It stays where it was if the noise takes back what moves
    // the prior. The duration predictor gets detached vectors, so its loss counts for its own weights only.
    let loss = |voice: &Voice, name: &str| {
        let mut batch = batch.clone();
        batch.noise = batch.noise.clone() + unmoved.clone() - prior(voice, &batch);
        let losses = voice.losses(&batch);
        let counted = match name.starts_with("durations") {
            true => vec![losses.duration],
            false => vec![losses.prior, losses.flow],
        };
        counted.into_iter().map(|loss| f64::from(loss.into_scalar::<f32>())).sum::<f64>()
    };
    let (mut compared, mut in_encoder) = (0, 0);
    for (place, weight) in weights.iter().enumerate() {
        let name = weight.name.as_str();
        let gradient = gradients[place].clone().expect("every weight is trained");
        let gradient = gradient.try_into_vec_as::<f32>().unwrap();
        let count = gradient.len();
        let largest = (0..count).max_by(|&a, &b| gradient[a].abs().total_cmp(&gradient[b].abs()));
        // The one that matters most, and another one.
        for at in [largest.unwrap(), (place * 7) % count] {
            let moved = |by: f32| {
                let mut values: Vec<Tensor<1>> = weights.iter().map(|w| w.values.clone()).collect();
                let mut change = vec![0f32; count];
                change[at] = by;
                values[place] = values[place].clone()
                    + Tensor::from_data(TensorData::new(change, [count]), &device());
                with_weights(voice.clone(), values)
            };
            let by = 2e-3f32;
            let slope = (loss(&moved(by), name) - loss(&moved(-by), name)) / (2.0 * f64::from(by));
            let found = f64::from(gradient[at]);
            let off = (found - slope).abs();
            assert!(off < 2e-2 * slope.abs().max(0.05), "{name} {at}: {found} {slope}");
            compared += 1;
            in_encoder += usize::from(name.starts_with("encoder"));
        }
    }
    assert_eq!(compared, 2 * weights.len());
    assert!(in_encoder > 20, "{in_encoder}");
}

fn settings(step: u64) -> StepSettings {
    StepSettings {
        rate: 1e-2,
        weight_decay: 0.01,
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-8,
        clip: 0.0,
        ema: 0.9,
        step,
    }
}

fn values(voice: &Voice) -> Vec<f32> {
    let numbers = |w: tandem_model::weights::Weight| w.values.try_into_vec_as::<f32>().unwrap();
    weights_of(voice).into_iter().flat_map(numbers).collect()
}

fn stepped(voice: &Voice, batches: &[DeviceBatch]) -> Vec<f32> {
    let mut sum = GradientSum::default();
    for batch in batches {
        sum.add(voice, voice.losses(batch).total().backward(), batch.utterances);
    }
    let (voice, _) = Optimizer::new(voice).step(voice.clone(), sum, &settings(1));
    values(&voice)
}

/// Losses, then gradients, of a batch.
fn numbers(sum: GradientSum) -> (usize, Vec<f32>) {
    let losses = sum.losses.clone().unwrap();
    let losses = [losses.prior, losses.duration, losses.flow].map(|loss| loss.into_scalar::<f32>());
    let gradient = |g: &Option<Tensor<1>>| g.clone().unwrap().try_into_vec_as::<f32>().unwrap();
    let gradients = sum.tensors().iter().flat_map(gradient);
    (sum.utterances, losses.into_iter().chain(gradients).collect())
}

#[test]
fn micro_batches_give_the_gradients_of_the_whole_batch() {
    let voice = perturbed(3);
    // The last batches have an empty row in the middle, at the end, and only one row that is not empty.
    let batches: [&[[usize; 3]]; 6] = [
        &ROWS,
        &ROWS[..2],
        &ROWS[..1],
        &[[5, 12, 8], [0, 0, 0], [6, 16, 0], [2, 3, 4]],
        &[[5, 12, 8], [3, 7, 12], [0, 0, 0], [0, 0, 0]],
        &[[0, 0, 0], [5, 12, 8]],
    ];
    for rows in batches {
        let batch = batch(rows, [9, 24, 16]).to_device(&device());
        let losses = voice.losses(&batch);
        let mut whole = GradientSum::default();
        whole.add(&voice, (losses.total() * 2.0).backward(), batch.utterances);
        whole.add_losses(losses.inner());
        let (count, whole) = numbers(whole);
        let (micro_count, micro) = numbers(batch_gradients(&voice, &batch, 2.0));
        assert_eq!((micro_count, micro.len()), (count, whole.len()), "{rows:?}");
        let size = whole.iter().fold(0f32, |most, value| most.max(value.abs()));
        for (index, (micro, whole)) in micro.iter().zip(&whole).enumerate() {
            let error = (micro - whole).abs() / size;
            assert!(error < 1e-5, "{rows:?}: value {index} is {micro}, not {whole}");
        }
    }
}

#[test]
fn gradients_do_not_depend_on_the_number_of_threads() {
    // Large enough for operations that threads share.
    let config = VoiceConfig::of(ModelSize::Tiny, 11, 2, 80);
    let shape = BatchShape { rows: 5, frames: 220, symbols: 40 };
    let batch = AlignedBatch::fullest(shape, &config, 32).to_device(&device());
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let voice = Voice::new(&config, Seed(3), &device().autodiff());
        pool.install(|| numbers(batch_gradients(&voice, &batch, 1.0)))
    };
    let first = on(1);
    for threads in [1, 2, 3, 4] {
        assert_eq!(on(threads), first, "on {threads} threads");
    }
}

#[test]
fn a_step_changes_weights_in_place_but_not_those_of_a_copy() {
    let batch = batch(&ROWS, [9, 24, 16]).to_device(&device());
    let mut voice = perturbed(3);
    let mut optimizer = Optimizer::new(&voice);
    let (copy, before) = (voice.clone(), values(&voice));
    let state = |optimizer: &Optimizer| {
        let state = optimizer.state();
        [state.mean, state.square, state.ema].map(|list| {
            let numbers =
                |w: tandem_model::weights::Weight| w.values.try_into_vec_as::<f32>().unwrap();
            list.into_iter().flat_map(numbers).collect::<Vec<f32>>()
        })
    };
    let (old_optimizer, old_state) = (optimizer.clone(), state(&optimizer));
    let (other, _) =
        optimizer.clone().step(voice.clone(), batch_gradients(&voice, &batch, 1.0), &settings(1));
    let gradients = batch_gradients(&voice, &batch, 1.0);
    optimizer.step_in(&mut voice, gradients, &settings(1));
    assert_eq!(values(&voice), values(&other), "both ways change the weights alike");
    assert_ne!(values(&voice), before);
    assert_eq!(values(&copy), before);
    assert_eq!(state(&old_optimizer), old_state);
    assert_ne!(state(&optimizer), old_state);
    // Trainable as before.
    assert!(batch_gradients(&voice, &batch, 1.0).tensors().iter().all(Option::is_some));
}

#[test]
fn gradients_of_small_batches_add_up_to_those_of_a_large_one() {
    let voice = perturbed(3);
    let room = [6, 16, 12];
    let whole = batch(&ROWS, room);
    let mut small = GradientSum::default();
    for row in 0..3 {
        let part = with_noise_by_row(one_row(&whole, row, room).to_device(&device()), &[row]);
        small.merge(batch_gradients(&voice, &part, 1.0));
    }
    let whole = with_noise_by_row(whole.to_device(&device()), &[0, 1, 2]);
    let (utterances, large) = numbers(batch_gradients(&voice, &whole, 1.0));
    let (added, small) = numbers(small);
    assert_eq!((utterances, added), (3, 3));
    let size = large.iter().fold(0f32, |size, value| size.max(value.abs()));
    for (at, (large, small)) in large.iter().zip(&small).enumerate() {
        assert!((large - small).abs() < 2e-5 * size, "{at}: {large} {small}");
    }
    assert!(large.iter().filter(|value| value.abs() > 1e-3 * size).count() > large.len() / 4);
}

/// Stands for the process that has the other half of the batch.
struct OtherHalf {
    gradients: Option<GradientSum>,
}

impl GradientReducer for OtherHalf {
    fn reduce(&mut self, gradients: &mut GradientSum) -> Result<(), ReduceError> {
        let other = self.gradients.take().ok_or_else(|| ReduceError("it has left".into()))?;
        gradients.merge(other);
        Ok(())
    }
}

#[test]
fn two_halves_summed_by_a_reducer_give_the_step_of_the_whole_batch() {
    let voice = perturbed(3);
    let room = [6, 16, 12];
    let whole = batch(&ROWS, room);
    let gradients = |rows: &[usize]| {
        let mut sum = GradientSum::default();
        for &row in rows {
            let batch = one_row(&whole, row, room).to_device(&device());
            let batch = with_noise_by_row(batch, &[row]);
            sum.add(&voice, voice.losses(&batch).total().backward(), batch.utterances);
        }
        sum
    };
    let step = |mut sum: GradientSum, reducer: &mut dyn GradientReducer| {
        reducer.reduce(&mut sum).unwrap();
        assert_eq!(sum.utterances, 3);
        values(&Optimizer::new(&voice).step(voice.clone(), sum, &settings(1)).0)
    };
    let local = step(gradients(&[0, 1, 2]), &mut LocalGradients);
    let mut other = OtherHalf { gradients: Some(gradients(&[2])) };
    let reduced = step(gradients(&[0, 1]), &mut other);
    assert_eq!(local, reduced);
    assert_ne!(local, values(&voice), "the step moves the weights");
    let error = other.reduce(&mut gradients(&[0])).unwrap_err();
    assert_eq!(error.to_string(), "the gradients of several processes cannot be summed");
}

#[test]
fn a_step_with_a_non_finite_gradient_changes_nothing() {
    let voice = perturbed(4);
    let mut batch = batch(&ROWS, [6, 16, 12]).to_device(&device());
    batch.mel = batch.mel * f32::NAN;
    let after = stepped(&voice, &[batch]);
    assert_eq!(after, values(&voice));
}

#[test]
fn the_same_seed_gives_the_same_voice_and_the_same_step() {
    let batch = || batch(&ROWS, [6, 16, 12]).to_device(&device());
    assert_eq!(stepped(&perturbed(5), &[batch()]), stepped(&perturbed(5), &[batch()]));
    assert_ne!(values(&perturbed(5)), values(&perturbed(6)));
}

#[test]
fn a_tiny_voice_overfits_one_batch() {
    let mut voice = perturbed(7);
    let mut optimizer = Optimizer::new(&voice);
    let batch = batch(&ROWS, [6, 16, 12]).to_device(&device());
    let first = losses(&voice, &batch);
    for step in 1..=200 {
        let mut sum = GradientSum::default();
        sum.add(&voice, voice.losses(&batch).total().backward(), batch.utterances);
        (voice, _) = optimizer.step(voice, sum, &settings(step));
    }
    let last = losses(&voice, &batch);
    for (first, last) in first.into_iter().zip(last) {
        assert!(last < 0.5 * first, "{first} {last}");
    }
}

#[test]
fn the_frames_of_a_text_are_the_sum_of_its_durations() {
    let (config, device) = (micro(), device());
    let voice = perturbed(8).valid();
    let synthesizer = MelSynthesizer { voice: &voice, config: &config, device: &device };
    let reference = Reference { mel: vec![0.1; 9 * config.bands], level: None };
    let said = synthesizer.synthesize(&[1, 2, 3], 1, &reference, None, &SamplingOptions::default());
    let frames: u32 = said.durations.iter().sum();
    assert_eq!(said.mel.len(), frames as usize * config.bands);
    assert!(said.durations.iter().all(|&frames| frames > 0));
    let given = synthesizer.synthesize(
        &[1, 2, 3],
        1,
        &reference,
        Some(&[2, 1, 4]),
        &SamplingOptions::default(),
    );
    assert_eq!(given.mel.len(), 7 * config.bands);
    let again = synthesizer.synthesize(
        &[1, 2, 3],
        1,
        &reference,
        Some(&[2, 1, 4]),
        &SamplingOptions::default(),
    );
    assert_eq!(given.mel, again.mel);
    let no_speaker = Reference::default();
    let other = synthesizer.synthesize(
        &[1, 2, 3],
        1,
        &no_speaker,
        Some(&[2, 1, 4]),
        &SamplingOptions::default(),
    );
    assert_ne!(given.mel, other.mel, "the reference must have an effect");
}

#[test]
fn correct_priors_give_the_correct_alignment() {
    let bands = 4;
    let prior: Vec<f32> = (0..3 * bands).map(|at| (at / bands) as f32).collect();
    let mel: Vec<f32> =
        [0, 0, 1, 2, 2, 2].iter().flat_map(|&s| vec![s as f32 + 0.1; bands]).collect();
    let scores = log_likelihoods(&mel, &prior, bands);
    assert_eq!(Aligner::default().search(&scores, 3), Some(vec![2, 1, 3]));
}

/// The counts that the documents give, for the symbols and languages of the built-in table.
#[test]
fn sizes_have_the_documented_parameter_counts() {
    let counts = [
        (ModelSize::Micro, 34_921),
        (ModelSize::Tiny, 2_032_081),
        (ModelSize::Small, 19_957_441),
        (ModelSize::Normal, 62_909_697),
        (ModelSize::Big, 174_271_329),
    ];
    let found = counts.map(|(size, _)| {
        let config = VoiceConfig::of(size, 200, 2, 80);
        let real = Voice::new(&config, Seed(0), &device()).num_params();
        let estimated = config.parameters();
        assert!((real..=real * 23 / 20).contains(&estimated), "{size:?}: {estimated} for {real}");
        (size, real)
    });
    assert_eq!(found, counts);
}

#[test]
fn an_empty_row_has_no_effect() {
    let voice = perturbed(9);
    let mut with_garbage = batch(&[[5, 12, 8], [0, 0, 0]], [6, 16, 12]);
    let clean = with_garbage.clone().to_device(&device());
    let half = with_garbage.mel.len() / 2;
    with_garbage.mel[half..].fill(1e3);
    let garbage = with_garbage.to_device(&device());
    assert_eq!(clean.utterances, 1);
    assert_eq!(losses(&voice, &clean), losses(&voice, &garbage));
    let empty = Lengths::new(&[0], 4, &device());
    assert_eq!(empty.total(), 0);
}
