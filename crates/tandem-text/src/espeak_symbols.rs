//! The symbols of espeak-ng as those of the built-in phonemes, for programs that run espeak-ng in front of a voice.
//!
//! In: IPA as espeak-ng writes it, decomposed (Unicode form D). Out: the same words in the symbols a voice with built-in
//! phonemes was trained on. The rules are data: [`rewrite`] applies them here, `tandem-export` writes them into the graph.
//! They were derived by aligning both notations over sentences and word lists, and never change built-in phonemes.
//! Opens no file and starts no program.

use super::language::Language;
use super::pronunciation;
use super::symbols::PUNCTUATION;
use unicode_normalization::UnicodeNormalization;

/// Symbols that a neighbour may be. The ends of the text count as pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    OneOf(&'static str),
    NoneOf(&'static str),
    /// A space, a mark, or an end of the text.
    Pause,
    NoPause,
}

/// One rule: where `symbol` stands between these neighbours, `into` replaces it. All places of a text are replaced at
/// once, and the next rule sees the result.
#[derive(Clone, Copy, Debug)]
pub struct Rewrite {
    /// In reading order; the last one is next to the symbol.
    pub before: &'static [Neighbour],
    pub symbol: char,
    /// The first one is next to the symbol.
    pub after: &'static [Neighbour],
    /// At most two symbols.
    pub into: &'static str,
}

impl Neighbour {
    /// `None` is an end of the text.
    pub fn holds(self, symbol: Option<char>) -> bool {
        let pause = symbol.is_none_or(|symbol| PUNCTUATION.contains(symbol));
        let among = |set: &str| symbol.is_some_and(|symbol| set.contains(symbol));
        match self {
            Self::OneOf(set) => among(set),
            Self::NoneOf(set) => !among(set),
            Self::Pause => pause,
            Self::NoPause => !pause,
        }
    }
}

/// The rules of a language in order; none for a language without built-in phonemes.
pub fn rules(language: Language) -> Vec<Rewrite> {
    match language {
        Language::English => [ENGLISH.to_vec(), simple(ENGLISH_SYMBOLS), simple(MARKS)].concat(),
        Language::Persian => [PERSIAN.to_vec(), simple(PERSIAN_SYMBOLS), simple(MARKS)].concat(),
        _ => Vec::new(),
    }
}

/// The symbols that built-in phonemes of a language consist of; none for a language without them.
pub fn trained_symbols(language: Language) -> Option<String> {
    Some(pronunciation::inventory(language)? + PUNCTUATION)
}

/// What a program in front of a voice may send: letters and marks of the IPA, all of them in the symbol table.
pub fn ipa() -> impl Iterator<Item = char> {
    let letters = super::symbols::LATIN.chars().chain(super::symbols::PHONETIC.chars());
    letters.chain("æðøħŋœ".chars())
}

/// IPA of espeak-ng in the symbols of the built-in phonemes.
pub fn rewrite(language: Language, ipa: &str) -> String {
    let text: Vec<char> = ipa.nfd().collect();
    rules(language).iter().fold(text, |text, rule| rule.apply(&text)).into_iter().collect()
}

impl Rewrite {
    fn apply(&self, text: &[char]) -> Vec<char> {
        let mut out = Vec::with_capacity(text.len());
        for (place, &symbol) in text.iter().enumerate() {
            match symbol == self.symbol && self.fits(text, place) {
                true => out.extend(self.into.chars()),
                false => out.push(symbol),
            }
        }
        out
    }

    fn fits(&self, text: &[char], place: usize) -> bool {
        let at = |place: Option<usize>| text.get(place?).copied();
        let mut before = self.before.iter().rev().zip(1..);
        let mut after = self.after.iter().zip(1..);
        before.all(|(neighbour, away)| neighbour.holds(at(place.checked_sub(away))))
            && after.all(|(neighbour, away)| neighbour.holds(at(Some(place + away))))
    }
}

/// Pairs of a symbol and what it becomes anywhere, between spaces.
fn simple(pairs: &'static str) -> Vec<Rewrite> {
    let rule = |pair: &'static str| {
        let symbol = pair.chars().next()?;
        Some(Rewrite { into: &pair[symbol.len_utf8()..], ..anywhere(symbol, "") })
    };
    pairs.split(' ').filter_map(rule).collect()
}

const fn anywhere(symbol: char, into: &'static str) -> Rewrite {
    Rewrite { before: &[], symbol, after: &[], into }
}

const fn after(before: &'static [Neighbour], symbol: char, into: &'static str) -> Rewrite {
    Rewrite { before, symbol, after: &[], into }
}

const fn before(symbol: char, after: &'static [Neighbour], into: &'static str) -> Rewrite {
    Rewrite { before: &[], symbol, after, into }
}

use Neighbour::{NoPause, NoneOf, OneOf, Pause};
const STRESSED: &[Neighbour] = &[OneOf("ˈˌ")];
const UNSTRESSED: &[Neighbour] = &[NoneOf("ˈˌ")];
const SYLLABIC: &[Neighbour] = &[OneOf("\u{329}")];

const ENGLISH: &[Rewrite] = &[
    // Syllabic consonants: `bʌʔn̩` is `bʌtən`.
    before('ʔ', &[OneOf("n"), OneOf("\u{329}")], "t"),
    before('n', SYLLABIC, "ən"),
    before('l', SYLLABIC, "əl"),
    before('m', SYLLABIC, "əm"),
    // No two vowels differ by length alone; ʲ joins `wiːʲɛvɚ`.
    anywhere('ː', ""),
    anywhere('ʲ', ""),
    anywhere('\u{329}', ""),
    // Stress decides between the two names of a vowel.
    after(STRESSED, 'ɜ', "ɝ"),
    anywhere('ɜ', "ɚ"),
    after(STRESSED, 'ɚ', "ɝ"),
    after(STRESSED, 'ɐ', "ʌ"),
    anywhere('ɐ', "ə"),
    after(STRESSED, 'ə', "ʌ"),
    after(UNSTRESSED, 'ʌ', "ə"),
    // A vowel with r includes the consonant.
    after(&[OneOf("ɝɚ")], 'ɹ', ""),
    // The reduced vowel of `roses` and `ability`, by its neighbours.
    after(&[OneOf("slmnz")], 'ᵻ', "ə"),
    before('ᵻ', &[OneOf("bɾn")], "ə"),
    anywhere('ᵻ', "ɪ"),
    // A flap is written for /t/ only.
    anywhere('ɾ', "t"),
    // `ʌvðə`: two words.
    Rewrite { before: &[NoPause], symbol: 'ð', after: &[OneOf("əɪ"), Pause], into: " ð" },
    // Weak forms of `the`, `to` and `and`.
    Rewrite { before: &[Pause, OneOf("ð")], symbol: 'ɪ', after: &[Pause], into: "i" },
    Rewrite { before: &[OneOf("t")], symbol: 'ʊ', after: &[Pause], into: "u" },
    Rewrite { before: &[Pause], symbol: 'æ', after: &[OneOf("n"), OneOf("d"), Pause], into: "ə" },
    // Half of a diphthong without the other half: `fɔːɹ`, words of other languages.
    before('a', &[NoneOf("ɪʊ")], "ɑ"),
    before('e', &[NoneOf("ɪ")], "ɛ"),
    before('o', &[NoneOf("ʊ")], "ɔ"),
];

/// Symbols that words of other languages bring along: the nearest one of English.
const ENGLISH_SYMBOLS: &str = "gɡ ck qk xk χk ɢɡ ɟɡ ɠɡ ʄɡ ʛɡ ɣɡ rɹ ʀɹ ʁɹ ɺɹ ɻɹ ɽɹ yu ʏʊ øʊ œɛ ɶæ ɒɑ ɵə ʉu ɨɪ ɘə ɞʌ ɤʌ ɯu ᵊə \
    ɫl ɭl ɬl ɮl ʟl ʎl ʍw ɥw ɰw ʋv βv ʙb ɓb ɸf ɱm ɲn ɳn ɴŋ ɕʃ ʂʃ ʑʒ ʐʒ ɧʃ ħh ɦh ʜh ʝj ɖd ɗd ʈt ʔt ʘp ǀt ǁl ǂt ǃt ʡt ʕ ʢ";

const PERSIAN: &[Rewrite] = &[
    // `doːrɑn` is `dowrɑn`; other long vowels are long by themselves.
    after(&[OneOf("o")], 'ː', "w"),
    // Diphthongs and vowels with r of English words.
    after(&[OneOf("aeoɔ")], 'ɪ', "j"),
    after(&[OneOf("aoɑ")], 'ʊ', "w"),
    anywhere('ɚ', "er"),
    anywhere('ɝ', "er"),
    before('ŋ', &[OneOf("ɡgk")], "n"),
    anywhere('ŋ', "nɡ"),
];

/// Persian has no stress marks. Symbols of English words become the nearest one of Persian.
const PERSIAN_SYMBOLS: &str = "ˈ ˌ gɡ ck χx ɢq ɟɡ ɠɡ ʄɡ ʛq ɣq ɹr ɾr ʀr ʁq ɺr ɻr ɽr yu ʏu øo œe ɶa ɒɑ ɵo ʉu ɨi ɘe ɞo ɤo ɯu ᵊe \
    əe ɛe ɜe æa ɐa ʌa ɔo ɪi ʊu ᵻe ðz θs \
    ɫl ɭl ɬl ɮl ʟl ʎl ʍv ɥj ɰv ʋv βv ʙb ɓb ɸf ɱm ɲn ɳn ɴn ɕʃ ʂʃ ʑʒ ʐʒ ɧʃ ħh ɦh ʜh ʝj ɖd ɗd ʈt ʘp ǀt ǁl ǂt ǃt ʡʔ ʕʔ ʢʔ";

/// Marks without a counterpart, in all languages.
const MARKS: &str = "ː ˑ ʼ ʰ ʱ ʲ ʷ ˠ ˤ ˞ \u{303} \u{329} \u{325} \u{32A} \u{32F} \u{30A} \u{32C} \u{330} \u{361} \u{31D}";

#[cfg(test)]
mod tests;
