//! Reads Persian texts with given tables; used by the scripts that train and measure them.
//!
//! In: one text per line on standard input. Out: one line of JSON for each. `parts` and `homographs` show what the models
//! see; `read` shows the reading. With a FILE its tables are used in place of the built-in ones.

use serde_json::json;
use std::io::{BufRead, Write};
use tandem_text::{
    DiacriticsPolicy, FrontEnd, Language, TextConfig, normalize, persian_homographs, persian_parts,
    persian_tags,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (shown, file) = match arguments[..] {
        [shown @ ("parts" | "homographs" | "read")] => (shown, None),
        [shown @ ("parts" | "homographs" | "read"), file] => (shown, Some(file)),
        _ => return Err("usage: persian_reading parts | homographs | read [FILE]".into()),
    };
    if let Some(file) = file
        && !tandem_text::replace_persian_model(std::fs::read(file)?.leak())
    {
        return Err(format!("`{file}` has no tables of Persian reading").into());
    }
    let languages = vec![Language::Persian];
    let front_end =
        FrontEnd::new(&TextConfig { languages, max_symbols: 5000, ..TextConfig::default() })?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let normalized = normalize(&line, Language::Persian, DiacriticsPolicy::Strip);
        let answer = match shown {
            "parts" => json!(persian_parts(&normalized)),
            "homographs" => json!(persian_homographs(&normalized)),
            _ => {
                let read = front_end.read(&line, Some(Language::Persian))?;
                json!({ "normalized": read.normalized, "phonemes": read.phonemes, "words": read.uncertain.words,
                    "guessed": read.uncertain.guessed, "as_characters": read.uncertain.as_characters,
                    "ezafe": read.uncertain.ezafe, "tags": persian_tags(&normalized) })
            }
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
