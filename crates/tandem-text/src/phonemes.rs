//! Phonemes by espeak-ng, an optional external program.
//!
//! In: many clauses of normalised text, for one process. Out: their IPA in the same order. Starts no
//! thread; a process that hangs is killed. espeak-ng marks words of other languages as `(en)...(fa)`:
//! the marks are removed, the words stay.

use super::TextError;
use super::language::Language;
use super::words::Sentence;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// An installed espeak-ng.
#[derive(Clone, Debug)]
pub struct Espeak {
    program: PathBuf,
    version: String,
}

impl Espeak {
    /// Finds `espeak-ng` in the search path.
    pub fn find() -> Result<Self, TextError> {
        Self::at(Path::new("espeak-ng"))
    }

    /// Uses the program at `program`.
    pub fn at(program: &Path) -> Result<Self, TextError> {
        let mut command = Command::new(program);
        command.arg("--version");
        let (status, answer, complaint) = run(&mut command, "", 1)?;
        if !status.success() {
            return Err(failed(status, &complaint));
        }
        // `eSpeak NG text-to-speech: 1.51  Data at: ...`: the path is not part of the version.
        let version = answer.split("Data at").next().unwrap_or_default().trim().to_owned();
        Ok(Self { program: program.to_owned(), version })
    }

    /// The version line of the program; part of the cache key.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The phonemes of each clause, in order.
    pub fn read(&self, language: Language, clauses: &[String]) -> Result<Vec<String>, TextError> {
        if clauses.is_empty() {
            return Ok(Vec::new());
        }
        let lines = self.ask(language, clauses)?;
        if lines.len() == clauses.len() {
            return Ok(lines);
        }
        // espeak-ng splits a very long clause. Alone in a process, all its lines belong together.
        clauses
            .iter()
            .map(|clause| Ok(self.ask(language, std::slice::from_ref(clause))?.join(" ")))
            .collect()
    }

    fn ask(&self, language: Language, clauses: &[String]) -> Result<Vec<String>, TextError> {
        let mut command = Command::new(&self.program);
        command.args(["-q", "--ipa", "-v", language.voice(), "--stdin"]);
        // An empty line ends a clause and, unlike a dot, changes nothing in it.
        let question = clauses.join("\n\n") + "\n\n";
        let (status, answer, complaint) = run(&mut command, &question, clauses.len())?;
        if !status.success() {
            return Err(failed(status, &complaint));
        }
        Ok(answer.lines().map(tidy).collect())
    }
}

fn failed(status: ExitStatus, complaint: &str) -> TextError {
    let message = complaint.lines().next().unwrap_or("no message").trim().to_owned();
    TextError::EspeakFailed { status: status.to_string(), message }
}

/// Runs the program with files as input and output: with one thread, full pipes could deadlock.
fn run(
    command: &mut Command,
    question: &str,
    texts: usize,
) -> Result<(ExitStatus, String, String), TextError> {
    let exchange = |source: io::Error| TextError::EspeakExchange { source };
    let mut input = tempfile::tempfile().map_err(exchange)?;
    input.write_all(question.as_bytes()).map_err(exchange)?;
    input.rewind().map_err(exchange)?;
    let mut output = tempfile::tempfile().map_err(exchange)?;
    let mut errors = tempfile::tempfile().map_err(exchange)?;
    command
        .stdin(input)
        .stdout(Stdio::from(output.try_clone().map_err(exchange)?))
        .stderr(Stdio::from(errors.try_clone().map_err(exchange)?));
    // Ctrl-C goes to the whole foreground process group, but the run must handle it, not the child.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let child = command.spawn().map_err(|source| TextError::EspeakMissing { source })?;
    let status = wait(child, texts)?;
    Ok((status, contents(&mut output).map_err(exchange)?, contents(&mut errors).map_err(exchange)?))
}

fn contents(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn wait(mut child: Child, texts: usize) -> Result<ExitStatus, TextError> {
    // A clause takes about 4 ms; a hundred times that is a hang, not a slow machine.
    let limit = Duration::from_secs(20) + Duration::from_millis(400) * texts as u32;
    let start = Instant::now();
    let mut nap = Duration::from_micros(500);
    loop {
        let ended = child.try_wait().map_err(|source| TextError::EspeakExchange { source })?;
        if let Some(status) = ended {
            return Ok(status);
        }
        if start.elapsed() > limit {
            // Both can fail only if the process has ended in the meantime.
            let _ = child.kill();
            let _ = child.wait();
            return Err(TextError::EspeakTimeout { texts, limit });
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(10));
    }
}

/// One line of the output, without language marks and double spaces.
fn tidy(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut marked = false;
    for c in line.chars() {
        match c {
            '(' => marked = true,
            ')' => marked = false,
            _ if marked => {}
            c if c.is_whitespace() => {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            // Joiners and the marks of phoneme variants (`q1`, `t^`) are not phonemes.
            '\u{200B}'..='\u{200F}' => {}
            c if c.is_ascii_digit() || c.is_ascii_punctuation() => {}
            c => out.push(c),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// A text as clauses for espeak-ng, and the parts between them.
#[derive(Debug, Default)]
pub struct Plan {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    /// Input of espeak-ng.
    Clause(String),
    /// Marks, spaces and known phonemes.
    Known(String),
}

impl Plan {
    /// Splits sentences at marks and at words with known phonemes.
    pub fn of(sentences: &[Sentence]) -> Self {
        let mut plan = Self::default();
        for sentence in sentences {
            plan.known(&sentence.lead);
            for word in &sentence.words {
                match &word.phonemes {
                    Some(phonemes) => plan.known(phonemes),
                    None => plan.clause(&word.text),
                }
                match word.tail.as_str() {
                    "" => {}
                    " " | "-" if word.phonemes.is_none() => plan.clause(&word.tail),
                    marks => plan.known(marks),
                }
            }
        }
        plan
    }

    pub fn clauses(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Clause(text) => Some(text.trim()),
            Piece::Known(_) => None,
        })
    }

    /// The whole text in phonemes, given the output for the clauses in order.
    pub fn join(&self, answers: &mut impl Iterator<Item = String>) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Known(text) => out.push_str(text),
                Piece::Clause(text) => {
                    out.push_str(&answers.next().unwrap_or_default());
                    // The space before a word with known phonemes.
                    out.extend(text.ends_with(' ').then_some(' '));
                }
            }
        }
        out.trim().to_owned()
    }

    fn clause(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Clause(clause)) => clause.push_str(text),
            // A clause must contain a word: espeak-ng prints nothing for one without.
            _ if text.trim().is_empty() || text == "-" => self.known(text),
            _ => self.pieces.push(Piece::Clause(text.to_owned())),
        }
    }

    fn known(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Known(known)) => known.push_str(text),
            _ => self.pieces.push(Piece::Known(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::sentences;
    use super::*;

    fn espeak() -> Espeak {
        Espeak::find().expect("this test needs espeak-ng: `apt install espeak-ng`")
    }

    #[test]
    fn many_clauses_give_results_in_order() {
        let clauses: Vec<String> =
            ["hello world", "a", "well-known", "it's"].map(Into::into).into();
        let found = espeak().read(Language::English, &clauses).unwrap();
        assert_eq!(found, ["həlˈoʊ wˈɜːld", "ˈeɪ", "wˈɛlnˈoʊn", "ˈɪts"]);
    }

    #[test]
    fn persian_is_read_and_language_marks_are_left_out() {
        let clauses: Vec<String> = ["کتابِ من", "bbc گفت"].map(Into::into).into();
        let found = espeak().read(Language::Persian, &clauses).unwrap();
        assert_eq!(found, ["ketˈɑbe mˈan", "bˌiːbˌiːsˈiː ɡˈoft"]);
    }

    #[test]
    fn a_clause_longer_than_the_limit_of_espeak_gives_one_result() {
        let long = "word ".repeat(700);
        let clauses = ["one".to_owned(), long, "two".to_owned()];
        let found = espeak().read(Language::English, &clauses).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].as_str(), found[2].as_str()), ("wˈʌn", "tˈuː"));
        assert_eq!(found[1].matches("wˈɜːd").count(), 700);
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let error = Espeak::at(Path::new("/nonexistent/espeak-ng")).unwrap_err();
        assert!(matches!(error, TextError::EspeakMissing { .. }), "{error}");
    }

    #[test]
    fn a_failing_program_is_an_error() {
        let error = Espeak::at(Path::new("false")).unwrap_err();
        assert!(matches!(error, TextError::EspeakFailed { .. }), "{error}");
    }

    #[test]
    fn marks_and_known_phonemes_keep_their_position() {
        let mut found = sentences("\"yes, my tomato\" is well-known.");
        found[0].words[2].phonemes = Some("təmɑ".into());
        let plan = Plan::of(&found);
        assert_eq!(plan.clauses().collect::<Vec<_>>(), ["yes", "my", "is well-known"]);
        let mut answers = ["Y", "M", "I"].into_iter().map(String::from);
        assert_eq!(plan.join(&mut answers), "\"Y, M təmɑ\" I.");
    }
}
