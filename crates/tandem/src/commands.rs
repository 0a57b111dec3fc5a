//! The subcommands, one file each. A file reads: args, settings, run.

// In the order in which a new user needs them.
pub mod demo;
pub mod import;
pub mod prepare;
pub mod analyze;
pub mod batches;
pub mod text;
pub mod features;
pub mod validate;
pub mod train;
pub mod train_vocoder;
pub mod attach_vocoder;
pub mod watch;
pub mod synth;
pub mod serve;
pub mod vocode;
pub mod export;
pub mod evaluate;
pub mod report;
pub mod profile;
pub mod plan;
pub mod compare;
pub mod scaling;
pub mod devices;
pub mod doctor;
pub mod bench;
pub mod reference;
pub mod completions;
pub mod man;
pub mod licenses;

use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::printer::Printer;

/// Declares a clap variant and a branch of `run` for each command. Modules are declared outside: rustfmt does not see
/// those inside a macro.
macro_rules! commands {
    ($($(#[$about:meta])* $name:ident: $variant:ident,)*) => {
        #[derive(clap::Subcommand)]
        #[allow(clippy::large_enum_variant, reason = "there is one of them in a process")]
        pub enum Command {
            $($(#[$about])* $variant($name::Args),)*
        }

        impl Command {
            pub fn run(self, out: &mut Printer) -> Result<ExitStatus> {
                match self {
                    $(Command::$variant(args) => $name::run(args, out),)*
                }
            }
        }
    };
}

impl Command {
    /// Whether several ranks (`mpirun`) can run this command together.
    pub fn knows_ranks(&self) -> bool {
        match self {
            Command::Prepare(_) | Command::Train(_) => true,
            Command::Bench(args) => args.knows_ranks(),
            _ => false,
        }
    }
}

commands! {
    /// Prepare, train and synthesize with the built-in corpus
    demo: Demo,
    /// Make a clean corpus of another one: FLAC at one rate, LJSpeech layout
    import: Import,
    /// Read, check and cache a corpus
    prepare: Prepare,
    /// Measure data loading, and recommend settings
    analyze: Analyze,
    /// Show the batches of an epoch in training order
    batches: Batches,
    /// Show how a text is processed: language, normalized text, symbols
    text: Text,
    /// Compute the mel spectrogram of a recording, as a NumPy file or an image
    features: Features,
    /// Check a configuration before a run; converts configurations of MyXTTS
    validate: Validate,
    /// Train a voice
    train: Train,
    /// Train a neural vocoder: mel frames to samples
    train_vocoder: TrainVocoder,
    /// Give a voice the neural vocoder of a `train-vocoder` run
    attach_vocoder: AttachVocoder,
    /// Follow a running or finished run in a browser or the terminal
    watch: Watch,
    /// Synthesize a text with a trained voice, as a WAV file
    synth: Synth,
    /// Serve a trained voice: OpenAI's speech API, and a page to listen in
    serve: Serve,
    /// Turn mel frames in a NumPy file into a WAV file
    vocode: Vocode,
    /// Export a trained voice as an ONNX graph or a Piper voice
    export: Export,
    /// Evaluate a trained voice against recordings
    evaluate: Evaluate,
    /// Report on a run: throughput, bottleneck, grade
    report: Report,
    /// Profile a few training steps, and name the bottleneck
    profile: Profile,
    /// Predict the best mode, workers, depth and batch size from a profile
    plan: Plan,
    /// Compare two runs, with significance tests
    compare: Compare,
    /// Show how throughput and memory scale with the batch size
    scaling: Scaling,
    /// List devices and links between GPUs, and show which ones a run would use
    devices: Devices,
    /// Collect the data for a bug report, without secrets
    doctor: Doctor,
    /// Benchmark parts of the program on this machine
    bench: Bench,
    /// List every key of the configuration file: type, default, flag, variable
    reference: Reference,
    /// Write a completion script for your shell
    completions: Completions,
    /// Write manual pages for `man`
    man: Man,
    /// Print licences and notices of the program and of everything in it
    licenses: Licenses,
}
