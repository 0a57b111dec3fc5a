//! Known start times of words, and the errors of an alignment against them.
//!
//! In: `words.tsv` in the corpus directory (`id`, `start_s`, `end_s`, `word`), an alignment. Out:
//! errors in frames. An utterance with another number of words than the file is left out.

use super::EvaluateError;
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use tandem_text::{SymbolId, SymbolTable, ZWNJ};

/// The file, in the corpus directory.
const FILE: &str = "words.tsv";

/// Start times of words, in seconds, by utterance.
#[derive(Debug, Default)]
pub struct WordTimings {
    starts: HashMap<String, Vec<f64>>,
}

/// Errors of word start times, over all utterances with timings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimingError {
    /// Number of compared words.
    pub words: usize,
    pub median_frames: f64,
    /// The 90th percentile.
    pub p90_frames: f64,
}

impl WordTimings {
    /// Reads the timings of a corpus; empty where it has no such file.
    pub fn read(corpus: &Path) -> Result<WordTimings, EvaluateError> {
        let path = corpus.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(WordTimings::default());
            }
            Err(source) => return Err(EvaluateError::Timings { path, source }),
        };
        let mut starts: HashMap<String, Vec<f64>> = HashMap::new();
        for line in text.lines().skip(1) {
            let mut columns = line.split('\t');
            let (id, start) = (columns.next(), columns.next());
            let start = start.and_then(|start| start.parse().ok());
            let (Some(id), Some(start)) = (id, start) else { continue };
            starts.entry(id.to_owned()).or_default().push(start);
        }
        Ok(WordTimings { starts })
    }

    /// The error of each word of an utterance, in frames; empty where the number of words differs.
    pub fn errors(
        &self,
        id: &str,
        symbols: &[i32],
        durations: &[u32],
        table: &SymbolTable,
        frames_per_second: f64,
    ) -> Vec<f64> {
        let found = word_starts(symbols, durations, table);
        match self.starts.get(id) {
            Some(known) if known.len() == found.len() => {
                let pairs = found.iter().zip(known);
                pairs
                    .map(|(at, known)| (f64::from(*at) - known * frames_per_second).abs())
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

impl TimingError {
    /// None where there are no errors.
    pub fn of(mut errors: Vec<f64>) -> Option<TimingError> {
        errors.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| errors.get(((errors.len() - 1) as f64 * share).round() as usize);
        if errors.is_empty() {
            return None;
        }
        Some(TimingError { words: errors.len(), median_frames: *at(0.5)?, p90_frames: *at(0.9)? })
    }
}

/// The frame at which each word begins.
fn word_starts(symbols: &[i32], durations: &[u32], table: &SymbolTable) -> Vec<u32> {
    let (mut starts, mut at, mut in_word) = (Vec::new(), 0, false);
    for (symbol, frames) in symbols.iter().zip(durations) {
        let symbol = u16::try_from(*symbol).ok().and_then(|id| table.symbol(SymbolId(id)));
        let of_word =
            symbol.is_some_and(|c| c.is_alphabetic() || matches!(c, '\'' | 'ˈ' | 'ˌ' | 'ː' | ZWNJ));
        if of_word && !in_word {
            starts.push(at);
        }
        (in_word, at) = (of_word, at + frames);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_text::Transcript;

    fn ids(text: &str, table: &SymbolTable) -> Vec<i32> {
        let transcript = Transcript::parse(text, table).unwrap();
        transcript.ids().iter().map(|id| i32::from(id.0)).collect()
    }

    #[test]
    fn a_word_starts_at_the_first_letter_after_another_symbol() {
        let table = SymbolTable::standard();
        let symbols = ids("it's so, می‌روم.", &table);
        let durations = vec![2; symbols.len()];
        assert_eq!(word_starts(&symbols, &durations, &table), [2, 12, 20]);
    }

    #[test]
    fn errors_are_in_frames_and_need_the_same_number_of_words() {
        let table = SymbolTable::standard();
        let symbols = ids("a b", &table);
        let folder = tempfile::tempdir().unwrap();
        let text = "id\tstart_s\tend_s\tword\nx\t0.3\t1.0\ta\nx\t1.0\t2.0\tb\ny\t0.0\t1.0\ta\n";
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let timings = WordTimings::read(folder.path()).unwrap();
        let durations = [4, 5, 1, 3, 2];
        let off = timings.errors("x", &symbols, &durations, &table, 10.0);
        assert_eq!(off, [1.0, 0.0]);
        assert!(timings.errors("y", &symbols, &durations, &table, 10.0).is_empty());
        assert!(timings.errors("z", &symbols, &durations, &table, 10.0).is_empty());
    }

    #[test]
    fn a_corpus_without_timings_gives_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(WordTimings::read(folder.path()).unwrap().starts.is_empty());
        assert_eq!(TimingError::of(Vec::new()), None);
        let found = TimingError::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((found.words, found.median_frames, found.p90_frames), (3, 2.0, 3.0));
    }
}
