//! The subcommands, one file each. A file reads: args, settings, run.

use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Declares a module, a clap variant and a branch of `run` for each command, so that a new one
/// is one line here and one file beside.
macro_rules! commands {
    ($($(#[$about:meta])* $name:ident: $variant:ident,)*) => {
        $(mod $name;)*

        /// What the user asked for.
        #[derive(clap::Subcommand)]
        pub enum Command {
            $($(#[$about])* $variant($name::Args),)*
        }

        impl Command {
            /// Does it.
            pub fn run(self, out: &mut Printer) -> anyhow::Result<ExitStatus> {
                match self {
                    $(Command::$variant(args) => $name::run(args, out),)*
                }
            }
        }
    };
}

commands! {
    // In the order a newcomer meets them.
    /// Say what a run did, what held it back and how it is graded
    report: Report,
    /// Measure the parts of the program on this machine
    bench: Bench,
    /// Write a completion script for your shell
    completions: Completions,
}
