//! Finds the role of each column of a manifest.
//!
//! In: the first lines of a manifest. Out: [`Columns`], which cuts every line into a [`Row`].
//! A header line names the columns. Without one, the position decides, and the contents of the
//! columns after the text, because real manifests differ:
//!
//! ```text
//! id|text                      id|text|normalised
//! id|text|speaker              id|text|language
//! id|text|normalised|speaker   id|text|speaker|language   id|text|normalised|language
//! id|text|normalised|speaker|language                     (or the last two swapped)
//! id|speaker|text              (Piper; or a language before the text)
//! ```
//!
//! - If the second column is a single word in every sampled row and the third one has several words, the second is a
//!   speaker, if its words repeat. If they do not, it may also be a short text with its normalised form (`Dr.|Doctor`,
//!   `1984|nineteen eighty-four`): it is a text if a row has the same words in both columns, or if the third column
//!   has few words. [`SecondColumn`] overrides this.
//! - A language column holds an ISO 639 tag (`fa`, `en-US`) in every sampled row.
//! - If one column is left, it is a speaker if it is a single word in every sampled row and the texts
//!   have several words; otherwise it is the normalised text.
//! - If two are left, the first is the normalised text and the second the speaker, unless the first is
//!   such a single word: then it is the speaker and the second is unused.
//!
//! Phonemes are in a column that a header names: no position or content shows them.
//!
//! Quotes have no meaning: LJSpeech has no CSV quoting, and texts may begin with quotes.

use super::Part;
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Id,
    Text,
    Normalised,
    Speaker,
    Language,
    Phonemes,
    Unused,
}

/// The number of columns that most lines have, where it is not 2 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongCount(pub usize);

/// What the second of three or more columns is, where no header says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SecondColumn {
    #[default]
    ByContent,
    Text,
    Speaker,
}

/// The role of each column, from left to right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns(Vec<Role>);

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Id => "id",
            Role::Text => "text",
            Role::Normalised => "normalised",
            Role::Speaker => "speaker",
            Role::Language => "language",
            Role::Phonemes => "phonemes",
            Role::Unused => "-",
        }
    }
}

/// The fields of a line by role; a missing column is empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub id: &'a str,
    pub text: &'a str,
    pub normalised: &'a str,
    pub speaker: &'a str,
    pub language: &'a str,
    pub phonemes: &'a str,
    /// The recording, where it is not named like the row.
    pub recording: &'a str,
    /// The part of the recording that belongs to the text.
    pub part: Option<Part>,
}

impl Columns {
    /// The columns that a header line names; `None` unless it names an id and a text.
    pub(super) fn from_header(line: &str, separator: char) -> Option<Columns> {
        let names: Vec<String> = line.split(separator).map(column_name).collect();
        let mut roles: Vec<Role> = names.iter().map(|name| role_of(name)).collect();
        // `transcription` is the raw text in LJSpeech's naming, and the normalised text in manifests
        // that also have a `text` column.
        if let Some(at) = names.iter().position(|name| name == "transcription") {
            let taken = roles.contains(&Role::Text);
            roles[at] = if taken { Role::Normalised } else { Role::Text };
        }
        keep_first_of_each(&mut roles);
        // A normalised text without a raw text is the text.
        if !roles.contains(&Role::Text) {
            let only = roles.iter_mut().find(|role| **role == Role::Normalised)?;
            *only = Role::Text;
        }
        roles.contains(&Role::Id).then_some(Columns(roles))
    }

    /// The columns by position and content, as the module's header describes.
    pub(super) fn guess(
        sample: &[&str],
        separator: char,
        second: SecondColumn,
    ) -> Result<Columns, WrongCount> {
        let count = usual_count(sample, separator);
        if !(2..=5).contains(&count) {
            return Err(WrongCount(count));
        }
        let rows: Vec<Vec<&str>> = sample
            .iter()
            .map(|line| line.split(separator).collect::<Vec<_>>())
            .filter(|fields| fields.len() == count)
            .collect();
        let mut roles = vec![Role::Unused; count];
        roles[0] = Role::Id;
        let text = match before_text(&rows, second) {
            Some(role) => {
                roles[1] = role;
                2
            }
            None => 1,
        };
        roles[text] = Role::Text;
        let mut rest: Vec<usize> = (text + 1..count).collect();
        if let Some(at) = rest.iter().rposition(|&column| is_language(&rows, column)) {
            roles[rest.remove(at)] = Role::Language;
        }
        let speaker_known = roles[1] == Role::Speaker;
        match rest[..] {
            [] => {}
            // The speaker is before the text: what follows the text is its normalised form.
            [first, ..] if speaker_known => roles[first] = Role::Normalised,
            [first] if is_name(&rows, first, text) => roles[first] = Role::Speaker,
            [first] => roles[first] = Role::Normalised,
            [first, _] if is_name(&rows, first, text) => roles[first] = Role::Speaker,
            [first, second, ..] => {
                roles[first] = Role::Normalised;
                roles[second] = Role::Speaker;
                // Five columns without a language tag: the last one is a language name.
                rest.get(2).inspect(|&&third| roles[third] = Role::Language);
            }
        }
        Ok(Columns(roles))
    }

    /// Splits one line; the error is a wrong number of columns.
    pub(super) fn cut<'a>(&self, line: &'a str, separator: char) -> Result<Row<'a>, usize> {
        let mut row = Row::default();
        let mut found = 0;
        for field in line.split(separator) {
            match self.0.get(found) {
                Some(Role::Id) => row.id = field,
                Some(Role::Text) => row.text = field,
                Some(Role::Normalised) => row.normalised = field,
                Some(Role::Speaker) => row.speaker = field,
                Some(Role::Language) => row.language = field,
                Some(Role::Phonemes) => row.phonemes = field,
                Some(Role::Unused) | None => {}
            }
            found += 1;
        }
        if found == self.count() { Ok(row) } else { Err(found) }
    }

    /// The columns in words: `id|speaker|text`.
    pub(super) fn describe(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|role| role.name()).collect();
        names.join("|")
    }

    /// The second column is a speaker, and the third one the text.
    pub(super) fn speaker_comes_first(&self) -> bool {
        self.0.get(1) == Some(&Role::Speaker) && self.0.get(2) == Some(&Role::Text)
    }

    /// How many columns a line must have.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Another character that would split every line into the same two to five columns, or a header into named ones.
pub(super) fn likely_separator(sample: &[&str], separator: char) -> Option<char> {
    ['|', '\t', ';', ','].into_iter().filter(|&other| other != separator).find(|&other| {
        if sample.first().is_some_and(|line| Columns::from_header(line, other).is_some()) {
            return true;
        }
        let count = usual_count(sample, other);
        (2..=5).contains(&count) && sample.iter().all(|line| line.split(other).count() == count)
    })
}

/// The most common number of columns; the smaller one of a tie.
fn usual_count(sample: &[&str], separator: char) -> usize {
    let mut lines_by_count = std::collections::BTreeMap::<usize, usize>::new();
    for line in sample {
        *lines_by_count.entry(line.split(separator).count()).or_default() += 1;
    }
    lines_by_count
        .into_iter()
        .max_by_key(|&(count, lines)| (lines, std::cmp::Reverse(count)))
        .map_or(0, |(count, _)| count)
}

fn column_name(field: &str) -> String {
    field.trim().trim_matches('"').to_lowercase().replace([' ', '-'], "_")
}

fn role_of(name: &str) -> Role {
    match name {
        "id" | "file" | "file_name" | "filename" | "file_id" | "path" | "audio" | "audio_file"
        | "audio_path" | "wav" | "wav_file" | "wav_path" | "clip" | "utterance_id" => Role::Id,
        "text" | "raw_text" | "sentence" | "transcript" => Role::Text,
        "normalised"
        | "normalized"
        | "normalised_text"
        | "normalized_text"
        | "normalised_transcription"
        | "normalized_transcription" => Role::Normalised,
        "speaker" | "speaker_name" | "speaker_id" | "client_id" => Role::Speaker,
        "language" | "lang" | "locale" => Role::Language,
        "phonemes" | "phoneme" | "ipa" | "pronunciation" => Role::Phonemes,
        _ => Role::Unused,
    }
}

/// Of two columns with the same role, the left one keeps it.
fn keep_first_of_each(roles: &mut [Role]) {
    for at in 1..roles.len() {
        if roles[..at].contains(&roles[at]) {
            roles[at] = Role::Unused;
        }
    }
}

fn is_language(rows: &[Vec<&str>], column: usize) -> bool {
    !rows.is_empty() && rows.iter().all(|row| is_language_tag(row[column].trim()))
}

/// The role of a second column that is not the text, because the third one is.
fn before_text(rows: &[Vec<&str>], second: SecondColumn) -> Option<Role> {
    if rows.first().is_none_or(|row| row.len() < 3) {
        return None;
    }
    match second {
        SecondColumn::Text => return None,
        SecondColumn::Speaker => return Some(Role::Speaker),
        SecondColumn::ByContent if !is_name(rows, 1, 2) => return None,
        SecondColumn::ByContent => {}
    }
    if is_language(rows, 1) {
        return Some(Role::Language);
    }
    let names: HashSet<&str> = rows.iter().map(|row| row[1].trim()).collect();
    let repeats = 2 * names.len() <= rows.len();
    (repeats || !is_normalised_pair(rows)).then_some(Role::Speaker)
}

/// Whether the third column is the normalised form of single words in the second one.
fn is_normalised_pair(rows: &[Vec<&str>]) -> bool {
    /// A number, a date or an abbreviation has no more words than these; a sentence has.
    const FEW_WORDS: usize = 4;
    let letters = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let same = rows.iter().any(|row| {
        let word = letters(row[1]);
        !word.is_empty() && word == letters(row[2])
    });
    let words: usize = rows.iter().map(|row| row[2].split_whitespace().count()).sum();
    same || words <= FEW_WORDS * rows.len() && rows.iter().all(|row| !is_plain_name(row[1].trim()))
}

/// Letters only, the first one a capital or all of them small: more likely a name than an abbreviation or a number.
fn is_plain_name(word: &str) -> bool {
    word.chars().all(char::is_alphabetic) && word.chars().skip(1).all(|c| !c.is_uppercase())
}

/// A single word in every row, where the texts have several.
fn is_name(rows: &[Vec<&str>], column: usize, text: usize) -> bool {
    let single_word = |field: &str| !field.is_empty() && !field.contains(char::is_whitespace);
    !rows.is_empty()
        && rows.iter().all(|row| single_word(row[column].trim()))
        && rows.iter().any(|row| !single_word(row[text].trim()))
}

/// `fa`, `en-US`, `zh_hans`: a tag of ISO 639, in lower case, and perhaps a region or script.
fn is_language_tag(field: &str) -> bool {
    let (tag, region) = field.split_once(['-', '_']).unwrap_or((field, "xx"));
    LANGUAGES.split_ascii_whitespace().any(|known| known == tag)
        && (2..=4).contains(&region.len())
        && region.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The two-letter codes of ISO 639-1, and the three-letter codes of languages that speech
/// corpora commonly name so. A list, because `ali` and `bob` have three letters too.
const LANGUAGES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce \
    ch co cr cs cu cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv \
    ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr \
    ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn \
    no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so \
    sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh \
    yi yo za zh zu ara ckb cmn deu eng fas fra hin ita jpn kor kmr nld per pes pol por prs pus \
    rus spa tgk tur urd zho";

#[cfg(test)]
mod tests {
    use super::Role::{Id, Language, Normalised, Phonemes, Speaker, Text, Unused};
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], roles: &[Role]) {
        let found = match Columns::from_header(lines[0], '|') {
            Some(columns) => Ok(columns),
            None => Columns::guess(lines, '|', SecondColumn::ByContent),
        };
        assert_eq!(found, Ok(Columns(roles.to_vec())));
    }

    #[test]
    fn a_header_names_columns_in_any_order() {
        check(&["id|text|normalised|speaker|language"], &[Id, Text, Normalised, Speaker, Language]);
        check(&["audio_file|text|speaker_name"], &[Id, Text, Speaker]);
        check(&["Lang|Sentence|duration|Path"], &[Language, Text, Unused, Id]);
        check(&["ID|Transcription|Normalized Transcription"], &[Id, Text, Normalised]);
        check(&["wav|text|transcription|speaker_id"], &[Id, Text, Normalised, Speaker]);
        check(&["file|normalized"], &[Id, Text]);
        check(&["id|text|phonemes|language"], &[Id, Text, Phonemes, Language]);
        check(&["IPA|text|path"], &[Phonemes, Text, Id]);
    }

    #[test]
    fn a_first_row_that_only_resembles_a_header_is_data() {
        assert_eq!(Columns::from_header("clip_1|text", '|'), None);
        assert_eq!(Columns::from_header("id|Who are you?", '|'), None);
    }

    #[test]
    fn two_and_three_columns_are_what_ljspeech_has() {
        check(&["a|some words"], &[Id, Text]);
        check(&["a|4 words", "b|two words"], &[Id, Text]);
        check(&["a|in 1984|in nineteen eighty-four", "b|No.|No."], &[Id, Text, Normalised]);
        check(&["a|yes|yes", "b|no|no"], &[Id, Text, Normalised]);
        check(&["a|some words|", "b|more words|more words"], &[Id, Text, Normalised]);
    }

    #[test]
    fn a_third_column_of_tags_or_names_is_not_a_text() {
        check(&["a|some words|en", "b|چند کلمه|fa"], &[Id, Text, Language]);
        check(&["a|some words|p225", "b|more words|p226"], &[Id, Text, Speaker]);
        check(&["a|some words|ali", "b|more words|bob"], &[Id, Text, Speaker]);
    }

    #[test]
    fn a_second_column_of_names_or_tags_comes_before_the_text() {
        let piper = ["a|ali|some words", "b|ali|more words", "c|bob|x y", "d|bob|z"];
        check(&piper, &[Id, Speaker, Text]);
        check(&["a|1|two words", "b|1|x y"], &[Id, Speaker, Text]);
        check(&["a|en|some words", "b|fa|چند کلمه"], &[Id, Language, Text]);
        check(&["a|ali|2 words|two words", "b|ali|x y|x y"], &[Id, Speaker, Text, Normalised]);
        check(&["a|ali|2 words|en", "b|ali|x y|fa"], &[Id, Speaker, Text, Language]);
    }

    #[test]
    fn words_that_do_not_repeat_are_told_by_the_length_and_words_of_the_third_column() {
        check(&["a|1984|nineteen eighty-four", "b|2001|two thousand one"], &[Id, Text, Normalised]);
        check(&["a|Yes|yes", "b|No.|no it is"], &[Id, Text, Normalised]);
        check(
            &["a|p225|Please call Stella today again", "b|p226|Ask her to bring these things"],
            &[Id, Speaker, Text],
        );
        check(&["a|ali|x y", "b|bob|x y z"], &[Id, Speaker, Text]);
        check(&["id|speaker|text", "a|ali|x y", "b|bob|x y"], &[Id, Speaker, Text]);
    }

    #[test]
    fn the_user_decides_what_the_second_column_is() {
        let numbers = ["a|1984|nineteen eighty-four", "b|2001|two thousand one"];
        let guess = |lines: &[&str], second| Columns::guess(lines, '|', second);
        assert_eq!(guess(&numbers, SecondColumn::Speaker), Ok(Columns(vec![Id, Speaker, Text])));
        let piper = ["a|ali|some words", "b|ali|more words", "c|bob|x y", "d|bob|z"];
        assert_eq!(guess(&piper, SecondColumn::Text), Ok(Columns(vec![Id, Text, Normalised])));
        assert_eq!(guess(&["a|x y"], SecondColumn::Speaker), Ok(Columns(vec![Id, Text])));
    }

    #[test]
    fn four_and_five_columns_hold_speaker_and_language() {
        check(&["a|2 words|two words|jo b"], &[Id, Text, Normalised, Speaker]);
        check(&["a|2 words|two words|ali"], &[Id, Text, Normalised, Speaker]);
        check(&["a|two words|ali|fa", "b|two words|bob|en-US"], &[Id, Text, Speaker, Language]);
        check(&["a|2 words|two words|fa"], &[Id, Text, Normalised, Language]);
        check(&["a|2 words|two words|ali|fa"], &[Id, Text, Normalised, Speaker, Language]);
        check(&["a|2 words|two words|fa|ali"], &[Id, Text, Normalised, Language, Speaker]);
        check(&["a|2 words|two words|ali|Persian"], &[Id, Text, Normalised, Speaker, Language]);
        check(&["a|two words|ali|calm"], &[Id, Text, Speaker, Unused]);
    }

    #[test]
    fn one_odd_line_does_not_decide_the_columns() {
        let lines = ["a|x y", "b|x y|x y", "c|x y|x y", "d|x|y|z|w|v", "e|x y|x y"];
        check(&lines, &[Id, Text, Normalised]);
        let columns = Columns::guess(&lines, '|', SecondColumn::ByContent).expect("three columns");
        assert_eq!(columns.cut("a|x y", '|'), Err(2));
        assert_eq!(columns.cut("d|x|y|z", '|'), Err(4));
        let row = columns.cut("b|\"x\" y|", '|').expect("three columns");
        assert_eq!((row.id, row.text, row.normalised), ("b", "\"x\" y", ""));
    }

    #[test]
    fn a_wrong_separator_is_detected_and_the_right_one_suggested() {
        let lines = ["a\tsome words\tbob", "b\tmore, words\tbob"];
        assert_eq!(Columns::guess(&lines, '|', SecondColumn::ByContent), Err(WrongCount(1)));
        assert_eq!(likely_separator(&lines, '|'), Some('\t'));
        let common_voice = ["client_id\tpath\tsentence\tup_votes\tage\tlocale", "x\ta.mp3\tb"];
        assert_eq!(likely_separator(&common_voice, '|'), Some('\t'));
        assert_eq!(likely_separator(&["no columns", "at, all"], '|'), None);
    }
}
