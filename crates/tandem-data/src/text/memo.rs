//! Readings that were made before, for texts that come again.
//!
//! Owned by one worker, so nobody waits for it; bounded, so it never grows with the corpus.

use super::language::Language;
use super::{FrontEnd, Reading, TextError};
use std::collections::HashMap;

/// The last readings of one worker.
#[derive(Debug)]
pub struct Memo {
    /// By the language that was given, then by raw text.
    readings: HashMap<Option<Language>, HashMap<Box<str>, Reading>>,
    held: usize,
    capacity: usize,
}

impl Memo {
    /// Holds up to `capacity` readings.
    pub fn new(capacity: usize) -> Self {
        Self { readings: HashMap::new(), held: 0, capacity }
    }

    /// As [`FrontEnd::read`], but only once per text. Use one memo with one front end. A text
    /// that cannot be read is not held: its row is dropped and does not come again.
    pub fn read(
        &mut self,
        front_end: &FrontEnd,
        raw: &str,
        language: Option<Language>,
    ) -> Result<Reading, TextError> {
        let known = self.readings.get(&language).and_then(|texts| texts.get(raw));
        if let Some(reading) = known {
            return Ok(reading.clone());
        }
        let reading = front_end.read(raw, language)?;
        if self.held >= self.capacity {
            self.readings.clear();
            self.held = 0;
        }
        if self.capacity > 0 {
            self.readings.entry(language).or_default().insert(raw.into(), reading.clone());
            self.held += 1;
        }
        Ok(reading)
    }

    /// How many readings it holds.
    pub fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::super::TextConfig;
    use super::*;

    #[test]
    fn a_memo_reads_as_the_front_end_does_and_stays_small() {
        let front_end = FrontEnd::new(&TextConfig::default()).unwrap();
        let mut memo = Memo::new(2);
        for text in ["Dr. Smith", "سلام", "Dr. Smith", "one", "two", "one"] {
            let read = memo.read(&front_end, text, None).unwrap();
            assert_eq!(read, front_end.read(text, None).unwrap());
            assert!(memo.held() <= 2);
        }
    }

    #[test]
    fn the_same_text_in_two_languages_is_read_twice() {
        let front_end = FrontEnd::new(&TextConfig::default()).unwrap();
        let mut memo = Memo::new(8);
        let english = memo.read(&front_end, "12", Some(Language::English)).unwrap();
        let persian = memo.read(&front_end, "12", Some(Language::Persian)).unwrap();
        assert_eq!(
            (english.normalized.as_str(), persian.normalized.as_str()),
            ("twelve", "دوازده")
        );
    }
}
