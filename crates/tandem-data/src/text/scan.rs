//! A place in a folded text, with a look at what is before and after it.
//!
//! Used by the readers of all languages. Never moves back.

/// A text and how far it has been read.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    /// Starts at the beginning.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// What is not read yet.
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

    /// The character just read.
    pub fn before(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    /// Moves on by `bytes`, which must end between two characters.
    #[inline]
    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Moves on by as many bytes as `of` has.
    pub fn skip_char(&mut self, of: char) {
        self.at += of.len_utf8();
    }

    /// Moves past `expected` if it is next.
    pub fn take(&mut self, expected: char) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.skip_char(expected);
        }
        found
    }

    /// Moves past the dots next and tells what they are: one ends a sentence, three or more (with
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

    /// The run of letters next, and moves past it.
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

    /// The word after the white space that begins here; empty where a mark comes first.
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

/// The letters a text begins with.
pub fn letters(text: &str) -> &str {
    let end = text
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_alphabetic() || !c.is_ascii() && c.is_alphabetic()))
        .map_or(text.len(), |(end, _)| end);
    &text[..end]
}
