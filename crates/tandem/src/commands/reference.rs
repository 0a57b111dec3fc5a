//! `tandem reference`: every key of the configuration file, generated from the code.
//!
//! `--markdown` writes docs/configuration.md; a test compares the two.

use crate::Cli;
use crate::config::nearest::nearest;
use crate::config::reference::{Entry, entries};
use crate::environment::WITHOUT_FLAG;
use crate::exit::ExitStatus;
use crate::failure::{Advised, Result};
use crate::printer::Printer;
use clap::CommandFactory;
use std::collections::BTreeMap;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only this key, or the keys of this table, such as train.optimizer
    key: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the page docs/configuration.md
    #[arg(long, conflicts_with_all = ["json", "key"])]
    markdown: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem reference                       every key, its default, flag and meaning
  tandem reference train.optimizer       those of a table
  tandem reference batch.batch_size      one, whole
  tandem reference --json                for scripts";

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let all = entries();
    if args.markdown {
        out.line(page(&all).trim_end())?;
        return Ok(ExitStatus::Done);
    }
    let found = match &args.key {
        Some(key) => under(key, all)?,
        None => all,
    };
    match (args.json, found.as_slice()) {
        (true, found) => out.json(&found)?,
        (false, [one]) => out.line(&whole(one))?,
        (false, found) => {
            let mut table = Printer::table(&["key", "default", "flag", "meaning"]);
            for entry in found {
                let flag = entry.flag.as_deref().unwrap_or("-");
                let default = entry.default.trim_matches('`');
                table.add_row([entry.key().as_str(), default, flag, &entry.help]);
            }
            out.line(&table.to_string())?;
        }
    }
    Ok(ExitStatus::Done)
}

/// The key of that name, or the keys of the table.
fn under(wanted: &str, all: Vec<Entry>) -> Result<Vec<Entry>, Advised> {
    let inside = format!("{wanted}.");
    let is_wanted = |entry: &&Entry| entry.key() == wanted || entry.key().starts_with(&inside);
    let found: Vec<Entry> = all.iter().filter(is_wanted).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let keys: Vec<String> =
        all.iter().flat_map(|e| [e.key(), e.table.clone(), e.name.clone()]).collect();
    let advice = match nearest(wanted, keys.iter().map(String::as_str).filter(|k| !k.is_empty())) {
        // A key can be found by its name without the table.
        Some(name) => match all.iter().find(|entry| entry.name == name) {
            Some(entry) => format!("did you mean `{}`?", entry.key()),
            None => format!("did you mean `{name}`?"),
        },
        None => "run `tandem reference` to list every key".into(),
    };
    Err(Advised::new(format!("there is no key or table `{wanted}`"), advice))
}

fn whole(entry: &Entry) -> String {
    let plain = |text: &str| text.replace('`', "");
    let mut text = format!("{}\n  {}\n  type      {}\n", entry.key(), entry.help, entry.kind);
    if !entry.allowed.is_empty() {
        text += &format!("  allowed   {}\n", plain(&entry.allowed));
    }
    text += &format!("  default   {}\n", plain(&entry.default));
    text += &format!("  flag      {}\n", entry.flag.as_deref().unwrap_or("none"));
    text + &format!("  variable  {}", entry.variable.as_deref().unwrap_or("none"))
}

const INTRODUCTION: &str = "\
# Configuration reference

<!-- Written by `tandem reference --markdown`; do not edit: a test compares the two. -->

Every key of the file given with `--config`, TOML or YAML. A flag overrides the environment variable, which overrides
the file, which overrides the default. An unknown key and a wrong type are errors with line and column, a value out of bounds is an
error with its key. `tandem reference train.optimizer` shows the same in the terminal; a file with comments is in
[data.md](data.md#settings).
";

fn page(all: &[Entry]) -> String {
    let mut text = INTRODUCTION.to_string();
    let mut table = None;
    for entry in all {
        if table != Some(&entry.table) {
            let heading = match entry.table.as_str() {
                "" => "Outside of tables".to_string(),
                table => format!("`[{table}]`"),
            };
            let head = "| key | type | default | allowed | flag | variable | meaning |";
            text += &format!("\n## {heading}\n\n{head}\n|---|---|---|---|---|---|---|\n");
            table = Some(&entry.table);
        }
        text += &row(entry);
    }
    text += "\n## Variables without a key\n\n| variable | flag | meaning |\n|---|---|---|\n";
    for (name, [flag, meaning]) in without_key(all) {
        text += &format!("| `{name}` | {flag} | {meaning} |\n").replace("  ", " ");
    }
    text
}

/// Variables without a key: their flag and description.
fn without_key(all: &[Entry]) -> BTreeMap<String, [String; 2]> {
    let program = Cli::command();
    let flags = program.get_subcommands().flat_map(|command| command.get_arguments());
    let read = flags.filter_map(|flag| {
        let name = flag.get_env()?.to_string_lossy().into_owned();
        let meaning = flag.get_help().map(ToString::to_string).unwrap_or_default();
        Some((name, [format!("`--{}`", flag.get_long()?), meaning]))
    });
    let has_key = |name: &String| all.iter().any(|entry| entry.variable.as_ref() == Some(name));
    let others = WITHOUT_FLAG.map(|(name, meaning)| (name.into(), [String::new(), meaning.into()]));
    let mut found = BTreeMap::new();
    for (name, words) in read.filter(|(name, _)| !has_key(name)).chain(others) {
        // Commands are listed in the order in which a new user needs them.
        found.entry(name).or_insert(words);
    }
    found
}

fn row(entry: &Entry) -> String {
    let code = |text: &Option<String>| text.as_ref().map(|text| format!("`{text}`"));
    let cells = [
        format!("`{}`", entry.name),
        entry.kind.clone(),
        entry.default.clone(),
        entry.allowed.clone(),
        code(&entry.flag).unwrap_or_default(),
        code(&entry.variable).unwrap_or_default(),
        entry.help.clone(),
    ];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | ")).replace("  ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tandem_units::Hint;

    #[test]
    fn docs_configuration_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        let there = std::fs::read_to_string(path).expect("the page");
        let way = "write it again: tandem reference --markdown > docs/configuration.md";
        assert!(there == page(&entries()), "docs/configuration.md is stale; {way}");
    }

    #[test]
    fn every_variable_is_on_the_page() {
        let page = page(&entries());
        let program = Cli::command();
        for command in program.get_subcommands() {
            for name in command.get_arguments().filter_map(|flag| flag.get_env()) {
                let name = format!("`{}`", name.to_string_lossy());
                assert!(page.contains(&name), "{name} of {}", command.get_name());
            }
        }
    }

    #[test]
    fn keys_are_found_by_table_and_name_and_misspelt_ones_are_corrected() {
        let found = |wanted: &str| under(wanted, entries());
        assert_eq!(found("train.optimizer").unwrap().len(), 9);
        assert_eq!(found("batch.batch_size").unwrap().len(), 1);
        let hint = |wanted| found(wanted).unwrap_err().hint().unwrap();
        assert_eq!(hint("batchsize"), "did you mean `batch.batch_size`?");
        assert_eq!(hint("train.optimiser"), "did you mean `train.optimizer`?");
        assert_eq!(hint("quite_something_else"), "run `tandem reference` to list every key");
    }

    #[test]
    fn one_key_is_shown_with_all_details() {
        let lr = &under("train.optimizer.lr", entries()).unwrap()[0];
        assert_eq!(
            whole(lr),
            "train.optimizer.lr\n  Peak learning rate; for size tiny 0.002; with --from 0.0003\n  type      number\n  \
             allowed   above 0\n  default   0.001\n  flag      --lr\n  variable  TANDEM_LR"
        );
    }
}
