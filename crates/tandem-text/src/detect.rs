//! Detects the language of a text without a language tag.
//!
//! In: raw text and the configured languages. Out: one of those languages, and how it was
//! determined. The script decides if it can, which is cheap. Statistics are used only if several
//! configured languages share a script. Never returns a language that is not configured.

use super::language::{Language, Script};
use super::{Detection, TextError};
use std::ops::RangeInclusive;

/// The configured languages, by the script they are written in.
#[derive(Debug)]
pub struct Detector {
    languages: Vec<Language>,
    /// One entry per script that several configured languages share.
    shared: Vec<(Script, whatlang::Detector)>,
}

impl Detector {
    /// A detector for `languages`. The list must not be empty.
    pub fn new(languages: &[Language]) -> Result<Self, TextError> {
        if languages.is_empty() {
            return Err(TextError::NoLanguages);
        }
        let mut shared = Vec::new();
        for script in Script::ALL {
            let here: Vec<_> = of_script(languages, script).map(Language::detector).collect();
            if here.len() > 1 {
                shared.push((script, whatlang::Detector::with_allowlist(here)));
            }
        }
        Ok(Self { languages: languages.to_vec(), shared })
    }

    /// The configured languages, in the user's order.
    pub fn languages(&self) -> &[Language] {
        &self.languages
    }

    /// The language of most letters of `text`.
    pub fn detect(&self, text: &str) -> Result<(Language, Detection), TextError> {
        let letters = Letters::count(text);
        let Some(script) = letters.majority(self.languages[0].script()) else {
            return Ok(self.by_digits(text));
        };
        let mut candidates = of_script(&self.languages, script);
        let Some(first) = candidates.next() else {
            return Err(TextError::ScriptNotConfigured {
                script,
                configured: self.languages.clone(),
            });
        };
        if candidates.next().is_none() {
            return Ok((first, Detection::Script));
        }
        if letters.persian && self.languages.contains(&Language::Persian) {
            return Ok((Language::Persian, Detection::Script));
        }
        Ok(self.guess(text, script, first))
    }

    /// The language of a text without letters: Persian and Arabic have digits of their own.
    fn by_digits(&self, text: &str) -> (Language, Detection) {
        let has = |digits: RangeInclusive<char>| text.contains(|c| digits.contains(&c));
        let candidates: &[Language] = match () {
            () if has('۰'..='۹') => &[Language::Persian],
            () if has('٠'..='٩') => &[Language::Arabic, Language::Persian],
            () => &[],
        };
        match candidates.iter().find(|language| self.languages.contains(language)) {
            Some(language) => (*language, Detection::Script),
            None => (self.languages[0], Detection::Default),
        }
    }

    fn guess(&self, text: &str, script: Script, first: Language) -> (Language, Detection) {
        let guess = self
            .shared
            .iter()
            .find(|(of, _)| *of == script)
            .and_then(|(_, detector)| detector.detect_lang(text))
            .and_then(|lang| self.languages.iter().find(|known| known.detector() == lang));
        match guess {
            Some(language) => (*language, Detection::Statistics),
            None => (first, Detection::Default),
        }
    }
}

fn of_script(languages: &[Language], script: Script) -> impl Iterator<Item = Language> {
    languages.iter().copied().filter(move |language| language.script() == script)
}

/// How many letters of each script a text has.
struct Letters {
    count: [u32; Script::COUNT],
    /// A letter that Persian has and Arabic does not.
    persian: bool,
}

impl Letters {
    fn count(text: &str) -> Self {
        let mut letters = Self { count: [0; Script::COUNT], persian: false };
        for c in text.chars() {
            if c.is_ascii() {
                letters.count[Script::Latin as usize] += u32::from(c.is_ascii_alphabetic());
            } else if let Some(script) = Script::of(c) {
                letters.count[script as usize] += 1;
                letters.persian |= matches!(c, 'پ' | 'چ' | 'ژ' | 'گ' | 'ک' | 'ی');
            }
        }
        letters
    }

    /// The script with most letters; `preferred` wins a tie.
    fn majority(&self, preferred: Script) -> Option<Script> {
        let most = *self.count.iter().max()?;
        if most == 0 {
            return None;
        }
        if self.count[preferred as usize] == most {
            return Some(preferred);
        }
        Script::ALL.into_iter().find(|script| self.count[*script as usize] == most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Language::{Arabic, English, German, Persian, Russian};

    #[track_caller]
    fn check(configured: &[Language], text: &str, language: Language, how: Detection) {
        let detector = Detector::new(configured).unwrap();
        assert_eq!(detector.detect(text).unwrap(), (language, how), "{text}");
    }

    #[test]
    fn the_script_decides_if_one_language_uses_it() {
        check(&[English, Persian], "Hello there", English, Detection::Script);
        check(&[English, Persian], "سلام دنیا", Persian, Detection::Script);
        check(&[English, Persian], "سلام", Persian, Detection::Script);
        check(&[English, Russian], "Привет", Russian, Detection::Script);
    }

    #[test]
    fn digits_decide_a_text_without_letters() {
        check(&[English, Persian], "۱۴۰۲/۰۵/۰۱", Persian, Detection::Script);
        check(&[English, Arabic, Persian], "٢٥", Arabic, Detection::Script);
        check(&[English, Persian], "٢٥", Persian, Detection::Script);
        check(&[English, Persian], "1402/05/01", English, Detection::Default);
        check(&[English, German], "۱۲", English, Detection::Default);
    }

    #[test]
    fn most_letters_decide_a_mixed_text() {
        check(&[English, Persian], "این کتاب درباره‌ی Python است", Persian, Detection::Script);
        check(&[English, Persian], "He said سلام to everyone", English, Detection::Script);
        check(&[Persian, English], "ab سل", Persian, Detection::Script);
    }

    #[test]
    fn persian_letters_distinguish_persian_from_arabic() {
        check(&[Arabic, Persian], "چای گرم", Persian, Detection::Script);
        check(&[Persian, Arabic], "ذهب الولد إلى المدرسة في الصباح", Arabic, Detection::Statistics);
    }

    #[test]
    fn statistics_decide_between_languages_of_one_script() {
        let both = [English, German];
        let german = "Der schnelle Fuchs springt über den faulen Hund und läuft dann weg";
        check(&both, german, German, Detection::Statistics);
        let english = "The quick fox jumps over the lazy dog and then it runs away";
        check(&both, english, English, Detection::Statistics);
    }

    #[test]
    fn a_text_without_letters_gets_the_first_language() {
        check(&[Persian, English], "1984", Persian, Detection::Default);
    }

    #[test]
    fn a_script_without_a_configured_language_is_an_error() {
        let detector = Detector::new(&[English, Persian]).unwrap();
        let error = detector.detect("Привет, как дела").unwrap_err();
        assert!(error.to_string().contains("Cyrillic"), "{error}");
    }

    #[test]
    fn no_language_at_all_is_an_error() {
        assert!(matches!(Detector::new(&[]), Err(TextError::NoLanguages)));
    }
}
