//! The symbol table of the model, and texts as symbol ids.
//!
//! In: normalised text or phonemes. Out: [`Transcript`], a list of [`SymbolId`]. The table is
//! saved with the model: ids never change, and new symbols are appended under a new version.

use super::TextError;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// The version of [`SymbolTable::standard`].
pub const TABLE_VERSION: u32 = 2;

/// An index into the symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SymbolId(pub u16);

impl SymbolId {
    /// The padding symbol.
    pub const PAD: Self = Self(0);
}

/// Zero-width non-joiner: part of Persian spelling, as in `می‌روم`.
pub const ZWNJ: char = '\u{200C}';

/// A character that occurs in no text represents the padding symbol.
const PAD: char = '\0';

/// Space and marks of all languages. Other marks are mapped to these.
pub(super) const PUNCTUATION: &str = " .,!?;:…—-'\"()¿¡";
pub(super) const LATIN: &str = "abcdefghijklmnopqrstuvwxyz";
/// Letters of de fr es it pt nl tr pl cs sv.
const LATIN_EXTENDED: &str = "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßœąćčďęěğıłńňřśšşťůźżž";
const CYRILLIC: &str = "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ";
/// Persian first, then the additional letters of Arabic.
const ARABIC: &str = "\u{200C}آابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیءأؤئ\u{64B}إةىيكٱ";
/// Vowel signs, used where diacritics are kept: tanvin, short vowels, shadda, sukun, small alef.
const ARABIC_MARKS: &str = "\u{64C}\u{64D}\u{64E}\u{64F}\u{650}\u{651}\u{652}\u{670}";
/// Symbols of espeak-ng that are not above.
pub(super) const PHONETIC: &str = "ˈˌːˑɑɐɒɓʙβɔɕɗɖðəɘɚɛɜɝɞɟʄɡɠɢʛɦɧħɥʜɨɪʝɭɬɫɮʟɱɯɰŋɳɲɴɵɸθɶʘɹɺɾɻʀʁɽʂʃʈʉʊʋʌɣɤʍχʎʏ\
     ʑʐʒʔʡʕʢǀǁǂǃʼʰʱʲʷˠˤ˞ᵻᵊ\u{303}\u{329}\u{325}\u{32A}\u{32F}\u{30A}\u{32C}\u{330}\u{361}\u{31D}";

/// Whether only phonemes have this symbol.
pub fn is_phonetic(symbol: char) -> bool {
    PHONETIC.contains(symbol)
}

/// The silence before and after speech. Without its own symbols it would be learned as part of the
/// first and last letters, and no alignment would be found.
const EDGES: &str = "\u{2}\u{3}";
const BEGIN: char = '\u{2}';
const END: char = '\u{3}';

/// The symbols and their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SavedTable", into = "SavedTable")]
pub struct SymbolTable {
    version: u32,
    symbols: Vec<char>,
    /// Ids by code point, for code points below [`Self::NEAR`]; 0 without a symbol.
    near: Box<[u16]>,
    far: HashMap<char, u16>,
}

/// The serialised form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedTable {
    version: u32,
    symbols: Vec<String>,
}

const PAD_NAME: &str = "<pad>";

impl SymbolTable {
    /// Covers all letters and marks of the supported languages: a lookup is one load.
    const NEAR: usize = 0x2100;

    /// The characters that stand for the silence before and after speech.
    pub const EDGE_SYMBOLS: [char; 2] = [BEGIN, END];

    /// The table of this version of Tandem.
    pub fn standard() -> Self {
        let parts =
            [PUNCTUATION, LATIN, ARABIC, ARABIC_MARKS, LATIN_EXTENDED, CYRILLIC, PHONETIC, EDGES];
        let symbols = std::iter::once(PAD).chain(parts.into_iter().flat_map(str::chars)).collect();
        Self::index(TABLE_VERSION, symbols)
    }

    fn index(version: u32, symbols: Vec<char>) -> Self {
        let mut near = vec![0_u16; Self::NEAR].into_boxed_slice();
        let mut far = HashMap::new();
        for (id, symbol) in symbols.iter().enumerate().skip(1) {
            let id = u16::try_from(id).expect("checked when tables are read");
            match near.get_mut(*symbol as usize) {
                Some(entry) => *entry = id,
                None => {
                    far.insert(*symbol, id);
                }
            }
        }
        Self { version, symbols, near, far }
    }

    pub fn version(&self) -> u32 {
        self.version
    }

    /// Number of symbols with padding: the rows of the model's embedding.
    #[expect(clippy::len_without_is_empty, reason = "padding is always there")]
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// The id of a character.
    #[inline]
    pub fn id(&self, symbol: char) -> Option<SymbolId> {
        let id = match self.near.get(symbol as usize) {
            Some(id) => *id,
            None => *self.far.get(&symbol)?,
        };
        (id != 0).then_some(SymbolId(id))
    }

    /// The character of an id; `None` for padding and for unknown ids.
    pub fn symbol(&self, id: SymbolId) -> Option<char> {
        self.symbols.get(usize::from(id.0)).copied().filter(|symbol| *symbol != PAD)
    }

    /// A printable form: `<pad>`, `<zwnj>`, and `_` for a space.
    pub fn name(&self, id: SymbolId) -> String {
        match self.symbols.get(usize::from(id.0)) {
            None => format!("<{}?>", id.0),
            Some(&PAD) => PAD_NAME.into(),
            Some(&BEGIN) => "<begin>".into(),
            Some(&END) => "<end>".into(),
            Some(&ZWNJ) => "<zwnj>".into(),
            Some(' ') => "_".into(),
            // A bare combining mark would attach to its neighbour.
            Some(mark) if unicode_normalization::char::is_combining_mark(*mark) => {
                format!("◌{mark}")
            }
            Some(symbol) => symbol.to_string(),
        }
    }

    /// The characters in the order of their ids, for a fingerprint.
    pub(super) fn contents(&self) -> String {
        self.symbols.iter().collect()
    }
}

impl From<SymbolTable> for SavedTable {
    fn from(table: SymbolTable) -> Self {
        let name = |symbol: &char| match *symbol {
            PAD => PAD_NAME.to_owned(),
            other => other.to_string(),
        };
        Self { version: table.version, symbols: table.symbols.iter().map(name).collect() }
    }
}

impl TryFrom<SavedTable> for SymbolTable {
    type Error = TextError;

    fn try_from(saved: SavedTable) -> Result<Self, TextError> {
        let wrong = |reason: String| Err(TextError::SymbolTable { reason });
        if saved.symbols.first().map(String::as_str) != Some(PAD_NAME) {
            return wrong(format!("its first symbol is not `{PAD_NAME}`"));
        }
        if saved.symbols.len() > usize::from(u16::MAX) {
            return wrong(format!("it has {} symbols", saved.symbols.len()));
        }
        let mut symbols = vec![PAD];
        let mut seen = std::collections::HashSet::new();
        for text in &saved.symbols[1..] {
            let mut chars = text.chars();
            let (Some(symbol), None) = (chars.next(), chars.next()) else {
                return wrong(format!("`{text}` is not one character"));
            };
            if symbol == PAD || !seen.insert(symbol) {
                return wrong(format!("`{}` is in it twice", symbol.escape_debug()));
            }
            symbols.push(symbol);
        }
        Ok(Self::index(saved.version, symbols))
    }
}

/// The symbol ids of a text, with the silence before and after it: never empty, every symbol known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Transcript(Vec<SymbolId>);

impl Transcript {
    /// Symbols that are not characters of the text: the silence at both ends.
    pub const EDGES: usize = 2;

    /// Converts normalised text. The position in an error counts its characters.
    pub fn parse(normalized: &str, table: &SymbolTable) -> Result<Self, TextError> {
        if normalized.is_empty() {
            return Err(TextError::Empty);
        }
        let mut ids = Vec::with_capacity(normalized.len() + Self::EDGES);
        ids.extend(table.id(BEGIN));
        for (index, symbol) in normalized.chars().enumerate() {
            match table.id(symbol).filter(|_| !EDGES.contains(symbol)) {
                Some(id) => ids.push(id),
                None => return Err(TextError::UnknownSymbol { symbol, position: index + 1 }),
            }
        }
        ids.extend(table.id(END));
        Ok(Self(ids))
    }

    /// Restores stored ids; `None` if one is not in the table.
    pub fn from_ids(ids: Vec<SymbolId>, table: &SymbolTable) -> Option<Self> {
        let known = ids.iter().all(|id| table.symbol(*id).is_some());
        (known && !ids.is_empty()).then_some(Self(ids))
    }

    /// The ids in order.
    pub fn ids(&self) -> &[SymbolId] {
        &self.0
    }

    /// Number of symbols, with both ends.
    #[expect(clippy::len_without_is_empty, reason = "a transcript is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Shows the transcript as text.
    pub fn display<'a>(&'a self, table: &'a SymbolTable) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            self.0.iter().try_for_each(|id| match table.symbol(*id) {
                Some(BEGIN | END) => Ok(()),
                Some(symbol) => write!(f, "{symbol}"),
                None => write!(f, "{}", table.name(*id)),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_is_in_the_table_once() {
        let table = SymbolTable::standard();
        for (id, symbol) in table.symbols.iter().enumerate().skip(1) {
            assert_eq!(table.id(*symbol).map(|id| usize::from(id.0)), Some(id), "{symbol:?}");
        }
    }

    #[test]
    fn numbers_never_move() {
        let table = SymbolTable::standard();
        assert_eq!((table.version(), table.len()), (2, 290));
        for (symbol, id) in [
            (' ', 1),
            ('.', 2),
            ('a', 17),
            ('z', 42),
            (ZWNJ, 43),
            ('آ', 44),
            ('ی', 76),
            ('à', 96),
            ('а', 147),
            ('ˈ', 184),
            (BEGIN, 288),
            (END, 289),
        ] {
            assert_eq!(table.id(symbol), Some(SymbolId(id)), "{symbol:?}");
        }
        let print = blake3::hash(table.contents().as_bytes()).to_hex();
        assert_eq!(&print[..16], "b23a679f450b573d", "symbols changed: raise TABLE_VERSION");
    }

    #[test]
    fn a_table_survives_its_file() {
        let table = SymbolTable::standard();
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<SymbolTable>(&json).unwrap(), table);
    }

    #[test]
    fn a_file_that_is_not_a_table_is_refused() {
        for json in [
            r#"{"version":1,"symbols":[]}"#,
            r#"{"version":1,"symbols":["a"]}"#,
            r#"{"version":1,"symbols":["<pad>","ab"]}"#,
            r#"{"version":1,"symbols":["<pad>","a","a"]}"#,
            r#"{"version":1,"symbols":["<pad>","a"],"more":1}"#,
        ] {
            assert!(serde_json::from_str::<SymbolTable>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn symbols_with_high_code_points_can_be_in_a_table() {
        let json = r#"{"version":7,"symbols":["<pad>","a","😀"]}"#;
        let table: SymbolTable = serde_json::from_str(json).unwrap();
        assert_eq!(table.id('😀'), Some(SymbolId(2)));
        assert_eq!(table.id('😁'), None);
    }

    #[test]
    fn a_transcript_shows_its_text_again() {
        let table = SymbolTable::standard();
        for text in ["hello, world.", "می‌روم", "həlˈoʊ"] {
            let transcript = Transcript::parse(text, &table).unwrap();
            assert_eq!(transcript.display(&table).to_string(), text);
            assert_eq!(transcript.len(), text.chars().count() + Transcript::EDGES);
            assert_eq!(table.name(transcript.ids()[0]), "<begin>");
            assert_eq!(table.name(transcript.ids()[transcript.len() - 1]), "<end>");
        }
    }

    #[test]
    fn an_unknown_symbol_is_reported_with_its_position() {
        let error = Transcript::parse("ab★", &SymbolTable::standard()).unwrap_err();
        let text = "`★` (U+2605) at character 3 is not a symbol the voice knows";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn the_end_symbols_cannot_occur_in_a_text() {
        let error = Transcript::parse("a\u{3}b", &SymbolTable::standard()).unwrap_err();
        assert!(matches!(error, TextError::UnknownSymbol { position: 2, .. }), "{error}");
        assert!(matches!(Transcript::parse("", &SymbolTable::standard()), Err(TextError::Empty)));
    }

    #[test]
    fn stored_ids_outside_the_table_are_refused() {
        let table = SymbolTable::standard();
        assert!(Transcript::from_ids(vec![SymbolId(17)], &table).is_some());
        assert!(Transcript::from_ids(vec![SymbolId(17), SymbolId(9999)], &table).is_none());
        assert!(Transcript::from_ids(vec![SymbolId::PAD], &table).is_none());
        assert!(Transcript::from_ids(vec![], &table).is_none());
    }
}
