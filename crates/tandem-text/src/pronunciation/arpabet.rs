//! The phones of English: their codes in the data files, their names, their IPA.
//!
//! In: codes, or names such as `R EH1 K ER0 D`. Out: IPA as American English is written, with the
//! stress mark before the vowel: `ɹˈɛkɚd`. Long vowels have no length mark: no two of them differ by
//! length alone.

/// The vowels by name; each has three codes, one per stress (0, 1, 2).
const VOWELS: [&str; 15] =
    ["AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"];
const CONSONANTS: [&str; 24] = [
    "B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH", "T",
    "TH", "V", "W", "Y", "Z", "ZH",
];

const VOWELS_IPA: [&str; 15] =
    ["ɑ", "æ", "ʌ", "ɔ", "aʊ", "aɪ", "ɛ", "ɝ", "eɪ", "ɪ", "i", "oʊ", "ɔɪ", "ʊ", "u"];
const CONSONANTS_IPA: [&str; 24] = [
    "b", "tʃ", "d", "ð", "f", "ɡ", "h", "dʒ", "k", "l", "m", "n", "ŋ", "p", "ɹ", "s", "ʃ", "t",
    "θ", "v", "w", "j", "z", "ʒ",
];

const FIRST_CONSONANT: u8 = 3 * VOWELS.len() as u8;
/// Number of codes.
pub const COUNT: u8 = FIRST_CONSONANT + CONSONANTS.len() as u8;

/// A phone: an index into vowels with stress, then consonants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phone(pub u8);

impl Phone {
    /// The phone with this name, such as `AH0` or `ZH`.
    pub fn named(name: &str) -> Option<Phone> {
        if let Some(at) = CONSONANTS.iter().position(|known| *known == name) {
            return Some(Phone(FIRST_CONSONANT + at as u8));
        }
        let (vowel, stress) = name.split_at_checked(2)?;
        let at = VOWELS.iter().position(|known| *known == vowel)?;
        let stress = ["0", "1", "2"].iter().position(|known| *known == stress)?;
        Some(Phone((3 * at + stress) as u8))
    }

    pub fn is_vowel(self) -> bool {
        self.0 < FIRST_CONSONANT
    }

    /// 1: primary, 2: secondary, 0: none, or a consonant.
    pub fn stress(self) -> u8 {
        if self.is_vowel() { self.0 % 3 } else { 0 }
    }

    /// The same vowel with another stress; a consonant stays.
    pub fn with_stress(self, stress: u8) -> Phone {
        if self.is_vowel() { Phone(self.0 - self.0 % 3 + stress) } else { self }
    }

    /// The name without stress.
    pub fn name(self) -> &'static str {
        match self.0.checked_sub(FIRST_CONSONANT) {
            Some(at) => CONSONANTS[usize::from(at)],
            None => VOWELS[usize::from(self.0 / 3)],
        }
    }

    fn write(self, out: &mut String) {
        if let Some(at) = self.0.checked_sub(FIRST_CONSONANT) {
            return out.push_str(CONSONANTS_IPA[usize::from(at)]);
        }
        match self.stress() {
            1 => out.push('ˈ'),
            2 => out.push('ˌ'),
            _ => {}
        }
        out.push_str(match (self.name(), self.stress()) {
            ("AH", 0) => "ə",
            ("ER", 0) => "ɚ",
            _ => VOWELS_IPA[usize::from(self.0 / 3)],
        });
    }
}

/// Parses names between spaces. Only for texts of this program, which a test parses all.
pub fn phones(names: &str) -> Vec<Phone> {
    names.split(' ').filter_map(Phone::named).collect()
}

/// The IPA of names between spaces, if all of them are phones and a vowel with its stress is among them.
pub fn ipa_of_names(names: &str) -> Option<String> {
    let found: Vec<Phone> = names.split_whitespace().map(Phone::named).collect::<Option<_>>()?;
    found.iter().any(|phone| phone.is_vowel()).then(|| {
        let mut out = String::new();
        write_ipa(&found, &mut out);
        out
    })
}

/// Appends phones as IPA.
pub fn write_ipa(phones: &[Phone], out: &mut String) {
    phones.iter().for_each(|phone| phone.write(out));
}

/// Every symbol that [`write_ipa`] writes.
pub fn symbols() -> String {
    let mut all = String::new();
    (0..COUNT).for_each(|code| Phone(code).write(&mut all));
    let mut symbols: Vec<char> = all.chars().collect();
    symbols.sort_unstable();
    symbols.dedup();
    symbols.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::SymbolTable;
    use super::*;

    #[test]
    fn every_phone_has_a_name_and_known_symbols() {
        let table = SymbolTable::standard();
        for code in 0..COUNT {
            let phone = Phone(code);
            let name = match phone.is_vowel() {
                true => format!("{}{}", phone.name(), phone.stress()),
                false => phone.name().to_owned(),
            };
            assert_eq!(Phone::named(&name), Some(phone), "{name}");
            let mut ipa = String::new();
            phone.write(&mut ipa);
            assert!(ipa.chars().all(|symbol| table.id(symbol).is_some()), "{name} {ipa}");
        }
    }

    #[test]
    fn stress_is_written_before_the_vowel() {
        let mut ipa = String::new();
        write_ipa(&phones("R IH0 K AO1 R D IH2 NG ER0 AH0"), &mut ipa);
        assert_eq!(ipa, "ɹɪkˈɔɹdˌɪŋɚə");
        assert_eq!(Phone::named("XX"), None);
        assert_eq!(Phone::named("AH3"), None);
    }
}
