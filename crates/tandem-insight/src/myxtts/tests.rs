//! Settings as people have them, right and wrong.

use super::*;
use proptest::prelude::*;
use std::sync::LazyLock;
use tandem_train::file_config::all_settings;

const TAGS: [&str; 3] = ["en", "fa", "de"];

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| keys::all(&all_settings()));

fn converted(tree: Value) -> Conversion {
    convert(&tree, &KEYS, &TAGS).unwrap()
}

#[track_caller]
fn check(tree: Value, config: Value) {
    assert_eq!(Value::Object(converted(tree).config), config);
}

#[test]
fn settings_move_to_our_keys() {
    check(
        json!({
            "data": {"dataset_path": "./lj", "batch_size": 56, "num_workers": 18,
                     "preprocessing_mode": "precompute", "mixed_precision": true},
            "training": {"learning_rate": 1e-4, "gradient_accumulation_steps": 2},
        }),
        json!({
            "train_data": "./lj", "num_workers": 18, "cache_dataset": true,
            "batch": {"batch_size": 56},
            "train": {"precision": "bf16", "optimizer": {"lr": 1e-4}, "grad_accum": 2},
        }),
    );
}

#[test]
fn numbers_written_as_texts_are_numbers() {
    check(
        json!({"training": {"learning_rate": "1e-4", "epochs": "1_000", "warmup_steps": 4e3}}),
        json!({"train": {"epochs": 1000, "optimizer": {"lr": 1e-4, "warmup_steps": 4000}}}),
    );
}

#[test]
fn a_lowest_rate_becomes_a_share_of_the_highest() {
    check(
        json!({"training": {"min_learning_rate": 1e-6, "learning_rate": 1e-4}}),
        json!({"train": {"optimizer": {"final_lr": 0.01, "lr": 1e-4}}}),
    );
}

#[test]
fn languages_that_cannot_be_read_are_left_out_by_name() {
    let found = converted(json!({"model": {"languages": ["en", "zh", "fa", "ko"]}}));
    assert_eq!(found.config["text"], json!({"languages": ["en", "fa"]}));
    assert!(found.meanings[0].said.contains("without zh, ko"), "{}", found.meanings[0].said);
    check(
        json!({"data": {"language": "fa"}}),
        json!({"corpus": {"default_language": "fa"}, "text": {"languages": ["fa"]}}),
    );
    check(json!({"data": {"language": "tlh"}}), json!({}));
}

#[test]
fn what_follows_is_set_as_well() {
    check(json!({"data": {"sample_rate": 16000}}), json!({"mel": {"rate": 16000, "high": 8000.0}}));
    check(
        json!({"training": {"model_gpu_memory": 8192}}),
        json!({"devices": {"model_gpu_memory": 8192, "enable_memory_isolation": true}}),
    );
    check(json!({"data": {"num_workers": 0, "language": null, "dataset_path": ""}}), json!({}));
}

#[test]
fn trimming_and_loudness_have_their_keys_here() {
    check(json!({"data": {"trim_silence": true}}), json!({"audio": {"trim_silence": -40.0}}));
    check(json!({"data": {"trim_silence": false, "normalize_audio": "no"}}), json!({}));
    check(json!({"data": {"normalize_audio": true}}), json!({"audio": {"loudness": -23.0}}));
    for normalize_audio in [false, true] {
        check(
            json!({"data": {"target_loudness_lufs": -18, "enable_loudness_normalization": true,
                "normalize_audio": normalize_audio}}),
            json!({"audio": {"loudness": -18.0}}),
        );
    }
    let found = converted(json!({"data": {"target_loudness_lufs": -18.0,
        "enable_loudness_normalization": false}}));
    assert!(found.config.is_empty());
    assert!(found.meanings.iter().all(|meaning| meaning.became == Became::LeftOut));
}

#[test]
fn switches_of_what_is_always_so_say_so() {
    let found = converted(json!({"data": {"use_tf_native_loading": false, "enable_xla": true,
        "prefetch_to_gpu": true, "enhanced_gpu_prefetch": true, "optimize_cpu_gpu_overlap": true,
        "pin_memory": "yes", "enable_vad": true}}));
    let became: Vec<Became> = found.meanings.iter().map(|meaning| meaning.became).collect();
    assert_eq!(became.iter().filter(|became| **became == Became::Always).count(), 5);
    assert_eq!(found.switch("use_tf_native_loading"), Some(("data.use_tf_native_loading", false)));
    let of = |name: &str| found.meanings.iter().find(|m| m.key.ends_with(name)).unwrap().became;
    assert_eq!(of("use_tf_native_loading"), Became::AlwaysDespite);
    assert_eq!(of("enable_vad"), Became::LeftOut);
    assert!(found.config.is_empty());
}

#[test]
fn wrong_types_and_unknown_keys_are_named() {
    let wrong = |tree| convert(&tree, &KEYS, &TAGS).unwrap_err();
    let found = wrong(json!({"data": {"batch_size": "many"}}));
    assert_eq!(
        (found.key.as_str(), found.found.as_str()),
        ("data.batch_size", "the text \"many\"")
    );
    assert_eq!(found.expected, "a whole number from 0 up");
    assert_eq!(wrong(json!({"data": {"batch_size": 1.5}})).found, "1.5");
    assert_eq!(wrong(json!({"data": {"enable_xla": 1}})).expected, "true or false");
    assert_eq!(wrong(json!({"model": {"languages": 3}})).expected, "a list of language tags");
    let found = converted(json!({"data": {"num_workerz": 1}, "trainings": {}, "model": 3}));
    assert_eq!(found.unknown, ["data.num_workerz", "model", "trainings"]);
}

#[test]
fn the_table_of_a_key_matters() {
    let found = converted(json!({"model": {"num_workers": 4}, "data": {"num_workers": 4}}));
    assert_eq!(found.unknown, ["model.num_workers"]);
    assert_eq!(found.source_of("num_workers"), Some("data.num_workers"));
}

#[test]
fn their_files_are_told_from_ours() {
    assert!(is_myxtts(&json!({"data": {}})));
    assert!(!is_myxtts(&json!({"train": {}, "batch": {}, "num_workers": 3})));
    assert!(!is_myxtts(&json!({"data": 3})));
    assert!(!is_myxtts(&json!([1])));
}

proptest! {
    #[test]
    fn any_value_for_any_key_is_taken_or_refused(
        key in 0..KEYS.len(),
        number in any::<f64>(),
        text in ".{0,12}",
        which in 0..5,
    ) {
        let value = match which {
            0 => json!(number), 1 => json!(text), 2 => json!([text]), 3 => json!(true),
            _ => json!({"a": number}),
        };
        let key = &KEYS[key];
        for table in TABLES.iter().filter(|table| key.is(table, key.name)) {
            let tree = json!({*table: {key.name: value.clone()}});
            if let Ok(found) = convert(&tree, &KEYS, &TAGS) {
                prop_assert!(found.unknown.is_empty());
                prop_assert_eq!(found.meanings.len(), usize::from(!value.is_null()));
            }
        }
    }
}
