//! Text with inline code.
//!
//! In: a sentence with names and commands in backticks. Out: [`Prose`]: code pieces are marked
//! up and always written from left to right. Every piece is escaped by the renderer.

/// A sentence with names and commands in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prose(pub Vec<Piece>);

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words of the page's language.
    Words(String),
    /// A name, a flag, a command: from left to right in any language.
    Code(String),
    /// Words of another language or of the user: they take their own direction.
    Foreign(String),
}

impl Prose {
    /// Words, with code between backticks. A backtick without a partner is an ordinary letter.
    pub fn of(text: &str) -> Prose {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, code, after)) = next_code(rest) {
            pieces.extend((!before.is_empty()).then(|| Piece::Words(before.into())));
            pieces.push(Piece::Code(code.into()));
            rest = after;
        }
        pieces.extend((!rest.is_empty()).then(|| Piece::Words(rest.into())));
        Prose(pieces)
    }

    /// A name, a flag or a command alone.
    pub fn code(text: impl Into<String>) -> Prose {
        Prose(vec![Piece::Code(text.into())])
    }

    /// Words that are not of the page's language: a warning from the record, a file's name.
    pub fn foreign(text: impl Into<String>) -> Prose {
        Prose(vec![Piece::Foreign(text.into())])
    }

    /// The same without marks, for a terminal.
    pub fn plain(&self) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Words(text) | Piece::Code(text) | Piece::Foreign(text) => text.clone(),
        };
        self.0.iter().map(text).collect()
    }
}

impl From<String> for Prose {
    fn from(text: String) -> Prose {
        Prose::of(&text)
    }
}

impl From<&str> for Prose {
    fn from(text: &str) -> Prose {
        Prose::of(text)
    }
}

fn next_code(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((before, code, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn code_is_separated_from_words() {
        let words = |text: &str| Piece::Words(text.into());
        let code = |text: &str| Piece::Code(text.into());
        assert_eq!(
            Prose::of("`load` holds the run back").0,
            [code("load"), words(" holds the run back")]
        );
        assert_eq!(Prose::of("a ` alone").0, [words("a ` alone")]);
        assert_eq!(Prose::of("").0, []);
    }

    proptest! {
        #[test]
        fn only_the_backticks_are_removed(text in "[a-z `<&]{0,40}") {
            let plain = Prose::of(&text).plain();
            let marks = text.matches('`').count() / 2 * 2;
            prop_assert_eq!(plain.len(), text.len() - marks);
        }
    }
}
