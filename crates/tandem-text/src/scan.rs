//! A cursor in a folded text, with access to the text before and after it.
//!
//! In: folded text. Out: characters and words. Used by the normalisation of all languages. Never moves
//! back.

/// How far back a token is looked for, in bytes: a text may have no space at all.
const LONGEST_TOKEN: usize = 200;

/// A text and a position in it.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Up to `most` bytes before the position.
    pub fn before_text(&self, most: usize) -> &'a str {
        let from = self.text.floor_char_boundary(self.at.saturating_sub(most));
        &self.text[from..self.at]
    }

    /// The text after the position.
    #[inline]
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The next character.
    #[inline]
    pub fn peek(&self) -> Option<char> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            Some(_) => self.rest().chars().next(),
            None => None,
        }
    }

    /// The character before the position.
    pub fn before(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    /// Moves forward by `bytes`, to a character boundary.
    #[inline]
    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Moves forward by the length of `of`.
    pub fn skip_char(&mut self, of: char) {
        self.at += of.len_utf8();
    }

    /// Moves past `expected` if it is the next character.
    pub fn take(&mut self, expected: char) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.skip_char(expected);
        }
        found
    }

    /// Moves past the next dots and returns their meaning: one ends a sentence; three or more (with
    /// or without spaces) are a pause.
    pub fn take_dots(&mut self) -> char {
        let rest = self.rest();
        let run = rest.len() - rest.trim_start_matches(['.', ' ']).len();
        if rest[..run].bytes().filter(|b| *b == b'.').count() < 3 {
            self.skip(1);
            return '.';
        }
        self.skip(rest[..run].trim_end().len());
        '…'
    }

    /// Moves past a run of `mark` (a hyphen, dash or minus sign) and decides what it means.
    pub fn take_dash(&mut self, mark: char, is_currency: impl Fn(char) -> bool) -> DashMeaning {
        let rest = self.rest();
        let run = rest.len() - rest.trim_start_matches(mark).len();
        let next = rest[run..].chars().next();
        let before = self.before();
        self.skip(run);
        let number_next = next.is_some_and(|c| c.is_ascii_digit() || is_currency(c));
        let free = before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '"'));
        match (mark, run / mark.len_utf8()) {
            ('−', _) => DashMeaning::Minus,
            ('-' | '–', 1) if number_next && free => DashMeaning::Minus,
            ('-', 1) => match next {
                Some(c) if c.is_alphanumeric() => DashMeaning::Hyphen,
                Some(' ') | None if free => DashMeaning::Pause,
                _ => DashMeaning::Space,
            },
            _ => DashMeaning::Pause,
        }
    }

    /// Moves past the mark of `10-20` or `3:1`, directly after the first number.
    pub fn take_range_mark(&mut self) -> Option<char> {
        let mut chars = self.rest().chars();
        let mark = chars.next().filter(|c| matches!(c, '-' | '–' | ':'))?;
        chars.next().filter(char::is_ascii_digit)?;
        self.skip_char(mark);
        Some(mark)
    }

    /// Whether `sign`, which is next, has a letter on each side.
    pub fn is_between_letters(&self, sign: char) -> bool {
        let after = self.rest()[sign.len_utf8()..].chars().next();
        self.before().is_some_and(char::is_alphabetic) && after.is_some_and(char::is_alphabetic)
    }

    /// Whether no letter is beside `letter`, which is next.
    pub fn is_alone(&self, letter: char) -> bool {
        let after = self.rest()[letter.len_utf8()..].chars().next();
        ![self.before(), after].into_iter().flatten().any(char::is_alphabetic)
    }

    /// The next run of letters; moves past it.
    pub fn take_letters(&mut self) -> &'a str {
        let run = letters(self.rest());
        self.at += run.len();
        run
    }

    /// The word before the white space that ends here, as it was written.
    pub fn word_before(&self) -> &'a str {
        let head = self.text[..self.at].trim_end();
        let start = head.trim_end_matches(|c: char| c.is_alphabetic()).len();
        &head[start..]
    }

    /// The character before what becomes a space in the output.
    pub fn mark_before(&self) -> Option<char> {
        self.text[..self.at].trim_end_matches(is_gap).chars().next_back()
    }

    /// The word before the white space that ends here, without the dot of an abbreviation or the
    /// colon of a label.
    pub fn name_before(&self) -> &'a str {
        let head = self.text[..self.at].trim_end_matches(is_gap);
        let head = head.trim_end_matches(['.', ':']);
        &head[head.trim_end_matches(|c: char| c.is_alphabetic()).len()..]
    }

    /// Up to `most` words before the white space that ends here, last first. Dots and spaces separate
    /// them; anything else ends them.
    pub fn names_before(&self, most: usize) -> impl Iterator<Item = &'a str> {
        let mut head = &self.text[..self.at];
        std::iter::from_fn(move || {
            head = head.trim_end_matches([' ', '.']);
            let start = head.trim_end_matches(|c: char| c.is_alphabetic()).len();
            let word = &head[start..];
            head = &head[..start];
            (!word.is_empty()).then_some(word)
        })
        .take(most)
    }

    /// The text before the white space that ends here, up to the white space before it.
    pub fn token_before(&self) -> &'a str {
        let head = self.before_text(LONGEST_TOKEN).trim_end();
        let start = head
            .rfind(char::is_whitespace)
            .and_then(|space| Some(space + head[space..].chars().next()?.len_utf8()));
        &head[start.unwrap_or(0)..]
    }

    /// Whether a capitalised word and a comma are before the white space that ends here.
    pub fn place_before(&self) -> bool {
        let Some(head) = self.text[..self.at].trim_end().strip_suffix(',') else { return false };
        let start = head.trim_end_matches(|c: char| c.is_alphabetic()).len();
        head[start..].starts_with(char::is_uppercase)
    }

    /// The word after the white space that begins here; empty if a mark comes first.
    pub fn word_after(&self) -> &'a str {
        let rest = self.rest();
        let trimmed = rest.trim_start();
        if trimmed.len() == rest.len() { "" } else { letters(trimmed) }
    }

    /// Only white space, quotes and closing marks are left.
    pub fn at_end(&self) -> bool {
        self.rest().chars().all(|c| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | ']' | '.'))
    }
}

/// What may become a space in the output.
fn is_gap(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\'' | '`' | '-' | '¿' | '¡' | '/')
}

/// The meaning of a hyphen, dash or minus sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DashMeaning {
    /// Said as a word: `-5`.
    Minus,
    /// Inside a compound word.
    Hyphen,
    /// A dash between words.
    Pause,
    /// Nothing but a gap between words.
    Space,
}

/// The letters a text begins with.
pub fn letters(text: &str) -> &str {
    let end = text
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_alphabetic() || !c.is_ascii() && c.is_alphabetic()))
        .map_or(text.len(), |(end, _)| end);
    &text[..end]
}
