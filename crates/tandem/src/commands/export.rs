//! `tandem export`: writes a trained voice as an ONNX graph or a Piper voice.

mod check;
mod espeak_check;

use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Result};
use crate::printer::Printer;
use crate::speaking_args::{check_rounds, vocoder_choice, warn_of_substitute};
use check::Checked;
use espeak_check::EspeakChecked;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tandem_disk::replace_file::replace_file;
use tandem_export::reading::Reading;
use tandem_export::{
    ExportedSpeaker, ExportedVocoder, InputNotation, NoiseSource, OPSET, VoiceExport,
};
use tandem_export::{description::description, piper};
use tandem_model::Device;
use tandem_model::synthesis::mel::{Reference, SamplingOptions};
use tandem_model::synthesis::text::Synthesizer;
use tandem_model::vocoder::neural::trained::TrainedVocoder;
use tandem_model::vocoder::{Vocoder, VocoderChoice, VocoderError};
use tandem_text::Language;
use tandem_units::Bytes;

const NO_ESPEAK: &str = "espeak-ng is not installed: the symbols that Piper sends were not checked";

const EXAMPLES: &str = "\
Examples:
  tandem export --checkpoint run --format piper -o voices --name anna
  piper -m voices/anna.onnx -f hello.wav -- Hello there
  tandem export --checkpoint run --format onnx --speaker anna --steps 4 -o voices
  tandem export --checkpoint run --format onnx --reference me.wav --language en -o voices
  tandem export --checkpoint run --format piper -o voices --check --python venv/bin/python

The graph contains the whole path from symbols to samples. A voice without a neural vocoder is exported with the \
iterations of Griffin-Lim in the graph. `--check` runs the graph with ONNX Runtime and compares it with `tandem synth`; \
it needs a Python with the packages `onnxruntime` and `numpy`. With espeak-ng installed, it also checks that every symbol \
Piper sends is one that the voice was trained on.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The voice: a checkpoint, or a run directory (its best checkpoint is used)
    #[arg(long, value_name = "DIR", env = "TANDEM_CHECKPOINT")]
    checkpoint: PathBuf,
    /// What to write: `onnx` (NAME.onnx, NAME.json) or `piper` (NAME.onnx, NAME.onnx.json)
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,
    /// Output directory; it is created
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Name of the files
    #[arg(long, value_name = "NAME", default_value = "voice")]
    name: String,
    /// Speaker of the training corpus to include; can be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    speaker: Vec<String>,
    /// Recording of a speaker to include instead
    #[arg(long, value_name = "FILE", conflicts_with = "speaker")]
    reference: Option<PathBuf>,
    /// Language of every speaker [default: that of its reference]
    #[arg(long, value_name = "TAG")]
    language: Option<Language>,
    /// Sampling steps of the flow-matching decoder in the graph
    #[arg(long, value_name = "N", default_value_t = SamplingOptions::default().steps)]
    steps: usize,
    /// Default sampling temperature of the voice
    #[arg(long, value_name = "SHARE", default_value_t = SamplingOptions::default().temperature)]
    temperature: f32,
    /// Vocoder: `auto` uses the neural vocoder of the voice, and Griffin-Lim without one; `griffin-lim`; or the directory
    /// of a `tandem train-vocoder` run
    #[arg(long, value_name = "VOCODER", default_value = "auto")]
    vocoder: String,
    /// Griffin-Lim iterations in the graph, with that vocoder [default: 32]
    #[arg(long, value_name = "N")]
    vocoder_rounds: Option<usize>,
    /// Run the graph with ONNX Runtime, and compare it with `tandem synth`
    #[arg(long)]
    check: bool,
    /// One sentence for `--check` [default: one in the language of each speaker]
    #[arg(long, value_name = "TEXT", requires = "check")]
    check_text: Option<String>,
    /// Python interpreter for `--check`
    #[arg(long, value_name = "FILE", default_value = "python3", requires = "check")]
    python: PathBuf,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Format {
    Onnx,
    Piper,
}

#[derive(Serialize)]
struct Summary {
    format: Format,
    model: PathBuf,
    config: PathBuf,
    bytes: u64,
    opset: i64,
    speakers: Vec<Speaker>,
    vocoder: String,
    steps: usize,
    checked: Vec<Checked>,
    /// With the symbols that Piper sends; none where the graph does not rewrite them, or nothing was checked.
    espeak: Option<EspeakChecked>,
}

#[derive(Serialize)]
struct Speaker {
    id: usize,
    name: String,
    language: Language,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    check_name(&args.name)?;
    let device = Device::flex();
    let choice = vocoder_choice(&args.vocoder, args.vocoder_rounds)?;
    let mut synthesizer = Synthesizer::open(&args.checkpoint, &device, &choice)
        .with_context(|| format!("cannot load the voice `{}`", args.checkpoint.display()))?;
    check_rounds(args.vocoder_rounds, &choice, &synthesizer)?;
    warn_of_substitute(synthesizer.trained(), out);
    let speakers = speakers(&args, &synthesizer)?;
    let vocoder = vocoder(&choice, &synthesizer)?;
    let (noise, notation) = match args.format {
        Format::Onnx => (NoiseSource::Input, InputNotation::Voice),
        Format::Piper => (NoiseSource::Graph, InputNotation::Espeak),
    };
    let trained = synthesizer.trained();
    let steps = args.steps;
    let export =
        VoiceExport { trained, device: &device, speakers, vocoder, steps, noise, notation };
    let rewrites = !export.rewrites().is_empty();
    let model = export.model()?;
    let config = match args.format {
        Format::Onnx => description(&export, args.temperature)?,
        Format::Piper => piper::config(&export, &args.name, args.temperature)?,
    };
    let (model_path, config_path) = paths(&args);
    write(&args.output, &model_path, &model)?;
    write(&args.output, &config_path, config.as_bytes())?;
    let VoiceExport { speakers, vocoder, .. } = export;
    let mut summary = Summary {
        format: args.format,
        model: model_path,
        config: config_path,
        bytes: model.len() as u64,
        opset: OPSET,
        speakers: speakers
            .iter()
            .enumerate()
            .map(|(id, one)| Speaker { id, name: one.name.clone(), language: one.language })
            .collect(),
        vocoder: vocoder.describe(),
        steps: args.steps,
        checked: Vec::new(),
        espeak: None,
    };
    let reading = Reading::of(&synthesizer.trained().document, speakers[0].language);
    note_contents(reading, &vocoder, args.format, out);
    if args.check {
        let sampling = SamplingOptions {
            steps: args.steps,
            // Noise that the graph draws itself cannot be compared.
            temperature: if noise == NoiseSource::Input { args.temperature } else { 0.0 },
            ..SamplingOptions::default()
        };
        let check = check::Check { python: &args.python, model: &summary.model, sampling };
        let text = args.check_text.as_deref();
        summary.checked = check.run(&mut synthesizer, &speakers, text)?;
        if rewrites {
            summary.espeak = check.espeak(&synthesizer, &speakers, text)?;
        }
        if rewrites && summary.espeak.is_none() {
            out.note(NO_ESPEAK);
        }
    }
    print(&summary, args.json, out)?;
    let agrees = summary.checked.iter().all(Checked::agrees)
        && summary.espeak.iter().all(EspeakChecked::agrees);
    Ok(if agrees { ExitStatus::Done } else { ExitStatus::Negative })
}

/// The name becomes part of a file name.
fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        let fact = format!("`{}` cannot be the name of a voice", name.escape_debug());
        return Err(Advised::new(fact, "use letters, digits, `-`, `_` and `.`").into());
    }
    Ok(())
}

fn paths(args: &Args) -> (PathBuf, PathBuf) {
    let name = &args.name;
    let config = match args.format {
        Format::Onnx => format!("{name}.json"),
        Format::Piper => format!("{name}.onnx.json"),
    };
    (args.output.join(format!("{name}.onnx")), args.output.join(config))
}

fn write(directory: &Path, path: &Path, bytes: &[u8]) -> Result<()> {
    tandem_disk::directory::create_dir_all(directory)
        .and_then(|()| replace_file(path, bytes))
        .map_err(|error| {
            let fact = format!("cannot write `{}`: {error}", path.display());
            Advised::new(fact, "check free space and permissions, or use another directory")
        })?;
    Ok(())
}

/// The speakers to include: named ones, one of a recording, or all.
fn speakers(args: &Args, synthesizer: &Synthesizer) -> Result<Vec<ExportedSpeaker>> {
    let document = &synthesizer.trained().document;
    let language = |tag: &str| -> Result<Language> {
        match args.language {
            Some(language) => Ok(language),
            None => Ok(tag.parse()?),
        }
    };
    let first = document.languages.first().map_or("en", String::as_str);
    let one = |name: &str, tag: &str, reference: Reference| -> Result<ExportedSpeaker> {
        let language = language(tag)?;
        let language_number = synthesizer.language_number(language)?;
        let name = if name.is_empty() { language.tag() } else { name };
        Ok(ExportedSpeaker { name: name.to_owned(), language, language_number, reference })
    };
    if let Some(recording) = &args.reference {
        let name = recording.file_stem().map_or("reference".into(), |stem| stem.to_string_lossy());
        return Ok(vec![one(&name, first, synthesizer.read_reference(recording)?)?]);
    }
    for wanted in &args.speaker {
        if !document.speakers.iter().any(|known| known.name == *wanted) {
            return Err(unknown_speaker(wanted, synthesizer));
        }
    }
    let mut chosen = Vec::new();
    for (number, known) in document.speakers.iter().enumerate() {
        if args.speaker.is_empty() || args.speaker.contains(&known.name) {
            let reference = synthesizer.trained().reference(number);
            chosen.push(one(&known.name, &known.language, reference)?);
        }
    }
    if chosen.is_empty() {
        // A voice without known speakers: no speaker in particular, as `tandem synth` does.
        chosen.push(one("", first, Reference::default())?);
    }
    Ok(chosen)
}

fn unknown_speaker(wanted: &str, synthesizer: &Synthesizer) -> crate::failure::Failure {
    let known = &synthesizer.trained().document.speakers;
    let names: Vec<String> = known.iter().map(|known| format!("`{}`", known.name)).collect();
    let advice = match names.is_empty() {
        true => "this voice has no named speakers: leave `--speaker` out".into(),
        false => format!("its speakers are {}", names.join(", ")),
    };
    Advised::new(format!("this voice has no speaker `{wanted}`"), advice).into()
}

/// The vocoder that `tandem synth` would use.
fn vocoder(choice: &VocoderChoice, synthesizer: &Synthesizer) -> Result<ExportedVocoder> {
    let trained = synthesizer.trained();
    Ok(match choice.for_voice(&trained.path) {
        VocoderChoice::Neural(path) => {
            let read = TrainedVocoder::read(&path)?;
            if *read.vocoder.mel() != trained.document.mel {
                return Err(VocoderError::OtherMel { path: read.path }.into());
            }
            ExportedVocoder::Neural(Box::new(read.vocoder))
        }
        VocoderChoice::GriffinLim(config) | VocoderChoice::OfVoice(config) => {
            ExportedVocoder::GriffinLim(config)
        }
    })
}

/// What a user should know about the files.
fn note_contents(reading: Reading, vocoder: &ExportedVocoder, format: Format, out: &mut Printer) {
    if matches!(vocoder, ExportedVocoder::GriffinLim(_)) {
        out.note(
            "the graph contains Griffin-Lim instead of a neural vocoder; `tandem train-vocoder` and \
             `tandem attach-vocoder` give the voice one, which sounds better (docs/export.md)",
        );
    }
    match (format, reading) {
        (Format::Onnx, _) => {}
        (Format::Piper, Reading::Characters) => out.note(
            "Piper looks up characters one by one: write numbers and abbreviations as words (docs/export.md)",
        ),
        (Format::Piper, Reading::Phonemes) => out.note(
            "the voice reads phonemes: Piper makes them with its own espeak-ng, and the graph writes them in the symbols \
             of the voice; words of its lexicon may be said differently (docs/export.md)",
        ),
    }
}

fn print(summary: &Summary, json: bool, out: &mut Printer) -> Result<()> {
    if json {
        return out.json(summary);
    }
    out.line(&format!(
        "{}: {}, opset {}, {} steps, {}",
        summary.model.display(),
        Bytes(summary.bytes),
        summary.opset,
        summary.steps,
        summary.vocoder
    ))?;
    out.line(&summary.config.display().to_string())?;
    for speaker in &summary.speakers {
        out.line(&format!(
            "speaker {}: {} ({})",
            speaker.id,
            speaker.name,
            speaker.language.tag()
        ))?;
    }
    for checked in &summary.checked {
        out.line(&checked.line())?;
    }
    if let Some(checked) = &summary.espeak {
        out.line(&checked.line())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        args: Args,
    }

    fn typed(flags: &[&str]) -> Result<Args, clap::Error> {
        let all = ["export", "--checkpoint", "run", "-o", "voices"].iter().chain(flags);
        Typed::try_parse_from(all).map(|typed| typed.args)
    }

    #[test]
    fn a_format_is_needed_and_the_check_has_its_own_flags() {
        assert!(typed(&[]).is_err());
        assert!(typed(&["--format", "tflite"]).is_err());
        assert!(typed(&["--format", "piper", "--check-text", "Hi"]).is_err());
        assert!(typed(&["--format", "piper", "--check", "--check-text", "Hi"]).is_ok());
        assert!(typed(&["--format", "onnx", "--speaker", "a", "--reference", "b.wav"]).is_err());
    }

    #[test]
    fn the_files_have_the_names_that_piper_looks_for() {
        let args = typed(&["--format", "piper", "--name", "anna"]).unwrap();
        let wanted = ("voices/anna.onnx".into(), "voices/anna.onnx.json".into());
        assert_eq!(paths(&args), wanted);
        let args = typed(&["--format", "onnx"]).unwrap();
        assert_eq!(paths(&args), ("voices/voice.onnx".into(), "voices/voice.json".into()));
    }

    #[test]
    fn a_name_is_no_path() {
        for name in ["anna", "fa_IR-anna-tiny", "v1.2", "صدا"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "../a", "a/b", ".hidden", "a b"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
