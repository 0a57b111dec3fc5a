//! The text of a long recording, as sentences.
//!
//! In: a text file, subtitles (SRT, WebVTT), or a table with times. Out: [`LongSentence`]s in order, with the times that the
//! file has. A sentence may go over several subtitles. Reads that file only. Next: the crate `tandem-eval`, which finds
//! where each sentence is said.

use serde::Deserialize;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use subtp::srt::SubRip;
use subtp::vtt::{VttBlock, WebVtt};
use tandem_disk::{ReadFile, retry};
use tandem_text::sentences::split_sentences;
use tandem_units::Hint;

/// The extensions of texts, in the order in which one is chosen: with times first.
pub const KINDS: [&str; 5] = ["srt", "vtt", "json", "tsv", "txt"];
/// A text of a hundred hours.
const LARGEST: u64 = 16 << 20;

/// A sentence of a long text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LongSentence {
    pub text: String,
    /// From which to which second, where the file says it.
    pub at: Option<(f64, f64)>,
}

#[derive(Debug, thiserror::Error)]
pub enum LongTextError {
    #[error("cannot read the text `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the text `{}` is larger than {} MB", path.display(), LARGEST >> 20)]
    Large { path: PathBuf },
    #[error("the text `{}` is not UTF-8", path.display())]
    Encoding { path: PathBuf },
    #[error("`{}` is not {expected}: {message}", path.display())]
    Format { path: PathBuf, expected: &'static str, message: String },
    #[error("the text `{}` has no sentence", path.display())]
    Empty { path: PathBuf },
}

impl Hint for LongTextError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => None,
            Self::Large { .. } => Some("divide recording and text into chapters".into()),
            Self::Encoding { .. } => Some("save the text as UTF-8".into()),
            Self::Format { .. } => {
                Some("correct the place, or save the text without times as .txt".into())
            }
            Self::Empty { .. } => Some("write what is said in the recording".into()),
        }
    }
}

/// A piece of text with its time.
struct Cue {
    start: f64,
    end: f64,
    text: String,
}

pub fn read(path: &Path) -> Result<Vec<LongSentence>, LongTextError> {
    let text = read_whole(path)?;
    let text = text.trim_start_matches('\u{feff}');
    let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default().to_lowercase();
    let fault =
        |expected| move |message| LongTextError::Format { path: path.into(), expected, message };
    let sentences = match &kind[..] {
        "srt" => join(srt(text).map_err(fault("a SubRip file"))?),
        "vtt" => join(vtt(text).map_err(fault("a WebVTT file"))?),
        "json" => join(
            json(text)
                .map_err(fault("a JSON object with `segments` of `start`, `end` and `text`"))?,
        ),
        "tsv" => join(table(text).map_err(fault("a table of start, end and text between tabs"))?),
        _ => plain(text),
    };
    if sentences.is_empty() {
        return Err(LongTextError::Empty { path: path.into() });
    }
    Ok(sentences)
}

fn read_whole(path: &Path) -> Result<String, LongTextError> {
    let mut bytes = Vec::new();
    let read = retry(|| {
        bytes.clear();
        ReadFile::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)
    });
    read.map_err(|source| LongTextError::Read { path: path.into(), source })?;
    if bytes.len() as u64 > LARGEST {
        return Err(LongTextError::Large { path: path.into() });
    }
    String::from_utf8(bytes).map_err(|_| LongTextError::Encoding { path: path.into() })
}

/// Sentences of paragraphs, which may be broken into lines anywhere; without any end of a sentence, each line is one.
fn plain(text: &str) -> Vec<LongSentence> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let paragraphs = lines.split(|line| line.is_empty()).map(|lines| lines.join("\n"));
    let said = paragraphs.flat_map(|paragraph| {
        let joined = one_line(&paragraph);
        let whole =
            if joined.contains(['.', '!', '?', '؟', '…', '۔']) { joined } else { paragraph };
        let pieces = split_sentences(&whole, usize::MAX).into_iter();
        let pieces = pieces.filter(|one| one.contains(char::is_alphanumeric));
        pieces.map(one_line).collect::<Vec<_>>()
    });
    said.map(|text| LongSentence { text, at: None }).collect()
}

fn srt(text: &str) -> Result<Vec<Cue>, String> {
    // The parser wants a line end behind the last line.
    let found = SubRip::parse(&format!("{text}\n")).map_err(|error| error.to_string())?;
    let cue = |one: subtp::srt::SrtSubtitle| Cue {
        start: seconds(one.start.into()),
        end: seconds(one.end.into()),
        text: one.text.join(" "),
    };
    Ok(found.subtitles.into_iter().map(cue).collect())
}

fn vtt(text: &str) -> Result<Vec<Cue>, String> {
    let found = WebVtt::parse(&format!("{text}\n")).map_err(|error| error.to_string())?;
    let cue = |block| match block {
        VttBlock::Que(one) => Some(Cue {
            start: seconds(one.timings.start.into()),
            end: seconds(one.timings.end.into()),
            text: one.payload.join(" "),
        }),
        _ => None,
    };
    Ok(found.blocks.into_iter().filter_map(cue).collect())
}

/// As Whisper and others write it.
fn json(text: &str) -> Result<Vec<Cue>, String> {
    #[derive(Deserialize)]
    struct Transcript {
        segments: Vec<Segment>,
    }
    #[derive(Deserialize)]
    struct Segment {
        start: f64,
        end: f64,
        text: String,
    }
    let found: Transcript = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let cue = |one: Segment| Cue { start: one.start, end: one.end, text: one.text };
    Ok(found.segments.into_iter().map(cue).collect())
}

/// Lines of start, end and text, as Audacity's labels; a first line of names is left out.
fn table(text: &str) -> Result<Vec<Cue>, String> {
    let mut cues = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut cells = line.splitn(3, '\t');
        let mut next = || cells.next().unwrap_or_default().trim();
        let (start, end, said) = (next(), next(), next());
        match (start.parse(), end.parse()) {
            (Ok(start), Ok(end)) => cues.push(Cue { start, end, text: said.into() }),
            _ if number == 0 => {}
            _ => return Err(format!("line {} has no two times in seconds", number + 1)),
        }
    }
    Ok(cues)
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// The sentences of all cues; each has the time from its first to its last character.
fn join(cues: Vec<Cue>) -> Vec<LongSentence> {
    let mut text = String::new();
    let mut starts = Vec::with_capacity(cues.len());
    for cue in &cues {
        starts.push(text.len());
        text.push_str(&one_line(&without_tags(&cue.text)));
        text.push(' ');
    }
    // When the letter at a place begins, or ends with `after` 1. The cue of a letter ends before its space.
    let time = |at: usize, after: usize| {
        let number = starts.partition_point(|start| *start <= at).max(1) - 1;
        let (from, to) = (starts[number], starts.get(number + 1).copied().unwrap_or(text.len()));
        let share = (at + after - from) as f64 / (to - 1 - from).max(1) as f64;
        cues[number].start + share.min(1.0) * (cues[number].end - cues[number].start)
    };
    let mut sentences = Vec::new();
    for piece in split_sentences(&text, usize::MAX) {
        let from = piece.as_ptr() as usize - text.as_ptr() as usize;
        if piece.contains(char::is_alphanumeric) {
            let at = Some((time(from, 0), time(from + piece.len() - 1, 1)));
            sentences.push(LongSentence { text: one_line(piece), at });
        }
    }
    sentences
}

/// Subtitles have `<i>`, `{\an8}` and `[music]`, and `-` before a speaker's words: none of it is said.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = None;
    for c in text.trim_start_matches(['-', '–', ' ']).chars() {
        match (inside, c) {
            (None, '<') => inside = Some('>'),
            (None, '{') => inside = Some('}'),
            (None, '[') => inside = Some(']'),
            (Some(end), c) if c == end => inside = None,
            (Some(_), _) => {}
            (None, c) => out.push(c),
        }
    }
    out
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[(&str, Option<(f64, f64)>)]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        tandem_disk::write(&path, text.as_bytes()).unwrap();
        let found = read(&path).unwrap();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, (text, at)) in found.iter().zip(expected) {
            assert_eq!(found.text, *text);
            let near =
                |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 0.2 && (b - d).abs() < 0.2;
            assert!(
                found.at.zip(*at).is_none_or(|(a, b)| near(a, b))
                    && found.at.is_some() == at.is_some(),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_text_is_read_with_the_times_it_has() {
        check(
            "a.txt",
            "One came. Two\nwent.\n\n***\n",
            &[("One came.", None), ("Two went.", None)],
        );
        check("a.txt", "one came\ntwo went\n", &[("one came", None), ("two went", None)]);
        let both = [
            ("Hello to all.", Some((1.0, 2.0))),
            ("This is long, and it ends here.", Some((3.0, 7.0))),
        ];
        check(
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,000\n- <i>Hello to all.</i>\n\n2\n00:00:03,000 --> 00:00:05,000\nThis is long,\n\n3\n00:00:05,000 --> 00:00:07,000\n[music] and it\nends here.",
            &both,
        );
        check(
            "a.vtt",
            "WEBVTT\n\n00:01.000 --> 00:02.000\nHello to all.\n\nNOTE a remark\n\n00:03.000 --> 00:05.000\nThis is long,\n\n00:05.000 --> 00:07.000\nand it ends here.\n",
            &both,
        );
        check(
            "a.tsv",
            "start\tend\ttext\n1\t2\tHello to all.\n3\t5\tThis is long,\n5\t7\tand it ends here.\n",
            &both,
        );
        check(
            "a.json",
            r#"{"language": "en", "segments": [{"start": 1, "end": 2, "text": " Hello to all.", "id": 0}, {"start": 3, "end": 7, "text": "This is long, and it ends here."}]}"#,
            &both,
        );
    }

    #[test]
    fn a_broken_text_is_an_error_that_names_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str, bytes: &[u8], part: &str| {
            let path = folder.path().join(name);
            tandem_disk::write(&path, bytes).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.to_string().contains(part) && error.hint().is_some(), "{error}");
        };
        check("a.tsv", b"1\t2\ta\nx\ty\tz\n", "line 2");
        check("a.srt", b"1\n00:00:01 --> 2\nx\n", "is not a SubRip file");
        check("a.json", b"{}", "segments");
        check("a.txt", b"\xff\xfe", "not UTF-8");
        check("b.txt", b" ... \n", "no sentence");
    }
}
