//! Mel frames to samples with a trained vocoder: the magnitudes of its network, then the search for phases.
//!
//! In: mel frames (natural logarithms) `[frames, bands]`. Out: samples `[samples]`, as `NeuralVocoder` computes them.

use crate::ExportError;
use crate::graph::{Graph, Value, int, ints};
use crate::griffin_lim;
use crate::layers::{Weights, norm_film, with_neighbours};
use tandem_model::vocoder::neural::losses::LOUDEST;
use tandem_model::vocoder::neural::network::KERNEL;
use tandem_model::vocoder::neural::{NeuralVocoder, SEARCH};

pub fn samples<'g>(
    graph: &'g Graph,
    vocoder: &NeuralVocoder,
    mel: &Value<'g>,
) -> Result<Value<'g>, ExportError> {
    let (document, envelope) = (vocoder.document(), vocoder.envelope());
    let settings = &document.mel;
    let mel = mel.at_least(settings.floor.ln());
    let normal = (&mel - document.scale.mean) / document.scale.deviation;
    let weights = Weights::of(graph, vocoder.network())?;
    let network = Network { weights: &weights, width: document.config.width };
    let relative = network.forward(&normal, document.config.blocks)?;
    let gains = graph.floats(&[1, settings.bands], envelope.gains());
    let matrix = graph.floats(&[settings.bands, document.config.bins()], &envelope.matrix());
    let envelope = (&mel - gains).matmul(&matrix);
    let magnitudes = (relative + envelope).at_most(LOUDEST).op("Exp");
    griffin_lim::guided(graph, settings, &SEARCH, &mel, magnitudes)
}

struct Network<'a, 'g> {
    weights: &'a Weights<'g>,
    width: usize,
}

impl<'g> Network<'_, 'g> {
    fn forward(&self, x: &Value<'g>, blocks: usize) -> Result<Value<'g>, ExportError> {
        let x = self.weights.linear("input", &with_neighbours(x))?;
        let mut x = self.norm("first_norm", &x)?;
        for number in 0..blocks {
            x = self.block(&format!("blocks.{number}"), &x)?;
        }
        self.weights.linear("head", &self.norm("last_norm", &x)?)
    }

    fn block(&self, name: &str, x: &Value<'g>) -> Result<Value<'g>, ExportError> {
        let hidden = self.depthwise(&format!("{name}.depthwise"), x)?;
        let hidden = self.norm(&format!("{name}.norm"), &hidden)?;
        let hidden = self.weights.linear(&format!("{name}.up"), &hidden)?.silu();
        let hidden = self.weights.linear(&format!("{name}.down"), &hidden)?;
        Ok(x + hidden * self.weights.get(&format!("{name}.gain"))?)
    }

    fn norm(&self, name: &str, x: &Value<'g>) -> Result<Value<'g>, ExportError> {
        let part = |part: &str| self.weights.get(&format!("{name}.{part}"));
        Ok(norm_film(x, self.width, &part("scale")?, &part("shift")?))
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
