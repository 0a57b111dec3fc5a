//! Reads Persian texts with given tables; used by the scripts that train and measure them.
//!
//! In: one text per line on standard input. Out: one line of JSON for each. `parts` shows what the models see;
//! `read [FILE]` shows the reading, with the tables of FILE in place of the built-in ones.

use serde_json::json;
use std::io::{BufRead, Write};
use tandem_text::{
    DiacriticsPolicy, FrontEnd, Language, TextConfig, normalize, persian_parts, persian_tags,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let parts = match arguments[..] {
        ["parts"] => true,
        ["read"] => false,
        ["read", file] => {
            let file = std::fs::read(file)?.leak();
            if !tandem_text::replace_persian_model(file) {
                return Err("the file has no tables of Persian reading".into());
            }
            false
        }
        _ => return Err("usage: persian_reading parts | read [FILE]".into()),
    };
    let languages = vec![Language::Persian];
    let front_end =
        FrontEnd::new(&TextConfig { languages, max_symbols: 5000, ..TextConfig::default() })?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let normalized = normalize(&line, Language::Persian, DiacriticsPolicy::Strip);
        let answer = if parts {
            json!(persian_parts(&normalized))
        } else {
            let read = front_end.read(&line, Some(Language::Persian))?;
            json!({ "phonemes": read.phonemes, "words": read.uncertain.words, "guessed": read.uncertain.guessed,
                "as_characters": read.uncertain.as_characters, "ezafe": read.uncertain.ezafe,
                "tags": persian_tags(&normalized) })
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
