//! `cargo xtask claims`: whether this build keeps what the documents claim.
//!
//! In: `docs/claims.toml`, one entry for each claim: its command, data, figure, interval, and the build it was measured with.
//! Out: stated against measured, and exit code 1 where a figure is outside of its interval or older than the code that it
//! is about. The tables of README.md and README.fa.md are written from the same file (`--write`); a test compares them.

use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

pub const ABOUT: &str =
    "Runs the commands of the claims in docs/claims.toml and compares their figures.";

const HELP: &str = "\
Usage: cargo xtask claims [--stale | --write | --all] [ID...]
  without arguments   runs every claim but the long ones
  ID...               runs these
  --all               also the long ones: an hour on a quiet machine
  --stale             runs nothing: lists figures that are older than the code they are about
  --write             runs nothing: writes the tables of README.md and README.fa.md
The program is $TANDEM, or `tandem` in the release directory of cargo.";

/// Where the tables are, between two marks of the page.
const PAGES: [(&str, Words); 2] = [("README.md", Words::English), ("README.fa.md", Words::Persian)];
const BEGIN: &str =
    "<!-- claims: written by `cargo xtask claims --write` from docs/claims.toml -->\n";
const END: &str = "<!-- end of claims -->\n";

#[derive(Clone, Copy)]
enum Words {
    English,
    Persian,
}

#[derive(Deserialize)]
struct File {
    claim: Vec<Claim>,
}

/// One claim of the documents.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    id: String,
    /// The sentence; `{}` is the figure.
    says: String,
    says_fa: String,
    /// What shows it, as a reader types it.
    command: String,
    /// On what it was measured.
    data: String,
    /// Code that the figure is about: the figure is stale once these change.
    code: Vec<String>,
    figure: Option<Figure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    stated: f64,
    /// The lowest and the highest value that still keep the claim.
    interval: [f64; 2],
    /// Digits after the point.
    #[serde(default)]
    digits: usize,
    /// Which `name` in the list that the command prints with `--json`, or a JSON pointer to a number.
    find: String,
    /// The commit of the build and the day of the measurement.
    build: String,
    date: String,
    machine: String,
    #[serde(default)]
    long: bool,
}

/// Whether every claim that was asked for is kept.
pub fn run(root: &Path, words: &[String], out: &mut impl Write) -> io::Result<bool> {
    let claims = read(root)?;
    let has = |flag: &str| words.iter().any(|word| word == flag);
    if has("--help") || has("-h") {
        writeln!(out, "{HELP}")?;
        return Ok(true);
    }
    if let Some(unknown) = words.iter().find(|word| {
        !["--stale", "--write", "--all"].contains(&word.as_str())
            && !claims.iter().any(|claim| claim.id == **word)
    }) {
        let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
        let known = ids.join(", ");
        return Err(io::Error::other(format!("`{unknown}` is no claim; they are: {known}")));
    }
    if has("--write") {
        return write_tables(root, &claims).map(|()| true);
    }
    if has("--stale") {
        return stale(root, &claims, out);
    }
    let named = |claim: &Claim| words.contains(&claim.id);
    let any_named = claims.iter().any(named);
    let mut kept = true;
    for claim in &claims {
        let Some(figure) = &claim.figure else { continue };
        if if any_named { named(claim) } else { has("--all") || !figure.long } {
            kept &= check(claim, figure, out)?;
        }
    }
    Ok(kept)
}

fn read(root: &Path) -> io::Result<Vec<Claim>> {
    let text = fs::read_to_string(root.join("docs/claims.toml"))?;
    let file: File = toml::from_str(&text).map_err(io::Error::other)?;
    Ok(file.claim)
}

/// Runs the command of a claim, and compares.
fn check(claim: &Claim, figure: &Figure, out: &mut impl Write) -> io::Result<bool> {
    let [low, high] = figure.interval;
    write!(out, "{:<12} stated {}", claim.id, shown(figure))?;
    out.flush()?;
    let measured = measure(claim, figure)?;
    let kept = (low..=high).contains(&measured);
    let verdict = if kept { "kept" } else { "NOT KEPT" };
    writeln!(out, ", measured {measured:.3}, interval {low} to {high}: {verdict}; {}", claim.data)?;
    Ok(kept)
}

fn measure(claim: &Claim, figure: &Figure) -> io::Result<f64> {
    let mut words = claim.command.split_whitespace();
    let program = match words.next() {
        Some("tandem") => std::env::var("TANDEM").unwrap_or_else(|_| built_program()),
        Some(other) => other.to_string(),
        None => return Err(io::Error::other(format!("claim `{}` has no command", claim.id))),
    };
    let mut command = Command::new(&program);
    command.args(words);
    if claim.command.starts_with("tandem ") {
        command.arg("--json");
    }
    let failed = |why: String| io::Error::other(format!("`{}`: {why}", claim.command));
    let output = command.output().map_err(|error| failed(format!("{program}: {error}")))?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| failed(format!("{error}; {}", String::from_utf8_lossy(&output.stderr))))?;
    find(&answer, &figure.find).ok_or_else(|| failed(format!("it prints no `{}`", figure.find)))
}

fn built_program() -> String {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| {
        let home = std::env::var("HOME").unwrap_or_default();
        format!("{home}/.cache/tandem/target")
    });
    format!("{target}/release/tandem")
}

/// A number by its JSON pointer, or the measured value of the entry with this name.
fn find(answer: &Value, wanted: &str) -> Option<f64> {
    if wanted.starts_with('/') {
        return answer.pointer(wanted)?.as_f64();
    }
    let rows = answer.as_array().or_else(|| answer["targets"].as_array())?;
    rows.iter().find(|row| row["name"] == wanted)?["measured"].as_f64()
}

/// Lists the figures that are older than the code they are about.
fn stale(root: &Path, claims: &[Claim], out: &mut impl Write) -> io::Result<bool> {
    let mut fresh = true;
    for claim in claims {
        let Some(figure) = &claim.figure else { continue };
        let since = format!("{}..HEAD", figure.build);
        let mut log = Command::new("git");
        log.args(["log", "--oneline", &since, "--"]).args(&claim.code).current_dir(root);
        let log = log.output()?;
        if !log.status.success() {
            let why = String::from_utf8_lossy(&log.stderr).trim().to_string();
            return Err(io::Error::other(format!("claim `{}`: {why}", claim.id)));
        }
        let later = String::from_utf8_lossy(&log.stdout).lines().count();
        if later > 0 {
            fresh = false;
            writeln!(
                out,
                "{:<12} of {} ({}, {}): {later} later changes of {}",
                claim.id,
                figure.date,
                figure.build,
                figure.machine,
                claim.code.join(", ")
            )?;
        }
    }
    if fresh {
        writeln!(out, "every figure is as new as the code it is about")?;
    }
    Ok(fresh)
}

fn write_tables(root: &Path, claims: &[Claim]) -> io::Result<()> {
    for (page, words) in PAGES {
        let path = root.join(page);
        let text = fs::read_to_string(&path)?;
        let (before, after) = around(&text)
            .ok_or_else(|| io::Error::other(format!("{page} has no marks for the claims")))?;
        fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table(claims, words)))?;
    }
    Ok(())
}

/// What stands before and after the table of a page.
fn around(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.split_once(BEGIN)?;
    Some((before, rest.split_once(END)?.1))
}

fn table(claims: &[Claim], words: Words) -> String {
    let mut table = match words {
        Words::English => "| claim | command |\n|---|---|\n",
        Words::Persian => "| ادعا | فرمان |\n|---|---|\n",
    }
    .to_string();
    for claim in claims {
        let figure = claim.figure.as_ref().map(shown).unwrap_or_default();
        let says = match words {
            Words::English => claim.says.replace("{}", &figure),
            Words::Persian => claim.says_fa.replace("{}", &persian_digits(&figure)),
        };
        table.push_str(&format!("| {says} | `{}` |\n", claim.command));
    }
    table
}

fn shown(figure: &Figure) -> String {
    format!("{:.*}", figure.digits, figure.stated)
}

fn persian_digits(number: &str) -> String {
    let digit = |sign: char| match sign {
        '0'..='9' => char::from_u32('۰' as u32 + (sign as u32 - '0' as u32)).unwrap_or(sign),
        '.' => '٫',
        other => other,
    };
    number.chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn the_tables_of_both_pages_are_those_of_the_file() {
        let claims = read(root()).unwrap();
        for (page, words) in PAGES {
            let text = fs::read_to_string(root().join(page)).unwrap();
            let expected = format!("{BEGIN}{}{END}", table(&claims, words));
            assert!(text.contains(&expected), "run `cargo xtask claims --write`: {page} differs");
        }
    }

    #[test]
    fn every_claim_can_fail_and_its_code_exists() {
        for claim in read(root()).unwrap() {
            for path in &claim.code {
                assert!(root().join(path).exists(), "{}: {path}", claim.id);
            }
            assert_eq!(claim.says.contains("{}"), claim.figure.is_some(), "{}", claim.id);
            assert_eq!(claim.says_fa.contains("{}"), claim.figure.is_some(), "{}", claim.id);
            if let Some(figure) = claim.figure {
                let [low, high] = figure.interval;
                assert!(low <= figure.stated && figure.stated <= high, "{}", claim.id);
                assert!(low.is_finite() && high.is_finite(), "{}", claim.id);
            }
        }
    }

    #[test]
    fn figures_are_found_by_name_or_pointer() {
        let list = json!([{"name": "a", "measured": 1.5}, {"name": "b", "measured": 2.0}]);
        assert_eq!(find(&list, "b"), Some(2.0));
        assert_eq!(find(&json!({ "targets": list }), "a"), Some(1.5));
        assert_eq!(find(&json!({"audio": {"speed": 7.0}}), "/audio/speed"), Some(7.0));
        assert_eq!(find(&json!([]), "a"), None);
        assert_eq!(find(&json!({"audio": "fast"}), "/audio"), None);
    }

    #[test]
    fn persian_figures_have_persian_digits() {
        assert_eq!(persian_digits("1.30"), "۱٫۳۰");
    }
}
