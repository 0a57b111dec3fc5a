//! Words to symbols, on one thread: language, normalisation, transcript.

use super::clips::sentence;
use crate::commands::bench::target::{Limit, Target, median};
use crate::failure::Result;
use std::time::Instant;
use tandem_text::{FrontEnd, Language, Pronunciation, TextConfig, TextError};

/// The number of rows of LJSpeech.
const ROWS: usize = 13_100;

/// Languages with scripts of their own, as characters and pronounced, and languages that share one.
pub fn measure(rounds: usize) -> Result<Vec<Target>> {
    let texts: Vec<String> = (0..ROWS).map(sentence).collect();
    let length = texts.iter().map(|text| text.chars().count()).sum::<usize>() / ROWS;
    let languages = vec![Language::English, Language::Persian, Language::German, Language::French];
    let by_script = TextConfig::default();
    let characters =
        TextConfig { pronunciation: Pronunciation::Characters, ..TextConfig::default() };
    let by_statistics = TextConfig { languages, ..TextConfig::default() };
    let front_ends =
        [FrontEnd::new(&characters)?, FrontEnd::new(&by_script)?, FrontEnd::new(&by_statistics)?];
    let mut took = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for (front_end, took) in front_ends.iter().zip(&mut took) {
            took.push(time(front_end, &texts)?);
        }
    }
    let [characters, pronounced, statistics] = took.map(median);
    let how = |what: &str| {
        format!("median of {rounds}, one thread, {length} characters a row, half Persian; {what}")
    };
    let by_letters = how("letters decide the language");
    let shared = how("pronounced; en, de and fr share letters");
    Ok(vec![
        Target::new(
            "text, 13,100 rows, characters",
            characters,
            "s",
            Limit::AtMost(0.1),
            by_letters.clone(),
        ),
        Target::note("text, 13,100 rows, pronounced", pronounced, "s", by_letters),
        Target::note("text, 13,100 rows, statistics", statistics, "s", shared),
    ])
}

fn time(front_end: &FrontEnd, texts: &[String]) -> Result<f64, TextError> {
    let start = Instant::now();
    for text in texts {
        std::hint::black_box(front_end.read(text, None)?);
    }
    Ok(start.elapsed().as_secs_f64())
}
