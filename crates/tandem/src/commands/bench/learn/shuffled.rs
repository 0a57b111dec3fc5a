//! The control: a corpus whose texts belong to other recordings of the same language.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// The training manifest.
const LEARNED: &str = "metadata_train.csv";

/// Copies a corpus; the training texts of each language are rotated by half, held-out rows stay.
pub fn write(corpus: &Path, to: &Path) -> io::Result<()> {
    copy(corpus, to)?;
    let manifest = fs::read_to_string(corpus.join(LEARNED))?;
    fs::write(to.join(LEARNED), shuffle(&manifest))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        // The cache of the corpus is not part of it.
        if name.to_string_lossy().starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            copy(&entry.path(), &to.join(name))?;
        } else {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// Columns: id, text, normalised, speaker, language.
fn shuffle(manifest: &str) -> String {
    let mut lines = manifest.lines();
    let header = lines.next().unwrap_or_default().to_owned();
    let mut rows: Vec<Vec<&str>> = lines.map(|line| line.split('|').collect()).collect();
    let mut languages: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        languages.entry(row.get(4).copied().unwrap_or_default()).or_default().push(place);
    }
    for places in languages.values() {
        let texts: Vec<[&str; 2]> =
            places.iter().map(|&place| [rows[place][1], rows[place][2]]).collect();
        for (turn, &place) in places.iter().enumerate() {
            let [text, normalised] = texts[(turn + texts.len() / 2) % texts.len()];
            (rows[place][1], rows[place][2]) = (text, normalised);
        }
    }
    let lines = std::iter::once(header).chain(rows.into_iter().map(|row| row.join("|")));
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_move_within_their_language_and_nothing_else_does() {
        let manifest = "id|text|normalised|speaker|language\n\
            1|one|uno|a|en\n2|یک|یک|b|fa\n3|two|dos|a|en\n4|دو|دو|b|fa\n";
        let expected = "id|text|normalised|speaker|language\n\
            1|two|dos|a|en\n2|دو|دو|b|fa\n3|one|uno|a|en\n4|یک|یک|b|fa\n";
        assert_eq!(shuffle(manifest), expected);
    }
}
