//! What a corpus has, as lines of text.

use crate::failure::Result;
use crate::printer::Printer;
use owo_colors::OwoColorize;
use std::collections::BTreeMap;
use tandem_eval::statistics::{CorpusStatistics, Part};

/// Speakers that are named.
const NAMED: usize = 8;

pub fn print(found: &CorpusStatistics, out: &mut Printer) -> Result<()> {
    let [short, median, long, longest] = found.lengths;
    let mut lines = vec![
        ("corpus", format!("{}: {}", of(&found.all), found.enough)),
        (
            "lengths",
            format!("{short} to {long} (90 % of the rows), median {median}, longest {longest}"),
        ),
    ];
    if found.languages.len() > 1 {
        lines.push(("language", parts(&found.languages)));
    }
    if !found.speakers.is_empty() {
        lines.push(("speakers", parts(&found.speakers)));
    }
    for (language, missing) in &found.missing {
        let said = match missing.is_empty() {
            true => format!("{language}: every one of its phonemes occurs"),
            false => format!("{language}: {missing} do not occur, so the voice cannot learn them"),
        };
        lines.push(("phonemes", said));
    }
    let [range, lowest] = found.range;
    lines.push((
        "sound",
        format!(
            "speech is {range:.0} dB above the noise (at least {lowest:.0}), loudness within {:.0} dB; \
             {} recordings",
            found.loudness_spread, found.heard
        ),
    ));
    for (name, value) in lines {
        out.line(&format!("{:<8} {value}", name.bold()))?;
    }
    out.line("")
}

fn of(part: &Part) -> String {
    format!("{} rows, {}", part.rows, part.length)
}

/// The longest first.
fn parts(parts: &BTreeMap<String, Part>) -> String {
    let mut parts: Vec<(&String, &Part)> = parts.iter().collect();
    parts.sort_by(|a, b| b.1.length.0.total_cmp(&a.1.length.0));
    let named = parts.iter().take(NAMED).map(|(name, part)| format!("{name} {}", part.length));
    let named: Vec<String> = named.collect();
    let more = parts.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &more
}
