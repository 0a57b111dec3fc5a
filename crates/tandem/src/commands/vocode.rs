//! `tandem vocode`: mel frames in a NumPy file become a WAV file.

use crate::commands::features::check_directory;
use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Result};
use crate::npy::mel_of_npy;
use crate::printer::Printer;
use crate::speaking_args::vocoder_choice;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tandem_audio::mel::MelConfig;
use tandem_model::vocoder::neural::trained::TrainedVocoder;
use tandem_model::vocoder::wav::write_wav;
use tandem_model::vocoder::{Vocoder, VocoderChoice, VocoderError};
use tandem_units::{Hint, Samples, Seconds};

const EXAMPLES: &str = "\
Examples:
  tandem features voice.wav -o mel.npy                       mel frames of a recording
  tandem vocode mel.npy -o copy.wav --vocoder vocoder        through a `train-vocoder` run
  tandem vocode mel.npy -o copy.wav --vocoder griffin-lim    without a network
  tandem vocode mel.npy -o copy.wav --vocoder run --json     through the vocoder of a voice

The input: float32 or float64, shape [frames, bands], natural logarithms of mel magnitudes as `tandem features` writes \
them (22,050 Hz, 80 bands, hop 256, Slaney scale and norm, floor 1e-5).";

/// The largest file that is read: more than ten hours of frames.
const LARGEST: u64 = 1 << 30;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Mel frames: a NumPy file
    mel: PathBuf,
    /// Output WAV file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Vocoder: `griffin-lim`, `demo` (a small one trained on the demo corpus), the directory of a `tandem train-vocoder` run, or a voice with a vocoder
    #[arg(long, value_name = "VOCODER", default_value = crate::speaking_args::GRIFFIN_LIM)]
    vocoder: String,
    /// Griffin-Lim iterations, with that vocoder [default: 32]
    #[arg(long, value_name = "N")]
    vocoder_rounds: Option<usize>,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary {
    mel: PathBuf,
    output: PathBuf,
    vocoder: &'static str,
    frames: usize,
    /// Length of the audio.
    seconds: Seconds,
    /// Computing time, without reading and writing files.
    took: Seconds,
    /// Computing time per second of audio.
    real_time_factor: f64,
    /// Peak level before the gain, and the gain.
    peak: f32,
    gain: f32,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    if args.output.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("wav")) {
        let fact = format!("the output `{}` is not a .wav file", args.output.display());
        return Err(Advised::new(fact, "use the extension .wav").into());
    }
    check_directory(&args.output)?;
    let choice = vocoder_choice(&args.vocoder, args.vocoder_rounds)?;
    let mut vocoder =
        open(&choice).with_context(|| format!("cannot use the vocoder `{}`", args.vocoder))?;
    let settings = vocoder.mel().clone();
    let unusable = || format!("cannot use the mel frames `{}`", args.mel.display());
    let frames = read(&args.mel, settings.bands).with_context(unusable)?;
    let began = Instant::now();
    let samples = vocoder.synthesize(&frames).map_err(explain).with_context(unusable)?;
    let took = began.elapsed().as_secs_f64();
    let written = write_wav(&args.output, &samples, settings.rate)?;
    let seconds = settings.rate.seconds(Samples(samples.len()));
    let summary = Summary {
        mel: args.mel,
        output: args.output,
        vocoder: choice.name(),
        frames: frames.len() / settings.bands,
        seconds,
        took: Seconds(took),
        real_time_factor: took / seconds.0.max(1e-9),
        peak: written.peak,
        gain: written.gain,
    };
    if args.json {
        out.json(&summary)?;
        return Ok(ExitStatus::Done);
    }
    out.line(&format!(
        "{}: {} of sound from {} frames, {}, real-time factor {:.3}",
        summary.output.display(),
        summary.seconds,
        summary.frames,
        summary.vocoder,
        summary.real_time_factor,
    ))?;
    if summary.gain < 1.0 {
        out.note(&format!("volume reduced to {:.0} % to avoid clipping", 100.0 * summary.gain));
    }
    Ok(ExitStatus::Done)
}

/// A neural vocoder brings its own mel settings; Griffin-Lim uses the default ones.
fn open(choice: &VocoderChoice) -> Result<Box<dyn Vocoder>, VocoderError> {
    match choice {
        VocoderChoice::Neural(path) => Ok(Box::new(TrainedVocoder::read(path)?.vocoder)),
        other => other.open(&MelConfig::SPEECH_22K),
    }
}

fn read(path: &Path, bands: usize) -> Result<Vec<f32>> {
    let size = std::fs::metadata(path)
        .map_err(|error| Advised::new(error.to_string(), "check the path for typing errors"))?
        .len();
    if size > LARGEST {
        let fact = format!("the file has {size} bytes, at most {LARGEST} are read");
        return Err(Advised::new(fact, "split the frames into several files").into());
    }
    Ok(mel_of_npy(&std::fs::read(path)?, bands)?)
}

/// The frames come from a file here, not from a voice that was trained: the hints differ.
fn explain(error: VocoderError) -> Advised {
    let advice = match &error {
        VocoderError::Empty => "give at least one frame".into(),
        VocoderError::Value { .. } => {
            "give natural logarithms of mel magnitudes, as `tandem features` writes them; \
             no NaN and no infinity"
                .into()
        }
        other => other.hint().unwrap_or_default(),
    };
    Advised::new(error.to_string(), advice)
}
