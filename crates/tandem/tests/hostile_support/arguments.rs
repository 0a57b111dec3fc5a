//! Values of flags and variables, texts, and paths where a file of some kind is expected.

use super::Case;

/// A short training run; a case adds one flag.
const TRAIN: [&str; 11] = [
    "train",
    "--train-data",
    "good",
    "--model-size",
    "micro",
    "--max-steps",
    "1",
    "--num-workers",
    "1",
    "--checkpoint-dir",
    "new-run",
];
const NUMBERS: [&str; 9] =
    ["-1", "0", "nan", "inf", "1e400", "99999999999999999999", "", "x", "\u{663}"];
/// Flags that take a number. Each number is tried with some of them.
const NUMERIC: [&str; 30] = [
    "--batch-size",
    "--frame-budget",
    "--prefetch-buffer-size",
    "--seed",
    "--grad-accum",
    "--epochs",
    "--lr",
    "--final-lr",
    "--warmup-steps",
    "--weight-decay",
    "--clip",
    "--ema-decay",
    "--patience",
    "--nan-limit",
    "--align-every",
    "--align-lag",
    "--align-flat-start",
    "--validate-every",
    "--sample-every",
    "--checkpoint-every",
    "--keep",
    "--model-start-delay",
    "--max-text-length",
    "--max-mel-frames",
    "--trim-silence",
    "--trim-margin",
    "--loudness",
    "--max-rejected",
    "--stall-timeout",
    "--buffer-size",
];
/// Flags whose values are words, and words that are none of them.
const WORDS: [(&str, &str); 14] = [
    ("--model-size", "gigantic"),
    ("--mixed-precision", "f8"),
    ("--languages", "xx,yy"),
    ("--languages", ","),
    ("--pronunciation", "none"),
    ("--separator", "||"),
    ("--separator", ""),
    ("--backend", "abacus"),
    ("--data-gpu", "7"),
    ("--mel-on", "moon"),
    ("--lang", "tlh"),
    ("--num-workers", "100000"),
    ("--rank-timeout", "-3"),
    ("--dashboard", "70000"),
];
/// Commands with a place for a path; `@` is the path.
const TAKE_PATHS: [&[&str]; 26] = [
    &["prepare", "@"],
    &["analyze", "@", "--sample", "1", "--batches", "1"],
    &["batches", "@"],
    &["features", "@", "-o", "out.npy"],
    &["features", "good/wavs/a.wav", "-o", "@"],
    &["validate", "--config", "@"],
    &["validate", "--config", "good.toml", "--corpus", "@"],
    &["train", "--train-data", "@", "--max-steps", "1"],
    &["train-vocoder", "--train-data", "@", "--max-steps", "1"],
    &["attach-vocoder", "--checkpoint", "@", "--vocoder", "@"],
    &["synth", "--checkpoint", "@", "--text", "a", "-o", "out.wav"],
    &["synth", "--checkpoint", "run", "--text", "a", "-o", "@"],
    &["synth", "--checkpoint", "run", "--text-file", "@", "-o", "out.wav"],
    &["synth", "--checkpoint", "run", "--text", "a", "--reference", "@", "-o", "out.wav"],
    &["serve", "--checkpoint", "run", "--token-file", "@", "--voice", "x=@"],
    &["vocode", "@", "-o", "out.wav"],
    &["export", "--checkpoint", "@", "--format", "onnx", "-o", "exported"],
    &["evaluate", "--checkpoint", "@", "--corpus", "good"],
    &["evaluate", "--checkpoint", "run", "--corpus", "@"],
    &["report", "@"],
    &["compare", "@", "@"],
    &["scaling", "@", "@"],
    &["doctor", "@", "-o", "doctor.txt"],
    &["plan", "@"],
    &["text", "a", "--lexicon", "@"],
    &["train", "--train-data", "good", "--from", "@", "--max-steps", "1"],
];
/// Places of every kind. `good` and the others are made by `files::room`.
const PATHS: [&str; 9] = [
    "nowhere",
    "",
    "good",
    "noise.bin",
    "empty",
    "/dev/null",
    "a-pipe",
    "loop",
    "no\npath \u{202e}",
];
const COMMANDS: [&str; 14] = [
    "demo",
    "prepare",
    "train",
    "synth",
    "serve",
    "watch",
    "bench",
    "reference",
    "completions",
    "man",
    "compare",
    "plan",
    "devices",
    "licenses",
];

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (at, flag) in NUMERIC.iter().enumerate() {
        // Every flag with three of the numbers, every number with ten of the flags.
        for turn in 0..3 {
            let number = NUMBERS[(at + 3 * turn) % NUMBERS.len()];
            let run = format!("new-run-{at}-{turn}");
            let typed = format!("{flag}={number}");
            let mut args = TRAIN.map(String::from).to_vec();
            *args.last_mut().expect("a directory") = run;
            args.push(typed);
            all.push(Case { args, env: Vec::new() });
        }
        all.push(Case::of(&[&TRAIN[..9], &["--checkpoint-dir", "new-run", flag, "-1"]].concat()));
    }
    for (flag, word) in WORDS {
        all.push(Case::of(&[&TRAIN[..3], &["--max-steps", "1", flag, word]].concat()));
    }
    for (at, command) in TAKE_PATHS.iter().enumerate() {
        for turn in 0..5 {
            let path = PATHS[(at + 2 * turn) % PATHS.len()];
            let args: Vec<String> = command.iter().map(|word| word.replace('@', path)).collect();
            all.push(Case { args, env: Vec::new() });
        }
    }
    for command in COMMANDS {
        all.push(Case::of(&[command, "--no-such-flag"]));
        all.push(Case::of(&[command, "one", "two", "three", "four"]));
        all.push(Case::of(&[command, "\u{633}\u{644}\u{627}\u{645}", "-\u{634}", ""]));
    }
    all.extend(texts());
    all.extend(variables());
    all
}

fn texts() -> Vec<Case> {
    let texts = [
        String::new(),
        " ".into(),
        "\n\n".into(),
        "\u{0}1".replace('\u{0}', ""),
        "-5 degrees".into(),
        "--".into(),
        "\u{200f}\u{202e}abc".into(),
        "a\u{301}".repeat(400),
        "1".repeat(3000),
        "1 ".repeat(800),
        "((((".repeat(200),
        "\u{1f600}".into(),
        "\u{feff}x".into(),
        ".".repeat(2000),
        "\u{644}\u{64b}".repeat(300),
        "$".repeat(90),
        "1/0/0/0".into(),
        "12:99:99".into(),
        "\t\u{7}\u{8}".into(),
        "IVXLCDM".repeat(30),
    ];
    let of = |text: &String| {
        let spoken = [
            "synth",
            "--checkpoint",
            "run",
            "--steps",
            "1",
            "--vocoder-rounds",
            "1",
            "-o",
            "text.wav",
            "--text",
        ];
        [Case::of(&["text", "--", text]), Case::of(&[&spoken[..], &[text]].concat())]
    };
    texts.iter().flat_map(of).collect()
}

fn variables() -> Vec<Case> {
    let of_train = [
        ("TANDEM_BATCH_SIZE", "many"),
        ("TANDEM_BATCHSIZE", "2"),
        ("TANDEM_NUM_WORKERS", "-1"),
        ("TANDEM_CACHE_DATASET", "perhaps"),
        ("TANDEM_CACHE_DIR", "/dev/null/x"),
        ("TANDEM_CONFIG", "nowhere.toml"),
        ("TANDEM_PHONEMES", "1"),
        ("TANDEM_LR", ""),
        ("TANDEM_SEPARATOR", "abc"),
        ("TANDEM_BACKEND", "\u{202e}"),
    ];
    let of_all = [
        ("HOME", "/nowhere"),
        ("HOME", ""),
        ("HOME", "relative"),
        ("TMPDIR", "/nowhere"),
        ("XDG_CACHE_HOME", "/dev/null"),
        ("TANDEM_DATA_DIR", "/dev/null"),
        ("COLUMNS", "0"),
        ("LANG", "xx_YY.latin1"),
        ("RAYON_NUM_THREADS", "0"),
        ("PATH", ""),
        ("TERM", "none"),
        ("CLICOLOR_FORCE", "1"),
    ];
    let commands: [&[&str]; 4] =
        [&["prepare", "demo"], &["devices"], &["text", "Hello."], &["doctor", "-o", "report.zip"]];
    let first = of_train.map(|(name, value)| Case::of(&["batches", "good"]).with_env(name, value));
    let others = of_all.iter().enumerate().flat_map(|(at, (name, value))| {
        [0, 1].map(|turn| Case::of(commands[(at + turn) % commands.len()]).with_env(name, value))
    });
    first.into_iter().chain(others).collect()
}
