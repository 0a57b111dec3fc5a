use super::config::{VocoderConfig, VocoderSize};
use super::losses::{VocoderLosses, log_magnitudes, losses};
use super::network::VocoderNetwork;
use super::segment::{DeviceSegments, SegmentBatch, SegmentCutter};
use super::trained::{TrainedVocoder, VOCODER, VOCODER_VERSION, VocoderDocument};
use super::*;
use crate::checkpoint::{Checkpoints, Contents, Keep, Mark};
use crate::gradients::GradientSum;
use crate::mel_scale::MelScale;
use crate::optimizer::{Optimizer, StepSettings};
use crate::trained_voice::{EMA, tensor_set};
use crate::vocoder::samples_of;
use crate::weights::{weights_of, with_weights};
use burn::module::Module;
use burn::tensor::DType;
use tandem_audio::Sound;
use tandem_audio::mel::MelExtractor;
use tandem_units::Seed;

const MEL: MelConfig = MelConfig::SPEECH_22K;

fn document(size: VocoderSize) -> VocoderDocument {
    let scale = MelScale { mean: -5.0, deviation: 2.5, level: None };
    let config = VocoderConfig::of(size, &MEL).unwrap();
    VocoderDocument { version: VOCODER_VERSION, size, config, scale, mel: MEL }
}

/// A vowel that glides, and a hiss.
fn speech(length: usize) -> Vec<f32> {
    let (mut phase, mut state) = (0.0f64, 1u32);
    let sample = |i: usize| {
        phase += (130.0 + 20.0 * (i as f64 / 4000.0).sin()) / 22050.0;
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = (state >> 8) as f64 / f64::from(1 << 24) - 0.5;
        let turn = std::f64::consts::TAU * phase;
        let vowel: f64 = (1..20).map(|h| (turn * f64::from(h)).sin() / f64::from(h)).sum();
        let voiced = (i / 6000).is_multiple_of(2);
        (if voiced { 0.2 * vowel } else { 0.1 * noise }) as f32
    };
    (0..length).map(sample).collect()
}

fn batch(document: &VocoderDocument, segments: usize) -> SegmentBatch {
    let mut cutter = SegmentCutter::new(&document.config, &document.mel, document.scale).unwrap();
    let (sound, mut batch) = (speech(60_000), SegmentBatch::default());
    for segment in 0..segments {
        cutter.cut(&sound, 40 * 256 * segment, &mut batch).unwrap();
    }
    batch
}

fn step_settings(step: u64) -> StepSettings {
    StepSettings {
        rate: 5e-3,
        weight_decay: 0.0,
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-8,
        clip: 1.0,
        ema: 0.5,
        step,
    }
}

fn losses_of(network: &VocoderNetwork, batch: &DeviceSegments) -> VocoderLosses {
    losses(log_magnitudes(network, batch), batch)
}

/// Trains for some steps, and returns the losses before the first and after the last.
fn train(document: &VocoderDocument, steps: u64) -> (VocoderNetwork, f32, f32) {
    let device = Device::flex().autodiff();
    let mut network = VocoderNetwork::new(&document.config, Seed(3), &device);
    let batch = batch(document, 2).to_device(&Device::flex()).autodiff();
    let mut optimizer = Optimizer::new(&network);
    let total =
        |network: &VocoderNetwork| host_floats(losses_of(network, &batch).total().inner())[0];
    let before = total(&network);
    for step in 1..=steps {
        let gradients = losses_of(&network, &batch).total().backward();
        let mut sum = GradientSum::default();
        sum.add(&network, gradients, batch.segments);
        network = optimizer.step(network, sum, &step_settings(step)).0;
    }
    let after = total(&network);
    (network, before, after)
}

#[test]
fn training_on_two_segments_lowers_the_loss_clearly() {
    let (_, before, after) = train(&document(VocoderSize::Micro), 60);
    assert!(after < 0.6 * before, "{before} to {after}");
}

#[test]
fn training_twice_gives_the_same_weights() {
    let weights = || {
        let (network, ..) = train(&document(VocoderSize::Micro), 3);
        weights_of(&network)
            .into_iter()
            .flat_map(|weight| host_floats(weight.values))
            .collect::<Vec<_>>()
    };
    assert_eq!(weights(), weights());
}

/// The slope of the loss along a random direction of all weights, in double precision.
#[test]
fn the_gradient_agrees_with_finite_differences() {
    let document = document(VocoderSize::Micro);
    let device = Device::flex().autodiff();
    let network = VocoderNetwork::new(&document.config, Seed(3), &device);
    // Away from the initial weights, where the output is zero.
    let spread = |network: VocoderNetwork| {
        let weights = weights_of(&network);
        let moved = weights.iter().enumerate().map(|(index, weight)| {
            let shift: Vec<f32> = (0..weight.values.dims()[0])
                .map(|i| 0.05 * ((i * 37 + index * 11) as f32).sin())
                .collect();
            weight.values.clone() + floats(shift.clone(), [shift.len()], &Device::flex())
        });
        with_weights(network, moved.collect())
    };
    let network = spread(network);
    let batch = batch(&document, 1).to_device(&Device::flex()).autodiff();
    let gradients = losses_of(&network, &batch).total().backward();
    let mut sum = GradientSum::default();
    sum.add(&network, gradients, 1);
    let direction: Vec<Vec<f32>> = weights_of(&network)
        .iter()
        .enumerate()
        .map(|(index, weight)| {
            (0..weight.values.dims()[0]).map(|i| ((i * 13 + index * 7) as f32).cos()).collect()
        })
        .collect();
    let along: f64 = sum
        .tensors()
        .iter()
        .zip(&direction)
        .map(|(gradient, direction)| {
            let gradient = host_floats(gradient.clone().expect("every weight has a gradient"));
            gradient.iter().zip(direction).map(|(g, d)| f64::from(g * d)).sum::<f64>()
        })
        .sum();
    let at = |offset: f32| {
        let moved = weights_of(&network).into_iter().zip(&direction).map(|(weight, direction)| {
            let step = direction.iter().map(|d| d * offset).collect::<Vec<_>>();
            weight.values + floats(step.clone(), [step.len()], &Device::flex())
        });
        let moved = with_weights(network.clone(), moved.collect());
        f64::from(host_floats(losses_of(&moved, &batch).total().inner())[0])
    };
    let step = 2e-4;
    let slope = (at(step) - at(-step)) / (2.0 * f64::from(step));
    assert!((slope - along).abs() < 0.02 * along.abs().max(1.0), "{slope} against {along}");
    assert_eq!(batch.mel.dtype(), DType::F32);
}

#[test]
fn an_untrained_vocoder_already_has_the_envelope_of_its_input() {
    let document = document(VocoderSize::Micro);
    let sound = speech(30_000);
    let mut extractor = MelExtractor::new(MEL).unwrap();
    let mel = extractor.extract(Sound::F32(&sound)).unwrap().into_values();
    let network = VocoderNetwork::new(&document.config, Seed(3), &Device::flex());
    let mut vocoder = NeuralVocoder::new(document, network).unwrap();
    let samples = vocoder.synthesize(&mel).unwrap();
    assert_eq!(samples.len(), samples_of(mel.len() / 80, &MEL).0);
    assert_eq!(samples, vocoder.synthesize(&mel).unwrap(), "not deterministic");
    let mut error = |samples: &[f32]| {
        let again = extractor.extract(Sound::F32(samples)).unwrap().into_values();
        mel.iter().zip(&again).map(|(a, b)| (a - b).abs()).sum::<f32>() / mel.len() as f32
    };
    let off = error(&samples);
    assert!(off < 0.2, "{off}");
}

#[test]
fn pieces_give_the_same_magnitudes_as_a_whole() {
    let document = document(VocoderSize::Micro);
    let (trained, ..) = train(&document, 5);
    let vocoder = NeuralVocoder::new(document, trained.valid()).unwrap();
    let mel: Vec<f32> = (0..1200 * 80).map(|i| (i as f32 * 0.01).sin() * 3.0 - 5.0).collect();
    let in_pieces = vocoder.magnitudes(&mel);
    let input = floats(vocoder.document.scale.normalised(&mel), [1, 1200, 80], &Device::flex());
    let whole = host_floats(vocoder.network.forward(input));
    let envelope = vocoder.envelope.log_magnitudes(&mel);
    assert_eq!(in_pieces.len(), whole.len());
    for (found, (relative, envelope)) in in_pieces.iter().zip(whole.iter().zip(&envelope)) {
        assert!((found.ln() - relative - envelope).abs() < 1e-3, "{found}");
    }
}

/// The network predicts harmonics that the mel bands blur.
#[test]
fn a_trained_vocoder_is_nearer_to_its_recording_than_the_envelope() {
    let document = document(VocoderSize::Micro);
    let (trained, ..) = train(&document, 150);
    let batch = batch(&document, 2).to_device(&Device::flex());
    let envelope = losses(batch.envelope.clone(), &batch).total();
    let learned = losses_of(&trained.valid(), &batch).total();
    let (learned, envelope) = (host_floats(learned)[0], host_floats(envelope)[0]);
    assert!(learned < 0.7 * envelope, "{learned} {envelope}");
}

#[test]
fn a_vocoder_is_read_from_its_checkpoint_and_other_files_are_refused() {
    let room = tempfile::tempdir().unwrap();
    let document = document(VocoderSize::Micro);
    let network = VocoderNetwork::new(&document.config, Seed(3), &Device::flex());
    let mut contents = Contents::new(7);
    contents.add_document(VOCODER, &document).unwrap();
    contents.tensors.insert(EMA.into(), tensor_set(&weights_of(&network)).unwrap());
    let save = |contents: &Contents, name: &str| {
        let place = room.path().join(name);
        let mut checkpoints = Checkpoints::open(&place, Keep { last: 1 }).unwrap();
        checkpoints.save(contents, Mark::Last).unwrap();
        place
    };
    let read = TrainedVocoder::read(&save(&contents, "good")).unwrap();
    assert_eq!((read.step, read.vocoder.document()), (7, &document));

    let newer = VocoderDocument { version: 9, ..document };
    contents.add_document(VOCODER, &newer).unwrap();
    let error = TrainedVocoder::read(&save(&contents, "newer")).unwrap_err();
    assert!(error.to_string().contains("format version 9"), "{error}");
    contents.documents.clear();
    let error = TrainedVocoder::read(&save(&contents, "voice")).unwrap_err();
    assert!(error.to_string().contains("has no vocoder"), "{error}");
    assert!(tandem_units::Hint::hint(&error).unwrap().contains("train-vocoder"));
    assert!(TrainedVocoder::read(&room.path().join("none")).is_err());
}
