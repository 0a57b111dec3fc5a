//! Mel frames to samples without a trained vocoder: Griffin-Lim, as a loop.
//!
//! In: mel frames (natural logarithms) `[frames, bands]`. Out: samples `[samples]`, as `GriffinLim` computes them: bands to
//! magnitudes, phases from the slope of the magnitudes, then iterations with momentum that fit the magnitudes again.

use crate::ExportError;
use crate::graph::{Graph, Length, Value, body, int, ints};
use crate::messages::element;
use crate::spectrum::{Spectrum, UNSEEN};
use tandem_audio::mel::{MelConfig, filterbank};
use tandem_model::vocoder::VocoderError;
use tandem_model::vocoder::griffin_lim::phases::{
    self, FAINT_MAGNITUDE, FORGOTTEN, NEIGHBOURS, RANDOM_PHASES, RANDOM_STEP,
};
use tandem_model::vocoder::griffin_lim::{
    FADED, FAINT_BAND, FAINT_BIN, FIRST_FIT_ROUNDS, GUIDE_FIT_ROUNDS, GriffinLimConfig,
    START_FIT_ROUNDS,
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
    let search = Search::new(graph, mel_settings, mel)?;
    let magnitudes = search.smooth_magnitudes(FIRST_FIT_ROUNDS);
    let known = match config.refits {
        0 => Known::Magnitudes(&magnitudes),
        _ => Known::Bands(&search.fit, &search.bands),
    };
    Ok(search.samples(config, &magnitudes, known))
}

/// Samples with the bands of the mel frames and magnitudes near these, as `GriffinLim::guided` computes them.
pub fn guided<'g>(
    graph: &'g Graph,
    mel_settings: &MelConfig,
    config: &GriffinLimConfig,
    mel: &Value<'g>,
    magnitudes: Value<'g>,
) -> Result<Value<'g>, ExportError> {
    let search = Search::new(graph, mel_settings, mel)?;
    let magnitudes = search.fit.fit(magnitudes, &search.bands, GUIDE_FIT_ROUNDS);
    let guide = Known::Guide(&search.fit, &search.bands, &magnitudes);
    Ok(search.samples(config, &search.smooth_magnitudes(START_FIT_ROUNDS), guide))
}

/// What both searches need.
struct Search<'a, 'g> {
    graph: &'g Graph,
    mel_settings: &'a MelConfig,
    fit: Fit<'g>,
    bands: Value<'g>,
    frames: Value<'g>,
}

impl<'a, 'g> Search<'a, 'g> {
    fn new(
        graph: &'g Graph,
        mel_settings: &'a MelConfig,
        mel: &Value<'g>,
    ) -> Result<Search<'a, 'g>, ExportError> {
        let fit = Fit::new(graph, mel_settings)?;
        let (bands, frames) = (bands_of(mel_settings, mel), mel.length(0));
        Ok(Search { graph, mel_settings, fit, bands, frames })
    }

    /// Magnitudes with the bands of the mel frames, spread evenly within a band.
    fn smooth_magnitudes(&self, rounds: usize) -> Value<'g> {
        let Search { fit, bands, .. } = self;
        fit.fit(bands.matmul(&fit.back), bands, rounds)
    }

    /// The samples after all iterations, which start from magnitudes with initial phases.
    fn samples(
        &self,
        config: &GriffinLimConfig,
        magnitudes: &Value<'g>,
        known: Known<'_, 'g>,
    ) -> Value<'g> {
        let Search { graph, mel_settings, frames, .. } = self;
        let spectrum = Spectrum::new(graph, mel_settings);
        let sizes = graph.concat(&[magnitudes, magnitudes], 1);
        let spectra = first_phases(graph, magnitudes, mel_settings) * sizes;
        let signal = Signal::new(graph, mel_settings, &spectrum, frames);
        let first = signal.samples_of(&spectra);
        iterate(graph, config, &signal, &first, known)
    }
}

/// What an iteration brings the magnitudes to.
enum Known<'a, 'g> {
    Magnitudes(&'a Value<'g>),
    Bands(&'a Fit<'g>, &'a Value<'g>),
    /// The bands, and magnitudes that the distribution within a band stays near.
    Guide(&'a Fit<'g>, &'a Value<'g>, &'a Value<'g>),
}

/// Bands before the logarithm; values at the floor become zero, and those just above it are faded.
fn bands_of<'g>(mel_settings: &MelConfig, mel: &Value<'g>) -> Value<'g> {
    mel.op("Exp") * ((mel - mel_settings.floor.ln()) / FADED).clip(0.0, 1.0)
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
        Known::Guide(fit, bands, guide) => {
            let here = size(&here, bins);
            let mean = (&here * (&here * inner.outer(guide)).op("Sqrt")).op("Sqrt");
            fit.fit(mean.at_least(FAINT_BIN), bands, config.refits)
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

/// Initial phases from the slope of the magnitudes, as cosines and sines: `[frames, bins]` to `[frames, 2 * bins]`.
fn first_phases<'g>(graph: &'g Graph, magnitudes: &Value<'g>, mel: &MelConfig) -> Value<'g> {
    let bins = mel.n_fft / 2 + 1;
    let frames = magnitudes.length(0);
    let weight = magnitudes + FAINT_MAGNITUDE;
    let log = weight.op("Log");
    let slope = (log.slice_from(1, 2) - log.slice(1, 0, -2)) * 0.5;
    let slope = slope.with("Pad", &graph.list(&[0, 1, 0, 1]));
    let (per_bin, per_slope) = phases::advance(mel);
    let bin = graph.range(&graph.list(&[bins as i64]));
    let advance = slope * per_slope + bin.unsqueeze(0).cast(element::FLOAT) * per_bin;
    let turn = pair(&advance);
    let steps = (graph.range(&frames) * RANDOM_STEP as i64).unsqueeze(1) + bin.unsqueeze(0);
    let random = graph
        .floats(&[RANDOM_PHASES], &phases::random_phases())
        .gather(&steps.with("Mod", &graph.integer(RANDOM_PHASES as i64)));
    let total = neighbours(graph, &weight.unsqueeze(1), f32::abs);
    let forgotten = pair(&random) * (total * FORGOTTEN);
    let weight = weight.unsqueeze(1);

    // Frame by frame: the phases of the previous frame advance, and neighbours agree.
    let inner = Graph::new("phase_");
    let both = || [Length::Fixed(2), Length::Fixed(bins)];
    let before = inner.input("phase_before", element::FLOAT, &both(), "");
    let turn_here = inner.input("phase_turn", element::FLOAT, &both(), "");
    let weight_here =
        inner.input("phase_weight", element::FLOAT, &[Length::Fixed(1), Length::Fixed(bins)], "");
    let forgotten_here = inner.input("phase_forgotten", element::FLOAT, &both(), "");
    let (re, im) = (before.slice(0, 0, 1), before.slice(0, 1, 2));
    let (cos, sin) = (turn_here.slice(0, 0, 1), turn_here.slice(0, 1, 2));
    let turned = inner.concat(&[&(&re * &cos - &im * &sin), &(&re * &sin + &im * &cos)], 0);
    let agreed = neighbours(&inner, &(turned * weight_here).unsqueeze(1), |share| share);
    let next = agreed.reshape(&[2, bins as i64]) + forgotten_here;
    let size = (&next * &next).sum(0).op("Sqrt").at_least(f32::MIN_POSITIVE);
    let next = next / size;
    inner.output(&next, "phase_after", element::FLOAT, &both(), "");
    inner.output(
        &next.reshape(&[2 * bins as i64]),
        "phase_of_frame",
        element::FLOAT,
        &[Length::Fixed(2 * bins)],
        "",
    );
    let impulse = |place: usize| match place {
        place if place >= bins => 0.0,
        place => {
            if place.is_multiple_of(2) {
                1.0
            } else {
                -1.0
            }
        }
    };
    let start: Vec<f32> = (0..2 * bins).map(impulse).collect();
    let start = graph.floats(&[2, bins], &start);
    let attributes = vec![int("num_scan_inputs", 3), body("body", inner.finish("phases"))];
    graph.outputs("Scan", &[&start, &turn, &weight, &forgotten], attributes, 2).remove(1)
}

/// Cosines and sines of angles: `[frames, bins]` to `[frames, 2, bins]`.
fn pair<'g>(angle: &Value<'g>) -> Value<'g> {
    angle.graph().concat(&[&angle.op("Cos").unsqueeze(1), &angle.op("Sin").unsqueeze(1)], 1)
}

/// The weighted sum over each bin and its neighbours: `[rows, 1, bins]` to the same.
fn neighbours<'v>(graph: &'v Graph, values: &Value<'v>, share: fn(f32) -> f32) -> Value<'v> {
    let most = NEIGHBOURS.len() - 1;
    let kernel: Vec<f32> =
        (0..=2 * most).map(|place| share(NEIGHBOURS[place.abs_diff(most)])).collect();
    let kernel = graph.floats(&[1, 1, kernel.len()], &kernel);
    graph.op_with("Conv", &[values, &kernel], vec![ints("pads", &[most as i64; 2])])
}
