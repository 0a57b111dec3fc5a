//! One function decides the buffers: what is typed, the banner, the settings of the run, the flags at its
//! end, `validate`, `devices`, `profile` and `plan` all give the same numbers.
//!
//! Every combination of typed and untyped numbers runs through the real program, typed as a flag, in the
//! environment or in a file. The expected numbers are written out, not computed.

mod support;

use serde_json::Value;
use std::fs;
use support::{CommandOutput, TestDir};

/// Clips of half a second: with the smallest model a run of one step is short.
fn test_dir() -> TestDir {
    // More rows than the largest batch, which is never larger than the corpus.
    let names = ('a'..='z').chain('A'..='Z').take(40);
    let rows = names.map(|name| format!("{name}|hello there|hello there\n"));
    TestDir::with_clips(40, &rows.collect::<String>())
}

const TRAIN: [&str; 11] = [
    "train",
    "--train-data",
    "corpus",
    "--model-size",
    "micro",
    "--max-steps",
    "1",
    "--num-workers",
    "2",
    "--no-adapt",
    "--frame-budget=800",
];

/// Typed numbers, batch size, and what they give: batches for the model and on the host.
struct Case {
    prefetch: Option<usize>,
    samples: Option<usize>,
    batch: usize,
    depth: usize,
    host: usize,
}

#[rustfmt::skip]
const MATRIX: [Case; 16] = [
    Case { prefetch: None, samples: None, batch: 8, depth: 8, host: 7 },
    Case { prefetch: None, samples: None, batch: 16, depth: 4, host: 4 },
    Case { prefetch: None, samples: None, batch: 24, depth: 3, host: 3 },
    Case { prefetch: None, samples: None, batch: 32, depth: 3, host: 3 },
    Case { prefetch: Some(8), samples: None, batch: 8, depth: 8, host: 7 },
    Case { prefetch: Some(8), samples: None, batch: 16, depth: 8, host: 4 },
    Case { prefetch: Some(2), samples: None, batch: 24, depth: 2, host: 3 },
    Case { prefetch: Some(4), samples: None, batch: 32, depth: 4, host: 3 },
    Case { prefetch: None, samples: Some(100), batch: 8, depth: 13, host: 13 },
    Case { prefetch: None, samples: Some(100), batch: 16, depth: 7, host: 7 },
    Case { prefetch: None, samples: Some(100), batch: 24, depth: 5, host: 5 },
    Case { prefetch: None, samples: Some(20), batch: 32, depth: 1, host: 1 },
    Case { prefetch: Some(3), samples: Some(100), batch: 8, depth: 3, host: 13 },
    Case { prefetch: Some(8), samples: Some(100), batch: 16, depth: 8, host: 7 },
    Case { prefetch: Some(1), samples: Some(100), batch: 24, depth: 1, host: 5 },
    Case { prefetch: Some(12), samples: Some(50), batch: 32, depth: 12, host: 2 },
];

/// Where a number is typed.
const PLACES: [&str; 3] = ["flag", "environment", "file"];

#[test]
fn every_combination_is_shown_and_used_as_decided() {
    let dir = test_dir();
    for (number, case) in MATRIX.iter().enumerate() {
        // Each combination of typed numbers comes with several batch sizes, and so with every place.
        let place = PLACES[number % PLACES.len()];
        let run = format!("run-{number}");
        let trained = case.train(&dir, place, &run);
        check_run(&dir, &run, &trained, case);
    }
}

impl Case {
    fn train(&self, dir: &TestDir, place: &str, run: &str) -> CommandOutput {
        let (batch, mut more) = (self.batch.to_string(), vec!["--checkpoint-dir", run]);
        more.extend(["--batch-size", &batch]);
        let typed = [
            ("--prefetch-buffer-size", "TANDEM_PREFETCH_BUFFER_SIZE", self.prefetch),
            ("--buffer-size", "TANDEM_BUFFER_SIZE", self.samples),
        ];
        let typed: Vec<(&str, &str, String)> = typed
            .iter()
            .filter_map(|(flag, variable, count)| Some((*flag, *variable, (*count)?.to_string())))
            .collect();
        let mut variables = Vec::new();
        for (flag, variable, count) in &typed {
            match place {
                "flag" => more.extend([*flag, count.as_str()]),
                "environment" => variables.push((*variable, count.as_str())),
                _ => {}
            }
        }
        if place == "file" {
            fs::write(dir.path("typed.toml"), self.file()).expect("written");
            more.extend(["--config", "typed.toml"]);
        }
        let mut command = dir.tandem(&[&TRAIN[..], &more].concat());
        command.envs(variables);
        CommandOutput::of(command.output().expect("the program runs"))
    }

    fn file(&self) -> String {
        let prefetch = self.prefetch.map(|count| format!("prefetch_buffer_size = {count}\n"));
        let samples = self.samples.map(|count| format!("[devices]\nbuffer_size = {count}\n"));
        prefetch.unwrap_or_default() + &samples.unwrap_or_default()
    }
}

/// The banner, `config.toml`, the slots that the run really had, `validate` and `devices`.
#[track_caller]
fn check_run(dir: &TestDir, run: &str, trained: &CommandOutput, case: &Case) {
    let Case { batch, depth, host, .. } = case;
    assert_eq!(trained.code, Some(0), "{run}: {}", trained.err);
    let line = |start: &str| {
        let found = trained.err.lines().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_else(|| panic!("no `{start}` in {}", trained.err)).to_string()
    };
    let counted = |count: usize| format!("{count} batch{}", if count == 1 { "" } else { "es" });
    let model = line("prefetch: ");
    assert!(model.starts_with(&format!("{} for the model", counted(*depth))), "{run}: {model}");
    assert!(line("host buffer: ").starts_with(&counted(*host)), "{run}: {}", trained.err);
    assert_eq!(line("workers: "), "2", "{run}");

    let config = format!("{run}/config.toml");
    let written = fs::read_to_string(dir.path(&config)).expect("settings of the run");
    let written: toml::Table = written.parse().expect("TOML");
    let said = written["prefetch_buffer_size"].as_integer();
    assert_eq!(said, Some(*depth as i64), "{run}");
    assert_eq!(written["batch"]["batch_size"].as_integer(), Some(*batch as i64), "{run}");

    let record = fs::read_to_string(dir.path(run).join("run.jsonl")).expect("a record");
    let used = format!("--pipeline-depth {depth}\"");
    assert!(record.contains(&used), "{run}: no `{used}`: {record}");

    let checked = dir.run(&["validate", "--config", &config, "--json"]).json();
    let checks = checked["checks"].as_array().expect("checks");
    let prefetch = checks.iter().find(|check| check["name"] == "prefetch").expect("a check");
    let reason = prefetch["reason"].as_str().expect("a reason");
    assert!(reason.starts_with(&format!("{depth} batches may wait")), "{run}: {reason}");

    let devices = dir.run(&["devices", "--config", &config, "--json"]).json();
    let shown = [&devices["buffers"]["depth"], &devices["buffers"]["host"]];
    assert_eq!(shown, [&Value::from(*depth), &Value::from(*host)], "{run}");
}

#[test]
fn presets_give_what_the_matrix_says() {
    let dir = test_dir();
    for (card, batch, depth) in [("12", 8, 8), ("16", 12, 6), ("24", 24, 4)] {
        let flags = dir.run(&["plan", "--preset", card]).out;
        // The budgets need a device of that size; the buffers do not depend on them.
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let of = |name: &str| {
            let place = flags.iter().position(|word| *word == name).expect("a flag");
            [flags[place], flags[place + 1]]
        };
        let typed = [of("--batch-size"), of("--prefetch-buffer-size")].concat();
        let run = format!("preset-{card}");
        let trained = dir.run(&[&TRAIN[..], &typed, &["--checkpoint-dir", &run]].concat());
        let host = 50usize.div_ceil(batch).min(depth).max(3);
        let (prefetch, samples) = (Some(depth), None);
        check_run(&dir, &run, &trained, &Case { prefetch, samples, batch, depth, host });
    }
}

#[test]
fn the_flags_of_the_controller_and_a_profile_have_the_same_numbers() {
    let dir = test_dir();
    let adapted = [&TRAIN[..9], &["--buffer-size", "90", "--checkpoint-dir", "first"]].concat();
    let first = dir.run(&adapted);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let record = fs::read_to_string(dir.path("first/run.jsonl")).expect("a record");
    let depth = record.rsplit("--pipeline-depth ").next().expect("flags of the controller");
    let depth = depth.split('"').next().expect("a number").to_string();
    let again = ["--pipeline-depth", &depth, "--buffer-size", "90", "--checkpoint-dir", "again"];
    let again = dir.run(&[&TRAIN[..], &again].concat());
    assert!(again.err.contains(&format!("prefetch: {depth} batches for the model")), "{again:?}");

    let profile = ["profile", "--train-data", "corpus", "--model-size", "micro", "--num-workers"];
    let steps = ["1", "--num-steps", "4", "--skip-steps", "1", "--cache-dataset"];
    let buffers = ["--batch-size", "2", "--buffer-size", "9", "--record", "saved"];
    let profiled = dir.run(&[&profile[..], &steps, &buffers].concat());
    // Exit code 1 means that a setting should change, which depends on the machine.
    assert!(matches!(profiled.code, Some(0 | 1)), "{}", profiled.err);
    assert!(
        profiled
            .err
            .contains("prefetch: 5 batches for the model (from --buffer-size 9; 8 without it)")
    );
    let path = dir.path("saved/profile.json");
    let text = fs::read_to_string(&path).expect("a profile");
    let mut answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["subject"]["depth"], 5);
    // On a busy machine a part may take longer alone than in the whole run, and a plan refuses that.
    for alone in ["model_alone", "data_alone"] {
        answer["measured"][alone] = answer["measured"]["as_is"].clone();
    }
    fs::write(&path, answer.to_string()).expect("written");
    let plan = dir.run(&["plan", "saved", "--json"]).json();
    let rows = plan["rows"].as_array().expect("rows");
    let depths: Vec<u64> = rows.iter().filter_map(|row| row["depth"].as_u64()).collect();
    assert!(depths.contains(&5) && depths.iter().all(|depth| [5, 10].contains(depth)), "{plan}");
}
