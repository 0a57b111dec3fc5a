//! Mel frames to samples with a trained vocoder: pitch, pulses and noise, filters, inverse Fourier transform, refinement.
//!
//! In: mel frames (natural logarithms) `[frames, bands]`. Out: samples `[samples]`, as `NeuralVocoder` computes them. The
//! noise of the vocoder is always the same; its beginning is part of the graph and repeats after [`NOISE`] samples.

use crate::ExportError;
use crate::graph::{Graph, Value, int, ints};
use crate::griffin_lim;
use crate::layers::{Weights, norm_film, with_neighbours};
use crate::messages::element;
use crate::spectrum::{Spectrum, UNSEEN};
use tandem_model::vocoder::neural::losses::loudest;
use tandem_model::vocoder::neural::network::KERNEL;
use tandem_model::vocoder::neural::pitch_bins::{AROUND, LOWEST, PER_OCTAVE, PITCH_BINS};
use tandem_model::vocoder::neural::source::{FRACTIONS, TAPS, pulse_table, white_noise};
use tandem_model::vocoder::neural::{NeuralVocoder, REFINEMENT};
use tandem_model::vocoder::samples_of;
use tandem_units::Seed;

/// Samples of noise in the graph: 24 seconds at 22 kHz, longer than one sentence.
pub const NOISE: usize = 1 << 19;

pub fn samples<'g>(
    graph: &'g Graph,
    vocoder: &NeuralVocoder,
    mel: &Value<'g>,
) -> Result<Value<'g>, ExportError> {
    let settings = &vocoder.document().mel;
    let weights = Weights::of(graph, vocoder.network())?;
    let spectrum = Spectrum::new(graph, settings);
    let mel = mel.at_least(settings.floor.ln());
    let frames = mel.length(0);
    let scale = vocoder.document().scale;
    let normal = (&mel - scale.mean) / scale.deviation;
    let nets = Networks { weights: &weights, vocoder };
    let pitch = nets.pitch(&normal)?;
    let filters = nets.filters(&normal, &pitch)?;
    let source = Source { graph, vocoder, frames: &frames };

    let places = spectrum.places(&frames);
    // White noise with a power of one per sample gets a power of one per bin.
    let power: f64 =
        tandem_data::audio::mel::hann_window(settings).iter().map(|value| value * value).sum();
    let analyse =
        |signal: &Value<'g>| spectrum.analyse(signal, &places) * (power.sqrt().recip() as f32);
    let (pulses, noise) = (analyse(&source.pulses(&pitch)), analyse(&source.noise()));

    let bins = spectrum.bins() as i64;
    let gains = graph.floats(&[1, settings.bands], vocoder.envelope().gains());
    let matrix = graph.floats(&[settings.bands, bins as usize], &vocoder.envelope().matrix());
    let envelope = (&mel - gains).matmul(&matrix);
    let part = |number: i64| filters.slice(1, number * bins, (number + 1) * bins);
    let size = |filter: Value<'g>| (filter + &envelope).at_most(loudest()).op("Exp");
    let (of_pulses, of_noise, phase) = (size(part(0)), size(part(2)), part(1));
    let (re, im) = (&of_pulses * phase.op("Cos"), of_pulses * phase.op("Sin"));
    let halves = |spectra: &Value<'g>| (spectra.slice(1, 0, bins), spectra.slice_from(1, bins));
    let ((pulse_re, pulse_im), (noise_re, noise_im)) = (halves(&pulses), halves(&noise));
    let spectra = graph.concat(
        &[
            &(&re * &pulse_re - &im * &pulse_im + noise_re * &of_noise),
            &(re * pulse_im + im * pulse_re + noise_im * of_noise),
        ],
        1,
    );

    let (n_fft, hop) = (settings.n_fft as i64, settings.hop.0 as i64);
    let length = (&frames - 1) * hop + n_fft;
    let empty = graph.zeros(&length);
    let sum = spectrum.overlap_add(&spectra, &places, &empty);
    let weight = spectrum.window_weight(&places, &empty);
    let seen = weight.with("Greater", &graph.float(UNSEEN));
    let samples = seen.choose(&(sum / weight.at_least(UNSEEN)), &graph.float(0.0));
    // `samples_of`: all frames without the last half hop.
    let cut = hop - samples_of(1, settings).0 as i64;
    let wanted = frames * hop - cut;
    let samples = samples.slice_from(0, n_fft / 2).slice_to(0, &wanted);
    griffin_lim::refined(graph, settings, &REFINEMENT, &mel, &samples)
}

/// The pitch of each frame.
struct Pitch<'g> {
    /// `[frames]`, of any value where unvoiced.
    hertz: Value<'g>,
    /// `[frames]` of ones and zeros.
    voiced: Value<'g>,
}

/// Pitch and filter networks.
struct Networks<'a, 'g> {
    weights: &'a Weights<'g>,
    vocoder: &'a NeuralVocoder,
}

impl<'g> Networks<'_, 'g> {
    fn pitch(&self, mel: &Value<'g>) -> Result<Pitch<'g>, ExportError> {
        let config = &self.vocoder.document().config;
        let graph = self.weights.graph();
        let hidden = self.trunk("pitch", mel, config.pitch_width, config.pitch_blocks)?;
        let outputs = self.weights.linear("pitch_head", &hidden)?;
        let voiced = outputs.slice(1, 0, 1).reshape(&[-1]).with("Greater", &graph.float(0.0));
        let classes = outputs.slice_from(1, 1);
        let best = graph.op_with("ArgMax", &[&classes], vec![int("axis", 1), int("keepdims", 1)]);
        let highest =
            graph.op_with("ReduceMax", &[&classes], vec![ints("axes", &[1]), int("keepdims", 1)]);
        let numbers = graph.range(&graph.list(&[PITCH_BINS as i64])).unsqueeze(0);
        let away = (&numbers - best).op("Abs");
        let near = away.with("LessOrEqual", &graph.integer(AROUND as i64)).cast(element::FLOAT);
        let weight = (classes - highest).op("Exp") * near;
        let numbers = numbers.cast(element::FLOAT);
        let mean = ((&weight * numbers).sum(1) / weight.sum(1)).reshape(&[-1]);
        let hertz = graph.float(2.0).with("Pow", &(mean / PER_OCTAVE)) * LOWEST;
        Ok(Pitch { hertz, voiced: voiced.cast(element::FLOAT) })
    }

    fn filters(&self, mel: &Value<'g>, pitch: &Pitch<'g>) -> Result<Value<'g>, ExportError> {
        let config = &self.vocoder.document().config;
        let octaves = (&pitch.hertz / 150.0).op("Log") * std::f32::consts::LOG2_E;
        let octaves = (octaves * &pitch.voiced).unsqueeze(1);
        let input = mel.graph().concat(&[mel, &pitch.voiced.unsqueeze(1), &octaves], 1);
        let hidden = self.trunk("filter", &input, config.width, config.blocks)?;
        self.weights.linear("filter_head", &hidden)
    }

    fn trunk(
        &self,
        name: &str,
        x: &Value<'g>,
        width: usize,
        blocks: usize,
    ) -> Result<Value<'g>, ExportError> {
        let x = self.weights.linear(&format!("{name}.input"), &with_neighbours(x))?;
        let mut x = self.norm(&format!("{name}.first_norm"), &x, width)?;
        for number in 0..blocks {
            x = self.block(&format!("{name}.blocks.{number}"), &x, width)?;
        }
        self.norm(&format!("{name}.last_norm"), &x, width)
    }

    fn block(&self, name: &str, x: &Value<'g>, width: usize) -> Result<Value<'g>, ExportError> {
        let hidden = self.depthwise(&format!("{name}.depthwise"), x)?;
        let hidden = self.norm(&format!("{name}.norm"), &hidden, width)?;
        let hidden = self.weights.linear(&format!("{name}.up"), &hidden)?.silu();
        let hidden = self.weights.linear(&format!("{name}.down"), &hidden)?;
        Ok(x + hidden * self.weights.get(&format!("{name}.gain"))?)
    }

    fn norm(&self, name: &str, x: &Value<'g>, width: usize) -> Result<Value<'g>, ExportError> {
        let part = |part: &str| self.weights.get(&format!("{name}.{part}"));
        Ok(norm_film(x, width, &part("scale")?, &part("shift")?))
    }

    /// Each channel convolved with its own kernel.
    fn depthwise(&self, name: &str, x: &Value<'g>) -> Result<Value<'g>, ExportError> {
        let (shape, values) = self.weights.host(name)?;
        let width = shape[1];
        // The checkpoint has `[KERNEL, width]`, a convolution `[width, 1, KERNEL]`.
        let kernel: Vec<f32> = (0..width * KERNEL)
            .map(|index| values[index % KERNEL * width + index / KERNEL])
            .collect();
        let graph = self.weights.graph();
        let kernel = graph.floats(&[width, 1, KERNEL], &kernel);
        let side = (KERNEL / 2) as i64;
        let attributes = vec![
            int("group", width as i64),
            ints("kernel_shape", &[KERNEL as i64]),
            ints("pads", &[side, side]),
        ];
        let channels = x.transpose(&[1, 0]).unsqueeze(0);
        let mixed = graph.op_with("Conv", &[&channels, &kernel], attributes);
        Ok(mixed.reshape(&[width as i64, -1]).transpose(&[1, 0]))
    }
}

/// Pulses at the pitch, and noise, as `vocoder::neural::source` makes them.
struct Source<'a, 'g> {
    graph: &'g Graph,
    vocoder: &'a NeuralVocoder,
    frames: &'a Value<'g>,
}

impl<'g> Source<'_, 'g> {
    fn length(&self) -> Value<'g> {
        let mel = &self.vocoder.document().mel;
        self.frames * (mel.hop.0 as i64) + mel.n_fft as i64
    }

    fn noise(&self) -> Value<'g> {
        let noise = self.graph.floats(&[NOISE], &white_noise(NOISE, Seed(0)));
        let index = self.graph.range(&self.length());
        noise.gather(&index.with("Mod", &self.graph.integer(NOISE as i64)))
    }

    fn pulses(&self, pitch: &Pitch<'g>) -> Value<'g> {
        let graph = self.graph;
        let mel = &self.vocoder.document().mel;
        let (rate, hop) = (mel.rate.0 as f32, mel.hop.0 as f32);
        let length = self.length();
        let index = graph.range(&length);
        let last = (self.frames - 1).cast(element::FLOAT);
        let at = (index.cast(element::FLOAT) - (mel.n_fft / 2) as f32) / hop;
        let at = at.at_least(0.0).with("Min", &last);
        let floor = at.op("Floor");
        let share = at - &floor;
        let before = floor.cast(element::INT64);
        let after = (&before + 1).with("Min", &(self.frames - 1));
        let hertz = |place: &Value<'g>| pitch.hertz.gather(place);
        let voiced = |place: &Value<'g>| pitch.voiced.gather(place);
        let (a, b, voiced_a, voiced_b) =
            (hertz(&before), hertz(&after), voiced(&before), voiced(&after));
        let first_half = share.with("Less", &graph.float(0.5));
        let both = (&voiced_a * &voiced_b).with("Greater", &graph.float(0.5));
        let between = &a * (&b / &a).with("Pow", &share);
        let hertz = both.choose(&between, &first_half.choose(&a, &b));
        let step = hertz / rate * first_half.choose(&voiced_a, &voiced_b);

        // The phase in periods. A pulse lies between two samples whose phases have different whole parts.
        let phase = graph.op("CumSum", &[&step.cast(element::DOUBLE), &graph.integer(0)]);
        let whole = phase.op("Floor");
        let earlier = graph.concat(&[&graph.doubles(&[1], &[0.0]), &whole.slice(0, 0, -1)], 0);
        let hit = whole.with("Greater", &earlier);
        let places = index.compress(&hit);
        let step = step.compress(&hit);
        let rest = (phase - whole).compress(&hit).cast(element::FLOAT);
        let before = (rest / &step).clip(0.0, 1.0);
        let place = (graph.float(1.0) - before) * FRACTIONS as f32;
        let row = place.op("Floor").at_most((FRACTIONS - 1) as f32);
        let share = (place - &row).unsqueeze(1);
        let row = row.cast(element::INT64);
        let table = graph.floats(&[FRACTIONS + 1, TAPS], &pulse_table());
        let height = (graph.float(1.0) / step).op("Sqrt").unsqueeze(1);
        let (low, high) = (table.gather(&row), table.gather(&(row + 1)));
        let taps = (&low + (high - &low) * share) * height;
        let tap = graph.range(&graph.list(&[TAPS as i64])).unsqueeze(0);
        let targets = (places.unsqueeze(1) + tap).reshape(&[-1]);
        let empty = graph.zeros(&(length + TAPS as i64));
        let train = empty.scatter_add(&targets, &taps.reshape(&[-1]));
        // The middle of a pulse is half a table after its place.
        train.slice_from(0, (TAPS / 2) as i64)
    }
}
