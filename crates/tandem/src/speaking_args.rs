//! Flags of commands that synthesize speech: checkpoint, device, sampling options.

use crate::demo_files;
use crate::failure::{Advised, Context, Result};
use crate::printer::Printer;
use std::path::{Path, PathBuf};
use tandem_device::backend::{self, Backend, BackendChoice, DeviceId};
use tandem_device::inventory::Inventory;
use tandem_device::placement::{DeviceSettings, Placement};
use tandem_model::Device;
use tandem_model::synthesis::mel::SamplingOptions;
use tandem_model::synthesis::text::Synthesizer;
use tandem_model::trained_voice::TrainedVoice;
use tandem_model::vocoder::VocoderChoice;
use tandem_model::vocoder::griffin_lim::GriffinLimConfig;
use tandem_text::chat::{TextFormat, TextTreatment, UnknownSigns};
use tandem_units::Seed;

/// The vocoder of the voice, or Griffin-Lim.
const AUTO: &str = "auto";
/// The value of `--vocoder` for Griffin-Lim.
pub const GRIFFIN_LIM: &str = "griffin-lim";

/// The words for a checkpoint that is passed over, in every command that reads one.
pub fn damaged_checkpoint(fact: &str) -> String {
    format!("a checkpoint is damaged and is not used: {fact}")
}

/// Says that a voice is another one than the user asked for, and which.
pub(crate) fn warn_of_substitute(trained: &TrainedVoice, out: &mut Printer) {
    for fact in &trained.damaged {
        out.note(&format!("warning: {}", damaged_checkpoint(fact)));
    }
    if !trained.damaged.is_empty() {
        let (step, path) = (trained.step, trained.path.display());
        out.note(&format!("warning: step {step} in `{path}` is used instead"));
    }
}

/// The vocoder that `--vocoder` names.
pub fn vocoder_choice(named: &str, rounds: Option<usize>) -> Result<VocoderChoice> {
    let iterations = rounds.unwrap_or(GriffinLimConfig::SPEECH.iterations);
    let griffin_lim = GriffinLimConfig { iterations, ..GriffinLimConfig::SPEECH };
    if rounds.is_some() && !matches!(named, AUTO | GRIFFIN_LIM) {
        return Err(rounds_without_effect().into());
    }
    Ok(match named {
        AUTO => VocoderChoice::OfVoice(griffin_lim),
        GRIFFIN_LIM => VocoderChoice::GriffinLim(griffin_lim),
        path => VocoderChoice::Neural(demo_files::vocoder(Path::new(path))?),
    })
}

/// Refuses `--vocoder-rounds` where the voice has a neural vocoder, whose iterations are part of it.
pub fn check_rounds(
    rounds: Option<usize>,
    choice: &VocoderChoice,
    synthesizer: &Synthesizer,
) -> Result<()> {
    match (rounds, choice.for_voice(&synthesizer.trained().path)) {
        (Some(_), VocoderChoice::Neural(_)) => Err(rounds_without_effect().into()),
        _ => Ok(()),
    }
}

fn rounds_without_effect() -> Advised {
    let fact = "`--vocoder-rounds` has no effect with a neural vocoder";
    Advised::new(fact, "leave it out, or add `--vocoder griffin-lim`")
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

/// How the text is treated.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct TextArgs {
    /// Read the text as it is: signs of Markdown (`# Title`, `**bold**`, `- item`) are part of it
    #[arg(long)]
    pub plain: bool,
    /// Refuse a text with a sign that the voice does not know, such as an emoji, instead of leaving it out
    #[arg(long)]
    pub strict: bool,
}

impl TextArgs {
    pub fn treatment(self) -> TextTreatment {
        TextTreatment {
            format: if self.plain { TextFormat::Plain } else { TextFormat::Markdown },
            unknown: if self.strict { UnknownSigns::Refuse } else { UnknownSigns::Skip },
        }
    }
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
    /// trained on the built-in corpora; or the directory of a `tandem train-vocoder` run
    #[arg(long, value_name = "VOCODER", default_value = AUTO)]
    pub vocoder: String,
    /// Griffin-Lim iterations, with that vocoder [default: 32]
    #[arg(long, value_name = "N")]
    pub vocoder_rounds: Option<usize>,
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
    pub fn open(&self, sampling: &SamplingArgs) -> Result<Synthesizer> {
        let choice = sampling.vocoder()?;
        let synthesizer = self.open_with(&choice)?;
        check_rounds(sampling.vocoder_rounds, &choice, &synthesizer)?;
        Ok(synthesizer)
    }

    pub fn open_with(&self, vocoder: &VocoderChoice) -> Result<Synthesizer> {
        Synthesizer::open(&self.checkpoint, &self.device()?, vocoder)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_refused_where_they_have_no_effect() {
        for named in [AUTO, GRIFFIN_LIM] {
            let choice = vocoder_choice(named, Some(7)).expect("iterations of Griffin-Lim");
            let (VocoderChoice::OfVoice(config) | VocoderChoice::GriffinLim(config)) = choice
            else {
                panic!("{named} is Griffin-Lim without a voice");
            };
            assert_eq!(config.iterations, 7);
        }
        let refused = vocoder_choice("demo", Some(7)).expect_err("a neural vocoder");
        assert!(refused.hint().is_some_and(|hint| hint.contains("--vocoder griffin-lim")));
        assert_eq!(
            GriffinLimConfig::SPEECH.iterations,
            32,
            "the default in the help of three commands"
        );
    }
}
