//! Splits long texts into pieces for synthesis.
//!
//! In: raw text of any length, English, Persian or both. Out: slices of it in order, each a sentence
//! if it is short enough. Only the space between two pieces is dropped. A line of stars is a piece too,
//! which the caller skips. Uses no language settings: marks and abbreviations of both languages always
//! apply. If it is unsure it does not split: two sentences in one piece sound fine, half a sentence
//! does not.
//! Next on the path: [`super::FrontEnd::read`], piece by piece.

use super::english::abbreviations::{Dot, before_number, dotted};
use unicode_segmentation::UnicodeSegmentation;

/// A line of at least this length was probably wrapped: the next line continues its sentence.
const FULL_LINE: usize = 40;

/// Pieces of at most `most` characters (at least one), none of them empty or only space.
pub fn split_sentences(text: &str, most: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for end in ends(text).into_iter().chain([text.len()]) {
        split_long(&text[start..end], most, &mut pieces);
        start = end;
    }
    pieces
}

/// Splits a piece that is too long: after a mark in its second half, else at a space, else between two
/// characters.
fn split_long<'a>(text: &'a str, most: usize, pieces: &mut Vec<&'a str>) {
    let mut rest = text.trim();
    while let Some((limit, _)) = rest.char_indices().nth(most.max(1)) {
        let cut = best_cut(rest, limit);
        let (piece, after) = rest.split_at(cut);
        pieces.push(piece.trim_end());
        rest = after.trim_start();
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
}

/// Where to split a text that is longer than `limit` bytes: never zero, and never above the limit
/// unless a single grapheme is longer.
fn best_cut(rest: &str, limit: usize) -> usize {
    // A space at the limit itself still ends a piece there.
    let reach = rest[limit..].chars().next().map_or(limit, |next| limit + next.len_utf8());
    let spaces = rest[..reach].char_indices().filter(|(index, c)| c.is_whitespace() && *index > 0);
    let (mut after_mark, mut space) = (None, None);
    for (index, _) in spaces {
        space = Some(index);
        if 2 * index >= limit && rest[..index].ends_with(is_soft_mark) {
            after_mark = Some(index);
        }
    }
    after_mark.or(space).unwrap_or_else(|| {
        let mut ends = rest.grapheme_indices(true).map(|(index, part)| index + part.len());
        let first = ends.next().unwrap_or(rest.len());
        ends.take_while(|end| *end <= limit).last().unwrap_or(first)
    })
}

/// Marks after which a pause is natural.
fn is_soft_mark(c: char) -> bool {
    matches!(c, ',' | '،' | ';' | ':' | '؛' | '–' | '—' | '、' | '-') || is_mark(c) || is_closing(c)
}

/// The end of each sentence except the last.
fn ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        let end = if c == '\n' {
            line_ends(&text[start..index], &text[index + 1..]).then_some(index)
        } else if is_mark(c) {
            while chars.next_if(|(_, c)| is_mark(*c) || is_closing(*c)).is_some() {}
            let after = chars.peek().map_or(text.len(), |(index, _)| *index);
            let marks = &text[index..after];
            mark_ends(&text[start..index], marks, &text[after..]).then_some(after)
        } else {
            None
        };
        if let Some(end) = end {
            ends.push(end);
            start = end;
        }
    }
    ends
}

/// Whether a new line begins a new sentence. It does not if a long line is followed by a lower-case letter.
fn line_ends(before: &str, after: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or(before).trim();
    let continues = after.trim_start_matches([' ', '\t']).starts_with(char::is_lowercase);
    !(continues && line.chars().count() >= FULL_LINE)
}

/// Whether these marks, with the quotes that close after them, end a sentence.
fn mark_ends(before: &str, marks: &str, after: &str) -> bool {
    let spaced = after.is_empty() || after.starts_with(char::is_whitespace);
    // «؟» and «؛» always end a sentence; `.` and `?` also occur inside names and numbers.
    if !spaced && !marks.contains(['؟', '؛', '۔', '。']) {
        return false;
    }
    let next = after.trim_start().trim_start_matches(is_opening);
    let first = marks.trim_end_matches(is_closing);
    let in_small = next.starts_with(char::is_lowercase);
    match first {
        "." => !in_small && dot_ends(before, next),
        // A sentence may continue after three dots, or after a quoted question.
        _ if first.chars().all(|c| matches!(c, '.' | '…')) => !in_small,
        _ => !(in_small && first.len() < marks.len()),
    }
}

/// Whether one dot after `before` is the end of a sentence and not of an abbreviation.
fn dot_ends(before: &str, next: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || is_joiner(c);
    let lead = before.trim_end_matches(in_word);
    let word = &before[lead.len()..];
    let number_next = next.starts_with(char::is_numeric);
    if number_next && (before_number(word).is_some() || matches!(word, "ص" | "ج")) {
        return false;
    }
    // `J. R. Smith`, `U.S. Navy`, «ق.م.»: single letters.
    let mut letters = word.chars().filter(|c| !is_joiner(*c));
    if letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none() {
        return false;
    }
    // `1. First`: a number at the start of a line is a list number.
    let counts = word.chars().all(char::is_numeric) && !word.is_empty();
    if counts && !lead.contains(char::is_alphanumeric) {
        return false;
    }
    match dotted(word) {
        Some((_, Dot::BeforeCapital)) => next.starts_with(char::is_uppercase) || next.is_empty(),
        Some(_) => next.is_empty(),
        None => !matches!(word, "Dr" | "St" | "dr" | "st") || next.is_empty(),
    }
}

/// Ends a sentence, alone or with others.
fn is_mark(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '؟' | '؛' | '۔' | '。' | '！' | '？')
}

/// Closing marks stay with their sentence.
fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | '”' | '’' | '»' | '›' | ')' | ']' | '}')
}

fn is_opening(c: char) -> bool {
    matches!(c, '"' | '\'' | '“' | '‘' | '«' | '‹' | '(' | '[' | '{')
}

/// Part of a word: combining marks, joiners and non-joiners.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{640}')
        || unicode_normalization::char::is_combining_mark(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, pieces: &[&str]) {
        assert_eq!(split_sentences(text, 200), pieces);
    }

    #[test]
    fn sentences_end_at_their_marks() {
        check(
            "It rains. Take a coat!  Why? Because… Yes.",
            &["It rains.", "Take a coat!", "Why?", "Because…", "Yes."],
        );
        check(
            "باران می‌آید. چتر داری؟ نه! برویم؛ دیر شد…",
            &["باران می‌آید.", "چتر داری؟", "نه!", "برویم؛", "دیر شد…"],
        );
        check("چتر داری؟نه", &["چتر داری؟", "نه"]);
        check("Really?! No way!!! ... Fine", &["Really?!", "No way!!!", "...", "Fine"]);
    }

    #[test]
    fn abbreviations_numbers_and_initials_do_not_end_one() {
        check(
            "Dr. Smith met Mr. Jones at 5 p.m. today.",
            &["Dr. Smith met Mr. Jones at 5 p.m. today."],
        );
        check(
            "It costs 3.14 dollars. See No. 5 and Fig. 2.",
            &["It costs 3.14 dollars.", "See No. 5 and Fig. 2."],
        );
        check(
            "J. R. R. Tolkien of the U.S. Navy wrote it.",
            &["J. R. R. Tolkien of the U.S. Navy wrote it."],
        );
        check(
            "Cats, dogs, etc. and more. Cats, etc. The end.",
            &["Cats, dogs, etc. and more.", "Cats, etc.", "The end."],
        );
        check("1. Boil water. 2. Add tea.", &["1. Boil water.", "2. Add tea."]);
        check("It was 1984. He left.", &["It was 1984.", "He left."]);
        check("سال ۳۰۰ ق.م. بود. ص. ۱۲ را ببین.", &["سال ۳۰۰ ق.م. بود.", "ص. ۱۲ را ببین."]);
        check("Read www.example.com/a?b=c now.", &["Read www.example.com/a?b=c now."]);
    }

    #[test]
    fn closing_quotes_stay_with_their_sentence() {
        check(
            "\"Stop!\" he cried. \"Why?\" She ran.",
            &["\"Stop!\" he cried.", "\"Why?\"", "She ran."],
        );
        check("(He knew.) “Go.” Then he went.", &["(He knew.)", "“Go.”", "Then he went."]);
        check("گفت: «برو.» او رفت.", &["گفت: «برو.»", "او رفت."]);
        check("Well... maybe. Well... \"Maybe\"", &["Well... maybe.", "Well...", "\"Maybe\""]);
    }

    #[test]
    fn lines_end_sentences_unless_a_long_one_continues() {
        check("A title\nThe text\r\n\r\nMore", &["A title", "The text", "More"]);
        check("سطر یک\nسطر دو", &["سطر یک", "سطر دو"]);
        let wrapped = "This line is long enough to have been broken\nby an editor. Yes.";
        check(wrapped, &["This line is long enough to have been broken\nby an editor.", "Yes."]);
        check("apples\npears", &["apples", "pears"]);
    }

    #[test]
    fn a_line_without_words_is_a_separate_piece() {
        check("* * *\nHello. ***\nBye", &["* * *", "Hello.", "***", "Bye"]);
        check("…", &["…"]);
        assert_eq!(split_sentences("", 10), [""; 0]);
        assert_eq!(split_sentences(" \n ", 10), [""; 0]);
    }

    #[test]
    fn long_sentences_are_cut_at_marks_then_spaces_then_characters() {
        let cut = |text, most| split_sentences(text, most);
        assert_eq!(cut("one two, three four five", 16), ["one two,", "three four five"]);
        assert_eq!(cut("یک دو، سه چهار پنج", 12), ["یک دو،", "سه چهار پنج"]);
        assert_eq!(cut("یک، دو سه چهار پنج", 14), ["یک، دو سه چهار", "پنج"]);
        assert_eq!(cut("یک دو سه، چهار پنج", 12), ["یک دو سه،", "چهار پنج"]);
        assert_eq!(cut("one two three", 7), ["one two", "three"]);
        assert_eq!(cut("abcdefgh", 3), ["abc", "def", "gh"]);
        // A letter and its marks stay together, even if that is too long.
        assert_eq!(cut("e\u{301}\u{302}a", 1), ["e\u{301}\u{302}", "a"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn only_space_is_lost(text in "[a-zA-Z0-9.!?…؟؛،, \"»«\n۱آبپ\u{200c}\u{301}()-]{0,120}", most in 1..40usize) {
            let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            let pieces = split_sentences(&text, most);
            prop_assert_eq!(solid(&pieces.concat()), solid(&text));
            for piece in &pieces {
                prop_assert!(!piece.trim().is_empty() && piece.trim() == *piece);
                let one_character = piece.graphemes(true).count() == 1;
                prop_assert!(one_character || piece.chars().count() <= most, "{:?}", piece);
            }
        }

        #[test]
        fn any_text_comes_back_whole(text in "\\PC{0,80}", most in 1..30usize) {
            let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(solid(&split_sentences(&text, most).concat()), solid(&text));
        }
    }
}
