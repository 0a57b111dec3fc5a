//! Text that people and chat programs type, as text that can be spoken.
//!
//! In: Markdown, or plain text. Out: [`Speakable`]: the words without the signs of headings, lists, emphasis, links and tables,
//! and what was left out. Only synthesis uses this: a corpus says what was spoken. Next: [`super::sentences`], [`super::FrontEnd`].

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::borrow::Cow;

/// How a text is treated before it is synthesized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextTreatment {
    pub format: TextFormat,
    pub unknown: UnknownSigns,
}

/// What the signs of a text mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextFormat {
    /// Headings, lists, emphasis, links, code and tables become words.
    #[default]
    Markdown,
    /// All signs are part of the text.
    Plain,
}

/// What happens to a sign that the voice does not know, such as an emoji.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownSigns {
    /// It is left out and listed.
    #[default]
    Skip,
    /// The text is refused.
    Refuse,
}

/// A text to speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speakable<'a> {
    pub text: Cow<'a, str>,
    /// What is not spoken, each in a few words.
    pub left_out: Vec<String>,
}

/// The words of a Markdown text. A text without its signs stays as it is.
pub fn speakable(text: &str) -> Speakable<'_> {
    if !looks_like_markdown(text) {
        return Speakable { text: Cow::Borrowed(text), left_out: Vec::new() };
    }
    let source = without_products(text);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    Parser::new_ext(&source, options).for_each(|event| writer.event(event));
    Speakable { text: Cow::Owned(writer.out.trim().to_owned()), left_out: writer.left_out }
}

fn looks_like_markdown(text: &str) -> bool {
    text.contains(['*', '_', '`', '#', '|', '[', '<', '~', '>', '\\', '&'])
        || text.lines().any(|line| {
            let line = line.trim_start();
            let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
            line.starts_with(['-', '+', '='])
                || number.len() < line.len()
                    && (number.starts_with(". ") || number.starts_with(") "))
        })
}

/// `2*3*4` is a product: its stars are no emphasis.
fn without_products(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let product = |at: usize| {
        let digit =
            |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        bytes[at] == b'*' && digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    if !(0..bytes.len()).any(product) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        if product(at) {
            out.push('\\');
        }
        out.push(c);
    }
    Cow::Owned(out)
}

#[derive(Default)]
struct Writer {
    out: String,
    left_out: Vec<String>,
    /// The next number of each list around; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// Lines of the code block that is being left out.
    code_lines: Option<usize>,
    cells: usize,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code_lines {
                Some(lines) => *lines += text.lines().count(),
                None => self.out.push_str(&text),
            },
            Event::Code(text) => self.out.push_str(&text),
            Event::Html(html) | Event::InlineHtml(html) => self.html(&html),
            Event::SoftBreak | Event::HardBreak => self.out.push('\n'),
            Event::Rule => self.out.push_str("\n* * *\n"),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::List(first) => {
                self.line();
                self.lists.push(*first);
            }
            Tag::Item => {
                self.line();
                if let Some(Some(number)) = self.lists.last_mut() {
                    self.out.push_str(&format!("{number}. "));
                    *number += 1;
                }
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_)) => self.code_lines = Some(0),
            Tag::TableHead | Tag::TableRow => self.cells = 0,
            Tag::TableCell => {
                if self.cells > 0 && !self.out.ends_with(", ") {
                    self.out.push_str(", ");
                }
                self.cells += 1;
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) | TagEnd::Item | TagEnd::TableHead | TagEnd::TableRow => {
                self.sentence()
            }
            TagEnd::Paragraph | TagEnd::BlockQuote(_) | TagEnd::HtmlBlock => self.line(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::CodeBlock => match self.code_lines.take() {
                Some(1) => self.left_out.push("a code block of 1 line".into()),
                Some(lines) => self.left_out.push(format!("a code block of {lines} lines")),
                None => self.line(),
            },
            _ => {}
        }
    }

    /// What was written so far is a sentence of its own.
    fn sentence(&mut self) {
        let written = self.out.trim_end_matches([' ', '\n', ',']).len();
        self.out.truncate(written);
        let marks = ['.', '!', '?', '…', ':', ';', '،', '؛', '؟', '۔', '—'];
        if written > 0 && !self.out.ends_with(marks) {
            self.out.push('.');
        }
        self.line();
    }

    fn line(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    /// Tags are not read; `<break/>` is a pause.
    fn html(&mut self, html: &str) {
        let mut rest = html;
        while let Some((before, tag)) = rest.split_once('<') {
            self.out.push_str(before);
            let (tag, after) = tag.split_once('>').unwrap_or((tag, ""));
            let is_break = tag.get(..5).is_some_and(|name| name.eq_ignore_ascii_case("break"));
            self.out.push_str(if is_break { " — " } else { " " });
            rest = after;
        }
        self.out.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(markdown: &str, spoken: &str) {
        assert_eq!(speakable(markdown).text, spoken);
    }

    #[test]
    fn headings_lists_and_emphasis_become_sentences() {
        check("# Fruit\n\nI like **apples** and _pears_.", "Fruit.\nI like apples and pears.");
        check("- one\n- two!\n* three", "one.\ntwo!\nthree.");
        check("1. First\n2. Second", "1. First.\n2. Second.");
        check("1984. It was good.", "1984. It was good.");
        check("- [x] done\n- [ ] open", "done.\nopen.");
        check("> quoted\n> text", "quoted\ntext");
        check("a ~~b~~ c", "a b c");
    }

    #[test]
    fn links_code_and_tables_become_words() {
        check("See [the page](https://example.com).", "See the page.");
        check("Run `cargo test` now.", "Run cargo test now.");
        check("![a cat](cat.png)", "a cat");
        check("| name | age |\n|---|---|\n| Ann | 5 |", "name, age.\nAnn, 5.");
        let block = speakable("Look:\n\n```rust\nfn main() {}\nlet x;\n```\n\nDone.");
        assert_eq!(block.text, "Look:\nDone.");
        assert_eq!(block.left_out, ["a code block of 2 lines"]);
        check("one <break time=\"1s\"/> two", "one  —  two");
        check("<div>Hello</div>", "Hello");
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in
            ["Hello, world!\n\nNew line - with a dash.", "5 degrees", "سلام دنیا!", "a  b\n    c"]
        {
            assert!(matches!(speakable(text).text, Cow::Borrowed(same) if same == text));
        }
        for text in [
            "2*3*4=24",
            "snake_case_name",
            "#hashtag",
            "I <3 you",
            "5 > 3",
            "[HH AH0 L OW1]",
            "a * b",
        ] {
            check(text, text);
        }
        check("AT&amp;T", "AT&T");
    }
}
