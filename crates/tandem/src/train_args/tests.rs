//! Flags, environment and files, resolved to a plan.

use super::*;
use crate::failure::{Result, explain};
use crate::train_plan::effective_config;
use clap::{CommandFactory, Parser};
use proptest::prelude::*;
use std::ffi::OsString;
use std::process::Command;
use tandem_data::batch::BatchConfig;
use tandem_device::backend::F32Products;
use tandem_settings::{Range, Setting, ValueKind};
use tandem_train::feed::buffers::{Buffers, DepthSource};
use tandem_train::file_config::all_settings;
use tandem_train::train_settings::Precision;
use tandem_units::Seconds;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: TrainArgs,
}

fn parsed(flags: &[&str]) -> Result<TrainArgs, clap::Error> {
    Line::try_parse_from(["train"].iter().chain(flags)).map(|typed| typed.args)
}

/// The plan for these flags.
pub fn plan(flags: &[&str]) -> TrainPlan {
    let all = [&["--train-data", "corpora/x"], flags].concat();
    parsed(&all).expect("flags that parse").resolve(&mut Printer::new()).expect("a plan")
}

/// The plan for these flags and a configuration file.
fn plan_over(name: &str, text: &str, flags: &[&str]) -> Result<TrainPlan> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let all = [&["--config", path.to_str().unwrap()], flags].concat();
    parsed(&all).expect("flags that parse").resolve(&mut Printer::new())
}

fn refused(flags: &[&str]) -> String {
    let all = [&["--train-data", "corpora/x"], flags].concat();
    let error =
        parsed(&all).expect("flags that parse").resolve(&mut Printer::new()).expect_err("refused");
    anstream::adapter::strip_str(&explain(&error)).to_string()
}

#[test]
fn clap_accepts_the_definitions() {
    Line::command().debug_assert();
}

#[test]
fn without_flags_the_documented_defaults_hold() {
    let plan = plan(&[]);
    assert_eq!((plan.batch.batch_size, plan.buffers.depth), (16, 4));
    assert_eq!((plan.data.text.max_symbols, plan.data.max_mel_frames), (200, 800));
    assert_eq!((plan.start_delay, plan.adapt, plan.resume), (Seconds(2.0), true, false));
    assert_eq!((plan.train.epochs, plan.train.max_steps), (Some(100), None));
    assert_eq!(plan.notes.len(), 1, "the chosen default is named");
    assert!(plan.notes[0].contains("100 epochs"), "{}", plan.notes[0]);
    assert_eq!(plan.val_data, None);
}

#[test]
fn no_default_number_of_epochs_is_added_to_a_given_length() {
    let steps = plan(&["--max-steps", "50"]);
    assert_eq!((steps.train.max_steps, steps.train.epochs), (Some(50), None));
    assert!(steps.notes.is_empty());
    let both = plan(&["--max-steps", "50", "--epochs", "3"]);
    assert_eq!((both.train.max_steps, both.train.epochs), (Some(50), Some(3)));
}

#[test]
fn every_flag_reaches_its_setting() {
    let plan = plan(&[
        "--val-data",
        "corpora/y",
        "--model-size",
        "big",
        "--grad-accum",
        "4",
        "--lr",
        "2e-4",
        "--final-lr",
        "0.1",
        "--warmup-steps",
        "7",
        "--weight-decay",
        "0.02",
        "--clip",
        "0.5",
        "--ema-decay",
        "0.9",
        "--patience",
        "6",
        "--judge",
        "hear --well",
        "--nan-limit",
        "8",
        "--align-every",
        "11",
        "--align-lag",
        "12",
        "--validate-every",
        "13",
        "--sample-every",
        "14",
        "--checkpoint-every",
        "15",
        "--keep",
        "2",
        "--checkpoint-dir",
        "runs/a",
        "--resume",
        "--model-start-delay",
        "0.5",
        "--seed",
        "9",
        "--batch-size",
        "24",
        "--num-workers",
        "3",
        "--prefetch-buffer-size",
        "5",
        "--mixed-precision",
        "f16",
        "--max-mel-frames",
        "700",
        "--stall-timeout",
        "90",
    ]);
    let file: serde_json::Value = serde_json::to_value(plan.to_file()).unwrap();
    let wanted = [
        ("/val_data", "\"corpora/y\""),
        ("/train/model_size", "\"big\""),
        ("/train/grad_accum", "4"),
        ("/train/optimizer/lr", "0.0002"),
        ("/train/optimizer/final_lr", "0.1"),
        ("/train/optimizer/warmup_steps", "7"),
        ("/train/optimizer/weight_decay", "0.02"),
        ("/train/optimizer/clip", "0.5"),
        ("/train/ema_decay", "0.9"),
        ("/train/patience", "6"),
        ("/train/judge", "\"hear --well\""),
        ("/train/nan_limit", "8"),
        ("/train/alignment/every", "11"),
        ("/train/alignment/lag", "12"),
        ("/train/validate_every", "13"),
        ("/train/sample_every", "14"),
        ("/train/checkpoint_every", "15"),
        ("/train/keep", "2"),
        ("/train/checkpoint_dir", "\"runs/a\""),
        ("/model_start_delay", "0.5"),
        ("/train/seed", "9"),
        ("/batch/seed", "9"),
        ("/batch/batch_size", "24"),
        ("/num_workers", "3"),
        ("/prefetch_buffer_size", "5"),
        ("/train/precision", "\"f16\""),
        ("/batch/max_mel_frames", "700"),
        ("/pipeline/stall_timeout", "90"),
    ];
    for (key, value) in wanted {
        assert_eq!(file.pointer(key).expect(key).to_string(), value, "{key}");
    }
    assert!(plan.resume);
    let feed = plan.feed_settings();
    assert_eq!((feed.workers, feed.depth, feed.batch.batch_size), (3, 5, 24));
    let limit = Some(std::time::Duration::from_secs(90));
    assert_eq!((feed.stall_timeout, plan.prepare.stall_timeout), (limit, limit));
}

#[test]
fn a_stall_ends_a_run_after_a_minute_unless_the_limit_is_changed_or_off() {
    let seconds = |plan: TrainPlan| plan.feed_settings().stall_timeout.map(|limit| limit.as_secs());
    assert_eq!(seconds(plan(&[])), Some(60));
    assert_eq!(seconds(plan(&["--stall-timeout", "0"])), None);
    let file = "train_data: corpora/z\npipeline: {stall_timeout: 5}\n";
    assert_eq!(seconds(plan_over("a.yaml", file, &[]).unwrap()), Some(5));
    assert_eq!(seconds(plan_over("a.yaml", file, &["--stall-timeout", "7"]).unwrap()), Some(7));
    let file = file.replace('5', "86401");
    let refused = plan_over("a.yaml", &file, &[]).unwrap_err();
    assert!(explain(&refused).contains("`pipeline.stall_timeout` is 86401"), "{refused:?}");
}

#[test]
fn a_flag_overrides_the_file_and_the_file_overrides_the_default() {
    let file = "train_data: corpora/z\nbatch: {batch_size: 5}\ntrain:\n  keep: 7\n  optimizer:\n    \
        lr: 1e-4\nmodel_start_delay: 1.5\nadapt: false\nnum_workers: 2\n";
    let plan = plan_over("a.yaml", file, &["--lr", "5e-4", "--num-workers", "6"]).unwrap();
    assert_eq!(plan.train_data, PathBuf::from("corpora/z"));
    assert_eq!((plan.batch.batch_size, plan.train.keep), (5, 7));
    assert_eq!((plan.train.optimizer.lr, plan.prepare.workers), (5e-4, 6));
    assert_eq!((plan.start_delay, plan.adapt), (Seconds(1.5), false));
    assert_eq!(plan.train.optimizer.clip, 1.0);
}

#[test]
#[ignore = "a child process of the test below"]
fn child() {
    let Ok(config) = std::env::var("CHILD_CONFIG") else { return };
    let flags: &[&str] = if std::env::var("CHILD_FLAG").is_ok() { &["--lr", "3e-4"] } else { &[] };
    let plan = parsed(&[&["--config", config.as_str()], flags].concat())
        .unwrap()
        .resolve(&mut Printer::new());
    let plan = plan.unwrap();
    assert_eq!(plan.train.optimizer.lr.to_string(), std::env::var("CHILD_LR").unwrap());
    assert_eq!(plan.adapt.to_string(), std::env::var("CHILD_ADAPT").unwrap());
    assert_eq!(plan.train.keep, 7, "what only the file says stays");
}

#[test]
fn the_environment_overrides_the_file_and_a_flag_overrides_both() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("a.toml");
    let text = "train_data = \"x\"\n[train]\nkeep = 7\n[train.optimizer]\nlr = 1e-4\n";
    std::fs::write(&config, text).unwrap();
    let name = format!("{}::child", module_path!().split_once("::").unwrap().1);
    let run = |variables: &[(&str, &str)], lr: &str, adapt: &str| {
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--ignored"])
            .envs(variables.iter().copied())
            .env("CHILD_CONFIG", &config)
            .env("CHILD_LR", lr)
            .env("CHILD_ADAPT", adapt)
            .output()
            .unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"), "it ran");
    };
    run(&[], "0.0001", "true");
    run(&[("TANDEM_LR", "2e-4"), ("TANDEM_ADAPT", "false")], "0.0002", "false");
    run(&[("TANDEM_LR", "2e-4"), ("CHILD_FLAG", "1")], "0.0003", "true");
}

#[test]
fn the_last_of_adapt_and_no_adapt_counts() {
    assert!(plan(&["--adapt"]).adapt);
    assert!(!plan(&["--no-adapt"]).adapt);
    assert!(!plan(&["--adapt=false"]).adapt);
    assert!(!plan(&["--adapt", "--no-adapt"]).adapt);
    assert!(plan(&["--no-adapt", "--adapt"]).adapt);
}

#[test]
fn mixed_precision_may_name_its_kind() {
    assert_eq!(plan(&[]).train.precision, Precision::F32);
    assert_eq!(plan(&["--mixed-precision"]).train.precision, Precision::Bf16);
    assert_eq!(plan(&["--mixed-precision", "--resume"]).train.precision, Precision::Bf16);
    assert_eq!(plan(&["--mixed-precision", "f16"]).train.precision, Precision::F16);
    let tf32 = plan(&["--mixed-precision", "tf32"]);
    assert_eq!(tf32.train.precision, Precision::Tf32);
    // TF32 is a property of the open device, everything else of the model.
    assert_eq!(tf32.devices.products, F32Products::Tf32);
    assert_eq!(plan(&["--mixed-precision", "bf16"]).devices.products, F32Products::Full);
    let file = "train_data: x\ntrain: {precision: f16}";
    let off = plan_over("a.yaml", file, &["--mixed-precision=off"]).unwrap();
    assert_eq!(off.train.precision, Precision::F32);
    assert!(parsed(&["--mixed-precision", "f8"]).is_err());
}

#[test]
fn patience_of_zero_is_none() {
    let file = "train_data: x\ntrain: {patience: 4}";
    assert_eq!(plan_over("a.yaml", file, &[]).unwrap().train.patience, Some(4));
    assert_eq!(plan_over("a.yaml", file, &["--patience", "0"]).unwrap().train.patience, None);
}

#[test]
fn invalid_values_are_refused_with_the_flag() {
    let cases: [(&[&str], &str, &str); 9] = [
        (&["--lr", "0"], "`train.optimizer.lr` is 0, expected a number above 0", "--lr"),
        (&["--lr", "-1e-3"], "is -0.001", "--lr"),
        (&["--lr", "nan"], "is NaN", "--lr"),
        (&["--grad-accum", "0"], "`train.grad_accum` is 0, expected 1 or more", "--grad-accum"),
        (&["--max-steps", "0"], "`train.max_steps` is 0", "--max-steps"),
        (&["--keep", "0"], "`train.keep` is 0", "--keep"),
        (&["--ema-decay", "1.0"], "less than 1", "--ema-decay"),
        (&["--model-start-delay", "-1"], "is -1, expected 0 to 86400", "--model-start-delay"),
        (&["--batch-size", "0"], "`batch_size` is 0", "batch_size"),
    ];
    for (flags, fact, way_out) in cases {
        let said = refused(flags);
        assert!(said.contains(fact), "{said}");
        assert!(said.split_once("hint: ").expect("a hint").1.contains(way_out), "{said}");
    }
}

#[test]
fn a_run_without_a_corpus_is_refused_with_the_flag() {
    let error = parsed(&[]).unwrap().resolve(&mut Printer::new()).expect_err("refused");
    let said = explain(&error);
    assert!(
        said.contains("no training corpus is given") && said.contains("--train-data"),
        "{said}"
    );
}

/// The settings of a plan without its notes.
fn substance(plan: &TrainPlan) -> String {
    // The file says every number, so that a depth that was chosen is typed the second time.
    let buffers = Buffers { source: DepthSource::Prefetch, ..plan.buffers };
    let plan = TrainPlan { notes: Vec::new(), buffers, ..plan.clone() };
    format!("{plan:?}")
}

/// A path with characters that need escapes in TOML.
fn path() -> impl Strategy<Value = PathBuf> {
    "[a-zA-Zآ-ی0-9 '\"\\\\#=\\[\\]{}\n\t.,/-]{1,20}".prop_map(PathBuf::from)
}

/// Any value that a setting accepts.
fn value_of(setting: &'static Setting) -> BoxedStrategy<OsString> {
    let number = |numbers: std::ops::Range<f64>| numbers.prop_map(|n| n.to_string().into()).boxed();
    let words =
        |words: Vec<&'static str>| prop::sample::select(words).prop_map(OsString::from).boxed();
    let least_frames = BatchConfig::default().max_mel_frames as u64;
    match (setting.kind, setting.range) {
        (ValueKind::Word, _) => words(setting.words.to_vec()),
        (ValueKind::Switch, _) => words(vec!["true", "false"]),
        (ValueKind::Texts, _) => words(vec!["en", "fa", "de", "en,fa", "fa,de,en"]),
        (ValueKind::Character, _) => any::<char>().prop_map(|c| c.to_string().into()).boxed(),
        (ValueKind::Path, _) => path().prop_map(OsString::from).boxed(),
        (ValueKind::Text, _) => "[a-z]{1,8}( -[a-z])?".prop_map(OsString::from).boxed(),
        (ValueKind::Number, Range::AboveZero) => number(1e-300..10.0),
        (ValueKind::Number, Range::FromZero) => number(0.0..100.0),
        // The digits of a 32-bit float, which is what the setting holds.
        (ValueKind::Number, Range::Between(least, most)) => {
            (least as f32..most as f32).prop_map(|n| n.to_string().into()).boxed()
        }
        (ValueKind::Number, _) => number(0.0..1.0),
        (ValueKind::Counts, _) => unreachable!("no flag"),
        (ValueKind::Count, range) => any::<u64>()
            .prop_map(move |count| match (setting.key, range) {
                ("batch.frame_budget", _) => least_frames + count % 5000,
                ("batch.max_mel_frames", _) => 1 + count % least_frames,
                ("num_workers", _) => 1 + count % 200,
                ("batch.max_text_length", _) => 1 + count % 500,
                ("batch.batch_size" | "prefetch_buffer_size" | "devices.buffer_size", _) => {
                    1 + count % 300
                }
                ("devices.data_gpu" | "devices.model_gpu", _) => count % 9,
                (_, Range::Between(least, most)) => least as u64 + count % (most as u64),
                _ => {
                    let count = count.max(u64::from(range == Range::AtLeastOne));
                    let fits = (setting.accepts)(&count.to_string()).is_ok();
                    if fits { count } else { count % 1000 + 1 }
                }
            })
            .prop_map(|count| count.to_string().into())
            .boxed(),
    }
}

/// Any command line.
fn train_args() -> impl Strategy<Value = TrainArgs> {
    // `--from` needs a voice on the disk; tests/fine_tune_command.rs has one.
    let has_flag = |setting: &&Setting| setting.long_flag().is_some_and(|flag| flag != "--from");
    let one = |setting| prop::option::of(value_of(setting).prop_map(move |text| (setting, text)));
    let all: Vec<_> = all_settings().into_iter().filter(has_flag).map(one).collect();
    (all, path(), any::<(bool, bool)>()).prop_map(|(values, corpus, (no_adapt, resume))| {
        let named = |key: &str| {
            values.iter().flatten().find(|(setting, _)| setting.key == key).map(|(_, text)| text)
        };
        let isolated = named("devices.enable_memory_isolation").is_some_and(|text| text == "true");
        let values = values.iter().flatten().filter(|(setting, _)| match setting.key {
            // A budget without isolation is refused.
            "devices.data_gpu_memory" | "devices.model_gpu_memory" => isolated,
            _ => true,
        });
        let all = values.fold(Typed::default(), |all, (setting, text)| all.with(setting, text));
        // A group takes what it is given.
        let data = all.and(typed("train_data", corpus)).into();
        TrainArgs { data, no_adapt, resume, ..TrainArgs::default() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_effective_configuration_gives_the_same_plan_again(args in train_args()) {
        let first = args.resolve(&mut Printer::new()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("effective.toml");
        let written = effective_config(&first).unwrap();
        std::fs::write(&path, &written).unwrap();
        let corpus = CorpusArgs { config: Some(path), ..CorpusArgs::default() };
        let again = TrainArgs { corpus, resume: args.resume, ..TrainArgs::default() };
        let second = again.resolve(&mut Printer::new()).unwrap();
        prop_assert_eq!(substance(&first), substance(&second));
        prop_assert_eq!(effective_config(&second).unwrap(), written);
        prop_assert!(second.notes.is_empty(), "nothing is left to choose");
    }
}
