//! The groups of digits of a phone number as written, before a language decides and reads them.
//!
//! In: text that begins with a digit, `+` or `(`. Out: [`PhoneGroups`], the longest run of groups that
//! the language accepts: another number may follow it. Knows no language.

use super::numeral::digits;

/// No number has more groups. Without a limit, a run of numbers would be looked at again from each of them.
const MOST_GROUPS: usize = 16;

/// The groups of one number.
pub struct PhoneGroups<'a> {
    /// The digits of each group.
    pub parts: Vec<&'a str>,
    /// It begins with `+`.
    pub plus: bool,
    /// Length in bytes.
    pub len: usize,
}

/// How the groups are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    Plus,
    Brackets,
    Spaces,
    Hyphens,
    Dots,
    Mixed,
}

struct Group<'a> {
    digits: &'a str,
    before: Separation,
    end: usize,
}

impl<'a> PhoneGroups<'a> {
    /// The longest run of groups that `accepts`, from their separation and their digits.
    pub fn parse(text: &'a str, accepts: fn(Separation, &[&str]) -> bool) -> Option<Self> {
        let plus = text.starts_with('+');
        let groups = groups(text, usize::from(plus));
        (1..=groups.len()).rev().find_map(|count| {
            let taken = &groups[..count];
            let parts: Vec<&str> = taken.iter().map(|group| group.digits).collect();
            let separation = if plus { Separation::Plus } else { separation(taken) };
            let len = taken.last()?.end;
            accepts(separation, &parts).then_some(Self { parts, plus, len })
        })
    }
}

/// Whether the number of digits is that of an international number.
pub fn is_international(parts: &[&str]) -> bool {
    let total: usize = parts.iter().map(|part| part.len()).sum();
    (8..=15).contains(&total) && parts[0].len() <= 3 && parts.len() > 1
}

/// Whether the first group is an area code with its zero: `020 7946 0958`.
pub fn is_national(parts: &[&str]) -> bool {
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let first = parts[0];
    first.starts_with('0') && (3..=5).contains(&first.len()) && (9..=12).contains(&total)
}

fn separation(groups: &[Group<'_>]) -> Separation {
    if groups.iter().any(|group| group.before == Separation::Brackets) {
        return Separation::Brackets;
    }
    let mut marks = groups.iter().skip(1).map(|group| group.before);
    let first = marks.next().unwrap_or(Separation::Mixed);
    if marks.all(|mark| mark == first) { first } else { Separation::Mixed }
}

fn groups(text: &str, start: usize) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut at = start;
    loop {
        let rest = &text[at..];
        let closed = groups.last().is_some_and(|group| group.before == Separation::Brackets);
        let (before, skipped) = match rest.as_bytes().first() {
            _ if groups.len() == MOST_GROUPS => return groups,
            _ if groups.is_empty() => (Separation::Mixed, 0),
            Some(b' ') => (Separation::Spaces, 1),
            Some(b'-') => (Separation::Hyphens, 1),
            Some(b'.') => (Separation::Dots, 1),
            Some(b'0'..=b'9') if closed => (Separation::Spaces, 0),
            _ => return groups,
        };
        let rest = &rest[skipped..];
        let inside = rest.strip_prefix('(');
        let found = digits(inside.unwrap_or(rest));
        let bracketed = inside.is_some();
        if found.is_empty() || bracketed && !rest[1 + found.len()..].starts_with(')') {
            return groups;
        }
        at += skipped + found.len() + if bracketed { 2 } else { 0 };
        let before = if bracketed { Separation::Brackets } else { before };
        groups.push(Group { digits: found, before, end: at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, parts: &[&str], separation: Separation) {
        let found = groups(text, usize::from(text.starts_with('+')));
        let digits: Vec<&str> = found.iter().map(|group| group.digits).collect();
        assert_eq!(digits, parts, "{text}");
        assert_eq!(super::separation(&found), separation, "{text}");
    }

    #[test]
    fn no_number_has_more_groups_than_the_limit() {
        thread_local! { static ASKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) } }
        let text = "555 ".repeat(3000);
        let none = |_: Separation, parts: &[&str]| {
            ASKED.with(|asked| asked.set(asked.get() + parts.len()));
            false
        };
        assert!(PhoneGroups::parse(&text, none).is_none());
        // One number asks about each shorter run of its groups, and about no group after them.
        assert_eq!(ASKED.with(std::cell::Cell::get), MOST_GROUPS * (MOST_GROUPS + 1) / 2);
    }

    #[test]
    fn groups_are_separated_in_the_usual_ways() {
        check("212-555-0147", &["212", "555", "0147"], Separation::Hyphens);
        check("212.555.0147.", &["212", "555", "0147"], Separation::Dots);
        check("(212)555-0147", &["212", "555", "0147"], Separation::Brackets);
        check("020 7946 0958 x", &["020", "7946", "0958"], Separation::Spaces);
        check("+44 (0)20 7946", &["44", "0", "20", "7946"], Separation::Brackets);
        check("5-6 7", &["5", "6", "7"], Separation::Mixed);
        check("(5", &[], Separation::Mixed);
    }
}
