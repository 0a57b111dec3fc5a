//! What a prepared corpus has: how much, of whom, which phonemes, how clean; and which size of voice that is enough for.
//!
//! In: a prepared corpus. Out: [`CorpusStatistics`]. Counts come from the cache, levels from some recordings, spread over the
//! corpus. Reads only.

use crate::transcripts::sound::SoundFigures;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tandem_audio::{Decoder, FileReader};
use tandem_data::cache::{EntryBuffer, RowState};
use tandem_text::espeak_symbols::trained_symbols;
use tandem_text::{Language, SymbolSource};
use tandem_train::Prepared;
use tandem_units::{Samples, Seconds};

/// Recordings whose levels are measured.
const HEARD: usize = 50;
/// Speech of one speaker from which a size is worth its time. Rules of thumb: only 55 minutes with tiny and small are
/// measured (docs/training.md).
const ENOUGH: [(f64, &str); 4] = [
    (15.0 * 60.0, "tiny"),
    (45.0 * 60.0, "small"),
    (5.0 * 3600.0, "normal"),
    (20.0 * 3600.0, "big"),
];

#[derive(Clone, Debug, Default, Serialize)]
pub struct Part {
    pub rows: usize,
    pub length: Seconds,
}

/// By name.
type Parts = BTreeMap<String, Part>;

/// Of the usable rows.
#[derive(Clone, Debug, Serialize)]
pub struct CorpusStatistics {
    pub all: Part,
    /// Empty where the corpus names no speakers.
    pub speakers: Parts,
    pub languages: Parts,
    /// The shortest twentieth, the median, the longest twentieth and the longest row.
    pub lengths: [Seconds; 4],
    /// Built-in phonemes of each language that are in no row.
    pub missing: BTreeMap<String, String>,
    /// Recordings of the two levels.
    pub heard: usize,
    /// Median of how much louder speech is than noise, and the lowest, in dB.
    pub range: [f32; 2],
    /// How far the loudest and the quietest recordings are apart, in dB.
    pub loudness_spread: f32,
    pub enough: String,
}

impl CorpusStatistics {
    pub fn of(prepared: &Prepared) -> CorpusStatistics {
        let (cache, mel) = (&prepared.cache, &prepared.settings.mel);
        let meta = cache.meta();
        let mut all = Part::default();
        let (mut speakers, mut languages): (Parts, Parts) = Default::default();
        let mut seen: BTreeMap<String, BTreeSet<char>> = BTreeMap::new();
        let (mut lengths, mut usable) = (Vec::new(), Vec::new());
        let mut buffer = EntryBuffer::default();
        for number in 0..cache.len() {
            let Some(record) = cache.record(number).filter(|row| row.state() == RowState::Usable)
            else {
                continue;
            };
            let length = mel.rate.seconds(Samples(record.frames as usize * mel.hop.0));
            let name = |names: &[String], number: u16| names.get(usize::from(number)).cloned();
            let speaker = name(&meta.speakers, record.speaker).filter(|name| !name.is_empty());
            let language = name(&meta.languages, record.language).unwrap_or_default();
            all.add(length);
            if let Some(speaker) = speaker {
                speakers.entry(speaker).or_default().add(length);
            }
            if let Some(text) = cache.text(record, &mut buffer) {
                let table = prepared.front_end.table();
                let symbols =
                    text.symbols().filter_map(|id| table.symbol(tandem_text::SymbolId(id)));
                seen.entry(language.clone()).or_default().extend(symbols);
            }
            languages.entry(language).or_default().add(length);
            lengths.push(length.0);
            usable.push(number);
        }
        lengths.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * lengths.len().saturating_sub(1) as f64;
            Seconds(lengths.get(place as usize).copied().unwrap_or_default())
        };
        let built_in =
            prepared.front_end.sources().filter(|(_, source)| *source == SymbolSource::BuiltIn);
        let missing = built_in.filter_map(|(language, _)| missing_of(language, &seen)).collect();
        let most = speakers.values().map(|part| part.length.0).fold(0.0, f64::max);
        let most = if speakers.is_empty() { all.length.0 } else { most };
        let heard = heard(prepared, &usable);
        let ranges: Vec<f32> = sorted(heard.iter().map(|figures| figures.range));
        let loud = sorted(heard.iter().map(|figures| figures.noise + figures.range));
        let of = |values: &[f32], place: usize| values.get(place).copied().unwrap_or_default();
        CorpusStatistics {
            all,
            lengths: [at(0.05), at(0.5), at(0.95), at(1.0)],
            missing,
            heard: heard.len(),
            range: [of(&ranges, ranges.len() / 2), of(&ranges, 0)],
            loudness_spread: of(&loud, loud.len().saturating_sub(1)) - of(&loud, 0),
            enough: enough(most, speakers.len()),
            speakers,
            languages,
        }
    }
}

impl Part {
    fn add(&mut self, length: Seconds) {
        self.rows += 1;
        self.length = Seconds(self.length.0 + length.0);
    }
}

/// The phonemes of a language of the corpus that no row has.
fn missing_of(
    language: Language,
    seen: &BTreeMap<String, BTreeSet<char>>,
) -> Option<(String, String)> {
    let seen = seen.get(language.tag())?;
    let known = trained_symbols(language)?;
    let phonemes = known.chars().filter(|symbol| symbol.is_alphabetic());
    let missing: String = phonemes.filter(|symbol| !seen.contains(symbol)).collect();
    Some((language.tag().to_owned(), missing))
}

fn enough(longest: f64, speakers: usize) -> String {
    let length = Seconds(longest);
    let whom = if speakers > 1 { "of the speaker with most" } else { "of one speaker" };
    let sizes: Vec<&str> =
        ENOUGH.iter().filter(|(least, _)| longest >= *least).map(|(_, size)| *size).collect();
    match sizes[..] {
        [] => format!(
            "{length} {whom}: too little for a voice of its own; fine-tune one with `tandem train --from`"
        ),
        [only] => format!("{length} {whom}: enough for a {only} voice"),
        [.., smaller, larger] => {
            format!("{length} {whom}: enough for a {smaller} or {larger} voice")
        }
    }
}

fn heard(prepared: &Prepared, usable: &[usize]) -> Vec<SoundFigures> {
    let settings = &prepared.settings;
    let mut decoder = Decoder::new(settings.mel.rate, settings.audio);
    let mut file = FileReader::default();
    let count = usable.len().min(HEARD);
    let mut figures = |place: usize| {
        let row = prepared.cache.row(usable[place * usable.len() / count])?;
        let path = std::path::Path::new(row.audio);
        // A recording that cannot be read now is reported where it is used.
        let bytes = file.read(&prepared.root.join(path), decoder.config()).ok()?;
        let kind = path.extension().and_then(|kind| kind.to_str());
        let sound = decoder.decode(bytes, kind).ok()?.to_f32();
        Some(SoundFigures::of(&sound, settings.mel.rate))
    };
    (0..count).filter_map(&mut figures).collect()
}

fn sorted(values: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut values: Vec<f32> = values.collect();
    values.sort_by(f32::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_that_a_corpus_is_enough_for_follow_its_length() {
        let check = |minutes: f64, part: &str| {
            let said = enough(60.0 * minutes, 1);
            assert!(said.contains(part), "{said}");
        };
        check(5.0, "too little");
        check(20.0, "a tiny voice");
        check(55.0, "a tiny or small voice");
        check(24.0 * 60.0, "a normal or big voice");
    }
}
