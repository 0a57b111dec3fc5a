//! Words to symbols, on one thread: language, normalisation, transcript.

use super::clips::sentence;
use crate::commands::bench::target::{Limit, Target, median};
use crate::failure::Result;
use std::time::Instant;
use tandem_data::text::{FrontEnd, Language, TextConfig, TextError};

/// The number of rows of LJSpeech.
const ROWS: usize = 13_100;

/// Languages with scripts of their own, and languages that share one.
pub fn measure(rounds: usize) -> Result<Vec<Target>> {
    let texts: Vec<String> = (0..ROWS).map(sentence).collect();
    let characters = texts.iter().map(|text| text.chars().count()).sum::<usize>() / ROWS;
    let by_script = FrontEnd::new(&TextConfig::default())?;
    let languages = vec![Language::English, Language::Persian, Language::German, Language::French];
    let by_statistics = FrontEnd::new(&TextConfig { languages, ..TextConfig::default() })?;
    let (mut script, mut statistics) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        script.push(time(&by_script, &texts)?);
        statistics.push(time(&by_statistics, &texts)?);
    }
    let how = |what: &str| {
        format!(
            "median of {rounds}, one thread, {characters} characters a row, half Persian; {what}"
        )
    };
    Ok(vec![
        Target::new(
            "text, 13,100 rows",
            median(script),
            "s",
            Limit::AtMost(0.1),
            how("letters decide the language"),
        ),
        Target::note(
            "text, 13,100 rows, statistics",
            median(statistics),
            "s",
            how("en, de and fr share letters"),
        ),
    ])
}

fn time(front_end: &FrontEnd, texts: &[String]) -> Result<f64, TextError> {
    let start = Instant::now();
    for text in texts {
        std::hint::black_box(front_end.read(text, None)?);
    }
    Ok(start.elapsed().as_secs_f64())
}
