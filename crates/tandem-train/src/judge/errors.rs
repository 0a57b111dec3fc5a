//! Word and character errors: what was said against what was heard.
//!
//! In: pairs of texts of one language. Out: [`HearingErrors`], over all pairs together, as recognisers are measured. Both
//! texts are normalised in the same way: digits become words, capital letters and marks do not count.

use serde::Serialize;
use tandem_text::{DiacriticsPolicy, Language, normalize};

/// Shares of what was said; above 1 where much more was heard.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HearingErrors {
    /// WER.
    pub words: f64,
    /// CER.
    pub characters: f64,
}

/// The errors over all sentences; none without a word that was said. Each is `(language, said, heard)`.
pub fn hearing_errors<'a>(
    sentences: impl IntoIterator<Item = (Language, &'a str, &'a str)>,
) -> Option<HearingErrors> {
    let (mut wrong, mut all) = ([0; 2], [0; 2]);
    for (language, said, heard) in sentences {
        let [said, heard] = [said, heard].map(|text| plain(text, language));
        let [said_words, heard_words] =
            [&said, &heard].map(|text| text.split(' ').collect::<Vec<_>>());
        let [said, heard] = [&said, &heard].map(|text| text.chars().collect::<Vec<_>>());
        wrong[0] += strsim::generic_levenshtein(&said_words, &heard_words);
        wrong[1] += strsim::generic_levenshtein(&said, &heard);
        all[0] += said_words.len();
        all[1] += said.len();
    }
    let [words, characters] = [0, 1].map(|at| wrong[at] as f64 / all[at].max(1) as f64);
    (all[1] > 0).then_some(HearingErrors { words, characters })
}

/// Letters and apostrophes, with single spaces.
fn plain(text: &str, language: Language) -> String {
    let text = normalize(text, language, DiacriticsPolicy::Strip).to_lowercase();
    let kept = |c: char| c.is_alphanumeric() || c == '\'';
    let spaced: String = text.chars().map(|c| if kept(c) { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}
