//! Writes normalised text: one space between words, marks tied to the word they follow.
//!
//! In: words, numbers and marks in order. Out: a string in which no mark is doubled and no
//! space is lost. Writing its own output again gives the same string: all readers of
//! languages rely on that. Knows no language.

/// What was written last: it decides whether a space comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Start,
    Word,
    /// Words that stand for digits: a letter after them is a new word.
    Number,
    Hyphen,
    Close,
    Open,
    Quote,
    Dash,
}

/// Text as it will be spoken, under construction.
#[derive(Debug)]
pub struct Spoken {
    out: String,
    last: Last,
    /// White space was seen since.
    gap: bool,
    /// Where the last word begins in `out`.
    word: usize,
}

impl Spoken {
    /// Room for a text of `bytes`, and for some numbers in it.
    pub fn with_capacity(bytes: usize) -> Self {
        let out = String::with_capacity(bytes + bytes / 4 + 16);
        Self { out, last: Last::Start, gap: false, word: 0 }
    }

    /// White space of any length.
    #[inline]
    pub fn gap(&mut self) {
        self.gap = true;
    }

    /// Makes room for a word; the caller then writes its letters with [`Self::letters`].
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

    /// The letters of the word that was begun.
    pub fn letters(&mut self) -> &mut String {
        &mut self.out
    }

    /// A whole word, already in lower case.
    #[inline]
    pub fn word(&mut self, word: &str) {
        self.begin_word();
        self.out.push_str(word);
    }

    /// One or more words that stand apart from what is before and after.
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
        self.out.push_str(words);
        self.last = Last::Number;
    }

    /// Keeps the next word from growing onto the last one.
    pub fn apart(&mut self) {
        self.gap |= self.last == Last::Word;
    }

    /// The words since [`Self::apart`] stand for digits or a sign.
    pub fn end_number(&mut self) {
        if self.last == Last::Word {
            self.last = Last::Number;
        }
    }

    /// Ties the next word to the last one with a zero-width non-joiner in place of a space.
    pub fn join(&mut self, joiner: char) {
        self.out.push(joiner);
        self.gap = false;
        self.last = Last::Hyphen;
    }

    /// The last word, where a space and then another word would follow it now.
    pub fn word_before_gap(&self) -> Option<&str> {
        let after_word = matches!(self.last, Last::Word) && self.gap || self.last == Last::Number;
        after_word.then(|| &self.out[self.word..])
    }

    /// Where the last word begins, for readers that join the next one to it.
    pub fn word_start(&self) -> usize {
        self.word
    }

    /// Moves the beginning of the last word, after a join.
    pub fn set_word_start(&mut self, start: usize) {
        self.word = start;
    }

    /// A hyphen inside a word. The caller knows that a letter or a number follows.
    pub fn hyphen(&mut self) {
        if matches!(self.last, Last::Word | Last::Number) && !self.gap {
            self.out.push('-');
            self.last = Last::Hyphen;
        } else {
            self.gap = true;
        }
    }

    /// A mark that belongs to what is before it: `. , ! ? ; : … )`.
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

    /// `(`, or a mark like `¿` that belongs to what comes after it.
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

    /// A double quotation mark: the text's own spaces say to which side it belongs.
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

    /// A character nobody knows what to do with; the symbol table will name it.
    pub fn unknown(&mut self, c: char) {
        self.space_unless(self.last == Last::Start || !self.gap);
        self.out.push(c);
        self.last = Last::Word;
    }

    /// The finished text.
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
    fn a_number_stands_apart_unless_a_hyphen_ties_it() {
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
    fn quotes_keep_the_side_they_stood_on() {
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
