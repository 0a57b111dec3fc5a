//! Markup in a text: tags that are not read, `<break/>` as a pause, phonemes in brackets.
//!
//! In: folded text. Out: the same without tags, with [`PAUSE`] for a break and [`PHONEMES_BEGIN`] ... for `[HH AH0 L OW1]`,
//! `{HH AH0 L OW1}`, `[həlˈoʊ]` and `/həlˈoʊ/`. Each character is looked at once or twice. Next: [`super`].

use super::super::pronunciation::arpabet_ipa;
use super::super::symbols::is_phonetic;
use super::super::words::{PHONEMES_BEGIN, PHONEMES_END};
use std::borrow::Cow;

/// A pause that a tag asks for.
pub const PAUSE: char = '\u{2064}';

/// The longest tag and the longest word in phonemes, in bytes.
const LONGEST_TAG: usize = 400;
const LONGEST_WORD: usize = 120;

/// Replaces markup.
pub fn without_markup(folded: &str) -> Cow<'_, str> {
    if !folded.contains(['<', '[', '{', '/']) {
        return Cow::Borrowed(folded);
    }
    let mut out = String::with_capacity(folded.len());
    let mut rest = folded;
    let mut changed = false;
    while let Some(at) = rest.find(['<', '[', '{', '/']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let len = tag(found, &mut out).or_else(|| phonemes(found, &mut out));
        changed |= len.is_some();
        let len = len.unwrap_or_else(|| {
            out.push_str(&found[..1]);
            1
        });
        rest = &found[len..];
    }
    if !changed {
        return Cow::Borrowed(folded);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// `<break/>`, `</b>`, `<prosody rate="slow">`, `<!-- a comment -->`.
fn tag(text: &str, out: &mut String) -> Option<usize> {
    let inside = text.strip_prefix('<')?;
    let end = window(inside, LONGEST_TAG)
        .find(['<', '>'])
        .filter(|end| inside[*end..].starts_with('>'))?;
    let body = &inside[..end];
    let name = body.strip_prefix('/').unwrap_or(body);
    let letters = name
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '_')))
        .unwrap_or(name.len());
    let comment = body.starts_with("!--") && body.ends_with("--");
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic());
    // `a <b and c>`: what follows the name of a tag is empty, `/`, or `key="value"`.
    let attributes = name[letters..].trim().trim_end_matches('/').trim();
    if !(comment || named && (attributes.is_empty() || attributes.contains(['=', '"']))) {
        return None;
    }
    out.push(' ');
    if name[..letters].eq_ignore_ascii_case("break") {
        out.extend([PAUSE, ' ']);
    }
    Some(end + 2)
}

fn phonemes(text: &str, out: &mut String) -> Option<usize> {
    let close = match text.as_bytes().first()? {
        b'[' => ']',
        b'{' => '}',
        b'/' => '/',
        _ => return None,
    };
    let inside = &text[1..];
    let end = window(inside, LONGEST_WORD).find(['[', '{', '/', ']', '}', '\n'])?;
    let after = inside[end..].strip_prefix(close)?;
    let free = out.chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '"'));
    if close == '/' && (!free || after.starts_with(char::is_alphanumeric)) {
        return None;
    }
    let body = &inside[..end];
    let ipa = match close {
        '/' => None,
        _ => arpabet_ipa(body),
    };
    let ipa = ipa.or_else(|| is_ipa(body).then(|| body.to_owned()))?;
    if !free {
        out.push(' ');
    }
    out.push(PHONEMES_BEGIN);
    out.push_str(&ipa);
    out.push(PHONEMES_END);
    Some(end + 2)
}

/// One word in IPA: known symbols only, and one at least that no spelling has.
fn is_ipa(body: &str) -> bool {
    body.contains(is_phonetic)
        && body.chars().all(|c| {
            is_phonetic(c) || c.is_ascii_lowercase() || matches!(c, 'æ' | 'ø' | 'ç' | 'ħ' | 'œ')
        })
}

/// The first `most` bytes, at a character boundary.
fn window(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(without_markup(text), expected);
    }

    #[test]
    fn tags_are_left_out_and_comparisons_stay() {
        check("a <noise/> b", "a   b");
        check("<b>bold</b> x", " bold  x");
        check("one <break time=\"1s\"/> two", "one  \u{2064}  two");
        check("a < b and c > d", "a < b and c > d");
        check("I <3 you", "I <3 you");
        check("a <b and c> d", "a <b and c> d");
        check("x <!-- no --> y", "x   y");
    }

    #[test]
    fn phonemes_are_found_in_brackets_only() {
        check("say [HH AH0 L OW1].", "say \u{2061}həlˈoʊ\u{2062}.");
        check("say /həlˈoʊ/ now", "say \u{2061}həlˈoʊ\u{2062} now");
        check("[sic] and [A] and and/or/not {x}", "[sic] and [A] and and/or/not {x}");
    }
}
