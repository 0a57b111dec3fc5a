//! English text normalisation: numbers, abbreviations and signs become words.
//!
//! In: folded text. Out: lower-case words and the shared punctuation. Normalising the output again
//! changes nothing. An unknown sign (`★`) stays, so that the symbol table can report it. Next on the path: [`super::lexicon`].

pub(super) mod abbreviations; // Mr., Inc., BBC, Henry VIII
mod amounts; // numbers in context: times, money, units
mod numbers; // number words
mod units; // names of units and currencies
mod years; // whether 1984 is a year or a quantity

use super::folding::push_lower;
use super::numeral::vulgar;
use super::scan::{DashMeaning, Scan, letters};
use super::spoken::Spoken;
use super::symbols::ZWNJ;
use abbreviations::Dot;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Writes folded text as it is spoken.
pub fn normalize(folded: &str) -> String {
    // Accents are removed first, so that later rules see each word in one form.
    if folded.is_ascii() { run(folded) } else { run(&without_accents(folded)) }
}

fn run(folded: &str) -> String {
    let all_capitals = !folded.bytes().any(|b| b.is_ascii_lowercase());
    let mut normalizer = Normalizer {
        scan: Scan::new(folded),
        out: Spoken::with_capacity(folded.len()),
        case: if all_capitals { Case::AllCapitals } else { Case::Mixed },
    };
    while let Some(next) = normalizer.scan.peek() {
        normalizer.step(next);
    }
    normalizer.out.finish()
}

/// Whether capitals carry meaning in this text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Mixed,
    AllCapitals,
}

struct Normalizer<'a> {
    scan: Scan<'a>,
    out: Spoken,
    case: Case,
}

impl Normalizer<'_> {
    fn step(&mut self, next: char) {
        match next {
            'a'..='z' | 'A'..='Z' => self.word(),
            ' ' | '\t' | '\n' | '\r' => {
                self.scan.skip(1);
                self.out.gap();
            }
            '0'..='9' => amounts::number(&mut self.scan, &mut self.out),
            ',' | '!' | '?' | ';' | ':' | ')' | ']' | '}' | '…' => {
                self.scan.skip_char(next);
                self.out.close(if matches!(next, ']' | '}') { ')' } else { next });
            }
            '.' => self.dots(),
            '(' | '[' | '{' => {
                self.scan.skip(1);
                self.out.open('(');
            }
            '"' => {
                self.scan.skip(1);
                self.out.quote();
            }
            '-' | '–' | '—' | '−' => self.dash(next),
            _ if next.is_alphabetic() => self.word(),
            _ if vulgar(next).is_some() => amounts::number(&mut self.scan, &mut self.out),
            _ => self.sign(next),
        }
    }

    fn word(&mut self) {
        let mut ahead = self.scan;
        let word = ahead.take_letters();
        let mut dot = ahead;
        // Skips characters that the output drops before a dot: `Dr .` is read like `Dr.`.
        while let Some(silent) = dot.peek().filter(|c| is_silent(*c)) {
            dot.skip_char(silent);
        }
        if dot.take('.') && self.try_dotted(word, dot) {
            return;
        }
        let ascii_capital = word.as_bytes()[0].is_ascii_uppercase();
        if ascii_capital && self.try_capitals(word, &ahead) {
            return;
        }
        self.scan.skip(word.len());
        self.out.begin_word();
        push_lower_word(word, self.out.letters());
        self.inside();
    }

    /// An apostrophe between letters belongs to the word; the rest of the word follows.
    fn inside(&mut self) {
        while self.scan.peek() == Some('\'') {
            let tail = letters(&self.scan.rest()[1..]);
            if tail.is_empty() {
                return;
            }
            self.scan.skip(1 + tail.len());
            self.out.letters().push('\'');
            push_lower_word(tail, self.out.letters());
        }
    }

    /// `word` and the dot after it, where together they are an abbreviation.
    fn try_dotted(&mut self, word: &str, after: Scan<'_>) -> bool {
        let tight = self.scan.rest().len() - after.rest().len() == word.len() + 1;
        if word.chars().count() == 1 {
            return tight && self.try_initials(word, after);
        }
        let trimmed = after.rest().trim_start_matches(' ');
        if trimmed.starts_with(|c: char| c.is_ascii_digit())
            && let Some(words) = abbreviations::before_number(word)
        {
            self.skip_to(after);
            self.out.phrase(words);
            return true;
        }
        let name = self.saint_or_street(word, &after);
        let Some((words, dot)) = name.or_else(|| abbreviations::dotted(word)) else {
            return tight && self.try_site(word, after);
        };
        self.skip_to(after);
        self.out.phrase(words);
        let capital = after.word_after().starts_with(char::is_uppercase);
        let ends = after.at_end() && dot != Dot::Never || capital && dot == Dot::BeforeCapital;
        if ends {
            self.out.close('.');
        }
        true
    }

    /// Before a name `St.` is a saint and `Dr.` a doctor; after one, a street and a drive.
    fn saint_or_street(&self, word: &str, after: &Scan<'_>) -> Option<(&'static str, Dot)> {
        let (person, road) = if word.eq_ignore_ascii_case("st") {
            ("saint", "street")
        } else if word.eq_ignore_ascii_case("dr") {
            ("doctor", "drive")
        } else {
            return None;
        };
        let capital = |word: &str| word.starts_with(char::is_uppercase);
        let named = capital(after.word_after());
        let after_name = capital(self.scan.word_before());
        Some(match (named, after_name) {
            (false, true) => (road, Dot::AtEnd),
            _ => (person, Dot::Never),
        })
    }

    /// `U.S.A.`, `e.g.`, and the `J.` of `J. Smith`.
    fn try_initials(&mut self, first: &str, mut after: Scan<'_>) -> bool {
        let mut spelled = String::new();
        first.chars().for_each(|c| push_lower(c, &mut spelled));
        loop {
            let letter = letters(after.rest());
            if letter.chars().count() != 1 {
                break;
            }
            letter.chars().for_each(|c| push_lower(c, &mut spelled));
            after.skip(letter.len());
            if !after.take('.') {
                break;
            }
        }
        if spelled.chars().count() > 1 && after.peek().is_none_or(|c| !c.is_alphanumeric()) {
            self.skip_to(after);
            match abbreviations::initials(&spelled) {
                Some(words) => self.out.phrase(words),
                None => self.spell(&spelled),
            }
            if after.at_end() && after.before() == Some('.') {
                self.out.close('.');
            }
            return true;
        }
        let mut after = self.scan;
        after.skip(first.len() + 1);
        let digits_next =
            after.rest().trim_start_matches(' ').starts_with(|c: char| c.is_ascii_digit());
        if digits_next && first.eq_ignore_ascii_case("p") {
            self.skip_to(after);
            self.out.phrase("page");
            return true;
        }
        // `So do I. He` ends a sentence, `J. Smith` does not.
        let initial = first != "I" && first.starts_with(|c: char| c.is_ascii_uppercase());
        if initial && after.word_after().starts_with(char::is_uppercase) {
            self.skip_to(after);
            self.out.word(&spelled[..1]);
            return true;
        }
        false
    }

    fn skip_to(&mut self, after: Scan<'_>) {
        self.scan.skip(self.scan.rest().len() - after.rest().len());
    }

    /// `example.com`: a dot before a lower-case letter is spoken.
    fn try_site(&mut self, word: &str, after: Scan<'_>) -> bool {
        let site = after.peek().is_some_and(char::is_lowercase);
        if site {
            self.out.begin_word();
            push_lower_word(word, self.out.letters());
            self.skip_to(after);
            self.out.phrase("dot");
        }
        site
    }

    /// Capitalised words with a special reading: `Dr Smith`, `BBC`, `Henry VIII`.
    fn try_capitals(&mut self, word: &str, ahead: &Scan<'_>) -> bool {
        if word == "US" && ahead.peek() == Some('$') {
            self.scan.skip(2);
            return true;
        }
        if self.case == Case::AllCapitals {
            return false;
        }
        let named = || ahead.word_after().starts_with(char::is_uppercase);
        if let Some(words) = abbreviations::undotted(word).filter(|_| named()) {
            self.scan.skip(word.len());
            self.out.phrase(words);
            return true;
        }
        if self.try_roman(word) {
            return true;
        }
        if abbreviations::is_spelled(word) {
            self.scan.skip(word.len());
            self.spell(&word.to_ascii_lowercase());
            self.inside();
            return true;
        }
        false
    }

    fn try_roman(&mut self, word: &str) -> bool {
        let Some(value) = abbreviations::roman(word) else { return false };
        let before = self.scan.word_before();
        let digits = value.to_string();
        let words = if abbreviations::counts_in_roman(before) {
            numbers::cardinal(&digits)
        } else if word != "I" && abbreviations::is_regnal(before) {
            format!("the {}", numbers::ordinal(&digits))
        } else {
            return false;
        };
        self.scan.skip(word.len());
        self.out.phrase(&words);
        true
    }

    fn spell(&mut self, letters: &str) {
        for (index, letter) in letters.chars().enumerate() {
            if index > 0 {
                self.out.gap();
            }
            self.out.word(letter.encode_utf8(&mut [0; 4]));
        }
    }

    fn dots(&mut self) {
        let mark = self.scan.take_dots();
        self.out.close(mark);
    }

    fn dash(&mut self, mark: char) {
        match self.scan.take_dash(mark, |c| units::currency(c).is_some()) {
            DashMeaning::Minus => self.out.phrase("minus"),
            DashMeaning::Hyphen => self.out.hyphen(),
            DashMeaning::Pause => self.out.dash(),
            DashMeaning::Space => self.out.gap(),
        }
    }

    fn sign(&mut self, sign: char) {
        let mut after = self.scan;
        after.skip_char(sign);
        if let Some(kind) = units::currency(sign) {
            let number = after.rest().strip_prefix(' ').unwrap_or(after.rest());
            if number.starts_with(|c: char| c.is_ascii_digit()) {
                self.scan.skip(self.scan.rest().len() - number.len());
                return amounts::money(&mut self.scan, &mut self.out, kind);
            }
        }
        let between_letters = self.scan.is_between_letters(sign);
        self.scan.skip_char(sign);
        match sign {
            '\'' | '`' => self.out.gap(),
            '/' if between_letters => self.out.gap(),
            '¿' | '¡' => self.out.gap(),
            '#' if after.peek().is_some_and(|c| c.is_ascii_digit()) => self.out.phrase("number"),
            _ if sign.is_whitespace() => self.out.gap(),
            _ => match spoken_sign(sign) {
                Some(words) => self.out.phrase(words),
                None => self.out.unknown(sign),
            },
        }
    }
}

fn spoken_sign(sign: char) -> Option<&'static str> {
    Some(match sign {
        '&' => "and",
        '@' => "at",
        '#' => "hash",
        '+' => "plus",
        '=' => "equals",
        '%' => "percent",
        '/' => "slash",
        '~' | '≈' => "about",
        '×' => "times",
        '÷' => "divided by",
        '±' => "plus or minus",
        '§' => "section",
        '°' => "degrees",
        '²' => "squared",
        '³' => "cubed",
        _ => return units::currency(sign).map(|kind| kind.one),
    })
}

/// Characters that become a space, or nothing before a punctuation mark.
fn is_silent(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\'' | '`' | '-' | '¿' | '¡')
}

#[inline]
fn push_lower_word(word: &str, out: &mut String) {
    if word.is_ascii() {
        let start = out.len();
        out.push_str(word);
        out[start..].make_ascii_lowercase();
    } else {
        word.chars().for_each(|c| push_lower(c, out));
    }
}

/// Removes accents from Latin letters: the few French words in English text would otherwise use
/// symbols that are hardly ever trained.
fn without_accents(folded: &str) -> String {
    let mut out = String::with_capacity(folded.len());
    for c in folded.chars() {
        match c {
            _ if c.is_ascii() => out.push(c),
            ZWNJ => {}
            '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' => {
                decompose_canonical(c, |part| push_base(part, &mut out));
            }
            _ => push_base(c, &mut out),
        }
    }
    out
}

fn push_base(c: char, out: &mut String) {
    match c {
        'æ' => out.push_str("ae"),
        'Æ' => out.push_str("Ae"),
        'œ' => out.push_str("oe"),
        'Œ' => out.push_str("Oe"),
        'ß' | 'ẞ' => out.push_str("ss"),
        'ø' => out.push('o'),
        'Ø' => out.push('O'),
        'ł' => out.push('l'),
        'Ł' => out.push('L'),
        'đ' | 'ð' => out.push('d'),
        'Đ' | 'Ð' => out.push('D'),
        'þ' => out.push_str("th"),
        'Þ' => out.push_str("Th"),
        'ı' => out.push('i'),
        _ if is_combining_mark(c) => {}
        _ => out.push(c),
    }
}

#[cfg(test)]
mod tests;
