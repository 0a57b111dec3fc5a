//! Valid and invalid configuration files in both formats.

use super::format::Format;
use super::*;
use crate::failure::{Result, explain};
use crate::train_args::plan_of;
use std::path::PathBuf;
use tandem_model::network::size::ModelSize;
use tandem_settings::Typed;

fn read(name: &str, text: &str) -> Result<FileConfig> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    super::read(Some(&path), &mut Printer::new())
}

/// The error as the user sees it, without the temporary path.
fn said(name: &str, text: &str) -> String {
    let shown = explain(&read(name, text).expect_err("refused"));
    let shown = anstream::adapter::strip_str(&shown).to_string();
    shown.split_once("  caused by: ").expect("a cause").1.to_string()
}

#[track_caller]
fn check(name: &str, text: &str, wanted: &str) {
    assert_eq!(said(name, text), wanted);
}

#[test]
fn both_formats_give_the_same_settings() {
    let toml = "num_workers = 3\ntrain_data = \"demo\"\n[train]\nmodel_size = \"small\"\n\
        precision = \"bf16\"\n[train.optimizer]\nlr = 1e-4\n[corpus]\nseparator = \";\"\n";
    let yaml = "num_workers: 3\ntrain_data: demo\ntrain:\n  model_size: small\n  precision: bf16\n  \
        optimizer:\n    lr: 1e-4\ncorpus: {separator: ';'}\n";
    let config = read("a.toml", toml).unwrap();
    assert_eq!(read("a.yaml", yaml).unwrap(), config);
    assert_eq!(read("a.YML", yaml).unwrap(), config);
    assert_eq!((config.train.optimizer.lr, config.train.model_size), (1e-4, ModelSize::Small));
    assert_eq!(config.train.optimizer.clip, 1.0, "absent keys keep their defaults");
}

#[test]
fn the_former_key_of_the_pronunciation_is_read_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    std::fs::write(&path, "# old\n[text]\nsymbols = \"phonemes\"\n").unwrap();
    let written = tree::Written::read(&path).unwrap();
    assert_eq!(written.config.text.pronunciation, tandem_text::Pronunciation::Espeak);
    let notes = written.changed_meanings(std::path::Path::new("a.toml"));
    let now = "`text.symbols` is now `text.pronunciation`, and `phonemes` is `espeak`";
    assert_eq!(notes, [format!("a.toml: line 3: {now}")]);
}

#[test]
fn numbers_are_parsed_in_every_notation() {
    for written in ["1e-4", "1E-4", "1.0e-4", "0.0001", ".0001", "1.e-4", "+1e-4"] {
        let config = read("a.yaml", &format!("train:\n  optimizer:\n    lr: {written}\n")).unwrap();
        assert_eq!(config.train.optimizer.lr, 1e-4, "{written}");
    }
}

#[test]
fn an_empty_file_is_all_defaults() {
    assert_eq!(read("a.toml", "").unwrap(), FileConfig::default());
    assert_eq!(read("a.yaml", "").unwrap(), FileConfig::default());
    assert_eq!(read("a.yaml", "# nothing yet\n").unwrap(), FileConfig::default());
}

#[test]
fn an_unknown_key_is_reported_with_its_position_and_the_nearest_key() {
    check(
        "a.yaml",
        "num_workers: 2\ntrain:\n  alignment:\n    evrey: 5\n",
        "line 4, column 5: unknown key `train.alignment.evrey`\n  4 |     evrey: 5\n    |     ^\n\
         hint: did you mean `train.alignment.every`?",
    );
    check(
        "a.toml",
        "[train.optimizer]\nlr = 1e-3\nweight_dekay = 0\n",
        "line 3, column 1: unknown key `train.optimizer.weight_dekay`\n  3 | weight_dekay = 0\n    | ^\n\
         hint: did you mean `train.optimizer.weight_decay`?",
    );
}

#[test]
fn a_key_in_the_wrong_table_is_reported_with_the_right_table() {
    let hint =
        |name: &str, text: &str| said(name, text).split_once("hint: ").unwrap().1.to_string();
    assert_eq!(hint("a.yaml", "lr: 1e-4\n"), "did you mean `train.optimizer.lr`?");
    assert_eq!(hint("a.toml", "batch_sise = 4\n"), "did you mean `batch.batch_size`?");
    assert_eq!(
        hint("a.toml", "[train]\nmixed_precision = true"),
        "did you mean `train.precision`?"
    );
    assert_eq!(hint("a.toml", "[trian]\nkeep = 3"), "did you mean `train`?");
    assert_eq!(
        hint("a.toml", "[train.alignment]\ndropout = 1"),
        "the keys there are `every`, `flat_start`, `lag`"
    );
}

#[test]
fn a_wrong_type_is_reported_with_its_position() {
    check(
        "a.yaml",
        "train:\n  optimizer:\n    lr: fast\n",
        "line 3, column 9: `train.optimizer.lr` is string \"fast\", expected a number\n  \
         3 |     lr: fast\n    |         ^\nhint: correct that line, or remove it for the default",
    );
    check(
        "a.toml",
        "num_workers = \"two\"\n",
        "line 1, column 15: `num_workers` is string \"two\", expected a whole number from 0 up\n  \
         1 | num_workers = \"two\"\n    |               ^\n\
         hint: correct that line, or remove it for the default",
    );
    assert!(said("a.yaml", "cache_dataset: yes").contains("expected true or false"));
    assert!(
        said("a.yaml", "train: 3").contains("`train` is integer `3`, expected a table of keys")
    );
    assert!(said("a.toml", "num_workers = -1").contains("expected a whole number from 0 up"));
    assert!(said("a.yaml", "text:\n  languages: [en, klingon]").contains("`text.languages[1]`"));
}

#[test]
fn a_wrong_value_is_reported_with_the_nearest_value() {
    check(
        "a.yaml",
        "train:\n  model_size: smal\n",
        "line 2, column 15: `train.model_size` is `smal`, expected `tiny`, `small`, `normal`, \
         `big`, `micro`\n  2 |   model_size: smal\n    |               ^\nhint: did you mean `small`?",
    );
}

#[test]
fn a_syntax_error_is_reported_with_its_position() {
    assert!(said("a.toml", "num_workers = \n").starts_with("line 1, column "));
    assert!(said("a.toml", "lr = 1\nlr = 2\n").starts_with("line 2, column 1: duplicate key"));
    assert!(said("a.yaml", "train:\n\tkeep: 3\n").starts_with("line 2, column 1: "));
    assert!(said("a.yaml", "num_workers: 1\nnum_workers: 2").starts_with("duplicate"));
    assert!(said("a.yaml", "- a\n- b\n").contains("expected a table of keys"));
    assert!(
        said("a.yaml", "num_workers: 1\n---\nnum_workers: 2\n").contains("more than one document")
    );
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_with_the_cause() {
    let shown = |path: &Path| {
        let error = super::read(Some(path), &mut Printer::new()).expect_err("refused");
        anstream::adapter::strip_str(&explain(&error)).to_string()
    };
    let missing = shown(Path::new("nowhere/run.yaml"));
    assert!(missing.contains("`nowhere/run.yaml`") && missing.contains("--config"), "{missing}");
    let named = said("a.conf", "num_workers = 1");
    assert!(
        named.contains("the format of the file is unknown") && named.contains(".yaml"),
        "{named}"
    );
    let long = said("a.toml", &"# words\n".repeat(200_000));
    assert!(long.contains("longer than 1 MiB"), "{long}");
}

#[test]
fn zero_is_refused_where_at_least_one_is_needed() {
    assert!(said("a.yaml", "num_workers: 0").starts_with("`num_workers` is 0"));
    assert!(said("a.yaml", "max_rejected: 3.0").starts_with("`max_rejected` is 3"));
}

#[path = "../../../../fuzz/src/mutate.rs"]
mod mutate;

/// Any file gives an error or a plan whose effective configuration gives the same plan; never a panic.
/// The fuzz target covers the tables without Burn, this test covers all.
#[test]
fn files_like_the_checked_in_ones_are_planned_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/config_file");
    let inputs = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut inputs: Vec<PathBuf> = inputs.collect();
    inputs.sort();
    let inputs: Vec<Vec<u8>> =
        inputs.into_iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut planned = 0;
    for (number, input) in inputs.iter().enumerate() {
        let mut mutations = mutate::Mutations::new(number as u64);
        for turn in 0..200 {
            let like = match turn {
                0 => input.clone(),
                _ => mutations.of(input, &inputs[turn % inputs.len()]),
            };
            let Ok(text) = std::str::from_utf8(&like) else { continue };
            planned += [Format::Toml, Format::Yaml]
                .map(|format| planned_again(format, text))
                .iter()
                .sum::<usize>();
        }
    }
    assert!(planned > 100, "only {planned} could be planned");
}

fn planned_again(format: Format, text: &str) -> usize {
    use crate::train_plan::effective_config;
    let Ok(mut config) = parsed(format, text) else { return 0 };
    config.train_data = Some("corpus".into());
    let Ok(plan) = plan_of(config, &Typed::default(), false) else { return 0 };
    let written = effective_config(&plan).expect("a plan can be written");
    let again = parsed(Format::Toml, &written);
    let again = again.unwrap_or_else(|refused| panic!("{refused:?}\n{written}"));
    let again = plan_of(again, &Typed::default(), false).expect("the same plan");
    // Compared as text, since NaN is not equal to itself.
    assert_eq!(format!("{:?}", again.to_file()), format!("{:?}", plan.to_file()), "{text}");
    1
}
