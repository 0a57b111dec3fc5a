//! Short-time Fourier transforms as matrix products.
//!
//! In: mel settings. Out: values that turn windowed frames `[frames, n_fft]` into spectra `[frames, 2 * bins]` (real parts
//! first) and back, and the places of each frame's samples. The matrices are computed by the graph from one period of a
//! cosine when it is loaded, so that a file does not contain them.

use crate::graph::{Graph, Value};
use std::f64::consts::TAU;
use tandem_audio::mel::{MelConfig, hann_window};

/// Samples whose squared windows add up to less are silent.
pub const UNSEEN: f32 = 1e-6;

/// The transforms of one graph.
pub struct Spectrum<'g> {
    graph: &'g Graph,
    /// `[n_fft, 2 * bins]`.
    forward: Value<'g>,
    /// `[2 * bins, n_fft]`, without the window.
    backward: Value<'g>,
    /// `[1, n_fft]`.
    window: Value<'g>,
    n_fft: usize,
    hop: usize,
}

impl<'g> Spectrum<'g> {
    pub fn new(graph: &'g Graph, mel: &MelConfig) -> Spectrum<'g> {
        let (n_fft, bins) = (mel.n_fft, mel.n_fft / 2 + 1);
        let window: Vec<f32> = hann_window(mel).into_iter().map(|value| value as f32).collect();
        let wave = |of: fn(f64) -> f64| -> Value<'g> {
            let values: Vec<f32> =
                (0..n_fft).map(|i| of(TAU * i as f64 / n_fft as f64) as f32).collect();
            graph.floats(&[n_fft], &values)
        };
        let samples = graph.range(&graph.list(&[n_fft as i64])).unsqueeze(1);
        let bin = graph.range(&graph.list(&[bins as i64])).unsqueeze(0);
        let turn = (samples * bin).with("Mod", &graph.integer(n_fft as i64));
        let (cos, sin) = (wave(f64::cos).gather(&turn), wave(|x| -x.sin()).gather(&turn));
        let forward = graph.concat(&[&cos, &sin], 1);
        // Bins between the first and the last stand for two: themselves and their mirror image.
        let twice =
            |row: usize| if row.is_multiple_of(bins) || row % bins == bins - 1 { 1.0 } else { 2.0 };
        let shares: Vec<f32> = (0..2 * bins).map(|row| twice(row) / n_fft as f32).collect();
        let backward = forward.transpose(&[1, 0]) * graph.floats(&[2 * bins, 1], &shares);
        let window = graph.floats(&[1, n_fft], &window);
        Spectrum { graph, forward, backward, window, n_fft, hop: mel.hop.0 }
    }

    pub fn bins(&self) -> usize {
        self.n_fft / 2 + 1
    }

    /// The place of each frame's samples in a signal without padding: `[frames, n_fft]`.
    pub fn places(&self, frames: &Value<'g>) -> Value<'g> {
        let starts = self.graph.range(frames) * (self.hop as i64);
        starts.unsqueeze(1) + self.graph.range(&self.graph.list(&[self.n_fft as i64])).unsqueeze(0)
    }

    /// The spectra of a signal's frames at these places.
    pub fn analyse<'v>(&self, signal: &Value<'v>, places: &Value<'g>) -> Value<'v>
    where
        'g: 'v,
    {
        let window: Value<'v> = self.window.clone();
        (signal.gather(places) * window).matmul(&self.forward)
    }

    /// The sum of the windowed frames of these spectra in `empty`, a signal of zeros.
    pub fn overlap_add<'v>(
        &self,
        spectra: &Value<'v>,
        places: &Value<'g>,
        empty: &Value<'v>,
    ) -> Value<'v>
    where
        'g: 'v,
    {
        let window: Value<'v> = self.window.clone();
        let frames = spectra.matmul(&self.backward) * window;
        empty.scatter_add(&places.reshape(&[-1]), &frames.reshape(&[-1]))
    }

    /// The sum of the squared windows at each sample.
    pub fn window_weight(&self, places: &Value<'g>, empty: &Value<'g>) -> Value<'g> {
        let squares = &self.window * &self.window;
        let squares = squares.with("Expand", &places.op("Shape"));
        empty.scatter_add(&places.reshape(&[-1]), &squares.reshape(&[-1]))
    }
}
