//! Flags of commands that synthesize speech: checkpoint, device, sampling options.

use crate::demo_files;
use crate::failure::{Advised, Context, Result};
use std::path::{Path, PathBuf};
use tandem_device::backend::{self, Backend, BackendChoice, DeviceId};
use tandem_device::inventory::Inventory;
use tandem_device::placement::{DeviceSettings, Placement};
use tandem_model::Device;
use tandem_model::synthesis::mel::SamplingOptions;
use tandem_model::synthesis::text::Synthesizer;
use tandem_model::vocoder::VocoderChoice;
use tandem_model::vocoder::griffin_lim::GriffinLimConfig;
use tandem_units::Seed;

/// The vocoder of the voice, or Griffin-Lim.
const AUTO: &str = "auto";
/// The value of `--vocoder` for Griffin-Lim.
pub const GRIFFIN_LIM: &str = "griffin-lim";

/// The vocoder that `--vocoder` names.
pub fn vocoder_choice(named: &str, iterations: usize) -> Result<VocoderChoice> {
    let griffin_lim = GriffinLimConfig { iterations, ..GriffinLimConfig::SPEECH };
    Ok(match named {
        AUTO => VocoderChoice::OfVoice(griffin_lim),
        GRIFFIN_LIM => VocoderChoice::GriffinLim(griffin_lim),
        path => VocoderChoice::Neural(demo_files::vocoder(Path::new(path))?),
    })
}

/// The checkpoint and the device.
#[derive(Clone, Debug, clap::Args)]
pub struct VoiceArgs {
    /// The voice: a checkpoint, or a run directory (its best checkpoint is used)
    #[arg(long, value_name = "DIR", env = "TANDEM_CHECKPOINT")]
    pub checkpoint: PathBuf,
    /// Compute backend: auto, cpu, wgpu, vulkan, metal, cuda or rocm
    #[arg(long, value_name = "NAME", env = "TANDEM_BACKEND", default_value_t = BackendChoice::Auto)]
    pub backend: BackendChoice,
    /// GPU to use [default: the first]
    #[arg(long, value_name = "N")]
    pub gpu: Option<usize>,
}

/// Sampling options.
#[derive(Clone, Debug, clap::Args)]
pub struct SamplingArgs {
    /// Speaking rate: 2 is twice as fast
    #[arg(long, value_name = "FACTOR", default_value_t = SamplingOptions::default().speed)]
    pub speed: f32,
    /// Sampling steps of the flow-matching decoder: more are slower and more precise
    #[arg(long, value_name = "N", default_value_t = SamplingOptions::default().steps)]
    pub steps: usize,
    /// Sampling temperature; 0: no noise
    #[arg(long, value_name = "SHARE", default_value_t = SamplingOptions::default().temperature)]
    pub temperature: f32,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Vocoder: `auto` uses the neural vocoder of the voice, and Griffin-Lim without one; `griffin-lim`; `demo`, a small one
    /// trained on the demo corpus; or the directory of a `tandem train-vocoder` run
    #[arg(long, value_name = "VOCODER", default_value = AUTO)]
    pub vocoder: String,
    /// Griffin-Lim iterations
    #[arg(long, value_name = "N", default_value_t = GriffinLimConfig::SPEECH.iterations)]
    pub vocoder_rounds: usize,
}

impl SamplingArgs {
    pub fn sampling(&self) -> SamplingOptions {
        let SamplingArgs { speed, steps, temperature, seed, .. } = *self;
        SamplingOptions { speed, steps, temperature, seed: Seed(seed) }
    }

    pub fn vocoder(&self) -> Result<VocoderChoice> {
        vocoder_choice(&self.vocoder, self.vocoder_rounds)
    }
}

impl VoiceArgs {
    /// Opens the device and reads the voice.
    pub fn open(&self, vocoder: &VocoderChoice) -> Result<Synthesizer> {
        let device = self.device()?;
        Synthesizer::open(&self.checkpoint, &device, vocoder)
            .with_context(|| format!("cannot load the voice `{}`", self.checkpoint.display()))
    }

    fn device(&self) -> Result<Device> {
        let settings = DeviceSettings { backend: self.backend, ..DeviceSettings::default() };
        let placed = Placement::decide(&settings, &Inventory::detect())?.model.id;
        let id = match (self.gpu, placed.backend) {
            (None, _) => placed,
            (Some(index), Backend::Cpu) => {
                return Err(Advised::new(
                    format!("there is no GPU {index}: synthesis would run on the CPU"),
                    "leave `--gpu` out, or name a backend with `--backend`; `tandem devices` lists all",
                )
                .into());
            }
            (Some(index), backend) => DeviceId { backend, index },
        };
        Ok(backend::open(id)?)
    }
}
