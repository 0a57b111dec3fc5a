//! The layers of the networks, as nodes of a graph.
//!
//! In: values without a batch axis, `[positions, width]`, and weights by their names in the checkpoint. Out: values. Each
//! function computes what the function of the same name in `tandem_model::network` computes for one row without padding.

use crate::ExportError;
use crate::graph::{Graph, Value, float_attribute, int};
use crate::messages::element;
use std::cell::RefCell;
use std::collections::HashMap;
use tandem_model::Module;
use tandem_model::checkpoint::{TensorSet, Values};
use tandem_model::network::ops::plain::{NORM_EPSILON, ROTARY_BASE};
use tandem_model::trained_voice::tensor_set;
use tandem_model::weights::weights_of;

/// The weights of a network, written into a graph once.
pub struct Weights<'g> {
    graph: &'g Graph,
    set: TensorSet,
    written: RefCell<HashMap<String, Value<'g>>>,
}

impl<'g> Weights<'g> {
    pub fn of<M: Module>(graph: &'g Graph, module: &M) -> Result<Weights<'g>, ExportError> {
        let set = tensor_set(&weights_of(module))?;
        Ok(Weights { graph, set, written: RefCell::default() })
    }

    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Shape and values of a tensor.
    pub fn host(&self, name: &str) -> Result<(&[usize], &[f32]), ExportError> {
        let tensor = self.set.get(name);
        match tensor.map(|tensor| (tensor.shape(), tensor.values())) {
            Some((shape, Values::F32(values))) => Ok((shape, values)),
            _ => Err(ExportError::Weight { name: name.into() }),
        }
    }

    pub fn get(&self, name: &str) -> Result<Value<'g>, ExportError> {
        if let Some(value) = self.written.borrow().get(name) {
            return Ok(value.clone());
        }
        let (shape, values) = self.host(name)?;
        let value = self.graph.floats(shape, values);
        self.written.borrow_mut().insert(name.into(), value.clone());
        Ok(value)
    }

    /// `x * weight + bias`.
    pub fn linear<'v>(&self, name: &str, x: &Value<'v>) -> Result<Value<'v>, ExportError>
    where
        'g: 'v,
    {
        let weight = self.get(&format!("{name}.weight"))?;
        let bias: Value<'v> = self.get(&format!("{name}.bias"))?;
        Ok(x.matmul(&weight) + bias)
    }

    /// The rows of a linear layer's weight in a range of its inputs.
    pub fn weight_rows(
        &self,
        name: &str,
        rows: std::ops::Range<usize>,
    ) -> Result<Value<'g>, ExportError> {
        let (shape, values) = self.host(&format!("{name}.weight"))?;
        let width = shape[1];
        let part = &values[rows.start * width..rows.end * width];
        Ok(self.graph.floats(&[rows.len(), width], part))
    }
}

/// Each position joined with its two neighbours: `[positions, width]` to `[positions, 3 * width]`.
pub fn with_neighbours<'g>(x: &Value<'g>) -> Value<'g> {
    let wide = x.pad_rows(2, 1, 1);
    x.graph().concat(&[&wide.slice(0, 0, -2), x, &wide.slice_from(0, 2)], 1)
}

/// Layer norm over the width, then `* (1 + scale) + shift`. Shapes: `[positions, width]`, `[1, width]` twice.
pub fn norm_film<'g>(
    x: &Value<'g>,
    width: usize,
    scale: &Value<'g>,
    shift: &Value<'g>,
) -> Value<'g> {
    let graph = x.graph();
    let one = graph.floats(&[width], &vec![1.0; width]);
    let attributes = vec![int("axis", -1), float_attribute("epsilon", NORM_EPSILON)];
    let normal = graph.op_with("LayerNormalization", &[x, &one], attributes);
    normal * (scale + 1.0) + shift
}

/// Cosine and sine of each position's angles, `[positions, head / 2]`.
pub struct Rotary<'g> {
    cos: Value<'g>,
    sin: Value<'g>,
    head: usize,
}

impl<'g> Rotary<'g> {
    /// For as many positions as `count` says, a tensor with one element.
    pub fn new(graph: &'g Graph, count: &Value<'g>, head: usize) -> Rotary<'g> {
        let half = head / 2;
        let speed = |pair: usize| f64::from(ROTARY_BASE).powf(-(pair as f64) / half as f64);
        let speeds: Vec<f64> = (0..half).map(speed).collect();
        let positions = graph.range(count).cast(element::DOUBLE).unsqueeze(1);
        // Whole turns are removed in double precision: the angle of a late position has few digits left in single.
        let turns =
            positions * graph.doubles(&[1, half], &speeds) / graph.double(std::f64::consts::TAU);
        let share = (&turns - turns.op("Floor")).cast(element::FLOAT);
        let angle = share * std::f32::consts::TAU;
        Rotary { cos: angle.op("Cos"), sin: angle.op("Sin"), head }
    }

    /// Rotates each pair `(i, i + head / 2)`. Shape: `[.., positions, head]`, four axes.
    fn rotate(&self, x: &Value<'g>) -> Value<'g> {
        let half = (self.head / 2) as i64;
        let (low, high) = (x.slice(3, 0, half), x.slice_from(3, half));
        let turned_low = &low * &self.cos - &high * &self.sin;
        let turned_high = low * &self.sin + high * &self.cos;
        x.graph().concat(&[&turned_low, &turned_high], 3)
    }
}

/// Self-attention with rotary positions. Shapes: `[positions, 3 * width]` to `[positions, width]`.
pub fn attention<'g>(qkv: &Value<'g>, width: usize, rotary: &Rotary<'g>) -> Value<'g> {
    let head = rotary.head;
    let parts = qkv.reshape(&[0, 3, (width / head) as i64, head as i64]);
    // [3, heads, positions, head]
    let parts = parts.transpose(&[1, 2, 0, 3]);
    let turned = rotary.rotate(&parts.slice(0, 0, 2));
    let (q, k, v) = (turned.slice(0, 0, 1), turned.slice_from(0, 1), parts.slice_from(0, 2));
    let scores = (q * (head as f32).powf(-0.5)).matmul(&k.transpose(&[0, 1, 3, 2]));
    let weights = scores.graph().op_with("Softmax", &[&scores], vec![int("axis", -1)]);
    let mixed = weights.matmul(&v).transpose(&[0, 2, 1, 3]);
    mixed.reshape(&[-1, width as i64])
}

/// A transformer block. `film` is the output of its condition, `[1, 6 * width]`.
pub fn block<'g: 'v, 'v>(
    weights: &Weights<'g>,
    name: &str,
    x: &Value<'v>,
    width: usize,
    film: &Value<'v>,
    rotary: &Rotary<'v>,
) -> Result<Value<'v>, ExportError> {
    let part = |number: i64| film.slice(1, number * width as i64, (number + 1) * width as i64);
    let layer = |layer: &str, x: &Value<'v>| weights.linear(&format!("{name}.{layer}"), x);
    let normed = norm_film(x, width, &part(0), &part(1));
    let attended = attention(&layer("qkv", &normed)?, width, rotary);
    let x = x + layer("attention_out", &attended)? * part(2);
    let normed = norm_film(&x, width, &part(3), &part(4));
    let hidden = layer("ffn_in", &with_neighbours(&normed))?.silu();
    Ok(x + layer("ffn_out", &hidden)? * part(5))
}
