//! The subcommands, one file each. A file reads: args, settings, run.

// In the order a newcomer meets them.
pub mod demo;
pub mod prepare;
pub mod analyze;
pub mod batches;
pub mod text;
pub mod features;
pub mod validate;
pub mod train;
pub mod watch;
pub mod synth;
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

use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::printer::Printer;

/// Declares a clap variant and a branch of `run` for each command. Modules are declared outside: rustfmt does not see
/// those inside a macro.
macro_rules! commands {
    ($($(#[$about:meta])* $name:ident: $variant:ident,)*) => {
        /// What the user asked for.
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

commands! {
    /// Run the whole path on the built-in corpus
    demo: Demo,
    /// Read, check and cache a corpus
    prepare: Prepare,
    /// Measure what loading a corpus costs, and say what to change
    analyze: Analyze,
    /// Show which utterances share a batch, in order
    batches: Batches,
    /// Show what the model reads of a text: language, spoken words, symbols
    text: Text,
    /// Show what the model will see of a recording, as numbers or a picture
    features: Features,
    /// Check a configuration before a run, also one of MyXTTS, and say what to change
    validate: Validate,
    /// Train a voice
    train: Train,
    /// Watch a run, finished or going on: a live page, or the terminal
    watch: Watch,
    /// Have a trained voice say a text, as a WAV file
    synth: Synth,
    /// Measure how far a trained voice is from recordings
    evaluate: Evaluate,
    /// Say what a run did, what held it back and how it is graded
    report: Report,
    /// Train a few steps in several ways, and say what holds a run back
    profile: Profile,
    /// Predict which mode, workers, depth and batch to use, from a profile
    plan: Plan,
    /// Put two runs side by side and say whether they differ by more than noise
    compare: Compare,
    /// Show how throughput and memory grow with the batch size, and where it stops paying
    scaling: Scaling,
    /// Show every device, how GPUs are linked, and which ones a run would use
    devices: Devices,
    /// Gather what a bug report needs into one text or zip, without secrets
    doctor: Doctor,
    /// Measure what the parts of the program can do on this machine
    bench: Bench,
    /// List every key of the configuration file: default, flag, variable, meaning
    reference: Reference,
    /// Write a completion script for your shell
    completions: Completions,
    /// Write manual pages for `man`
    man: Man,
}
