//! The reference agrees with the program.

use super::*;
use crate::printer::Printer;
use crate::train_args::TrainArgs;
use clap::Parser;
use std::collections::BTreeSet;
use tandem_data::corpus::Layout;

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: TrainArgs,
}

/// Every key of a file with all defaults.
fn written(at: &str, value: &Value, keys: &mut BTreeSet<String>) {
    match value.as_object() {
        Some(table) => {
            table.iter().for_each(|(name, value)| {
                written(format!("{at}.{name}").trim_start_matches('.'), value, keys)
            });
        }
        None => drop(keys.insert(at.to_string())),
    }
}

fn entry(key: &str) -> Entry {
    entries().into_iter().find(|entry| entry.key() == key).expect(key)
}

#[test]
fn every_key_is_listed_once_with_a_description() {
    let mut expected = BTreeSet::new();
    let mut all = FileConfig::default();
    // Written only where they are set.
    (all.audio.trim_silence, all.audio.loudness) = (Some(-40.0), Some(-20.0));
    (all.corpus.layout, all.corpus.recordings_dir) = (Some(Layout::Vctk), Some("sounds".into()));
    written("", &serde_json::to_value(all).unwrap(), &mut expected);
    let found = entries();
    let keys: BTreeSet<String> = found.iter().map(Entry::key).collect();
    assert_eq!(keys, expected);
    assert_eq!(keys.len(), found.len());
    for entry in &found {
        assert!(!entry.help.is_empty(), "{}", entry.key());
        let kinds = ["number", "word", "true or false", "character", "path", "text", "list of"];
        assert!(kinds.iter().any(|kind| entry.kind.contains(kind)), "{entry:?}");
    }
}

#[test]
fn types_defaults_bounds_and_words_are_those_of_the_code() {
    let seen = |key| {
        let entry = entry(key);
        [entry.kind, entry.default, entry.allowed].join("; ")
    };
    assert_eq!(seen("train.optimizer.lr"), "number; `0.001`; above 0");
    assert_eq!(seen("train.ema_decay"), "number; `0.999`; 0 up to, not including, 1");
    assert_eq!(seen("max_rejected"), "number; `0.2`; 0 to 1");
    assert_eq!(seen("model_start_delay"), "number; `2.0`; 0 to 86400");
    assert_eq!(seen("pipeline.stall_timeout"), "whole number; `60`; 0 to 86400");
    assert_eq!(seen("batch.batch_size"), "whole number; `16`; 1 or more");
    assert_eq!(seen("num_workers"), "whole number; one per core; 1 or more");
    assert_eq!(seen("train.precision"), "word; `\"f32\"`; `f32`, `tf32`, `bf16`, `f16`");
    assert_eq!(seen("mel.floor"), "number; `0.00001`; above 0 to 1");
    assert_eq!(seen("batch.bucket_edges"), "list of whole numbers; not set; ");
    assert!(
        seen("devices.backend").starts_with("word; `\"auto\"`; `auto`, `cuda`"),
        "{}",
        seen("devices.backend")
    );
    assert_eq!(seen("text.languages"), "list of texts; `[\"en\",\"fa\"]`; ");
    let lr = entry("train.optimizer.lr");
    assert_eq!(lr.flag.as_deref(), Some("--lr"));
    assert_eq!(lr.variable.as_deref(), Some("TANDEM_LR"));
    assert_eq!(entry("corpus.seed").flag, None);
}

/// The flag of a key changes that key, and no key of another flag.
#[test]
fn flags_set_the_keys_they_are_listed_with() {
    let usual = decided(&[]);
    let found = entries();
    let mut count = 0;
    // `--from` needs a voice on the disk; tests/fine_tune_command.rs has one.
    let typed = |entry: &&Entry| entry.flag.as_ref().is_some_and(|flag| flag != "--from");
    for entry in found.iter().filter(typed) {
        let flag = entry.flag.clone().unwrap();
        let isolated = flag.ends_with("-gpu-memory").then_some("--enable-memory-isolation");
        let words: Vec<String> = match sample(entry) {
            Some(value) => vec![format!("{flag}={value}")],
            None => vec![flag.clone()],
        };
        let words = words.iter().map(String::as_str).chain(isolated);
        let changed = decided(&words.collect::<Vec<_>>());
        let at = |value: &Value| {
            let pointer = format!("/{}", entry.key().replace('.', "/"));
            value.pointer(&pointer).cloned()
        };
        assert_ne!(at(&changed), at(&usual), "{flag} does not set {}", entry.key());
        count += 1;
    }
    assert!(count >= 40, "only {count} keys have a flag");
}

/// A value that is not the default; `None` for a switch.
fn sample(entry: &Entry) -> Option<&'static str> {
    Some(match (entry.kind.as_str(), entry.flag.as_deref()?) {
        (_, "--keep-diacritics" | "--cache-dataset") => return None,
        (_, "--enable-memory-isolation" | "--no-graphs") => return None,
        (_, "--mixed-precision") => "f16",
        (_, "--model-size") => "big",
        (_, "--backend") => "cpu",
        (_, "--mel-on") => "host",
        (_, "--languages") => "de",
        (_, "--layout") => "vctk",
        (_, "--pronunciation") => "characters",
        (_, "--frame-budget" | "--max-mel-frames") => "1600",
        (_, "--trim-silence" | "--loudness") => "-30",
        ("true or false", _) => "false",
        ("whole number", _) => "7",
        ("number", _) => "0.5",
        ("character", _) => ";",
        _ => "some/path",
    })
}

fn decided(flags: &[&str]) -> Value {
    let words = ["train", "--train-data", "corpora/x"].iter().chain(flags);
    // The flag of the key itself may not be given twice.
    let twice = flags.iter().any(|flag| flag.starts_with("--train-data"));
    let words: Vec<&str> = words.copied().filter(|word| !(twice && is_first(word))).collect();
    let plan =
        Typed::try_parse_from(&words).expect("flags that parse").args.resolve(&mut Printer::new());
    serde_json::to_value(plan.expect("a plan").to_file()).unwrap()
}

fn is_first(word: &str) -> bool {
    matches!(word, "--train-data" | "corpora/x")
}
