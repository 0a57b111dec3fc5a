//! `tandem serve`: a trained voice behind OpenAI's speech API, with a page to listen in.

use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::page_args::LangArg;
use crate::printer::Printer;
use crate::speaking_args::{SamplingArgs, TextArgs, VoiceArgs, warn_of_substitute};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use tandem_http::{Hosts, Limits, Listening, Stopped};
use tandem_model::synthesis::text::{SpeechOptions, Synthesizer};
use tandem_serve::request::Offer;
use tandem_serve::speech::ReportingSpeech;
use tandem_serve::workers::Speech;
use tandem_serve::{ServeOptions, SpeechServer, Token, Voices};
use tandem_units::Bytes;

const EXAMPLES: &str = "\
Examples:
  tandem serve --checkpoint run                      then open http://127.0.0.1:7880/
  tandem serve --checkpoint run --voice me=me.wav --model-name tts-1 --port 0
  tandem serve --checkpoint run --host 0.0.0.0 --token-file token --allow-host voice.example

  curl http://127.0.0.1:7880/v1/audio/speech -H 'Content-Type: application/json' \\
    -d '{\"model\":\"run\",\"voice\":\"default\",\"input\":\"Good morning.\"}' -o hello.wav

Clients of OpenAI's API work with base_url http://127.0.0.1:7880/v1. Sentences are sent as they are ready. \
Ctrl-C completes running requests and exits with 0; with 3 if some did not finish within `--grace`.";

/// Reports about texts that may wait for their line in the log.
const REPORTS: usize = 64;
/// The port where none is named.
const PORT: u16 = 7880;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    voice: VoiceArgs,
    /// Address to listen at; other machines reach any address except loopback, so it needs --token-file
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Port; 0: any free port
    #[arg(long, value_name = "N", default_value_t = PORT)]
    port: u16,
    /// File with a token of 16 or more characters; requests must carry it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Host name by which clients call this server; repeatable. IP addresses need no entry
    #[arg(long, value_name = "NAME", requires = "token_file")]
    allow_host: Vec<String>,
    /// Further voice from a recording; repeatable
    #[arg(long = "voice", value_name = "NAME=FILE")]
    recordings: Vec<NamedRecording>,
    /// Model name of the API [default: the name of the run directory]
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// Requests synthesized at the same time [default: half of the cores, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Option<u16>,
    /// Requests that wait; further ones are refused with status 429
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    queue: u16,
    /// Memory in MB of all answers that their clients have not taken yet, 64 of them for one client; further requests are
    /// refused with status 429
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    answer_memory: u32,
    /// Longest text of a request, in characters
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    max_text: u32,
    /// Seconds that running requests get after Ctrl-C
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u16).range(0..=3600))]
    grace: u16,
    #[command(flatten)]
    language: LangArg,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
}

/// `--voice NAME=FILE`.
#[derive(Clone, Debug)]
struct NamedRecording {
    name: String,
    file: PathBuf,
}

impl FromStr for NamedRecording {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<NamedRecording, &'static str> {
        match text.split_once('=') {
            Some((name, file)) if !name.is_empty() && !file.is_empty() => {
                Ok(NamedRecording { name: name.into(), file: file.into() })
            }
            _ => Err("expected NAME=FILE, such as me=me.wav"),
        }
    }
}

/// Serves until Ctrl-C.
pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let fact = || format!("cannot serve `{}`", args.voice.checkpoint.display());
    let token = args.token().with_context(fact)?;
    if let Some(file) = args.token_file.as_ref().filter(|file| others_can_read(file)) {
        out.note(&format!(
            "other users of this machine can read `{0}`: chmod 600 {0}",
            file.display()
        ));
    }
    let cancel = cancel_on_signals()?;
    // A port in use is an error before the voice is loaded.
    let listening = Listening::bind(SocketAddr::new(args.host, args.port)).with_context(fact)?;
    let mut speech = Vec::new();
    for _ in 0..args.workers() {
        speech.push(args.voice.open(&args.sampling)?);
    }
    warn_of_substitute(speech[0].trained(), out);
    let offer = args.offer(&speech[0]).with_context(fact)?;
    let voices = format!("model {}, voices {}", offer.model, offer.voices.names());
    let options = ServeOptions {
        offer,
        queue: args.queue.into(),
        answer_memory: Bytes::mib(args.answer_memory.into()),
        hosts: match args.token_file {
            Some(_) => Hosts::open_to(&args.allow_host),
            None => Hosts::loopback(),
        },
        token,
        limits: args.limits(),
        lang: args.language.lang,
    };
    let (left_out, reports) = sync_channel(REPORTS);
    let reporting = |synthesizer| {
        let left_out = left_out.clone();
        Box::new(ReportingSpeech { synthesizer, left_out }) as Box<dyn Speech>
    };
    let speech = speech.into_iter().map(reporting).collect();
    let server = SpeechServer::start(listening, speech, options).with_context(fact)?;
    out.line(&server.url())?;
    out.note(&voices);
    out.note("open this address in a browser, or use it as the base of OpenAI's API with `/v1`; Ctrl-C stops");
    let report = |out: &mut Printer| {
        reports.try_iter().for_each(|signs| out.note(&format!("left out of a text: {signs}")));
    };
    while !cancel.is_cancelled() {
        report(out);
        std::thread::sleep(Duration::from_millis(50));
    }
    out.note("completing running requests");
    let stopped = server.stop(Duration::from_secs(args.grace.into()));
    report(out);
    match stopped {
        // Ctrl-C is the normal end of this command.
        Stopped::Finished => Ok(ExitStatus::Done),
        Stopped::Abandoned(count) => {
            out.note(&format!("{count} connections were closed before their answer was complete"));
            Ok(ExitStatus::Interrupted)
        }
    }
}

impl Args {
    /// The token; an address that other machines reach needs one.
    fn token(&self) -> Result<Option<Token>> {
        match &self.token_file {
            Some(file) => Ok(Some(Token::read(file)?)),
            None if self.host.is_loopback() => Ok(None),
            None => Err(Advised::new(
                format!("other machines reach {}, and there is no token", self.host),
                "give a token with `--token-file`, or listen at 127.0.0.1",
            )
            .into()),
        }
    }

    fn workers(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.map_or((cores / 2).clamp(1, 4), usize::from)
    }

    /// A character of JSON has up to twelve bytes: two escapes.
    fn limits(&self) -> Limits {
        Limits { body: 4096 + 12 * self.max_text as usize, ..Limits::API }
    }

    fn offer(&self, synthesizer: &Synthesizer) -> Result<Offer> {
        let trained = synthesizer.trained();
        let mut voices = Voices::of(&trained.document);
        for NamedRecording { name, file } in &self.recordings {
            voices.add(name, synthesizer.read_reference(file)?)?;
        }
        let sampling = self.sampling.sampling();
        let model = self.model_name.clone().unwrap_or_else(|| run_name(&trained.path));
        let text = self.text.treatment();
        let defaults = SpeechOptions { sampling, text, ..SpeechOptions::default() };
        Ok(Offer { model, voices, defaults, max_text: self.max_text as usize })
    }
}

fn others_can_read(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

/// The name of the run directory that a checkpoint is in.
fn run_name(checkpoint: &Path) -> String {
    let path = checkpoint.canonicalize().unwrap_or_else(|_| checkpoint.into());
    let run = path.parent().and_then(Path::file_name);
    run.map_or("tandem".into(), |name| name.to_string_lossy().into_owned())
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
        let all = ["serve", "--checkpoint", "run"].iter().chain(flags);
        Typed::try_parse_from(all).map(|typed| typed.args)
    }

    #[test]
    fn other_machines_need_a_token() {
        assert!(typed(&[]).unwrap().token().unwrap().is_none());
        assert!(typed(&["--host", "::1"]).unwrap().token().is_ok());
        for host in ["0.0.0.0", "::", "192.168.1.5"] {
            let error = typed(&["--host", host]).unwrap().token().unwrap_err();
            assert!(error.hint().unwrap().contains("--token-file"), "{host}");
        }
        assert!(typed(&["--allow-host", "voice.example"]).is_err());
    }

    #[test]
    fn wrong_values_are_refused() {
        assert!(typed(&["--voice", "me=me.wav", "--voice", "you=you.wav"]).is_ok());
        for flags in [
            ["--voice", "me"],
            ["--voice", "=a.wav"],
            ["--workers", "0"],
            ["--queue", "0"],
            ["--max-text", "0"],
            ["--host", "localhost"],
        ] {
            assert!(typed(&flags).is_err(), "{flags:?}");
        }
    }

    #[test]
    fn a_model_is_named_after_its_run() {
        let room = tempfile::tempdir().unwrap();
        let step = room.path().join("my-run/step-00000040");
        std::fs::create_dir_all(&step).unwrap();
        assert_eq!(run_name(&step), "my-run");
    }
}
