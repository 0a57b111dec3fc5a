//! A module small enough for software GPUs: guesses each mel frame from the one before and the
//! text, and an optimiser that notes where everything it touches lives.

use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};
use burn::optim::{AdamW, AdamWConfig, AdamWState, GradientsParams, ModuleOptimizer, Optimizer};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use std::sync::{Arc, Mutex};
use tandem_data::batch::BatchShape;
use tandem_model::upload::DeviceBatch;

const WIDTH: usize = 16;

#[derive(Module, Debug)]
pub struct TinyVoice {
    symbols: Embedding,
    text: Linear,
    frames: Linear,
    out: Linear,
}

impl TinyVoice {
    pub fn new(_shape: BatchShape, bands: usize, device: &Device) -> TinyVoice {
        device.seed(7);
        TinyVoice {
            symbols: EmbeddingConfig::new(10, WIDTH).init(device),
            text: LinearConfig::new(WIDTH, WIDTH).init(device),
            frames: LinearConfig::new(bands, WIDTH).init(device),
            out: LinearConfig::new(WIDTH, bands).init(device),
        }
    }

    pub fn fork_to(self, device: &Device) -> TinyVoice {
        self.fork(device)
    }

    /// Mean squared error over real frames.
    fn loss(&self, batch: &DeviceBatch) -> Tensor<1> {
        let [rows, frames, bands] = batch.mel.dims();
        let text: Tensor<3> = self.text.forward(self.symbols.forward(batch.symbols.clone()));
        let text: Tensor<3> = text.mean_dim(1);
        let earlier = batch.mel.clone().narrow(1, 0, frames - 1);
        let later = batch.mel.clone().narrow(1, 1, frames - 1);
        let guess = self.out.forward(relu(self.frames.forward(earlier * 0.1) + text));
        let counts = batch.frame_counts.clone().reshape([rows, 1, 1]).float();
        let at = Tensor::<1, burn::tensor::Int>::arange(1..frames as i64, &batch.mel.device());
        let at = at.reshape([1, frames - 1, 1]).float();
        let real = counts.expand([rows, frames - 1, 1]).greater(at.expand([rows, frames - 1, 1]));
        let weight = real.float();
        let error = (guess - later * 0.1).square() * weight.clone();
        error.sum() / (weight.sum() * bands as f32)
    }
}

/// AdamW that notes the device of every parameter, gradient and state it sees.
#[derive(Clone, Default)]
pub struct Watched {
    seen: Arc<Mutex<Vec<(String, Device)>>>,
}

impl Watched {
    pub fn seen(&self) -> Vec<(String, Device)> {
        self.seen.lock().unwrap().clone()
    }
}

#[derive(Clone)]
struct WatchedAdamW {
    inner: AdamW,
    watched: Watched,
}

impl Optimizer for WatchedAdamW {
    type State<const D: usize> = AdamWState<D>;

    fn step<const D: usize>(
        &self,
        lr: f64,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<AdamWState<D>>,
    ) -> (Tensor<D>, Option<AdamWState<D>>) {
        let mut seen = vec![("parameter", tensor.device()), ("gradient", grad.device())];
        let (tensor, state) = self.inner.step(lr, tensor, grad, state);
        seen.push(("updated parameter", tensor.device()));
        if let Some(state) = &state {
            seen.push(("first moment", state.momentum.moment_1.device()));
            seen.push(("second moment", state.momentum.moment_2.device()));
        }
        let named = seen.into_iter().map(|(what, device)| (format!("{what} of rank {D}"), device));
        self.watched.seen.lock().unwrap().extend(named);
        (tensor, state)
    }

    fn to_device<const D: usize>(state: AdamWState<D>, device: &Device) -> AdamWState<D> {
        AdamW::to_device(state, device)
    }
}

/// The loss of each step. All devices of the module are noted, too.
pub fn train(
    mut voice: TinyVoice,
    batch: &DeviceBatch,
    watched: &Watched,
    steps: usize,
) -> Vec<f32> {
    let inner = AdamWConfig::new().with_weight_decay(0.01).build();
    let mut optimiser = ModuleOptimizer::from(WatchedAdamW { inner, watched: watched.clone() });
    let mut losses = Vec::new();
    for _ in 0..steps {
        let loss = voice.loss(batch);
        let grads = GradientsParams::from_grads(loss.backward(), &voice);
        voice = optimiser.step(2e-2, voice, grads);
        losses.push(loss.into_scalar::<f32>());
        let devices = voice.devices();
        let named = devices.into_iter().map(|device| ("module".to_owned(), device));
        watched.seen.lock().unwrap().extend(named);
    }
    losses
}
