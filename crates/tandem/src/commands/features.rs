//! `tandem features`: the mel spectrogram of a recording, as a NumPy file or an image.

use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Result};
use crate::npy::npy_of;
use crate::printer::Printer;
use crate::setting_flags::{OfRecording, SettingFlags};
use serde::Serialize;
use std::path::{Path, PathBuf};
use tandem_audio::mel::{Mel, MelConfig, MelExtractor};
use tandem_audio::{Decoder, FileReader};
use tandem_disk::replace_file::replace_file;
use tandem_settings::Start;
use tandem_train::file_config::FileConfig;
use tandem_train::log::picture;
use tandem_units::Seconds;

const EXAMPLES: &str = "\
Examples:
  tandem features voice.wav -o mel.png     an image: time to the right, low bands at the bottom
  tandem features voice.flac -o mel.npy    for NumPy: float32, [frames, bands]
  tandem features voice.mp3 -o mel.npy --json
  tandem features voice.wav -o mel.png --trim-silence -40 --loudness -23";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording: WAV, FLAC, MP3 or OGG, any rate, any number of channels
    audio: PathBuf,
    /// Output file; the extension chooses the format: .npy or .png
    #[arg(short, long)]
    output: PathBuf,
    #[command(flatten)]
    conditioning: SettingFlags<OfRecording>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

enum Format {
    Npy,
    Png,
}

#[derive(Serialize)]
struct Summary {
    audio: PathBuf,
    output: PathBuf,
    seconds: Seconds,
    frames: usize,
    bands: usize,
    lowest: f32,
    highest: f32,
    mean: f64,
    kernel: &'static str,
    settings: MelConfig,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let format = Format::of(&args.output)?;
    check_directory(&args.output)?;
    let (mel, summary) = make(&args)
        .with_context(|| format!("cannot compute features of `{}`", args.audio.display()))?;
    let contents = match format {
        Format::Npy => npy_of(mel.values(), mel.bands())?,
        Format::Png => {
            let name = args.audio.file_name().unwrap_or_default().to_string_lossy();
            picture::mel(&name, mel.values(), &summary.settings)?.png
        }
    };
    replace_file(&args.output, &contents)
        .with_context(|| format!("cannot write `{}`", args.output.display()))?;
    if args.json {
        out.json(&summary)?;
    } else {
        out.line(&format!(
            "{}: {} frames x {} bands, {} of sound, ln {:.2} to {:.2}",
            args.output.display(),
            summary.frames,
            summary.bands,
            summary.seconds,
            summary.lowest,
            summary.highest,
        ))?;
    }
    Ok(ExitStatus::Done)
}

impl Format {
    fn of(output: &Path) -> Result<Format, Advised> {
        let ending = output.extension().map(|ending| ending.to_ascii_lowercase());
        match ending.as_ref().and_then(|ending| ending.to_str()) {
            Some("npy") => Ok(Format::Npy),
            Some("png") => Ok(Format::Png),
            _ => Err(Advised::new(
                format!("the output format of `{}` is unknown", output.display()),
                "use the extension .npy or .png",
            )),
        }
    }
}

/// Checked before any work, since a missing directory is usually a misspelt path.
pub fn check_directory(output: &Path) -> Result<(), Advised> {
    match output.parent() {
        Some(parent) if parent != Path::new("") && !parent.is_dir() => Err(Advised::new(
            format!("there is no directory `{}` to write to", parent.display()),
            "create it first, or name another place with `-o`",
        )),
        _ => Ok(()),
    }
}

fn make(args: &Args) -> Result<(Mel, Summary)> {
    let settings = MelConfig::SPEECH_22K;
    let config =
        FileConfig::default().with_typed(&args.conditioning.typed, Start::NewWeights)?.audio;
    let mut decoder = Decoder::new(settings.rate, config);
    let mut file = FileReader::default();
    let bytes = file.read(&args.audio, &config)?;
    let ending = args.audio.extension().and_then(|ending| ending.to_str());
    let sound = decoder.decode(bytes, ending)?;
    let mut extractor = MelExtractor::new(settings.clone())?;
    let mel = extractor.extract(sound)?;
    let values = mel.values();
    let summary = Summary {
        audio: args.audio.clone(),
        output: args.output.clone(),
        seconds: settings.rate.seconds(sound.len()),
        frames: mel.frames().0,
        bands: mel.bands(),
        lowest: values.iter().copied().fold(f32::INFINITY, f32::min),
        highest: values.iter().copied().fold(f32::NEG_INFINITY, f32::max),
        mean: values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64,
        kernel: extractor.kernel().name(),
        settings,
    };
    Ok((mel, summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_extension_is_refused() {
        for bad in ["mel", "mel.jpg", "mel.npz"] {
            assert!(Format::of(Path::new(bad)).is_err(), "{bad}");
        }
        assert!(matches!(Format::of(Path::new("a/mel.PNG")), Ok(Format::Png)));
    }

    #[test]
    fn a_missing_directory_is_noticed_before_the_work() {
        let room = tempfile::tempdir().unwrap();
        assert!(check_directory(&room.path().join("mel.png")).is_ok());
        assert!(check_directory(Path::new("mel.png")).is_ok());
        let error = check_directory(&room.path().join("none/mel.png")).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }
}
