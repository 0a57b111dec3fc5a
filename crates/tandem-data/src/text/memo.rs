//! Readings that were made before, for texts that come again.
//!
//! Owned by one worker, so nobody waits for it; bounded, so it never grows with the corpus.

use super::language::Language;
use super::{FrontEnd, ProcessedText, TextError};
use std::collections::HashMap;

/// The last readings of one worker.
#[derive(Debug)]
pub struct Memo {
    /// By the language that was given, then by raw text.
    readings: HashMap<Option<Language>, HashMap<Box<str>, ProcessedText>>,
    held: usize,
    capacity: usize,
}

impl Memo {
    /// Holds up to `capacity` readings.
    pub fn new(capacity: usize) -> Self {
        Self { readings: HashMap::new(), held: 0, capacity }
    }

    /// As [`FrontEnd::read_many`], but only once per text. Use one memo with one front end. A text
    /// that cannot be read is not held: its row is dropped and does not come again.
    pub fn read_many(
        &mut self,
        front_end: &FrontEnd,
        texts: &[(&str, Option<Language>)],
    ) -> Result<Vec<Result<ProcessedText, TextError>>, TextError> {
        let mut readings: Vec<_> =
            texts.iter().map(|(raw, language)| self.known(raw, *language).map(Ok)).collect();
        let new: Vec<_> = (0..texts.len()).filter(|&place| readings[place].is_none()).collect();
        let asked: Vec<_> = new.iter().map(|&place| texts[place]).collect();
        for (place, read) in new.into_iter().zip(front_end.read_many(&asked)?) {
            if let Ok(reading) = &read {
                self.hold(texts[place], reading);
            }
            readings[place] = Some(read);
        }
        Ok(readings.into_iter().flatten().collect())
    }

    fn known(&self, raw: &str, language: Option<Language>) -> Option<ProcessedText> {
        self.readings.get(&language)?.get(raw).cloned()
    }

    fn hold(&mut self, (raw, language): (&str, Option<Language>), reading: &ProcessedText) {
        if self.held >= self.capacity {
            self.readings.clear();
            self.held = 0;
        }
        let texts = self.readings.entry(language).or_default();
        if self.capacity > 0 && texts.insert(raw.into(), reading.clone()).is_none() {
            self.held += 1;
        }
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

    fn read(memo: &mut Memo, texts: &[(&str, Option<Language>)]) -> Vec<String> {
        let front_end = FrontEnd::new(&TextConfig::default()).unwrap();
        let readings = memo.read_many(&front_end, texts).unwrap();
        readings.into_iter().map(|reading| reading.unwrap().normalized).collect()
    }

    #[test]
    fn a_memo_reads_as_the_front_end_does_and_stays_small() {
        let front_end = FrontEnd::new(&TextConfig::default()).unwrap();
        let mut memo = Memo::new(2);
        for texts in [["Dr. Smith", "سلام"], ["Dr. Smith", "one"], ["two", "one"]] {
            let texts = texts.map(|text| (text, None));
            let read = memo.read_many(&front_end, &texts).unwrap();
            for ((text, _), reading) in texts.iter().zip(read) {
                assert_eq!(reading.unwrap(), front_end.read(text, None).unwrap());
            }
            assert!(memo.held() <= 2);
        }
    }

    #[test]
    fn a_text_that_comes_again_is_not_read_again() {
        let mut memo = Memo::new(8);
        read(&mut memo, &[("one", None)]);
        // Only a memo that answers by itself can give back what was put there.
        memo.readings.get_mut(&None).unwrap().get_mut("one").unwrap().normalized = "held".into();
        assert_eq!(read(&mut memo, &[("two", None), ("one", None)]), ["two", "held"]);
    }

    #[test]
    fn a_text_that_cannot_be_read_keeps_its_place() {
        let front_end = FrontEnd::new(&TextConfig::default()).unwrap();
        let mut memo = Memo::new(8);
        let texts = [("one", None), (" ", None), ("two", None)];
        let read = memo.read_many(&front_end, &texts).unwrap();
        assert!(matches!(read[1], Err(TextError::Empty)));
        assert!(read[0].is_ok() && read[2].is_ok());
        assert_eq!(memo.held(), 2);
    }

    #[test]
    fn the_same_text_in_two_languages_is_read_twice() {
        let mut memo = Memo::new(8);
        let languages = [Language::English, Language::Persian];
        let read = read(&mut memo, &languages.map(|language| ("12", Some(language))));
        assert_eq!(read, ["twelve", "دوازده"]);
    }
}
