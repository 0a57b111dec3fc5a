//! The trained tables of Persian reading, packed by `xtask/generators/train_persian_reading.py`.
//!
//! In: a word, or the hash of a feature. Out: its learned phonemes, or weights. The tables are part of the program and
//! are read in place. Sections of the file: words, sounds of each letter, weights of letters, of the ezafe, of homographs.
//! All weights are whole numbers, so every machine reads the same. Licence of the learned words: `LICENSE-FARSDAT`.

use std::sync::OnceLock;

static FILE: &[u8] = include_bytes!("../../../pronunciation/persian.model");
static MODEL: OnceLock<Model> = OnceLock::new();

/// What the file has.
pub struct Model {
    file: &'static [u8],
    words: Buckets,
    /// The sounds that a letter can have: index into `sounds`.
    pub by_letter: Vec<(char, Vec<u8>)>,
    /// What a chunk number means, in IPA.
    pub sounds: Vec<&'static str>,
    pub letters: Weights,
    pub ezafe: Weights,
    pub homographs: Weights,
}

/// The tables of this process.
pub fn get() -> &'static Model {
    MODEL.get_or_init(|| {
        Model::parse(FILE).expect("the file is part of the program, and a test reads all of it")
    })
}

/// Uses other tables from the start: cross-validation trains several. False if they are broken, or if a Persian text was
/// read before.
pub fn replace(file: &'static [u8]) -> bool {
    Model::parse(file).is_some_and(|model| MODEL.set(model).is_ok())
}

/// Identifies the contents: part of the cache key.
pub fn fingerprint() -> u64 {
    xxhash_rust::xxh3::xxh3_64(get().file)
}

impl Model {
    fn parse(file: &'static [u8]) -> Option<Model> {
        let mut rest = file.strip_prefix(b"FAR2")?;
        let mut next = || section(&mut rest);
        let [words, letters, letter_weights, ezafe, homographs] =
            [next()?, next()?, next()?, next()?, next()?];
        let (sounds, by_letter) = alphabet(letters)?;
        let model = Model {
            file,
            words: Buckets::parse(words)?,
            by_letter,
            sounds,
            letters: Weights(Buckets::parse(letter_weights)?),
            ezafe: Weights(Buckets::parse(ezafe)?),
            homographs: Weights(Buckets::parse(homographs)?),
        };
        rest.is_empty().then_some(model)
    }

    /// The phonemes of a word as the training data has it.
    pub fn word(&self, word: &str) -> Option<&'static str> {
        let mut rest = self.words.of(fnv1a(word.as_bytes()));
        while let Some((letters, after)) = counted(rest) {
            let (said, next) = counted(after)?;
            if letters == word.as_bytes() {
                return std::str::from_utf8(said).ok();
            }
            rest = next;
        }
        None
    }

    /// The chunk numbers that a letter can have.
    pub fn choices(&self, letter: char) -> &[u8] {
        match self.by_letter.binary_search_by_key(&letter, |(letter, _)| *letter) {
            Ok(at) => &self.by_letter[at].1,
            Err(_) => &[],
        }
    }
}

/// Sounds, and which of them each letter has.
type Alphabet = (Vec<&'static str>, Vec<(char, Vec<u8>)>);

fn alphabet(mut bytes: &'static [u8]) -> Option<Alphabet> {
    let (count, rest) = bytes.split_first()?;
    bytes = rest;
    let mut sounds = Vec::new();
    for _ in 0..*count {
        let (sound, rest) = counted(bytes)?;
        sounds.push(std::str::from_utf8(sound).ok()?);
        bytes = rest;
    }
    let mut by_letter = Vec::new();
    while !bytes.is_empty() {
        let (letter, rest) = counted(bytes)?;
        let (choices, rest) = counted(rest)?;
        let known = choices.iter().all(|choice| usize::from(*choice) < sounds.len());
        let letter = std::str::from_utf8(letter).ok()?.chars().next().filter(|_| known)?;
        by_letter.push((letter, choices.to_vec()));
        bytes = rest;
    }
    by_letter.is_sorted().then_some((sounds, by_letter))
}

/// A length of four bytes and as many bytes.
fn section(rest: &mut &'static [u8]) -> Option<&'static [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (taken, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some(taken)
}

/// A length of one byte and as many bytes, and what follows them.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// A hash table in place: the number of buckets (a power of two), where each begins, and their entries.
struct Buckets {
    starts: &'static [u8],
    entries: &'static [u8],
    mask: usize,
}

impl Buckets {
    fn parse(bytes: &'static [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let (starts, entries) = rest.split_at_checked(4 * count.checked_add(1)?)?;
        count.is_power_of_two().then_some(Self { starts, entries, mask: count - 1 })
    }

    #[inline]
    fn of(&self, hash: u32) -> &'static [u8] {
        let at = 4 * (hash as usize & self.mask);
        let number = |at: usize| {
            let bytes = self.starts.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_le_bytes) as usize
        };
        self.entries.get(number(at)..number(at + 4)).unwrap_or_default()
    }
}

/// Weights of features, found by the hash of the feature.
pub struct Weights(Buckets);

impl Weights {
    /// The classes that a feature speaks for or against: number and weight.
    #[inline]
    pub fn of(&self, feature: Feature) -> impl Iterator<Item = (u8, i32)> + use<> {
        // An entry is the hash, the number of pairs, and three bytes for each pair.
        let mut rest = self.0.of(feature.0);
        let mut pairs: &[u8] = &[];
        while let Some((head, after)) = rest.split_first_chunk::<5>() {
            let [a, b, c, d, count] = *head;
            let Some((own, next)) = after.split_at_checked(3 * usize::from(count)) else { break };
            if u32::from_le_bytes([a, b, c, d]) == feature.0 {
                pairs = own;
                break;
            }
            rest = next;
        }
        pairs
            .chunks_exact(3)
            .map(|pair| (pair[0], i32::from(i16::from_le_bytes([pair[1], pair[2]]))))
    }
}

/// The hash of a value of features: of a word, an ending, a class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Value(u32);

impl Value {
    #[inline]
    pub fn of(text: &str) -> Self {
        Self(fnv1a(text.as_bytes()))
    }
}

/// The hash of a feature: a template and its values.
#[derive(Clone, Copy)]
pub struct Feature(u32);

impl Feature {
    #[inline]
    pub fn new(template: u8) -> Self {
        Self(u32::from(template))
    }

    /// With one more value.
    #[inline]
    pub fn with(self, value: Value) -> Self {
        let mixed = (self.0 ^ value.0).wrapping_mul(0x9E37_79B1);
        Self(mixed ^ (mixed >> 15))
    }

    /// For the script that trains.
    pub fn hash(self) -> u32 {
        self.0
    }
}

/// The hash of the script that packs the tables.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_whole_and_has_words_letters_and_weights() {
        let model = Model::parse(FILE).unwrap();
        assert_eq!(model.word("آتلانتیک"), Some("ɑtlɑntik"));
        assert_eq!(model.word("zzz"), None);
        assert!("ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی".chars().all(|c| !model.choices(c).is_empty()));
        assert!(model.choices('q').is_empty());
        assert!(FILE.len() < 1_000_000, "{}", FILE.len());
    }

    #[test]
    fn a_broken_file_is_refused() {
        for length in [0, 3, 4, 7, 100, FILE.len() - 1] {
            assert!(Model::parse(&FILE[..length]).is_none(), "{length}");
        }
    }
}
