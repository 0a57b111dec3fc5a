use super::config::{VocoderConfig, VocoderSize};
use super::losses::losses;
use super::network::VocoderNetwork;
use super::segment::{SegmentBatch, SegmentCutter};
use super::trained::{TrainedVocoder, VOCODER, VOCODER_VERSION, VocoderDocument};
use super::*;
use crate::checkpoint::{Checkpoints, Contents, Keep, Mark};
use crate::gradients::GradientSum;
use crate::mel_scale::MelScale;
use crate::optimizer::{Optimizer, StepSettings};
use crate::trained_voice::{EMA, tensor_set};
use crate::weights::{weights_of, with_weights};
use burn::module::Module;
use burn::tensor::DType;
use tandem_data::audio::Sound;
use tandem_data::audio::mel::MelExtractor;

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
        cutter.cut(&sound, 40 * segment, Seed(segment as u64), &mut batch).unwrap();
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
        loss_scale: 1.0,
    }
}

/// Trains for some steps, and returns the losses before the first and after the last.
fn train(document: &VocoderDocument, steps: u64) -> (VocoderNetwork, f32, f32) {
    let device = Device::flex().autodiff();
    let mut network = VocoderNetwork::new(&document.config, Seed(3), &device);
    let batch = batch(document, 2).to_device(&Device::flex()).autodiff();
    let mut optimizer = Optimizer::new(&network);
    let total = |network: &VocoderNetwork| {
        host_floats(losses(network, &batch, document.config.hop).total().inner())[0]
    };
    let before = total(&network);
    for step in 1..=steps {
        let gradients = losses(&network, &batch, document.config.hop).total().backward();
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
    // Away from the initial weights, where the filters are zero.
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
    let hop = document.config.hop;
    let gradients = losses(&network, &batch, hop).total().backward();
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
        f64::from(host_floats(losses(&moved, &batch, hop).total().inner())[0])
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
    let (refined, network) = (error(&samples), error(&vocoder.network_samples(&mel)));
    assert!(network < 1.2, "{network}");
    assert!(refined < 0.25 * network, "{refined} {network}");
}

#[test]
fn pieces_give_the_same_samples_as_a_whole() {
    let document = document(VocoderSize::Micro);
    let network = VocoderNetwork::new(&document.config, Seed(3), &Device::flex());
    let vocoder = NeuralVocoder::new(document, network).unwrap();
    let mel: Vec<f32> = (0..1200 * 80).map(|i| (i as f32 * 0.01).sin() * 3.0 - 5.0).collect();
    let in_pieces = vocoder.in_pieces(&mel, |mel, _| vocoder.network.pitch(mel));
    let input = floats(vocoder.document.scale.normalised(&mel), [1, 1200, 80], &Device::flex());
    let whole = host_floats(vocoder.network.pitch(input));
    assert_eq!(in_pieces.len(), whole.len());
    let furthest = in_pieces.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(furthest < 1e-4, "{furthest}");
}

/// Synthesis and training compute the same samples from the same pitch.
#[test]
fn synthesis_agrees_with_training() {
    let document = document(VocoderSize::Micro);
    let (trained, ..) = train(&document, 5);
    let network = trained.valid();
    let batch = batch(&document, 1);
    let device = batch.to_device(&Device::flex());
    let filters = network.filters(device.mel.clone(), device.pitch.clone());
    let truth = host_floats(losses::samples(filters.clone(), &device, 256));
    // The same filters and excitation, by the code of synthesis.
    let parts = device.source.clone().map(host_floats);
    let [pulse_re, pulse_im, noise_re, noise_im] = parts;
    let spectra = [Spectra { re: pulse_re, im: pulse_im }, Spectra { re: noise_re, im: noise_im }];
    let (filters, envelope) = (host_floats(filters), host_floats(device.envelope.clone()));
    let vocoder = NeuralVocoder::new(document, network).unwrap();
    let mut sum = vec![0.0f32; 66 * 256 + 1024];
    for frame in 0..67 {
        let mut spectrum = vocoder.inverse.make_input_vec();
        let filters = &filters[frame * 3 * 513..][..3 * 513];
        let envelope = &envelope[frame * 513..][..513];
        combine(filters, envelope, [&spectra[0], &spectra[1]], frame * 513, &mut spectrum);
        let mut samples = vocoder.inverse.make_output_vec();
        vocoder.inverse.process(&mut spectrum, &mut samples).unwrap();
        for (index, sample) in samples.iter().enumerate() {
            sum[frame * 256 + index] += sample * vocoder.window[index] / 1024.0 / 1.5;
        }
    }
    for (found, truth) in sum[768..].iter().zip(&truth) {
        assert!((found - truth).abs() < 1e-4, "{found} {truth}");
    }
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
