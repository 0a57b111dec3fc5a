//! `tandem text`: shows how a text is processed, step by step.
//!
//! For users who prepare a corpus or add a language. Reads no corpus.

use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::printer::Printer;
use crate::setting_flags::words;
use clap::ValueEnum;
use serde::Serialize;
use std::io::BufRead;
use std::path::PathBuf;
use tandem_text::{
    Detection, DiacriticsPolicy, FrontEnd, Language, Level, ProcessedText, Pronunciation, SymbolId,
    SymbolSource, SymbolTable, TextConfig, TextError, Uncertain,
};
use tandem_units::Hint;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Texts; `-` reads one per line from standard input
    #[arg(required_unless_present = "list", value_name = "TEXT")]
    texts: Vec<String>,

    /// Language of the texts [default: detected] [en, fa, de, ...]
    #[arg(long, value_name = "LANG", value_parser = language)]
    lang: Option<Language>,

    /// Languages of the voice, among which the language is detected
    #[arg(long, value_delimiter = ',', value_name = "LANG,...", default_value = "en,fa", value_parser = language)]
    languages: Vec<Language>,

    /// Symbols: `auto` (built-in phonemes where a language has them, else characters),
    /// `characters`, `built-in`, `built-in-english` (English only, else characters), or `espeak`
    /// (phonemes of the program espeak-ng)
    #[arg(
        long,
        value_name = "SOURCE",
        default_value = "auto",
        value_parser = words::<Pronunciation>(),
        hide_possible_values = true
    )]
    pronunciation: Pronunciation,

    /// Pronunciation lexicon (format: docs/languages.md)
    #[arg(long, value_name = "FILE")]
    lexicon: Option<PathBuf>,

    /// Whether vowel signs in Arabic script are kept or removed
    #[arg(long, value_enum, default_value = "strip")]
    diacritics: Diacritics,

    /// Most symbols of a text; longer texts are rejected
    #[arg(long, value_name = "SYMBOLS", default_value_t = TextConfig::default().max_symbols)]
    max_text_length: usize,

    /// Print as JSON
    #[arg(long)]
    json: bool,

    /// List the supported languages
    #[arg(long, conflicts_with_all = ["texts", "lang", "pronunciation", "lexicon"])]
    list: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem text 'Dr. Smith paid $3.50 in 1984'
  tandem text \"۲۵٪ كتاب ها\" --lang fa
  tandem text \"I read it yesterday\" --pronunciation characters
  tandem text \"Hello, world\" --pronunciation espeak
  tandem text \"Guten Tag\" --languages en,de
  cut -d'|' -f2 metadata.csv | tandem text - --json
  tandem text -- \"-5 °C\"
  tandem text --list

Exit codes: 0 all texts can be used, 1 some cannot, 2 could not be done.";

#[derive(Clone, Copy, ValueEnum)]
enum Diacritics {
    Strip,
    Keep,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    if args.list {
        return list(&args, out);
    }
    let front_end = FrontEnd::new(&settings(&args))?;
    let texts = texts(&args.texts)?;
    let asked: Vec<_> = texts.iter().map(|text| (text.as_str(), args.lang)).collect();
    let readings = front_end.read_many(&asked)?;
    let usable = readings.iter().all(Result::is_ok);
    let answers: Vec<_> = texts
        .iter()
        .zip(&readings)
        .map(|(text, read)| Answer::new(text, read, &front_end))
        .collect();
    if args.json {
        out.json(&answers)?;
    } else {
        for (place, answer) in answers.iter().enumerate() {
            if place > 0 {
                out.line("")?;
            }
            out.line(&answer.to_string())?;
        }
    }
    Ok(if usable { ExitStatus::Done } else { ExitStatus::Negative })
}

/// A language by tag, code or name; the error lists the known ones.
fn language(given: &str) -> Result<Language, String> {
    given.parse().map_err(|error: TextError| match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    })
}

fn settings(args: &Args) -> TextConfig {
    let mut languages = args.languages.clone();
    // `--lang de` adds the language to `--languages`.
    languages.extend(args.lang.filter(|lang| !languages.contains(lang)));
    TextConfig {
        languages,
        pronunciation: args.pronunciation,
        diacritics: match args.diacritics {
            Diacritics::Strip => DiacriticsPolicy::Strip,
            Diacritics::Keep => DiacriticsPolicy::Keep,
        },
        lexicon: args.lexicon.clone(),
        max_symbols: args.max_text_length,
    }
}

fn texts(typed: &[String]) -> Result<Vec<String>> {
    if typed != ["-"] {
        return Ok(typed.to_vec());
    }
    let lines: Result<Vec<_>, _> = std::io::stdin().lock().lines().collect();
    lines.context("cannot read texts from standard input")
}

/// One text and the result.
#[derive(Serialize)]
struct Answer<'a> {
    text: &'a str,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome {
    Read {
        language: Language,
        detected: Detection,
        normalized: String,
        phonemes: Option<String>,
        #[serde(flatten)]
        uncertain: Uncertain,
        symbols: Vec<Symbol>,
    },
    Refused {
        error: String,
        hint: Option<String>,
    },
}

#[derive(Serialize)]
struct Symbol {
    symbol: String,
    id: SymbolId,
}

impl<'a> Answer<'a> {
    fn new(text: &'a str, read: &Result<ProcessedText, TextError>, front_end: &FrontEnd) -> Self {
        let outcome = match read {
            Ok(reading) => Outcome::Read {
                language: reading.language,
                detected: reading.detected,
                normalized: reading.normalized.clone(),
                phonemes: reading.phonemes.clone(),
                uncertain: reading.uncertain.clone(),
                symbols: symbols(reading, front_end.table()),
            },
            Err(error) => Outcome::Refused { error: error.to_string(), hint: error.hint() },
        };
        Self { text, outcome }
    }
}

fn symbols(reading: &ProcessedText, table: &SymbolTable) -> Vec<Symbol> {
    let ids = reading.transcript.ids().iter();
    ids.map(|id| Symbol { symbol: table.name(*id), id: *id }).collect()
}

impl std::fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "text        {}", self.text)?;
        match &self.outcome {
            Outcome::Read { language, detected, normalized, phonemes, uncertain, symbols } => {
                writeln!(f, "language    {language} ({}, {})", language.name(), how(*detected))?;
                writeln!(f, "normalised  {normalized}")?;
                if let Some(phonemes) = phonemes {
                    writeln!(f, "phonemes    {phonemes}")?;
                }
                let rows = [
                    ("guessed     ", &uncertain.guessed),
                    ("characters  ", &uncertain.as_characters),
                    ("ezafe       ", &uncertain.ezafe),
                ];
                for (name, words) in rows.into_iter().filter(|(_, words)| !words.is_empty()) {
                    writeln!(f, "{name}{}", words.join(", "))?;
                }
                let pairs: Vec<_> =
                    symbols.iter().map(|s| format!("{}={}", s.symbol, s.id.0)).collect();
                write!(f, "symbols     {}: {}", symbols.len(), pairs.join(" "))
            }
            Outcome::Refused { error, hint } => {
                write!(f, "refused     {error}")?;
                hint.iter().try_for_each(|hint| write!(f, "\nhint        {hint}"))
            }
        }
    }
}

fn how(detected: Detection) -> &'static str {
    match detected {
        Detection::Given => "as given",
        Detection::Script => "detected by script",
        Detection::Statistics => "most probable language of this script",
        Detection::Default => "not detectable: the first of the list",
    }
}

fn list(args: &Args, out: &mut Printer) -> Result<ExitStatus> {
    if args.json {
        let rows: Vec<_> = Language::ALL.into_iter().map(Row::of).collect();
        out.json(&rows)?;
        return Ok(ExitStatus::Done);
    }
    let mut table =
        Printer::table(&["tag", "language", "script", "symbols", "level", "what is read"]);
    for language in Language::ALL {
        let row = Row::of(language);
        let (symbols, level) = (row.symbols.to_string(), row.level.to_string());
        table.add_row([row.tag, row.name, &row.script, &symbols, &level, row.read]);
    }
    out.line(&table.trim_fmt())?;
    Ok(ExitStatus::Done)
}

#[derive(Serialize)]
struct Row {
    tag: &'static str,
    name: &'static str,
    script: String,
    /// With `--pronunciation auto`.
    symbols: SymbolSource,
    level: Level,
    read: &'static str,
}

impl Row {
    fn of(language: Language) -> Self {
        Self {
            tag: language.tag(),
            name: language.name(),
            script: language.script().to_string(),
            symbols: Pronunciation::of_auto(language),
            level: language.level(),
            read: match language.level() {
                Level::Full => "words, numbers, times, money, units, abbreviations",
                Level::Numbers => "words, numbers, percentages, dates, times, money",
            },
        }
    }
}
