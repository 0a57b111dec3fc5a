//! Mel frames to samples without a trained vocoder: Griffin-Lim, as a loop.
//!
//! In: mel frames (natural logarithms) `[frames, bands]`. Out: samples `[samples]`, as `GriffinLim` computes them: bands to
//! magnitudes, phases from the peaks of the magnitudes, then iterations with momentum that fit the magnitudes again.

use crate::ExportError;
use crate::graph::{Graph, Length, Value, body, int, ints};
use crate::messages::element;
use crate::spectrum::{Spectrum, UNSEEN};
use std::f32::consts::{PI, TAU};
use tandem_data::audio::mel::{MelConfig, filterbank};
use tandem_model::vocoder::VocoderError;
use tandem_model::vocoder::griffin_lim::{
    FAINT_BAND, FAINT_BIN, FIRST_FIT_ROUNDS, GriffinLimConfig,
};
use tandem_model::vocoder::samples_of;

/// Smaller magnitudes have no direction; a division by less could be infinite.
const SMALLEST: f32 = 1e-30;

pub fn samples<'g>(
    graph: &'g Graph,
    mel_settings: &MelConfig,
    config: &GriffinLimConfig,
    mel: &Value<'g>,
) -> Result<Value<'g>, ExportError> {
    let fit = Fit::new(graph, mel_settings)?;
    let spectrum = Spectrum::new(graph, mel_settings);
    let bands = bands_of(graph, mel_settings, mel);
    let magnitudes = fit.fit(bands.matmul(&fit.back), &bands, FIRST_FIT_ROUNDS);
    let angle = first_phases(graph, &magnitudes, mel_settings);
    let spectra =
        graph.concat(&[&(&magnitudes * angle.op("Cos")), &(&magnitudes * angle.op("Sin"))], 1);
    let signal = Signal::new(graph, mel_settings, &spectrum, &mel.length(0));
    let first = signal.samples_of(&spectra);
    let known = match config.refits {
        0 => Known::Magnitudes(&magnitudes),
        _ => Known::Bands(&fit, &bands),
    };
    Ok(iterate(graph, config, &signal, &first, known))
}

/// Samples near these with the magnitudes of the mel frames, as `GriffinLim::refine` computes them.
pub fn refined<'g>(
    graph: &'g Graph,
    mel_settings: &MelConfig,
    config: &GriffinLimConfig,
    mel: &Value<'g>,
    samples: &Value<'g>,
) -> Result<Value<'g>, ExportError> {
    let fit = Fit::new(graph, mel_settings)?;
    let spectrum = Spectrum::new(graph, mel_settings);
    let bands = bands_of(graph, mel_settings, mel);
    let signal = Signal::new(graph, mel_settings, &spectrum, &mel.length(0));
    Ok(iterate(graph, config, &signal, samples, Known::Bands(&fit, &bands)))
}

/// What an iteration brings the magnitudes to.
enum Known<'a, 'g> {
    Magnitudes(&'a Value<'g>),
    Bands(&'a Fit<'g>, &'a Value<'g>),
}

/// Bands before the logarithm; values at the floor become zero.
fn bands_of<'g>(graph: &'g Graph, mel_settings: &MelConfig, mel: &Value<'g>) -> Value<'g> {
    let loud = mel.with("Greater", &graph.float(mel_settings.floor.ln()));
    loud.choose(&mel.op("Exp"), &graph.float(0.0))
}

/// All iterations from these samples.
fn iterate<'g>(
    graph: &'g Graph,
    config: &GriffinLimConfig,
    signal: &Signal<'_, 'g>,
    samples: &Value<'g>,
    known: Known<'_, 'g>,
) -> Value<'g> {
    let bins = signal.spectrum.bins() as i64;
    let no_spectra = graph.zeros(&signal.spectra_shape(graph));
    let inner = Graph::new("round_");
    inner.begin_loop_body();
    let sound_shape = || [Length::Named("signal")];
    let spectra_shape = || [Length::Named("frames"), Length::Fixed(2 * bins as usize)];
    let sound = inner.input("round_samples", element::FLOAT, &sound_shape(), "");
    let before = inner.input("round_before", element::FLOAT, &spectra_shape(), "");
    let here = signal.spectrum.analyse(&sound, &signal.places);
    let sizes = match known {
        Known::Magnitudes(magnitudes) => inner.outer(magnitudes),
        Known::Bands(fit, bands) => {
            fit.fit(size(&here, bins).at_least(FAINT_BIN), bands, config.refits)
        }
    };
    let kept = config.momentum / (1.0 + config.momentum);
    let ahead = &here - before * kept;
    // The same direction with another length; zero stays zero.
    let gain = sizes / size(&ahead, bins).at_least(SMALLEST);
    let next = signal.samples_of(&(ahead * inner.concat(&[&gain, &gain], 1)));
    inner.output(&next, "round_samples_after", element::FLOAT, &sound_shape(), "");
    inner.output(&here, "round_before_after", element::FLOAT, &spectra_shape(), "");
    let first = [samples, &no_spectra];
    graph.repeat(config.iterations, &first, inner.finish("griffin_lim")).remove(0)
}

/// The magnitudes of spectra.
fn size<'g>(spectra: &Value<'g>, bins: i64) -> Value<'g> {
    let (re, im) = (spectra.slice(1, 0, bins), spectra.slice_from(1, bins));
    (&re * &re + &im * &im).op("Sqrt")
}

/// Samples of spectra, with the padding of mel frames.
struct Signal<'a, 'g> {
    spectrum: &'a Spectrum<'g>,
    /// The sample at each place of each frame: `[frames, n_fft]`. The padding repeats samples.
    places: Value<'g>,
    /// One over the sum of squared windows at a sample.
    share: Value<'g>,
    empty: Value<'g>,
    frames: Value<'g>,
}

impl<'a, 'g> Signal<'a, 'g> {
    fn new(
        graph: &'g Graph,
        mel: &MelConfig,
        spectrum: &'a Spectrum<'g>,
        frames: &Value<'g>,
    ) -> Signal<'a, 'g> {
        let hop = mel.hop.0 as i64;
        let length = frames * hop - (hop - samples_of(1, mel).0 as i64);
        let period = (&length - 1) * 2i64;
        let distance = (spectrum.places(frames) - (mel.n_fft / 2) as i64).op("Abs");
        let distance = distance.with("Mod", &period);
        let places = distance.with("Min", &(period - &distance));
        let empty = graph.zeros(&length);
        let weight = spectrum.window_weight(&places, &empty);
        let largest = graph.op_with("ReduceMax", &[&weight], vec![int("keepdims", 0)]);
        let seen = weight.with("Greater", &(largest * UNSEEN));
        let share = seen
            .choose(&(graph.float(1.0) / weight.at_least(f32::MIN_POSITIVE)), &graph.float(0.0));
        Signal { spectrum, places, share, empty, frames: frames.clone() }
    }

    /// `[frames, 2 * bins]`.
    fn spectra_shape(&self, graph: &'g Graph) -> Value<'g> {
        graph.concat(&[&self.frames, &graph.list(&[2 * self.spectrum.bins() as i64])], 0)
    }

    fn samples_of<'v>(&self, spectra: &Value<'v>) -> Value<'v>
    where
        'g: 'v,
    {
        let empty = spectra.graph().outer(&self.empty);
        let share: Value<'v> = self.share.clone();
        self.spectrum.overlap_add(spectra, &self.places, &empty) * share
    }
}

/// Fits magnitudes to mel bands by multiplicative updates.
struct Fit<'g> {
    /// Weights of the filters: `[bins, bands]`.
    weights: Value<'g>,
    /// The weighted mean of its bands for each bin: `[bands, bins]`.
    back: Value<'g>,
}

impl<'g> Fit<'g> {
    fn new(graph: &'g Graph, mel: &MelConfig) -> Result<Fit<'g>, ExportError> {
        let bank = filterbank(mel).map_err(VocoderError::Settings)?;
        let (bins, bands) = (bank.bins(), bank.bands().len());
        let mut total = vec![0.0f64; bins];
        for band in bank.bands() {
            total[band.range()].iter_mut().zip(band.weights()).for_each(|(t, w)| *t += w);
        }
        let (mut weights, mut back) = (vec![0.0f32; bins * bands], vec![0.0f32; bins * bands]);
        for (number, band) in bank.bands().iter().enumerate() {
            for (bin, &weight) in band.range().zip(band.weights()) {
                weights[bin * bands + number] = weight as f32;
                back[number * bins + bin] = (weight / total[bin]) as f32;
            }
        }
        Ok(Fit {
            weights: graph.floats(&[bins, bands], &weights),
            back: graph.floats(&[bands, bins], &back),
        })
    }

    fn fit<'v>(&self, mut magnitudes: Value<'v>, bands: &Value<'g>, rounds: usize) -> Value<'v>
    where
        'g: 'v,
    {
        let bands = magnitudes.graph().outer(bands);
        for _ in 0..rounds {
            let found = magnitudes.matmul(&self.weights).at_least(FAINT_BAND);
            magnitudes = &magnitudes * (&bands / found).matmul(&self.back);
        }
        magnitudes
    }
}

/// Initial phases: each peak of a frame is treated as a sinusoid. Shapes: `[frames, bins]` twice.
fn first_phases<'g>(graph: &'g Graph, magnitudes: &Value<'g>, mel: &MelConfig) -> Value<'g> {
    let bins = (mel.n_fft / 2 + 1) as i64;
    let Peaks { owner, tone } = peaks(graph, magnitudes, bins);
    let turn = TAU * mel.hop.0 as f32 / mel.n_fft as f32;
    // How far the phase of a bin lies behind that of its peak in the previous frame.
    let bin = graph.range(&graph.list(&[bins])).unsqueeze(0);
    let away = (&bin - &owner).op("Abs").cast(element::FLOAT);
    let has_peak = owner.with("GreaterOrEqual", &graph.integer(0));
    let advance = has_peak.choose(&(tone * turn + away * PI), &graph.float(0.0));
    let from = has_peak.choose(&owner, &bin);

    // Frame by frame: the phase of a bin is that of its peak in the previous frame, and the advance.
    let inner = Graph::new("phase_");
    let angle = inner.input("phase_before", element::FLOAT, &[Length::Fixed(bins as usize)], "");
    let advance_here =
        inner.input("phase_advance", element::FLOAT, &[Length::Fixed(bins as usize)], "");
    let from_here = inner.input("phase_from", element::INT64, &[Length::Fixed(bins as usize)], "");
    let next = angle.gather(&from_here) + advance_here;
    let next = &next - (&next / TAU).op("Floor") * TAU;
    inner.output(&next, "phase_after", element::FLOAT, &[Length::Fixed(bins as usize)], "");
    inner.output(&next, "phase_of_frame", element::FLOAT, &[Length::Fixed(bins as usize)], "");
    let start = graph.floats(&[bins as usize], &vec![0.0; bins as usize]);
    let attributes = vec![int("num_scan_inputs", 2), body("body", inner.finish("phases"))];
    graph.outputs("Scan", &[&start, &advance, &from], attributes, 2).remove(1)
}

/// The peaks of each frame.
struct Peaks<'g> {
    /// The peak whose phase each bin follows; -1 in a frame without a peak. `[frames, bins]`.
    owner: Value<'g>,
    /// The place of that peak between two bins.
    tone: Value<'g>,
}

/// A bin belongs to the peak on its left if the lowest bin between that peak and the next one is further right.
fn peaks<'g>(graph: &'g Graph, magnitudes: &Value<'g>, bins: i64) -> Peaks<'g> {
    let (left, middle, right) =
        (magnitudes.slice(1, 0, -2), magnitudes.slice(1, 1, -1), magnitudes.slice_from(1, 2));
    let inside = middle.with("Greater", &left).with("And", &middle.with("GreaterOrEqual", &right));
    let pad = graph.list(&[0, 1, 0, 1]);
    let is_peak = inside.cast(element::INT64).with("Pad", &pad);
    let curve = &left - &middle * 2.0 + &right;
    let curve = inside.choose(&curve, &graph.float(-1.0));
    let offset = ((left - right) * 0.5 / curve).with("Pad", &pad);

    // Along the bins, for all frames at once.
    let by_bin = |x: &Value<'g>| x.transpose(&[1, 0]);
    let (flags, values) = (by_bin(&is_peak), by_bin(magnitudes));
    let numbers = graph.range(&graph.list(&[bins]));
    let (before, low_before) = nearest_peak(graph, &flags, &values, &numbers, Direction::Up);
    let (after, low_after) = nearest_peak(graph, &flags, &values, &numbers, Direction::Down);
    let owner = by_bin(&low_before.with("LessOrEqual", &low_after).choose(&after, &before));
    let place = owner.with("Max", &graph.integer(0));
    let offset = graph.op_with("GatherElements", &[&offset, &place], vec![int("axis", 1)]);
    let tone = place.cast(element::FLOAT) + offset;
    Peaks { owner, tone }
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    /// From low to high bins: the last peak up to each bin, and the lowest value since, both inclusive.
    Up,
    /// From high to low bins: the next peak after each bin, and the lowest value from there down, without the bin itself.
    Down,
}

/// The nearest peak on one side of each bin, and the lowest value up to it: `[bins, frames]` each. Without a peak: -1, and
/// less than any value.
fn nearest_peak<'g>(
    graph: &'g Graph,
    flags: &Value<'g>,
    values: &Value<'g>,
    numbers: &Value<'g>,
    direction: Direction,
) -> (Value<'g>, Value<'g>) {
    let up = direction == Direction::Up;
    let inner = Graph::new(if up { "up_" } else { "down_" });
    let name = |name: &str| format!("{}{name}", if up { "up_" } else { "down_" });
    let row = || [Length::Named("frames")];
    let peak = inner.input(&name("peak"), element::INT64, &row(), "");
    let low = inner.input(&name("low"), element::FLOAT, &row(), "");
    let flag = inner.input(&name("flag"), element::INT64, &row(), "");
    let value = inner.input(&name("value"), element::FLOAT, &row(), "");
    let number = inner.input(&name("number"), element::INT64, &[], "");
    let here = flag.with("Greater", &inner.integer(0));
    let number = number.with("Expand", &flag.op("Shape"));
    let next_peak = here.choose(&number, &peak);
    let next_low = here.choose(&value, &low.with("Min", &value));
    inner.output(&next_peak, &name("peak_after"), element::INT64, &row(), "");
    inner.output(&next_low, &name("low_after"), element::FLOAT, &row(), "");
    let (seen_peak, seen_low) = if up { (&next_peak, &next_low) } else { (&peak, &low) };
    inner.output(seen_peak, &name("peak_here"), element::INT64, &row(), "");
    inner.output(seen_low, &name("low_here"), element::FLOAT, &row(), "");
    let backward = i64::from(!up);
    let attributes = vec![
        int("num_scan_inputs", 3),
        ints("scan_input_directions", &[backward; 3]),
        ints("scan_output_directions", &[backward; 2]),
        body("body", inner.finish(if up { "peaks_up" } else { "peaks_down" })),
    ];
    let frames = values.length(1);
    let no_peak = graph.list(&[-1]).with("Expand", &frames);
    let no_low = graph.floats(&[1], &[f32::MIN]).with("Expand", &frames);
    let inputs = [&no_peak, &no_low, flags, values, numbers];
    let mut results = graph.outputs("Scan", &inputs, attributes, 4);
    let low = results.remove(3);
    (results.remove(2), low)
}
