//! Flags of MyXTTS that Tandem does not have, and what is typed instead. Names only: none of that program's code.

/// A flag of the training or inference program, and what it is here.
struct Flag {
    /// Without the two dashes; a name that ends with `-` stands for all that begin with it.
    name: &'static str,
    here: &'static str,
}

const fn flag(name: &'static str, here: &'static str) -> Flag {
    Flag { name, here }
}

const SPEAKER: &str = "leave it out: the speaker embedding comes from a reference recording (`--reference` of `tandem synth`)";
const STYLE: &str = "leave it out: there are no style tokens; speech follows its `--reference`";
const RATES: &str = "leave it out, or use `--lr`, `--warmup-steps` and `--clip`";
const ALWAYS_AHEAD: &str =
    "leave it out: batches are always copied to the device ahead of the step";
const EVALUATION: &str = "use `--validate-every N` (steps), and `tandem evaluate` after the run";
const SMALLER: &str = "none here; `--model-size` has smaller networks, `tandem export` writes ONNX";

const FLAGS: &[Flag] = &[
    flag("optimization-level", RATES),
    flag("apply-fast-convergence", RATES),
    flag("disable-static-shapes", "write `--enable-static-shapes=false`"),
    flag("pad-to-fixed-length", "leave it out: batches are padded to a few shapes already"),
    flag("prefetch-to-gpu", ALWAYS_AHEAD),
    flag("no-prefetch-to-gpu", ALWAYS_AHEAD),
    flag("reset-training", "leave it out: without `--resume` a run starts from the beginning"),
    flag(
        "download-ljspeech",
        "download and unpack it yourself; `--train-data` names its directory",
    ),
    flag("decoder-strategy", "leave it out: there is one decoder, and it is not autoregressive"),
    flag("vocoder-type", "use `tandem train-vocoder` and `tandem attach-vocoder`"),
    flag("enable-evaluation", EVALUATION),
    flag("evaluation-interval", EVALUATION),
    flag("create-optimized-model", SMALLER),
    flag("lightweight-config", SMALLER),
    flag("compression-target", SMALLER),
    flag("use-pretrained-speaker-encoder", SPEAKER),
    flag("disable-pretrained-speaker-encoder", SPEAKER),
    flag("freeze-speaker-encoder", SPEAKER),
    flag("unfreeze-speaker-encoder", SPEAKER),
    flag("speaker-encoder-", SPEAKER),
    flag("contrastive-loss-", SPEAKER),
    flag("enable-gst", STYLE),
    flag("disable-gst", STYLE),
    flag("gst-", STYLE),
    flag("simple-loss", "leave it out; `tandem bench learn --only overfit` checks the trainer"),
    flag(
        "enable-eager-debug",
        "leave it out; `tandem bench learn --only overfit` checks the trainer",
    ),
    flag("tensorboard-log-dir", "leave it out: event files are in the run directory"),
    flag("training-samples-dir", "leave it out: samples are in the run directory"),
    flag("training-samples-log-interval", "use `--sample-every N` (steps)"),
    flag("metadata-train-file", "put `metadata_train.csv` into the corpus"),
    flag("metadata-eval-file", "put `metadata_eval.csv` into the corpus"),
    flag("visible-gpus", "use `--model-gpu N`, and `--data-gpu N` for data work on a second one"),
    flag("reference-audio", "use `--reference FILE`"),
    flag("multiple-reference-audios", "use `--reference FILE`: one recording"),
    flag("clone-voice", "use `--reference FILE`"),
    flag("speaker-id", "use `--speaker NAME`"),
    flag("list-speakers", "type `--speaker` with any name: the error lists all speakers"),
    flag("voice-", SPEAKER),
    flag("enable-voice-interpolation", SPEAKER),
    flag("prosody-reference", STYLE),
    flag("emotion", STYLE),
    flag("style-weights", STYLE),
    flag("list-style-tokens", STYLE),
    flag("speaking-rate", "use `--speed FACTOR`"),
    flag("max-length", "leave it out: the length follows from the text"),
    flag("save-mel", "use `--mel FILE`"),
    flag("dataset-path", "leave it out: a checkpoint has its symbols"),
    flag("detect-language", "leave it out: without `--language` the language is found in the text"),
    flag(
        "supported-languages",
        "leave it out: a voice speaks the languages that it was trained on",
    ),
    flag("enable-phone-normalization", "leave it out: texts are always normalised"),
    flag("evaluate-output", "use `tandem evaluate`"),
    flag("evaluation-output", "use `tandem evaluate --json`"),
    flag("optimized-inference", "leave it out; fewer `--steps` are faster"),
    flag("lightweight-model", SMALLER),
    flag("quality-mode", "use `--steps N`: more are slower and better"),
    flag("benchmark", "leave it out: `tandem synth` prints its real-time factor"),
];

/// What to type instead of a flag of MyXTTS; `None` for any other flag.
pub fn instead_of_flag(typed: &str) -> Option<&'static str> {
    let name = typed.strip_prefix("--")?.split('=').next()?;
    let is_meant = |flag: &&Flag| match flag.name.strip_suffix('-') {
        Some(_) => name.starts_with(flag.name),
        None => flag.name == name,
    };
    FLAGS.iter().find(is_meant).map(|flag| flag.here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_of_myxtts_has_a_counterpart_or_a_reason() {
        assert_eq!(instead_of_flag("--speaker-id=p225"), Some("use `--speaker NAME`"));
        assert_eq!(instead_of_flag("--gst-num-heads"), Some(STYLE));
        let page = include_str!("../../../../docs/from-myxtts.md");
        for flag in FLAGS {
            let name = format!("`--{}", flag.name);
            assert!(page.contains(&name), "`{name}` is not in docs/from-myxtts.md");
        }
        for unknown in ["--gst", "--max-lengths", "optimization-level", "--", ""] {
            assert_eq!(instead_of_flag(unknown), None, "{unknown}");
        }
    }
}
