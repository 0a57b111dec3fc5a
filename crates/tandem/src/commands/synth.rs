//! `tandem synth`: synthesizes a text with a trained voice, as a WAV file.

use crate::commands::features::check_directory;
use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Result};
use crate::npy::npy_of;
use crate::printer::Printer;
use crate::speaking_args::{SamplingArgs, TextArgs, VoiceArgs, warn_of_substitute};
use serde::Serialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use tandem_disk::replace_file::replace_file;
use tandem_model::synthesis::text::{
    SpeakerChoice, SpeechOptions, SynthesizedSentence, SynthesizedSpeech, Synthesizer,
};
use tandem_model::trained_voice::VoiceDocument;
use tandem_model::vocoder::wav::{Written, write_wav};
use tandem_text::Language;
use tandem_units::{Samples, Seconds};

const EXAMPLES: &str = "\
Examples:
  tandem synth --checkpoint run --text \"Good morning.\" -o hello.wav
  tandem synth --checkpoint run --text \"سلام دنیا\" --reference me.wav -o salaam.wav
  tandem synth --checkpoint run --text-file book.txt --speed 1.1 --mel book.npy -o book.wav
  tandem synth --checkpoint run --text \"Hi\" --vocoder griffin-lim -o hi.wav
  echo \"Hi\" | tandem synth --checkpoint run --text-file - --json -o hi.wav

The text may be Markdown, as chat programs write it; `--plain` reads every sign as it is. Signs that the voice does not \
know are left out, with a note.

Synthesized spectra move less than recorded ones. Half of what is missing is added: all of it gave more word errors with \
the demo voice. Other corpora were not measured.

Long texts are split into sentences. The same text, seed and checkpoint give the same file.

`--reference` copies a voice only as well as the training corpus allows. A voice that was trained on few speakers answers \
with a mix of those it knows: for a voice of the corpus `demo` (six speakers) the result is hardly closer to the recording than to another \
one (similarity +0.08 at most), and the pitch can be wrong. A tiny voice of 78 synthetic speakers gained 0.11 for 13 that it \
never heard, 0.31 would be a perfect copy; voices made from people among them gained 0.04. With fewer than 20 training \
speakers there is a warning. To have one certain voice, fine-tune on recordings of it: `tandem train --from`. Copy the voices \
of people only with their consent.";

/// With fewer training speakers than this, a reference recording is hardly copied.
const FEW_SPEAKERS: usize = 20;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    voice: VoiceArgs,
    #[command(flatten)]
    words: Words,
    /// Output WAV file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Reference recording for voice cloning, at least a second of clear speech
    #[arg(long, value_name = "FILE", conflicts_with = "speaker")]
    reference: Option<PathBuf>,
    /// Speaker of the training corpus [default: the first of the text's language]
    #[arg(long, value_name = "NAME")]
    speaker: Option<String>,
    /// Language of the text [default: detected for each sentence]
    #[arg(long, value_name = "TAG")]
    language: Option<Language>,
    /// Silence between two sentences, in seconds
    #[arg(long, value_name = "S", default_value_t = SpeechOptions::default().pause.0)]
    pause: f64,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Also write the mel frames as a NumPy file: float32, [frames, bands]
    #[arg(long, value_name = "FILE")]
    mel: Option<PathBuf>,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Words {
    /// Text to synthesize
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// UTF-8 file with the text; - for standard input
    #[arg(long, value_name = "FILE")]
    text_file: Option<PathBuf>,
}

#[derive(Serialize)]
struct Summary {
    output: PathBuf,
    mel: Option<PathBuf>,
    checkpoint: PathBuf,
    step: u64,
    /// Length of the audio.
    seconds: Seconds,
    sentences: Vec<Sentence>,
    /// Parts of the text without speech.
    unsaid: Vec<String>,
    /// Signs that the voice does not know, and code blocks.
    left_out: Vec<String>,
    /// Computing time per second of audio.
    real_time_factor: f64,
    reading: Seconds,
    voice: Seconds,
    vocoder: Seconds,
    vocoder_name: &'static str,
    /// Peak level before the gain, and the gain.
    peak: f32,
    gain: f32,
    /// Speakers of the training corpus with a reference segment.
    training_speakers: usize,
}

#[derive(Serialize)]
struct Sentence {
    text: String,
    language: Language,
    symbols: usize,
    start: Seconds,
    seconds: Seconds,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    check_output(&args)?;
    let text = args.words.read()?;
    let options = SpeechOptions {
        sampling: args.sampling.sampling(),
        language: args.language,
        pause: pause(args.pause)?,
        text: args.text.treatment(),
    };
    let mut synthesizer = args.voice.open(&args.sampling)?;
    warn_of_substitute(synthesizer.trained(), out);
    let speaker = match (&args.reference, &args.speaker) {
        (Some(recording), _) => SpeakerChoice::Reference(synthesizer.read_reference(recording)?),
        (None, Some(name)) => SpeakerChoice::Known(name.clone()),
        (None, None) => SpeakerChoice::AnyKnown,
    };
    let few = few_speakers(&synthesizer.trained().document, &speaker);
    few.iter().for_each(|text| out.note(&format!("warning: {text}")));
    let mut progress = None;
    let told = synthesizer.synthesize(&text, &speaker, &options, &mut |done, all| {
        let shown = progress.get_or_insert_with(|| out.progress("synthesizing", all as u64));
        shown.at(done as u64);
    });
    if let Some(shown) = progress {
        shown.done();
    }
    let told = told.context("cannot synthesize the text")?;
    let written = write(&args, &synthesizer, &told)?;
    let summary = Summary::of(&args, &synthesizer, &told, written);
    if args.json {
        out.json(&summary)?;
    } else {
        print(&summary, out)?;
    }
    Ok(ExitStatus::Done)
}

impl Words {
    fn read(&self) -> Result<String> {
        let Some(path) = &self.text_file else {
            return Ok(self.text.clone().unwrap_or_default());
        };
        let bytes = if path == Path::new("-") {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            std::fs::read(path)
        };
        let bytes = bytes
            .map_err(|error| Advised::new(error.to_string(), "check the path for typing errors"))
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        let text = String::from_utf8(bytes).map_err(|_| {
            let fact = format!("`{}` is not UTF-8 text", path.display());
            Advised::new(fact, "save it as UTF-8, for example with iconv")
        })?;
        Ok(text.trim_start_matches('\u{feff}').to_owned())
    }
}

/// What to expect of a reference recording for a voice of few speakers.
fn few_speakers(voice: &VoiceDocument, speaker: &SpeakerChoice) -> Option<String> {
    let known = voice.speakers.len();
    let is_few = matches!(speaker, SpeakerChoice::Reference(_)) && known < FEW_SPEAKERS;
    let speakers = if known == 1 { "1 speaker".into() } else { format!("{known} speakers") };
    is_few.then(|| {
        format!(
            "this voice was trained on {speakers}; below {FEW_SPEAKERS} it hardly copies the voice of a reference \
             recording (`tandem train --from` fine-tunes it on recordings of one speaker)"
        )
    })
}

/// Checked before any work.
fn check_output(args: &Args) -> Result<(), Advised> {
    let ending = |path: &Path| path.extension().map(|ending| ending.to_ascii_lowercase());
    if ending(&args.output).is_none_or(|ending| ending != "wav") {
        let fact = format!("the output `{}` is not a .wav file", args.output.display());
        return Err(Advised::new(fact, "use the extension .wav"));
    }
    check_directory(&args.output)?;
    let Some(mel) = &args.mel else { return Ok(()) };
    if ending(mel).is_none_or(|ending| ending != "npy") {
        let fact = format!("the mel output `{}` is not a .npy file", mel.display());
        return Err(Advised::new(fact, "use the extension .npy"));
    }
    check_directory(mel)
}

fn pause(seconds: f64) -> Result<Seconds, Advised> {
    match seconds {
        seconds if (0.0..=60.0).contains(&seconds) => Ok(Seconds(seconds)),
        other => Err(Advised::new(format!("`--pause` is {other} s"), "give seconds from 0 to 60")),
    }
}

fn write(args: &Args, synthesizer: &Synthesizer, told: &SynthesizedSpeech) -> Result<Written> {
    let settings = &synthesizer.trained().document.mel;
    if let Some(path) = &args.mel {
        let contents = npy_of(&told.mel, settings.bands)?;
        replace_file(path, &contents)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(write_wav(&args.output, &told.samples, settings.rate)?)
}

impl Summary {
    fn of(
        args: &Args,
        synthesizer: &Synthesizer,
        told: &SynthesizedSpeech,
        written: Written,
    ) -> Summary {
        let trained = synthesizer.trained();
        let settings = &trained.document.mel;
        let of_frames = |frames: usize| settings.rate.seconds(Samples(frames * settings.hop.0));
        let sentence = |told: &SynthesizedSentence| Sentence {
            text: told.text.clone(),
            language: told.language,
            symbols: told.symbols,
            start: of_frames(told.start),
            seconds: of_frames(told.durations.iter().map(|&frames| frames as usize).sum()),
        };
        let seconds = settings.rate.seconds(Samples(told.samples.len()));
        let spent = |part: std::time::Duration| Seconds(part.as_secs_f64());
        Summary {
            output: args.output.clone(),
            mel: args.mel.clone(),
            checkpoint: trained.path.clone(),
            step: trained.step,
            seconds,
            sentences: told.sentences.iter().map(sentence).collect(),
            unsaid: told.skipped.clone(),
            left_out: told.left_out.clone(),
            real_time_factor: told.time.total().as_secs_f64() / seconds.0.max(1e-9),
            reading: spent(told.time.text),
            voice: spent(told.time.voice),
            vocoder: spent(told.time.vocoder),
            vocoder_name: synthesizer.vocoder_name(),
            peak: written.peak,
            gain: written.gain,
            training_speakers: trained.document.speakers.len(),
        }
    }
}

fn print(summary: &Summary, out: &mut Printer) -> Result<()> {
    let Summary { output, seconds, sentences, real_time_factor, .. } = summary;
    out.line(&format!(
        "{}: {seconds} of speech, {} {}, real-time factor {real_time_factor:.3}",
        output.display(),
        sentences.len(),
        if sentences.len() == 1 { "sentence" } else { "sentences" },
    ))?;
    out.note(&format!(
        "text {}, model {}, {} {}; step {} of `{}`",
        summary.reading,
        summary.voice,
        summary.vocoder_name,
        summary.vocoder,
        summary.step,
        summary.checkpoint.display()
    ));
    for part in &summary.unsaid {
        out.note(&format!("no speech in `{}`", part.escape_debug()));
    }
    if !summary.left_out.is_empty() {
        out.note(&format!(
            "left out: {} (`--strict` refuses such a text)",
            summary.left_out.join(", ")
        ));
    }
    if summary.gain < 1.0 {
        out.note(&format!("volume reduced to {:.0} % to avoid clipping", 100.0 * summary.gain));
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
        let all = ["synth", "--checkpoint", "run", "-o", "a.wav"].iter().chain(flags);
        Typed::try_parse_from(all).map(|typed| typed.args)
    }

    #[test]
    fn there_is_one_text_and_one_voice() {
        assert!(typed(&["--text", "Hi"]).is_ok());
        assert!(typed(&["--text-file", "a.txt"]).is_ok());
        assert!(typed(&[]).is_err());
        assert!(typed(&["--text", "Hi", "--text-file", "a.txt"]).is_err());
        assert!(typed(&["--text", "Hi", "--speaker", "a", "--reference", "b.wav"]).is_err());
        assert!(typed(&["--text", "Hi", "--language", "klingon"]).is_err());
    }

    #[test]
    fn the_defaults_are_those_of_the_model() {
        let args = typed(&["--text", "Hi"]).unwrap();
        assert_eq!(
            args.sampling.sampling(),
            tandem_model::synthesis::mel::SamplingOptions::default()
        );
        assert_eq!(
            args.sampling.vocoder().unwrap(),
            tandem_model::vocoder::VocoderChoice::default()
        );
        assert_eq!(pause(args.pause).unwrap(), SpeechOptions::default().pause);
    }

    #[test]
    fn extensions_and_directories_are_checked_before_the_work() {
        let args = |flags: &[&str]| typed(&[&["--text", "Hi"], flags].concat()).unwrap();
        assert!(check_output(&args(&["--mel", "a.npy"])).is_ok());
        assert!(check_output(&args(&["--mel", "a.png"])).is_err());
        assert!(check_output(&args(&["--mel", "no-such-directory/a.npy"])).is_err());
        let mut mp3 = args(&[]);
        mp3.output = "a.mp3".into();
        assert!(check_output(&mp3).is_err());
        assert!(pause(-1.0).is_err() && pause(f64::NAN).is_err());
    }

    #[test]
    fn a_text_file_may_start_with_a_byte_order_mark_and_must_be_utf8() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("a.txt");
        let words = Words { text: None, text_file: Some(path.clone()) };
        std::fs::write(&path, "\u{feff}سلام").unwrap();
        assert_eq!(words.read().unwrap(), "سلام");
        std::fs::write(&path, [0xff, 0xfe, 0x41]).unwrap();
        assert!(words.read().unwrap_err().facts()[0].contains("not UTF-8"));
        std::fs::remove_file(&path).unwrap();
        assert!(words.read().unwrap_err().facts()[0].contains("a.txt"));
    }
}
