//! Which ids a program that only looks up code points sends to the graph.
//!
//! In: the symbol table and the languages of a voice. Out: [`SymbolMap`]: the ids of each code point, and which pairs of
//! ids are one symbol. Piper decomposes a text before it looks up code points (Unicode form D): `آ` arrives as `ا` and a
//! mark. So marks have ids of their own, behind those of the table, and the graph joins the pairs again. Capital letters,
//! other forms of a letter and other punctuation get the ids of what the front end would turn them into.

use std::collections::BTreeMap;
use tandem_text::{DiacriticsPolicy, Language, Script, SymbolId, SymbolTable, fold, normalize};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Code points that a text in one of the supported languages may contain.
const RANGES: [std::ops::RangeInclusive<u32>; 5] =
    [0x20..=0x24F, 0x370..=0x52F, 0x600..=0x6FF, 0x2000..=0x206F, 0xFF01..=0xFF5E];

/// The ids of code points.
#[derive(Clone, Debug)]
pub struct SymbolMap {
    /// In the order of code points.
    pub ids: BTreeMap<char, Vec<i64>>,
    /// Ids of the table, padding included.
    pub known: usize,
    /// Marks, in the order of their columns in [`SymbolMap::pairs`]: the id of each.
    pub marks: Vec<i64>,
    /// `(id of the letter, index of the mark, id of both)`; a later entry replaces an earlier one.
    pub pairs: Vec<(i64, usize, i64)>,
}

impl SymbolMap {
    /// The map of a voice that reads characters.
    pub fn of_characters(
        table: &SymbolTable,
        languages: &[Language],
        policy: DiacriticsPolicy,
    ) -> SymbolMap {
        let mut map = SymbolMap::of_symbols(table);
        let marks: Vec<char> = decompositions(table).into_iter().map(|(_, mark, _)| mark).collect();
        for c in RANGES.iter().cloned().flatten().filter_map(char::from_u32) {
            let language = language_of(c, languages);
            if !marks.contains(&c)
                && let Some(ids) = ids_of(c, language, policy, table)
            {
                map.ids.insert(c, ids);
            }
        }
        // A letter and its mark become what the front end makes of both: `ئ` is `ي` and a mark for Unicode, and `ي` is `ی`
        // in Persian.
        let one = |ids: &BTreeMap<char, Vec<i64>>, c: char| match ids.get(&c).map(Vec::as_slice) {
            Some(&[id]) if id > 0 => Some(id),
            _ => None,
        };
        for (letter, mark, whole) in decompositions(table) {
            let column = map.marks.iter().position(|&other| Some(other) == one(&map.ids, mark));
            if let (Some(letter), Some(column), Some(whole)) =
                (one(&map.ids, letter), column, one(&map.ids, whole))
            {
                map.pairs.push((letter, column, whole));
            }
        }
        map
    }

    /// The map of a voice whose symbols are used as they are, such as phonemes.
    pub fn of_symbols(table: &SymbolTable) -> SymbolMap {
        let symbols = (1..table.len()).filter_map(|id| table.symbol(SymbolId(id as u16)));
        let ids = symbols.filter_map(|symbol| Some((symbol, vec![id(table, symbol)?]))).collect();
        let (marks, pairs) = (Vec::new(), Vec::new());
        let mut map = SymbolMap { ids, known: table.len(), marks, pairs };
        let mut next = table.len() as i64;
        for (letter, mark, whole) in decompositions(table) {
            let number = match map.ids.get(&mark) {
                Some(ids) => ids[0],
                None => {
                    next += 1;
                    map.ids.insert(mark, vec![next - 1]);
                    next - 1
                }
            };
            let column = map.marks.iter().position(|&other| other == number).unwrap_or_else(|| {
                map.marks.push(number);
                map.marks.len() - 1
            });
            if let (Some(letter), Some(whole)) = (id(table, letter), id(table, whole)) {
                map.pairs.push((letter, column, whole));
            }
        }
        map
    }

    /// The map of a voice of phonemes in front of which a program runs espeak-ng. The graph rewrites its symbols, and joins
    /// none: marks such as that of `n̩` decide what they are rewritten to.
    pub fn of_espeak(table: &SymbolTable) -> SymbolMap {
        let mut map = SymbolMap::of_symbols(table);
        (map.marks, map.pairs) = (Vec::new(), Vec::new());
        map.ids.retain(|_, ids| ids.iter().all(|&id| id < map.known as i64));
        // Variants of phonemes have digits (`q1`), and joiners separate vowels. There is nothing to say.
        let silent = ('0'..='9').chain(['\u{327}', '\u{200B}', '\u{200C}', '\u{200D}']);
        map.ids.extend(silent.map(|c| (c, vec![0])));
        map
    }

    /// All ids that the graph accepts.
    pub fn len(&self) -> usize {
        let extra = self.marks.iter().map(|&mark| mark as usize + 1).max();
        extra.unwrap_or(0).max(self.known)
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// The symbols that Unicode decomposes into two parts, of which the first is a symbol: letter, mark, whole.
fn decompositions(table: &SymbolTable) -> Vec<(char, char, char)> {
    let symbols = (1..table.len()).filter_map(|id| table.symbol(SymbolId(id as u16)));
    let parts = symbols.filter_map(|symbol| {
        let mut parts = Vec::new();
        decompose_canonical(symbol, |part| parts.push(part));
        match parts[..] {
            [letter, mark] if table.id(letter).is_some() => Some((letter, mark, symbol)),
            _ => None,
        }
    });
    parts.collect()
}

fn id(table: &SymbolTable, symbol: char) -> Option<i64> {
    table.id(symbol).map(|id| i64::from(id.0))
}

/// The first of the voice's languages that is written with this letter.
fn language_of(c: char, languages: &[Language]) -> Language {
    let script = Script::of(c);
    let fits = |language: &&Language| script.is_none_or(|script| language.script() == script);
    let first = languages.first().copied().unwrap_or(Language::English);
    languages.iter().find(fits).copied().unwrap_or(first)
}

/// What the front end makes of one code point; none for one that it does not know. Digits are read one by one.
fn ids_of(
    c: char,
    language: Language,
    policy: DiacriticsPolicy,
    table: &SymbolTable,
) -> Option<Vec<i64>> {
    // A mark of its own is a vowel sign, which the front end may remove.
    if is_combining_mark(c) {
        let kept = normalize(&format!("ب{c}"), Language::Persian, policy).contains(c);
        return (!kept && matches!(u32::from(c), 0x64B..=0x65F | 0x670)).then(|| vec![0]);
    }
    let mut written = match c {
        _ if c.is_alphabetic() => normalize(&c.to_string(), language, policy),
        _ if c.is_numeric() => normalize(&c.to_string(), language, policy) + " ",
        _ => fold(&c.to_string()).into_owned(),
    };
    // The name of a letter is not the letter.
    if c.is_alphabetic() && written.chars().count() != 1 {
        written = fold(&c.to_string()).chars().flat_map(char::to_lowercase).collect();
    }
    let ids: Option<Vec<i64>> = written.nfc().map(|symbol| id(table, symbol)).collect();
    match ids {
        // Invisible characters: nothing to say.
        Some(ids) if ids.is_empty() => Some(vec![0]),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> (SymbolTable, SymbolMap) {
        let table = SymbolTable::standard();
        let languages = [Language::English, Language::Persian];
        let map = SymbolMap::of_characters(&table, &languages, DiacriticsPolicy::Strip);
        (table, map)
    }

    #[track_caller]
    fn check(c: char, symbols: &str) {
        let (table, map) = map();
        let wanted: Vec<i64> = symbols.chars().filter_map(|symbol| id(&table, symbol)).collect();
        assert_eq!(map.ids.get(&c), Some(&wanted), "{c:?}");
    }

    #[test]
    fn letters_capitals_and_punctuation_have_the_ids_of_the_front_end() {
        check('a', "a");
        check('A', "a");
        check('?', "?");
        check('؟', "?");
        check('،', ",");
        check('ک', "ک");
        check('ك', "ک");
        check('ي', "ی");
        check('”', "\"");
        check('\u{200C}', "\u{200C}");
    }

    #[test]
    fn digits_are_read_one_by_one_in_the_first_language() {
        check('7', "seven ");
    }

    #[test]
    fn vowel_signs_that_the_voice_never_saw_are_dropped_and_unknown_signs_are_not_there() {
        let (_, map) = map();
        assert_eq!(map.ids.get(&'\u{64E}'), Some(&vec![0]));
        assert_eq!(map.ids.get(&'\u{200D}'), Some(&vec![0]));
        assert_eq!(map.ids.get(&'★'), None);
    }

    /// What a program that decomposes its text sends, joined again, is what the whole letter gives.
    #[test]
    fn every_letter_survives_decomposition() {
        let (table, map) = map();
        for (letter, mark, whole) in decompositions(&table) {
            let (letter_id, mark_id) = (map.ids[&letter][0], map.ids[&mark][0]);
            let column = map.marks.iter().position(|&other| other == mark_id).unwrap();
            let same = |pair: &&(i64, usize, i64)| (pair.0, pair.1) == (letter_id, column);
            let joined = map.pairs.iter().rfind(same).map(|pair| vec![pair.2]);
            assert_eq!(joined.as_ref(), map.ids.get(&whole), "{whole}");
        }
        assert!(map.pairs.iter().any(|pair| Some(pair.2) == id(&table, 'آ')));
        assert!(map.pairs.iter().any(|pair| Some(pair.2) == id(&table, 'ä')));
    }

    #[test]
    fn everything_that_espeak_writes_has_an_id_and_variants_are_dropped() {
        let table = SymbolTable::standard();
        let map = SymbolMap::of_espeak(&table);
        for symbol in tandem_text::espeak_symbols::ipa() {
            assert_eq!(map.ids.get(&symbol), Some(&vec![id(&table, symbol).unwrap()]), "{symbol}");
        }
        assert_eq!(map.ids.get(&'1'), Some(&vec![0]));
        assert_eq!((map.len(), map.pairs.len()), (table.len(), 0));
    }

    #[test]
    fn marks_have_ids_of_their_own() {
        let (table, map) = map();
        assert!(map.len() > table.len());
        let mut marks = map.marks.clone();
        marks.dedup();
        assert_eq!(marks.len(), map.marks.len());
    }
}
