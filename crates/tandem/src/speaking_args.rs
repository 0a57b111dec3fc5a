//! Flags of commands that speak with a trained voice: which one, on which device, in which manner.

use crate::failure::{Advised, Context, Result};
use std::path::PathBuf;
use tandem_device::backend::{self, Backend, BackendChoice, DeviceId};
use tandem_device::inventory::Inventory;
use tandem_device::placement::{DeviceSettings, Placement};
use tandem_model::Device;
use tandem_model::synthesis::mel::SamplingOptions;
use tandem_model::synthesis::text::Synthesizer;
use tandem_model::vocoder::VocoderChoice;
use tandem_model::vocoder::griffin_lim::GriffinLimConfig;
use tandem_units::Seed;

/// A voice and where it speaks.
#[derive(Clone, Debug, clap::Args)]
pub struct VoiceArgs {
    /// The voice: a checkpoint, or a run directory, of which the best one is taken
    #[arg(long, value_name = "DIR", env = "TANDEM_CHECKPOINT")]
    pub checkpoint: PathBuf,
    /// What reaches the GPU: auto, cpu, wgpu, vulkan, metal, cuda or rocm
    #[arg(long, value_name = "NAME", env = "TANDEM_BACKEND", default_value_t = BackendChoice::Auto)]
    pub backend: BackendChoice,
    /// GPU that speaks [default: the first]
    #[arg(long, value_name = "N")]
    pub gpu: Option<usize>,
}

/// How it speaks.
#[derive(Clone, Debug, clap::Args)]
pub struct SamplingArgs {
    /// Pace: 2 is twice as fast
    #[arg(long, value_name = "FACTOR", default_value_t = SamplingOptions::default().speed)]
    pub speed: f32,
    /// Steps from the text's mean sound to speech: more are slower and finer
    #[arg(long, value_name = "N", default_value_t = SamplingOptions::default().steps)]
    pub steps: usize,
    /// How much chance there is in the speech; 0: none
    #[arg(long, value_name = "SHARE", default_value_t = SamplingOptions::default().temperature)]
    pub temperature: f32,
    /// What chance is drawn from
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Rounds in which Griffin-Lim looks for phases
    #[arg(long, value_name = "N", default_value_t = GriffinLimConfig::SPEECH.iterations)]
    pub vocoder_rounds: usize,
}

impl SamplingArgs {
    /// For the model.
    pub fn sampling(&self) -> SamplingOptions {
        let SamplingArgs { speed, steps, temperature, seed, .. } = *self;
        SamplingOptions { speed, steps, temperature, seed: Seed(seed) }
    }

    /// For the vocoder.
    pub fn vocoder(&self) -> VocoderChoice {
        let iterations = self.vocoder_rounds;
        VocoderChoice::GriffinLim(GriffinLimConfig { iterations, ..GriffinLimConfig::SPEECH })
    }
}

impl VoiceArgs {
    /// Opens the device and reads the voice.
    pub fn open(&self, vocoder: &VocoderChoice) -> Result<Synthesizer> {
        let device = self.device()?;
        Synthesizer::open(&self.checkpoint, &device, vocoder)
            .with_context(|| format!("cannot speak with `{}`", self.checkpoint.display()))
    }

    fn device(&self) -> Result<Device> {
        let settings = DeviceSettings { backend: self.backend, ..DeviceSettings::default() };
        let placed = Placement::decide(&settings, &Inventory::detect())?.model.id;
        let id = match (self.gpu, placed.backend) {
            (None, _) => placed,
            (Some(index), Backend::Cpu) => {
                return Err(Advised::new(
                    format!("there is no GPU {index}: the voice would speak on the processor"),
                    "leave `--gpu` out, or name a backend with `--backend`; `tandem devices` lists all",
                )
                .into());
            }
            (Some(index), backend) => DeviceId { backend, index },
        };
        Ok(backend::open(id)?)
    }
}
