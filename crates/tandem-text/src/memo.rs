//! A cache of processed texts, for texts that occur repeatedly.
//!
//! In: texts. Out: [`ProcessedText`], computed once per text. Owned by one worker, so it needs no lock;
//! bounded, so it does not grow with the corpus.

use super::language::Language;
use super::{FrontEnd, ProcessedText, TextError};
use std::collections::HashMap;

/// The recently processed texts of one worker.
#[derive(Debug)]
pub struct Memo {
    /// By given language, then by raw text.
    texts: HashMap<Option<Language>, HashMap<Box<str>, ProcessedText>>,
    count: usize,
    capacity: usize,
}

impl Memo {
    /// A cache for up to `capacity` texts.
    pub fn new(capacity: usize) -> Self {
        Self { texts: HashMap::new(), count: 0, capacity }
    }

    /// Like [`FrontEnd::read_many`], but each text is processed once. Use one cache with one front end.
    /// A text with an error is not cached: its row is rejected.
    pub fn read_many(
        &mut self,
        front_end: &FrontEnd,
        texts: &[(&str, Option<Language>)],
    ) -> Result<Vec<Result<ProcessedText, TextError>>, TextError> {
        let mut results: Vec<_> =
            texts.iter().map(|(raw, language)| self.known(raw, *language).map(Ok)).collect();
        let new: Vec<_> = (0..texts.len()).filter(|&index| results[index].is_none()).collect();
        let missing: Vec<_> = new.iter().map(|&index| texts[index]).collect();
        for (index, read) in new.into_iter().zip(front_end.read_many(&missing)?) {
            if let Ok(processed) = &read {
                self.store(texts[index], processed);
            }
            results[index] = Some(read);
        }
        Ok(results.into_iter().flatten().collect())
    }

    fn known(&self, raw: &str, language: Option<Language>) -> Option<ProcessedText> {
        self.texts.get(&language)?.get(raw).cloned()
    }

    fn store(&mut self, (raw, language): (&str, Option<Language>), processed: &ProcessedText) {
        if self.count >= self.capacity {
            self.texts.clear();
            self.count = 0;
        }
        let texts = self.texts.entry(language).or_default();
        if self.capacity > 0 && texts.insert(raw.into(), processed.clone()).is_none() {
            self.count += 1;
        }
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
    fn a_memo_returns_the_results_of_the_front_end_and_stays_small() {
        let front_end = FrontEnd::new(&TextConfig::default()).unwrap();
        let mut memo = Memo::new(2);
        for texts in [["Dr. Smith", "سلام"], ["Dr. Smith", "one"], ["two", "one"]] {
            let texts = texts.map(|text| (text, None));
            let read = memo.read_many(&front_end, &texts).unwrap();
            for ((text, _), reading) in texts.iter().zip(read) {
                assert_eq!(reading.unwrap(), front_end.read(text, None).unwrap());
            }
            assert!(memo.count <= 2);
        }
    }

    #[test]
    fn a_repeated_text_is_processed_once() {
        let mut memo = Memo::new(8);
        read(&mut memo, &[("one", None)]);
        // Only a cached result can contain the value that was stored here.
        memo.texts.get_mut(&None).unwrap().get_mut("one").unwrap().normalized = "cached".into();
        assert_eq!(read(&mut memo, &[("two", None), ("one", None)]), ["two", "cached"]);
    }

    #[test]
    fn a_text_with_an_error_keeps_its_position() {
        let front_end = FrontEnd::new(&TextConfig::default()).unwrap();
        let mut memo = Memo::new(8);
        let texts = [("one", None), (" ", None), ("two", None)];
        let read = memo.read_many(&front_end, &texts).unwrap();
        assert!(matches!(read[1], Err(TextError::Empty)));
        assert!(read[0].is_ok() && read[2].is_ok());
        assert_eq!(memo.count, 2);
    }

    #[test]
    fn the_same_text_in_two_languages_is_processed_twice() {
        let mut memo = Memo::new(8);
        let languages = [Language::English, Language::Persian];
        let read = read(&mut memo, &languages.map(|language| ("12", Some(language))));
        assert_eq!(read, ["twelve", "دوازده"]);
    }
}
