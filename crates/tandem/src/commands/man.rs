//! `tandem man`: manual pages, generated from the same definitions as `--help`.

use crate::Cli;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::printer::Printer;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io;
use std::path::PathBuf;
use tandem_disk::replace_file::replace_file;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Output directory for tandem.1, tandem-train.1 and so on; without it, tandem.1 goes to stdout
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tandem man ~/.local/share/man/man1      then: man tandem-train
  tandem man | man -l -                   show the first page";

/// Writes the pages.
pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let pages = pages(Cli::command())?;
    let Some(directory) = args.directory else {
        // The page of the program is the first.
        if let Some(first) = pages.first() {
            out.line(first.text.trim_end())?;
        }
        return Ok(ExitStatus::Done);
    };
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create the directory `{}`", directory.display()))?;
    for page in &pages {
        let path = directory.join(&page.file);
        replace_file(&path, page.text.as_bytes())
            .with_context(|| format!("cannot write the page `{}`", path.display()))?;
    }
    out.note(&format!("{} manual pages in {}", pages.len(), directory.display()));
    Ok(ExitStatus::Done)
}

/// A manual page.
struct Page {
    file: String,
    text: String,
}

/// The page of the program, then those of its commands and subcommands.
fn pages(program: Command) -> io::Result<Vec<Page>> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut found = Vec::new();
    let mut waiting = vec![program];
    while let Some(command) = waiting.pop() {
        let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
        waiting.extend(inner.cloned().collect::<Vec<_>>().into_iter().rev());
        found.push(page(command)?);
    }
    Ok(found)
}

fn page(command: Command) -> io::Result<Page> {
    let examples = command.get_after_help().map(ToString::to_string);
    let has_commands = command.has_subcommands();
    let man = Man::new(command).source(concat!("tandem ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(examples) = examples {
        // Written here line by line: the writer's own section would join the lines.
        let mut roff = Roff::new();
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in
            examples.trim_start_matches("Examples:\n").trim_start_matches("Example:\n").lines()
        {
            roff.text([roman(line)]);
        }
        roff.control("fi", []).to_writer(&mut text)?;
    }
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    Ok(Page { file: man.get_filename(), text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(name: &str) -> String {
        name.replace('-', "\\-")
    }

    fn check(command: &Command, file: &str, pages: &[Page]) {
        let page = pages.iter().find(|page| page.file == format!("{file}.1"));
        let page = page.unwrap_or_else(|| panic!("no page {file}.1"));
        for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
            let Some(long) = flag.get_long() else { continue };
            assert!(page.text.contains(&escaped(&format!("--{long}"))), "{file}: --{long}");
            let variable = flag.get_env().map(|name| name.to_string_lossy().into_owned());
            assert!(page.text.contains(&variable.unwrap_or_default()), "{file}: --{long}");
        }
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in examples.lines().filter(|line| line.starts_with("  tandem ")) {
            let first = line.split_whitespace().nth(1).unwrap_or_default();
            assert!(page.text.contains(&escaped(first)), "{file}: {line}");
        }
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            check(inner, &format!("{file}-{}", inner.get_name()), pages);
        }
    }

    #[test]
    fn every_command_has_a_page_with_every_flag_variable_and_example() {
        let pages = pages(Cli::command()).expect("pages");
        check(&Cli::command(), "tandem", &pages);
        assert!(pages.len() >= 23, "only {} pages", pages.len());
        assert_eq!(pages[0].file, "tandem.1");
        let hidden = pages.iter().find(|page| page.text.contains("lose\\-device"));
        assert!(hidden.is_none(), "a hidden flag is shown");
    }
}
