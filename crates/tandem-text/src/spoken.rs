//! Writes normalised text: one space between words, marks attached to the word before them.
//!
//! In: words, numbers and marks in order. Out: a string without double marks and spaces. Writing the
//! output again gives the same string, which the normalisation of all languages relies on. Knows no
//! language.

use super::words::SPELLED;

/// What was written last; it decides whether a space is needed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Start,
    Word,
    /// Words for digits: a letter after them starts a new word.
    Number,
    Hyphen,
    Close,
    Open,
    Quote,
    Dash,
}

/// The normalised text so far.
#[derive(Debug)]
pub struct Spoken {
    out: String,
    last: Last,
    /// White space followed.
    gap: bool,
    /// Start of the last word in `out`.
    word: usize,
}

impl Spoken {
    /// Capacity for a text of `bytes` with some numbers in it.
    pub fn with_capacity(bytes: usize) -> Self {
        let out = String::with_capacity(bytes + bytes / 4 + 16);
        Self { out, last: Last::Start, gap: false, word: 0 }
    }

    /// White space of any length.
    #[inline]
    pub fn gap(&mut self) {
        self.gap = true;
    }

    /// Starts a word; the caller then writes its letters with [`Self::letters`].
    #[inline]
    pub fn begin_word(&mut self) {
        let tied = match self.last {
            Last::Start | Last::Open | Last::Hyphen => true,
            Last::Word | Last::Quote => !self.gap,
            Last::Number | Last::Close | Last::Dash => false,
        };
        let inside = tied && self.last == Last::Word;
        self.space_unless(tied);
        if !inside {
            self.word = self.out.len();
        }
        self.last = Last::Word;
    }

    /// The output, to append letters of the current word.
    pub fn letters(&mut self) -> &mut String {
        &mut self.out
    }

    /// A whole word, already in lower case.
    #[inline]
    pub fn word(&mut self, word: &str) {
        self.begin_word();
        self.out.push_str(word);
    }

    /// A letter that is said by its name, already in lower case.
    pub fn letter(&mut self, letter: char) {
        self.begin_word();
        self.out.push(letter);
        self.out.push(SPELLED);
    }

    /// One or more separate words.
    pub fn phrase(&mut self, words: &str) {
        self.number(words);
    }

    /// Words that replace digits or a sign.
    pub fn number(&mut self, words: &str) {
        let tied = match self.last {
            Last::Start | Last::Open | Last::Hyphen => true,
            Last::Quote => !self.gap,
            _ => false,
        };
        self.space_unless(tied);
        self.word = self.out.len() + words.rfind(' ').map_or(0, |space| space + 1);
        push_words(words, &mut self.out);
        self.last = Last::Number;
    }

    /// Prevents the next word from being appended to the last one.
    pub fn apart(&mut self) {
        self.gap |= self.last == Last::Word;
    }

    /// The words since [`Self::apart`] replace digits or a sign.
    pub fn end_number(&mut self) {
        if self.last == Last::Word {
            self.last = Last::Number;
        }
    }

    /// Joins the next word to the last one with a zero-width non-joiner instead of a space.
    pub fn join(&mut self, joiner: char) {
        self.out.push(joiner);
        self.gap = false;
        self.last = Last::Hyphen;
    }

    /// The last word, if the next word would be separated by a space.
    pub fn word_before_gap(&self) -> Option<&str> {
        let after_word = matches!(self.last, Last::Word) && self.gap || self.last == Last::Number;
        after_word.then(|| &self.out[self.word..])
    }

    /// Start of the last word, for callers that join the next one to it.
    pub fn word_start(&self) -> usize {
        self.word
    }

    /// Sets the start of the last word, after a join.
    pub fn set_word_start(&mut self, start: usize) {
        self.word = start;
    }

    /// A hyphen inside a word. The caller makes sure that a letter or a number follows.
    pub fn hyphen(&mut self) {
        if matches!(self.last, Last::Word | Last::Number) && !self.gap {
            self.out.push('-');
            self.last = Last::Hyphen;
        } else {
            self.gap = true;
        }
    }

    /// The apostrophe of an article before digits: `l'undici`.
    pub fn elision(&mut self) {
        self.out.push('\'');
        self.last = Last::Hyphen;
    }

    /// A pause that is asked for: none is needed after a mark.
    pub fn pause(&mut self) {
        if self.last != Last::Close {
            self.dash();
        }
    }

    /// A mark that belongs to the word before it: `. , ! ? ; : … )`.
    pub fn close(&mut self, mark: char) {
        if self.last == Last::Start {
            return;
        }
        match (self.out.chars().next_back(), mark) {
            (Some(before), _) if before == mark => {}
            (Some('…'), '.') => {}
            (Some('.'), '…') => {
                self.out.pop();
                self.out.push('…');
            }
            _ => self.out.push(mark),
        }
        self.gap = false;
        self.last = Last::Close;
    }

    /// `(`, or a mark like `¿` that belongs to the next word.
    pub fn open(&mut self, mark: char) {
        if self.last == Last::Open && self.out.ends_with(mark) {
            return;
        }
        let tied = match self.last {
            Last::Start | Last::Open => true,
            Last::Quote => !self.gap,
            _ => false,
        };
        self.space_unless(tied);
        self.out.push(mark);
        self.last = Last::Open;
    }

    /// A double quotation mark; the spaces of the text decide to which side it belongs.
    pub fn quote(&mut self) {
        if self.last == Last::Quote && !self.gap {
            return;
        }
        let tied = match self.last {
            Last::Start | Last::Open => true,
            Last::Dash | Last::Hyphen => false,
            _ => !self.gap,
        };
        self.space_unless(tied);
        self.out.push('"');
        self.last = Last::Quote;
    }

    /// A pause between words: ` — `.
    pub fn dash(&mut self) {
        if matches!(self.last, Last::Start | Last::Open | Last::Dash) {
            return;
        }
        self.out.push_str(" —");
        self.gap = false;
        self.last = Last::Dash;
    }

    /// A character without a rule; the symbol table reports it.
    pub fn unknown(&mut self, c: char) {
        self.space_unless(self.last == Last::Start || !self.gap);
        self.out.push(c);
        self.last = Last::Word;
    }

    pub fn finish(self) -> String {
        self.out
    }

    #[inline]
    fn space_unless(&mut self, tied: bool) {
        if !tied {
            self.out.push(' ');
        }
        self.gap = false;
    }
}

/// Words of the program's own. Single letters among them are said by their names (`p m`), except the article of `a half`.
fn push_words(words: &str, out: &mut String) {
    let single = |word: &str| matches!(word.as_bytes(), [b'a'..=b'z']);
    if !words.split(' ').any(single) {
        return out.push_str(words);
    }
    let all: Vec<&str> = words.split(' ').collect();
    for (place, word) in all.iter().enumerate() {
        if place > 0 {
            out.push(' ');
        }
        out.push_str(word);
        let before = place.checked_sub(1).and_then(|before| all.get(before));
        let beside = [before, all.get(place + 1)].into_iter().flatten().any(|word| single(word));
        if single(word) && (beside || !matches!(*word, "a" | "i")) {
            out.push(SPELLED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl FnOnce(&mut Spoken), text: &str) {
        let mut out = Spoken::with_capacity(16);
        write(&mut out);
        assert_eq!(out.finish(), text);
    }

    #[test]
    fn words_and_marks_get_their_spaces() {
        check(
            |out| {
                out.gap();
                out.word("yes");
                out.close(',');
                out.word("he");
                out.gap();
                out.gap();
                out.word("said");
                out.gap();
                out.close('.');
            },
            "yes, he said.",
        );
    }

    #[test]
    fn doubled_marks_become_one() {
        check(
            |out| {
                out.word("no");
                out.close('!');
                out.close('!');
                out.dash();
                out.dash();
                out.word("well");
                out.close('.');
                out.close('…');
                out.close('.');
            },
            "no! — well…",
        );
    }

    #[test]
    fn a_number_is_a_separate_word_unless_a_hyphen_joins_it() {
        check(
            |out| {
                out.word("b");
                out.number("two");
                out.word("b");
                out.gap();
                out.number("nineteen");
                out.hyphen();
                out.word("year");
            },
            "b two b nineteen-year",
        );
    }

    #[test]
    fn quotes_stay_on_their_side() {
        check(
            |out| {
                out.word("say");
                out.gap();
                out.quote();
                out.word("hi");
                out.close('.');
                out.quote();
                out.gap();
                out.open('(');
                out.word("now");
                out.close(')');
            },
            "say \"hi.\" (now)",
        );
    }
}
