//! Persian text normalisation: one spelling per word, numbers and signs as words.
//!
//! In: folded text. Out: Persian letters, ZWNJ inside words only, the shared punctuation.
//! Normalising the output again changes nothing. Latin words stay, in lower case. Never
//! guesses short vowels: that is the task of [`super::pronounce`] and the phonemiser.

mod amounts; // the classes of numbers, in order
mod dates; // «۱۲ مرداد ۱۴۰۳», 1403/05/12
mod money; // $3.50, $250-$300
mod phone; // 021-8877, +98 912 345 6789
mod fractions; // 3/4, 3½
mod joining; // ZWNJ in place of a typed space
mod letters; // Arabic code points and diacritics
mod names; // units, currencies, months, abbreviations
mod numbers; // number words

pub(crate) use names::is_month;

use super::DiacriticsPolicy;
use super::folding::push_lower;
use super::numeral::vulgar;
use super::roman_numeral::value;
use super::scan::{DashMeaning, Scan, letters as scan_letters};
use super::spoken::Spoken;
use super::symbols::ZWNJ;

/// Writes folded text as it is spoken.
pub fn normalize(folded: &str, policy: DiacriticsPolicy) -> String {
    let spelled = letters::fold_text(folded, policy);
    let mut normalizer =
        Normalizer { scan: Scan::new(&spelled), out: Spoken::with_capacity(spelled.len()) };
    while let Some(next) = normalizer.scan.peek() {
        normalizer.step(next);
    }
    normalizer.out.finish()
}

struct Normalizer<'a> {
    scan: Scan<'a>,
    out: Spoken,
}

impl Normalizer<'_> {
    fn step(&mut self, next: char) {
        match next {
            ' ' | '\t' | '\n' | '\r' => {
                self.scan.skip(1);
                self.out.gap();
            }
            _ if letters::in_word(next) => self.persian_word(),
            '0'..='9' => self.number(),
            ',' | '!' | '?' | ';' | ':' | ')' | ']' | '}' | '…' => {
                self.scan.skip_char(next);
                self.out.close(if matches!(next, ']' | '}') { ')' } else { next });
            }
            '.' => self.dots(),
            '(' if self.try_phone() => {}
            '(' | '[' | '{' => self.bracket(),
            '"' => {
                self.scan.skip(1);
                self.out.quote();
            }
            '-' | '–' | '—' => self.dash(next),
            _ if next.is_alphabetic() => self.foreign_word(),
            _ if vulgar(next).is_some() => self.number(),
            _ => self.sign(next),
        }
    }

    fn persian_word(&mut self) {
        if self.try_initials() {
            return;
        }
        let rest = self.scan.rest();
        let end = rest.find(|c: char| !letters::in_word(c)).unwrap_or(rest.len());
        self.scan.skip(end);
        let word = &rest[..end];
        let after = self.scan.rest();
        let after = after.strip_prefix('.').unwrap_or(after).trim_start_matches(' ');
        let number_next = after.starts_with(|c: char| c.is_ascii_digit());
        match names::before_number(word).filter(|_| number_next) {
            Some(words) => {
                self.scan.take('.');
                self.say(words);
            }
            None => self.emit(word),
        }
    }

    /// Writes one word; joins it to the previous one if both are parts of one word.
    fn emit(&mut self, word: &str) {
        let joined = self.out.word_before_gap().is_some_and(|before| joining::joins(before, word));
        if joined {
            let start = self.out.word_start();
            self.out.join(ZWNJ);
            self.out.word(word);
            self.out.set_word_start(start);
        } else {
            self.out.word(word);
        }
    }

    /// Writes words that replace digits, a sign or an abbreviation.
    fn say(&mut self, words: &str) {
        for word in words.split(' ') {
            self.out.apart();
            self.emit(word);
        }
        self.out.end_number();
    }

    /// Latin and other letters stay, in lower case.
    fn foreign_word(&mut self) {
        if self.try_roman() {
            return;
        }
        self.out.begin_word();
        while let Some(c) = self.scan.peek().filter(|c| c.is_alphabetic() && !letters::in_word(*c))
        {
            self.scan.skip_char(c);
            push_lower(c, self.out.letters());
        }
        // `example.com`: a dot inside an address is spoken.
        let rest = self.scan.rest();
        if rest
            .strip_prefix('.')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        {
            self.scan.skip(1);
            self.say("دات");
        }
    }

    /// «جنگ جهانی II»: a numeral of two letters or more after a Persian word.
    fn try_roman(&mut self) -> bool {
        let word = scan_letters(self.scan.rest());
        let after_word =
            self.scan.before() == Some(' ') && self.scan.word_before().ends_with(letters::in_word);
        let numeral = word.len() > 1 && word.bytes().all(|b| matches!(b, b'I' | b'V' | b'X'));
        let Some(value) = value(word).filter(|_| after_word && numeral) else { return false };
        self.scan.skip(word.len());
        self.say(&numbers::ordinal(&value.to_string()));
        true
    }

    /// «ق.م», «ه. ش.»: known ones in any spacing.
    fn try_initials(&mut self) -> bool {
        let mut after = self.scan;
        let Some(first) = lone_letter(&mut after) else { return false };
        let gap = after.rest();
        let between = gap.len() - gap.trim_start_matches(is_between).len();
        if !gap[..between].contains('.') {
            return false;
        }
        after.skip(between);
        let Some(second) = lone_letter(&mut after) else { return false };
        let Some(words) = names::initials(first, second) else { return false };
        after.take('.');
        self.scan.skip(self.scan.rest().len() - after.rest().len());
        self.say(words);
        if after.before() == Some('.') && after.at_end() {
            self.out.close('.');
        }
        true
    }

    /// «(ص)» after a name is said in full; other brackets are brackets.
    fn bracket(&mut self) {
        let inside = &self.scan.rest()[1..];
        let end = inside.find(')').unwrap_or(0);
        match names::honorific(&inside[..end]) {
            Some(words) => {
                self.scan.skip(end + 2);
                self.say(words);
            }
            None => {
                self.scan.skip(1);
                self.out.open('(');
            }
        }
    }

    fn dots(&mut self) {
        let mark = self.scan.take_dots();
        self.out.close(mark);
    }

    fn dash(&mut self, mark: char) {
        match self.scan.take_dash(mark, |c| names::currency(c).is_some()) {
            DashMeaning::Minus => self.say("منفی"),
            DashMeaning::Hyphen => self.out.hyphen(),
            DashMeaning::Pause => self.out.dash(),
            DashMeaning::Space => self.out.gap(),
        }
    }

    fn sign(&mut self, sign: char) {
        let mut after = self.scan;
        after.skip_char(sign);
        let rest = after.rest();
        let number = rest.strip_prefix(' ').unwrap_or(rest);
        let number_next = number.starts_with(|c: char| c.is_ascii_digit());
        if let Some((name, coin)) = names::currency(sign).filter(|_| number_next) {
            self.scan.skip(self.scan.rest().len() - number.len());
            return self.money(name, coin);
        }
        if sign == '+' && self.try_phone() {
            return;
        }
        // «٪۲۰»: the sign may be on either side of its number.
        if sign == '%' && rest.len() == number.len() && number_next {
            self.scan.skip(1);
            return self.money("درصد", "");
        }
        let between_letters = self.scan.is_between_letters(sign);
        self.scan.skip_char(sign);
        match sign {
            '\'' | '`' | '¿' | '¡' => self.out.gap(),
            '/' if between_letters => self.out.gap(),
            _ if sign.is_whitespace() => self.out.gap(),
            _ => match names::sign(sign) {
                Some(words) => self.say(words),
                None => self.out.unknown(sign),
            },
        }
    }
}

/// A word of one letter; moves past it.
fn lone_letter(scan: &mut Scan<'_>) -> Option<char> {
    let letter = scan.peek().filter(|c| letters::in_word(*c))?;
    scan.skip_char(letter);
    let more = scan.peek().is_some_and(|c| letters::in_word(c) || c.is_alphabetic());
    (!more).then_some(letter)
}

/// Dots, and characters that become a space.
fn is_between(c: char) -> bool {
    c.is_whitespace() || matches!(c, '.' | '\'' | '`' | '-' | '¿' | '¡')
}

#[cfg(test)]
mod tests;
