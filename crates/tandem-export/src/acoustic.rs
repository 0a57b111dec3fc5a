//! Symbols to mel frames: text encoder, durations, flow.
//!
//! In: symbols `[symbols]`, the condition of the speaker `[1, condition]`, scales, noise. Out: mel frames (natural
//! logarithms) `[frames, bands]`, and the frames of each symbol. The same computation as
//! `tandem_model::synthesis::mel`, for one text. The flow is a loop: its weights are in the memory of the caller once.

use crate::ExportError;
use crate::graph::{Graph, Length, Value, float_attribute, int};
use crate::layers::{Rotary, Weights, block, norm_film, with_neighbours};
use crate::messages::element;
use tandem_model::mel_scale::{LARGEST_GAIN, MelScale};
use tandem_model::metrics::LEVEL_GATE;
use tandem_model::network::decoder::time_features;
use tandem_model::network::size::VoiceConfig;
use tandem_model::spectral_detail::{
    ENOUGH_FRAMES, FIRST, LARGEST_FACTOR, SMALLEST, STRENGTH, cosines,
};
use tandem_model::synthesis::mel::LONGEST_SYMBOL;

/// The largest number of flow steps.
pub const MOST_STEPS: usize = 64;

/// What the caller controls.
pub struct Controls<'g> {
    /// `[1, condition]`.
    pub condition: Value<'g>,
    /// Scale of the noise.
    pub temperature: Value<'g>,
    /// Factor of the durations.
    pub length_scale: Value<'g>,
    /// The deviations of the speaker's cepstral coefficients, `[1, bands - FIRST]`.
    pub deviations: Value<'g>,
    /// The level of the speaker in dB, one value; none: the level is left as it is.
    pub level: Option<Value<'g>>,
    /// The first rows of the noise, `[rows, bands]`; the rest is drawn. None: all of it is drawn.
    pub noise: Option<Value<'g>>,
}

/// The output of the voice.
pub struct PredictedMel<'g> {
    /// Natural logarithms, `[frames, bands]`.
    pub mel: Value<'g>,
    /// Frames of each symbol, `[symbols]`, as whole numbers.
    pub durations: Value<'g>,
}

pub struct Acoustic<'a, 'g> {
    pub weights: Weights<'g>,
    pub config: &'a VoiceConfig,
    pub scale: MelScale,
    pub steps: usize,
}

impl<'g> Acoustic<'_, 'g> {
    pub fn mel(
        &self,
        symbols: &Value<'g>,
        controls: &Controls<'g>,
    ) -> Result<PredictedMel<'g>, ExportError> {
        let graph = self.weights.graph();
        let (hidden, prior) = self.encode_text(symbols, &controls.condition)?;
        let durations = self.durations(&hidden, &controls.length_scale)?;
        let ends = graph.op("CumSum", &[&durations, &graph.integer(0)]);
        let real = ends.slice_from(0, -1);
        let patch = self.config.patch as i64;
        let frames = (&real + (patch - 1)) / patch * patch;
        // The symbol of a frame: how many symbols have ended before it.
        let ended = graph.range(&frames).unsqueeze(1).with("GreaterOrEqual", &ends.unsqueeze(0));
        let symbol = ended.cast(element::INT64).sum(1).reshape(&[-1]);
        let symbol = symbol.with("Min", &(symbols.length(0) - 1));
        let prior = prior.gather(&symbol);
        let hidden = hidden.gather(&symbol.every(patch));
        let point = self.flow(&prior, &hidden, &frames, controls)?;
        let MelScale { mean, deviation, .. } = self.scale;
        let mel = with_detail(&point.slice_to(0, &real), &controls.deviations, self.config.bands);
        let mel = mel * deviation + mean;
        let mel = match &controls.level {
            Some(level) => at_level(&mel, level),
            None => mel,
        };
        Ok(PredictedMel { mel, durations })
    }

    fn encode_text(
        &self,
        symbols: &Value<'g>,
        condition: &Value<'g>,
    ) -> Result<(Value<'g>, Value<'g>), ExportError> {
        let (weights, width) = (&self.weights, self.config.text_width);
        let x = weights.get("encoder.text.embedding.table")?.gather(symbols);
        let mut x = &x + weights.linear("encoder.text.conv", &with_neighbours(&x))?.silu();
        let rotary = Rotary::new(weights.graph(), &symbols.length(0), self.config.head_width);
        for number in 0..self.config.text_blocks {
            let name = format!("encoder.text.blocks.{number}");
            let film = weights.linear(&format!("{name}.film"), condition)?;
            x = block(weights, &name, &x, width, &film, &rotary)?;
        }
        let (scale, shift) = halves(&weights.linear("encoder.text.film", condition)?, width);
        let hidden = norm_film(&x, width, &scale, &shift);
        let prior = weights.linear("encoder.text.prior", &hidden)?;
        Ok((hidden, prior))
    }

    /// Whole frames of each symbol, at least one.
    fn durations(
        &self,
        hidden: &Value<'g>,
        length_scale: &Value<'g>,
    ) -> Result<Value<'g>, ExportError> {
        let weights = &self.weights;
        let x = weights.linear("durations.conv1", &with_neighbours(hidden))?.silu();
        let x = weights.linear("durations.conv2", &with_neighbours(&x))?.silu();
        let logarithms = weights.linear("durations.output", &x)?.reshape(&[-1]);
        // `Round` of ONNX rounds halves to even numbers, `f32::round` does not.
        let frames = (logarithms.op("Exp") * length_scale + 0.5).op("Floor");
        Ok(frames.clip(1.0, LONGEST_SYMBOL).cast(element::INT64))
    }

    /// Integrates the flow from the prior plus noise to frames, in equal steps.
    fn flow(
        &self,
        prior: &Value<'g>,
        hidden: &Value<'g>,
        frames: &Value<'g>,
        controls: &Controls<'g>,
    ) -> Result<Value<'g>, ExportError> {
        let (weights, config) = (&self.weights, self.config);
        let graph = weights.graph();
        let (bands, width, frame) =
            (config.bands, config.decoder_width, config.patch * config.bands);
        let noise = self.noise(graph, prior, frames, controls);
        let point = prior + noise * &controls.temperature;

        // What does not change from step to step.
        let rows = prior.reshape(&[-1, frame as i64]);
        let fixed = rows.matmul(&weights.weight_rows("decoder.input", frame..2 * frame)?)
            + weights.get("decoder.input.bias")?
            + weights.linear("decoder.text", hidden)?;
        let of_point = weights.weight_rows("decoder.input", 0..frame)?;
        let condition = self.step_conditions(graph, &controls.condition)?;
        let film = |name: &str| weights.linear(name, &condition);
        let films: Vec<Value<'g>> = (0..config.decoder_blocks)
            .map(|number| film(&format!("decoder.blocks.{number}.film")))
            .collect::<Result<_, _>>()?;
        let last_film = film("decoder.film")?;
        let noise_scale = film("decoder.noise_scale")? + 0.5;
        let rotary = Rotary::new(graph, &hidden.length(0), config.head_width);

        let inner = Graph::new("flow_");
        let step = inner.begin_loop_body().reshape(&[1]);
        let shape = || [Length::Named("padded_frames"), Length::Fixed(bands)];
        let here = inner.input("flow_point", element::FLOAT, &shape(), "");
        let of_step = |all: &Value<'g>| inner.outer(all).gather(&step);
        let mut x = here.reshape(&[-1, frame as i64]).matmul(&of_point) + &fixed;
        for (number, film) in films.iter().enumerate() {
            let name = format!("decoder.blocks.{number}");
            x = block(weights, &name, &x, width, &of_step(film), &rotary)?;
        }
        let (scale, shift) = halves(&of_step(&last_film), width);
        let velocity = weights.linear("decoder.output", &norm_film(&x, width, &scale, &shift))?;
        let velocity =
            velocity.reshape(&[-1, bands as i64]) - (&here - prior) * of_step(&noise_scale);
        let next = here + velocity / self.steps as f32;
        inner.output(&next, "flow_point_after", element::FLOAT, &shape(), "");
        Ok(graph.repeat(self.steps, &[&point], inner.finish("flow")).remove(0))
    }

    /// The condition at each step: `[steps, decoder_width]`.
    fn step_conditions(
        &self,
        graph: &'g Graph,
        condition: &Value<'g>,
    ) -> Result<Value<'g>, ExportError> {
        let times: Vec<f32> = (0..self.steps).map(|step| step as f32 / self.steps as f32).collect();
        let features: Vec<f32> = time_features(&times).iter::<f32>().collect();
        let features = graph.floats(&[self.steps, features.len() / self.steps], &features);
        let time = self.weights.linear("decoder.time", &features)?;
        Ok((time + self.weights.linear("decoder.condition", condition)?).silu())
    }

    /// The noise of the caller, followed by noise of our own.
    fn noise(
        &self,
        graph: &'g Graph,
        prior: &Value<'g>,
        frames: &Value<'g>,
        controls: &Controls<'g>,
    ) -> Value<'g> {
        let attributes =
            vec![int("dtype", i64::from(element::FLOAT)), float_attribute("seed", 1.0)];
        let drawn = graph.op_with("RandomNormalLike", &[prior], attributes);
        match &controls.noise {
            None => drawn,
            Some(given) => graph.concat(&[given, &drawn], 0).slice_to(0, frames),
        }
    }
}

/// The two halves of `[rows, 2 * width]`.
fn halves<'g>(film: &Value<'g>, width: usize) -> (Value<'g>, Value<'g>) {
    (film.slice(1, 0, width as i64), film.slice_from(1, width as i64))
}

/// Scales deviations up to those of the speaker: `spectral_detail::match_detail` of `tandem-model`.
fn with_detail<'g>(mel: &Value<'g>, wanted: &Value<'g>, bands: usize) -> Value<'g> {
    if bands <= FIRST {
        return mel.clone();
    }
    let graph = mel.graph();
    let waves: Vec<f32> = cosines(bands).into_iter().map(|value| value as f32).collect();
    let waves = graph.floats(&[bands - FIRST, bands], &waves);
    let frames = mel.length(0).cast(element::FLOAT);
    let cepstra = mel.matmul(&waves.transpose(&[1, 0]));
    let off = &cepstra - cepstra.sum(0) / &frames;
    let deviation = ((&off * &off).sum(0) / &frames).op("Sqrt").at_least(SMALLEST as f32);
    let factor = (wanted / deviation).clip(1.0, LARGEST_FACTOR as f32);
    let share = (frames / ENOUGH_FRAMES as f32).at_most(1.0) * STRENGTH as f32;
    mel + (off * ((factor - 1.0) * share)).matmul(&waves)
}

/// Shifts frames to a level in dB: `MelScale::match_level` of `tandem-model`.
fn at_level<'g>(mel: &Value<'g>, level: &Value<'g>) -> Value<'g> {
    const DECIBELS: f32 = 10.0 / std::f32::consts::LN_10;
    let powers = (mel * 2.0).op("Exp").sum(1);
    let frames = mel.length(0).cast(element::FLOAT);
    let mean = powers.sum(0) / &frames;
    let loud = powers.with("GreaterOrEqual", &(mean * 10f32.powf(LEVEL_GATE as f32 / 10.0)));
    let loud = loud.cast(element::FLOAT);
    let mean = (&powers * &loud).sum(0) / loud.sum(0);
    let gain = (mean.op("Log") * -DECIBELS + level).clip(-LARGEST_GAIN as f32, LARGEST_GAIN as f32);
    // A logarithm of magnitudes: half of one of powers.
    mel + gain * (0.5 / DECIBELS)
}
