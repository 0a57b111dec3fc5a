//! English text normalisation: numbers, abbreviations and signs become words.
//!
//! In: folded text. Out: lower-case words and the shared punctuation. Normalising the output again
//! changes nothing. An unknown sign (`★`) stays, so that the symbol table can report it. Next on the path: [`super::lexicon`].

mod markup; // <break/>, [HH AH0 L OW1]
pub(super) mod abbreviations; // Mr., Inc., BBC
mod acronyms; // UCLA is spelled, NATO is not
mod letter_a; // Plan A
mod signs; // &, %, π
mod accents; // café
mod roman; // Henry VIII, Chapter IV
mod streets; // 123 Main St., Apt. 4B, Boston, MA
mod cities; // Tulsa, OK
mod web; // example.com, info@example.com
mod amounts; // the classes of numbers, in order
mod arithmetic; // 1-2=5
mod formulas; // f(x), NaCl
mod codes; // 10.0.0.1, 401(k), serial numbers
mod clock; // 3:05 pm, 0800 hours
mod dates; // July 25 2012, 25 jul, Mon-Fri
mod phone; // (212) 555-0147
mod fractions; // 3/4ths, 5 1/2
mod money; // $3.50, $250-$300
mod measures; // what follows a number: %, km, USD
mod units; // names of units and currencies
mod years; // whether 1984 is a year or a quantity
mod numbers; // number words

use super::folding::push_lower;
use super::numeral::{digits, vulgar};
use super::scan::{DashMeaning, Scan, letters};
use super::spoken::Spoken;
use super::words::{PHONEMES_BEGIN, PHONEMES_END};
use abbreviations::Dot;
use signs::{greek, is_silent_slash, spoken_sign};

/// Writes folded text as it is spoken.
pub fn normalize(folded: &str) -> String {
    let folded = &*markup::without_markup(folded);
    // Accents are removed first, so that later rules see each word in one form.
    if folded.is_ascii() { run(folded) } else { run(&accents::without_accents(folded)) }
}

fn run(folded: &str) -> String {
    let mut words = folded.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 1);
    // One or two words may be acronyms: `AD 79`, `IBM`.
    let all_capitals =
        !folded.bytes().any(|b| b.is_ascii_lowercase()) && words.nth(MOST_ACRONYMS).is_some();
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

/// A text in capitals with more words than these is written so throughout.
const MOST_ACRONYMS: usize = 2;

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
            PHONEMES_BEGIN => self.phonemes(),
            markup::PAUSE => {
                self.scan.skip_char(next);
                self.out.pause();
            }
            ',' | '!' | '?' | ';' | ':' | ')' | ']' | '}' | '…' => {
                self.scan.skip_char(next);
                self.out.close(if matches!(next, ']' | '}') { ')' } else { next });
            }
            '.' => self.dots(),
            '(' if phone::try_phone(&mut self.scan, &mut self.out) => {}
            '(' | '[' | '{' => {
                self.scan.skip(1);
                self.out.open('(');
            }
            '"' => {
                self.scan.skip(1);
                self.out.quote();
            }
            '-' | '–' | '—' | '−' => self.dash(next),
            _ if greek(next).is_some() && self.scan.is_alone(next) => {
                self.scan.skip_char(next);
                self.out.phrase(greek(next).unwrap_or_default());
            }
            _ if next.is_alphabetic() => self.word(),
            _ if vulgar(next).is_some() => amounts::number(&mut self.scan, &mut self.out),
            _ => self.sign(next),
        }
    }

    /// Phonemes that the text gives, with their marks.
    fn phonemes(&mut self) {
        let rest = self.scan.rest();
        let len = rest.find(PHONEMES_END).map_or(rest.len(), |end| end + PHONEMES_END.len_utf8());
        self.out.apart();
        self.out.begin_word();
        self.out.letters().push_str(&rest[..len]);
        self.scan.skip(len);
        self.out.end_number();
    }

    fn word(&mut self) {
        let (scan, out) = (&mut self.scan, &mut self.out);
        if web::try_web(scan, out)
            || self.case == Case::Mixed && formulas::try_formula(scan, out)
            || codes::try_version_letter(scan, out)
            || self.case == Case::Mixed && codes::try_serial(scan, out)
            || dates::try_weekday(scan, out)
            || dates::try_month_first(scan, out)
        {
            return;
        }
        if let Some((words, len)) = abbreviations::mixed(self.scan.rest()) {
            self.scan.skip(len);
            return self.out.phrase(words);
        }
        let mut ahead = self.scan;
        let word = ahead.take_letters();
        if self.try_roman(word) {
            return;
        }
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
        let counted = ahead.rest().strip_prefix(' ').is_some_and(|rest| !digits(rest).is_empty());
        if counted && matches!(word, "Hwy" | "hwy" | "Rte" | "Rt") {
            self.scan.skip(word.len());
            return self.out.phrase(abbreviations::before_number(word).unwrap_or_default());
        }
        if let Some(road) = streets::road_in_address(word, &self.scan) {
            self.scan.skip(word.len());
            return self.out.phrase(road);
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
        let numeral =
            super::roman_numeral::value(letters(trimmed)).is_some() && roman::counts_in_roman(word);
        if (numeral || trimmed.starts_with(|c: char| c.is_ascii_digit()))
            && let Some(words) = abbreviations::before_number(word)
        {
            self.skip_to(after);
            self.out.phrase(words);
            return true;
        }
        let road = streets::road_or_person(word, &self.scan, &after);
        let Some((words, dot)) = road.or_else(|| abbreviations::dotted(word)) else {
            return tight && self.try_site(word, after);
        };
        self.skip_to(after);
        self.out.phrase(words);
        let capital = after.word_after().starts_with(char::is_uppercase);
        let ends = after.at_end() && dot != Dot::Never || capital && dot == Dot::BeforeCapital;
        if ends {
            self.out.close('.');
        }
        streets::take_quadrant(&mut self.scan, &mut self.out);
        true
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
        let counted = match first {
            "p" | "P" if digits_next => Some("page"),
            "c" if digits_next => Some("circa"),
            _ => streets::direction(first).filter(|_| is_street_after(&after)),
        };
        if let Some(words) = counted {
            self.skip_to(after);
            self.out.phrase(words);
            return true;
        }
        // `So do I. He` ends a sentence, `J. Smith` does not.
        let initial = first != "I" && first.starts_with(|c: char| c.is_ascii_uppercase());
        let named = letter_a::is_cue(self.scan.name_before());
        if initial && !named && after.word_after().starts_with(char::is_uppercase) {
            self.skip_to(after);
            spelled.chars().take(1).for_each(|letter| self.out.letter(letter));
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
        if money::try_money(&mut self.scan, &mut self.out) {
            return true;
        }
        if streets::try_state(word, &mut self.scan, &mut self.out) {
            return true;
        }
        if self.case == Case::AllCapitals {
            return false;
        }
        let named = ahead.word_after().starts_with(char::is_uppercase);
        let road = streets::road(word)
            .and_then(|_| streets::road_or_person(word, &self.scan, ahead))
            .map(|(words, _)| words)
            .filter(|words| named || !matches!(*words, "saint" | "doctor"));
        if let Some(words) = road.or_else(|| abbreviations::undotted(word).filter(|_| named)) {
            self.scan.skip(word.len());
            self.out.phrase(words);
            streets::take_quadrant(&mut self.scan, &mut self.out);
            return true;
        }
        if word == "Tel" && ahead.peek() == Some(':') {
            self.scan.skip(word.len());
            self.out.phrase("telephone");
            return true;
        }
        self.try_acronym(word, ahead)
            || self.try_direction(word, ahead)
            || self.try_letter(word, ahead)
    }

    /// `S 1st st`, `E Main St`: a direction without its dot.
    fn try_direction(&mut self, word: &str, ahead: &Scan<'_>) -> bool {
        let Some(words) = streets::direction(word).filter(|_| is_street_after(ahead)) else {
            return false;
        };
        self.scan.skip(word.len());
        self.out.phrase(words);
        true
    }

    /// A capital that is said by its name.
    fn try_letter(&mut self, word: &str, ahead: &Scan<'_>) -> bool {
        let name = ahead.rest().strip_prefix('\'').is_some_and(|rest| letters(rest).len() > 1);
        let is_letter = match word.as_bytes() {
            [b'A'] => letter_a::is_letter(&self.scan, ahead),
            [b'I'] => false,
            [b'B'..=b'Z'] => !name,
            _ => false,
        };
        if is_letter {
            self.scan.skip(word.len());
            word.chars().for_each(|letter| self.out.letter(letter.to_ascii_lowercase()));
            self.inside();
        }
        is_letter
    }

    /// `BBC`, `DVDs`, `AT&T`, `CO2`, `AD 79`: letters that are said one by one.
    fn try_acronym(&mut self, word: &str, ahead: &Scan<'_>) -> bool {
        let stem = word.strip_suffix('s').unwrap_or(word);
        let capitals = stem.bytes().all(|b| b.is_ascii_uppercase());
        let rest = ahead.rest();
        let joined =
            rest.strip_prefix('&').is_some_and(|rest| rest.starts_with(char::is_uppercase))
                || self.scan.before() == Some('&');
        let digit_next = rest.starts_with(|c: char| c.is_ascii_digit());
        let year_next = rest.trim_start_matches(' ').starts_with(|c: char| c.is_ascii_digit());
        let year_before = self.scan.token_before().ends_with(|c: char| c.is_ascii_digit());
        let who = word == "WHO" && self.scan.word_before().eq_ignore_ascii_case("the");
        // `WASN'T`: a word in capitals.
        let short = rest
            .strip_prefix('\'')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
        let field = word == "IT"
            && acronyms::is_information_technology(self.scan.word_before(), ahead.word_after());
        let spelled = abbreviations::is_spelled(stem) && !short
            || who
            || field
            || stem.len() <= 2 && (joined || digit_next && stem.len() == 2)
            || abbreviations::is_era(stem) && (year_next || year_before);
        if !capitals || !spelled || stem.len() < 2 && !joined {
            return false;
        }
        self.scan.skip(word.len());
        self.spell(&stem.to_ascii_lowercase());
        if stem.len() < word.len() {
            self.out.letters().push_str("'s");
        }
        self.inside();
        true
    }

    fn try_roman(&mut self, word: &str) -> bool {
        let Some(words) = roman::reading(word, &self.scan) else { return false };
        self.scan.skip(word.len());
        self.out.phrase(&words);
        if self.scan.rest().starts_with("'s") && !letters(&self.scan.rest()[1..]).starts_with("s'")
        {
            self.scan.skip(2);
            self.out.letters().push_str("'s");
        }
        true
    }

    fn spell(&mut self, letters: &str) {
        for (index, letter) in letters.chars().enumerate() {
            if index > 0 {
                self.out.gap();
            }
            self.out.letter(letter);
        }
    }

    fn dots(&mut self) {
        if amounts::try_bare_decimal(&mut self.scan, &mut self.out) {
            return;
        }
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
        let (scan, out) = (&mut self.scan, &mut self.out);
        let read = match sign {
            '+' => phone::try_phone(scan, out),
            '\'' => amounts::try_short_year(scan, out),
            '#' | '@' => web::try_tag(scan, out),
            _ => money::try_money(scan, out),
        };
        if read {
            return;
        }
        let before = self.scan;
        let mut after = self.scan;
        after.skip_char(sign);
        let digit_next = after.peek().is_some_and(|c| c.is_ascii_digit());
        let between_letters = self.scan.is_between_letters(sign);
        let inside_name = self.scan.before().is_some_and(char::is_alphanumeric)
            && after.peek().is_some_and(char::is_alphanumeric);
        if let Some((words, len)) = arithmetic::power(self.scan.rest()) {
            self.scan.skip(len);
            return self.out.phrase(&words);
        }
        self.scan.skip_char(sign);
        match sign {
            '\'' | '`' => self.out.gap(),
            '_' if !inside_name => {
                // Apart, so that reading it again does not find a name.
                self.out.gap();
                self.out.unknown(sign);
            }
            '/' if between_letters && is_silent_slash(&before) => self.out.gap(),
            '¿' | '¡' => self.out.gap(),
            '#' if digit_next => self.out.phrase("number"),
            '>' if digit_next => self.out.phrase("more than"),
            _ if sign.is_whitespace() => self.out.gap(),
            _ => match spoken_sign(sign) {
                Some(words) => self.out.phrase(words),
                None => self.out.unknown(sign),
            },
        }
    }
}

/// Whether the name of a street follows: `W. 42nd St.`
fn is_street_after(after: &Scan<'_>) -> bool {
    after.rest().strip_prefix(' ').is_some_and(streets::is_street)
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

#[cfg(test)]
mod tests;
