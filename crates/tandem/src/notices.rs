//! Licences and notices of everything that is part of the program: printed by `tandem licenses`, and part of the wheel.
//!
//! The list of crates is written by `xtask/generators/notices.py`, which `scripts/check.sh` runs with `--check`.

/// Must be shown wherever the English pronunciations are passed on.
const CMU_DICTIONARY: &str = include_str!("../../tandem-text/pronunciation/LICENSE-CMUDICT");
/// Must be shown wherever what was learned of its sentences is passed on.
const FARSDAT: &str = include_str!("../../tandem-text/pronunciation/LICENSE-FARSDAT");
/// The font of pictures.
const FONT: &str = include_str!("../../tandem-plot/font/OFL.txt");
const MIT: &str = include_str!("../../../LICENSE-MIT");
const CRATES: &str = include_str!("../notices/crates.tsv");
const DATA: &str = "\
The recordings of the demo corpus were made with espeak-ng for Tandem, and its vocoder and letter-to-sound model were trained
for it; the list of Persian words was written for it. All have the licence of Tandem.

The English recordings of the corpus demo-human are from \"Voice Dataset (Kathleen)\" of the Rhasspy project, dedicated to the
public domain by CC0 1.0 (https://creativecommons.org/publicdomain/zero/1.0/). Their texts are prompts of CMU Arctic, sentences
of books that are out of copyright, chosen at Carnegie Mellon University.";

/// Everything as text.
pub fn notices() -> String {
    let crates: Vec<String> = CRATES.lines().map(described).collect();
    format!(
        "Tandem: MIT or Apache-2.0, as you choose. Its MIT licence:\n\n{}\n\n{DATA}\n\n\
         English pronunciations are from the CMU Pronouncing Dictionary:\n\n{}\n\n\
         The tables of Persian reading are trained on FarsDat.csv of the project GE2PE, under its licence below; those of words with \
         several readings also on sentences of HomoRich (CC0, https://github.com/MahtaFetrat/HomoRich-G2P-Persian):\n\n{}\n\n\
         Letters in pictures are of the font Vazirmatn, reduced to the letters of Tandem's languages:\n\n{}\n\n\
         {} crates of others, with their licences and copyright lines. Their full texts are in the sources of each crate, at \
         https://crates.io/crates/NAME/VERSION:\n\n{}",
        MIT.trim(),
        CMU_DICTIONARY.trim(),
        FARSDAT.trim(),
        FONT.trim(),
        crates.len(),
        crates.join("\n")
    )
}

/// `name version: licence (copyright lines)`.
fn described(row: &str) -> String {
    let mut columns = row.split('\t');
    let mut next = || columns.next().unwrap_or_default();
    let (name, version, licence, lines) = (next(), next(), next(), next());
    match lines {
        "" => format!("{name} {version}: {licence}"),
        lines => format!("{name} {version}: {licence} ({lines})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notices_of_all_data_and_of_each_crate_are_there() {
        let text = notices();
        for words in [
            "Carnegie Mellon University",
            "FarsDat.csv of the project GE2PE",
            FARSDAT.trim(),
            "HomoRich",
            "Vazirmatn Project Authors",
            "THIS SOFTWARE IS PROVIDED",
            "burn 0.",
            "Permission is hereby granted",
            "Voice Dataset (Kathleen)",
        ] {
            assert!(text.contains(words), "`{words}` is missing");
        }
    }

    /// A crate that changed its version makes the list stale.
    #[test]
    fn listed_crates_are_those_of_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        for row in CRATES.lines() {
            let mut columns = row.split('\t');
            let (name, version) = (columns.next().unwrap(), columns.next().unwrap());
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(lock.contains(&entry), "{name} {version}: run xtask/generators/notices.py");
        }
        assert!(CRATES.lines().count() > 300);
    }
}
