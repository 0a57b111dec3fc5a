//! The keys of a MyXTTS file and their equivalents here. Names only: none of that program's code.
//!
//! A declared setting states the keys that mean it ([`Setting::myxtts`]); [`KEYS`] has all others.

use Kind::{Any, Count, Number, Switch, Tags, Text};
use Means::{Always, Is, Nothing};
use tandem_settings::{Setting, ValueKind};

#[derive(Clone, Copy)]
pub struct Key {
    /// The tables it may stand in, by first letter: `d`ata, `t`raining, `m`odel, `p`aths.
    tables: &'static str,
    pub name: &'static str,
    /// What its value must be.
    pub(super) kind: Kind,
    pub(super) means: Means,
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Switch,
    Count,
    Number,
    Text,
    Tags,
    Any,
}

impl Kind {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Switch => "true or false",
            Count => "a whole number from 0 up",
            Number => "a number",
            Text => "a text",
            Tags => "a list of language tags",
            Any => "anything",
        }
    }
}

/// What a key means here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Means {
    Is(&'static str),
    /// Always on; the reason in words.
    Always(&'static str),
    /// No counterpart; the reason in words.
    Nothing(&'static str),
}

impl Key {
    /// Whether it is this one.
    pub fn is(&self, table: &str, name: &str) -> bool {
        self.name == name && table.chars().next().is_some_and(|letter| self.tables.contains(letter))
    }

    /// Our key of the same meaning, where there is one.
    pub fn counterpart(&self) -> Option<&'static str> {
        match self.means {
            Is(ours) => Some(ours),
            Always(_) | Nothing(_) => None,
        }
    }

    /// What its value must be, in words.
    pub fn expected(&self) -> &'static str {
        self.kind.in_words()
    }
}

const fn key(tables: &'static str, name: &'static str, kind: Kind, means: Means) -> Key {
    Key { tables, name, kind, means }
}

const NATIVE: &str = "always: loading is native and on all workers";
const AHEAD: &str = "always: batches are copied to the device ahead of the step";
const OVERLAP: &str = "always: stages run at the same time";
const FUSED: &str = "always: operations are fused into few kernels";
const WORKERS_STAY: &str = "always: workers persist for the whole run";
const CHECKED: &str = "always: the cache is checked whenever it is read";
const VAD: &str = "pauses inside a recording stay; `audio.trim_silence` cuts its ends";
const SOUND: &str = "recordings are used as they are";
const SIZES: &str = "sizes are named here: `train.model_size`";
const VOICE: &str = "the voice is read from a reference, with no setting of its own";
const LOSSES: &str = "the losses and their weights are fixed here";
const SCHEDULE: &str = "always warm-up, then a cosine";
const LAYOUT: &str = "manifests and recordings are found in the corpus";
const ELSEWHERE: &str = "not a training setting here";
const SUBSET: &str = "all rows are used; make a manifest with fewer";
const VOCODER: &str = "sound comes from Griffin-Lim, which needs no setting";
const SYMBOLS: &str = "texts are read as characters or phonemes: `text.pronunciation`";
const BEST: &str = "the best checkpoint is always kept, and the latest ones";
const PRECISION: &str = "losses are scaled where half floats need it";
const STAGES: &str = "the voice is trained in one stage";
const DROPOUT: &str = "the network has no dropout";
const STYLE: &str = "style comes from the reference, without style tokens";
const PARALLEL: &str =
    "one device trains; a second one takes data work: `devices.data_gpu`, `devices.model_gpu`";

/// Every key that is known: those of declared settings, and all others.
pub fn all(declared: &[&'static Setting]) -> Vec<Key> {
    let of = |setting: &'static Setting| {
        let kind = match setting.kind {
            ValueKind::Switch => Switch,
            ValueKind::Count => Count,
            ValueKind::Number => Number,
            ValueKind::Texts => Tags,
            _ => Text,
        };
        let split = setting.myxtts.iter().filter_map(|theirs| theirs.split_once('.'));
        split.map(move |(tables, name)| key(tables, name, kind, Is(setting.key)))
    };
    KEYS.iter().copied().chain(declared.iter().copied().flat_map(of)).collect()
}

/// Keys without a declared setting, and those whose value is of another type here: a switch there, a word or a number
/// here.
const KEYS: &[Key] = &[
    // Loading.
    key("d", "use_tf_native_loading", Switch, Always(NATIVE)),
    key("d", "prefetch_to_gpu", Switch, Always(AHEAD)),
    key("d", "enhanced_gpu_prefetch", Switch, Always(AHEAD)),
    key("d", "pin_memory", Switch, Always(AHEAD)),
    key("d", "optimize_cpu_gpu_overlap", Switch, Always(OVERLAP)),
    key("d", "persistent_workers", Switch, Always(WORKERS_STAY)),
    key("d", "enable_memory_mapping", Switch, Always(CHECKED)),
    key("d", "cache_verification", Switch, Always(CHECKED)),
    key("d", "shuffle_buffer_multiplier", Number, Nothing("every epoch is shuffled whole")),
    key("d", "preprocessing_mode", Text, Is("cache_dataset")),
    // Batches.
    key("d", "max_text_tokens", Count, Nothing(SYMBOLS)),
    // Devices.
    key("dt", "enable_xla", Switch, Always(FUSED)),
    key("dt", "enable_xla_compilation", Switch, Always(FUSED)),
    key("t", "enable_graph_mode", Switch, Always(FUSED)),
    key("dt", "enable_tensorrt", Switch, Nothing(ELSEWHERE)),
    key("dt", "mixed_precision", Switch, Is("train.precision")),
    key("t", "multi_gpu", Switch, Nothing(PARALLEL)),
    key("t", "visible_gpus", Any, Nothing(PARALLEL)),
    key(
        "t",
        "max_memory_fraction",
        Number,
        Nothing("budgets are in MB here: `devices.model_gpu_memory`"),
    ),
    key(
        "t",
        "enable_memory_cleanup",
        Switch,
        Nothing("memory of batches comes from a pool and is used again"),
    ),
    // The corpus.
    key("d", "dataset_name", Text, Nothing(LAYOUT)),
    key("d", "metadata_train_file", Text, Nothing(LAYOUT)),
    key("d", "metadata_eval_file", Text, Nothing(LAYOUT)),
    key("d", "wavs_train_dir", Text, Nothing(LAYOUT)),
    key("d", "wavs_eval_dir", Text, Nothing(LAYOUT)),
    key(
        "d",
        "train_split",
        Number,
        Nothing("what is not held out (`corpus.eval_share`) is trained on"),
    ),
    key("d", "train_subset_fraction", Number, Nothing(SUBSET)),
    key("d", "eval_subset_fraction", Number, Nothing(SUBSET)),
    key("d", "subset_seed", Count, Nothing(SUBSET)),
    key("d", "text_cleaners", Any, Nothing("normalisation follows the language of each text")),
    key("d", "add_blank", Switch, Nothing("durations are learned, without blanks between symbols")),
    key(
        "d",
        "enable_multispeaker",
        Switch,
        Nothing("speakers are read from the manifest's column"),
    ),
    key("d", "speaker_id_pattern", Text, Nothing("speakers are read from the manifest's column")),
    key("d", "max_speakers", Count, Nothing("any number of speakers")),
    // Sound.
    key("d", "trim_silence", Switch, Is("audio.trim_silence")),
    key("d", "normalize_audio", Switch, Is("audio.loudness")),
    key("d", "enable_loudness_normalization", Switch, Is("audio.loudness")),
    key("d", "enable_vad", Switch, Nothing(VAD)),
    key(
        "d",
        "max_audio_length",
        Number,
        Nothing("recordings are never cut; longer ones than `batch.max_mel_frames` are left out"),
    ),
    key("d", "reference_audio_length", Number, Nothing(VOICE)),
    // Training.
    key("t", "optimizer", Text, Nothing("always AdamW")),
    key("t", "scheduler", Text, Nothing(SCHEDULE)),
    key("t", "scheduler_params", Any, Nothing(SCHEDULE)),
    key("t", "use_warmup_cosine_schedule", Switch, Always(SCHEDULE)),
    key("t", "cosine_restarts", Switch, Nothing(SCHEDULE)),
    key("t", "early_stopping_min_delta", Number, Nothing("any progress counts")),
    key("t", "log_step", Count, Nothing("every step is in the record; a line comes every 100")),
    key("t", "use_wandb", Switch, Nothing("curves go to the record and to TensorBoard files")),
    key("t", "wandb_project", Text, Nothing("curves go to the record and to TensorBoard files")),
    key("t", "gradient_norm_threshold", Number, Nothing("`train.optimizer.clip` limits gradients")),
    key("t", "mel_loss_weight", Number, Nothing(LOSSES)),
    key("t", "kl_loss_weight", Number, Nothing(LOSSES)),
    key("t", "duration_loss_weight", Number, Nothing(LOSSES)),
    key("t", "attention_loss_weight", Number, Nothing(LOSSES)),
    key("t", "stop_loss_weight", Number, Nothing(LOSSES)),
    key("t", "voice_similarity_loss_weight", Number, Nothing(LOSSES)),
    key("t", "speaker_classification_loss_weight", Number, Nothing(LOSSES)),
    key("t", "voice_reconstruction_loss_weight", Number, Nothing(LOSSES)),
    key("t", "prosody_matching_loss_weight", Number, Nothing(LOSSES)),
    key("t", "spectral_consistency_loss_weight", Number, Nothing(LOSSES)),
    key("t", "use_adaptive_loss_weights", Switch, Nothing(LOSSES)),
    key("t", "loss_smoothing_factor", Number, Nothing(LOSSES)),
    key("t", "max_loss_spike_threshold", Number, Nothing(LOSSES)),
    key("t", "use_label_smoothing", Switch, Nothing(LOSSES)),
    key("t", "mel_label_smoothing", Number, Nothing(LOSSES)),
    key("t", "stop_label_smoothing", Number, Nothing(LOSSES)),
    key("t", "use_huber_loss", Switch, Nothing(LOSSES)),
    key("t", "huber_delta", Number, Nothing(LOSSES)),
    key("t", "stop_token_positive_weight", Number, Nothing(LOSSES)),
    // The model.
    key("m", "text_encoder_dim", Count, Nothing(SIZES)),
    key("m", "text_encoder_layers", Count, Nothing(SIZES)),
    key("m", "text_encoder_heads", Count, Nothing(SIZES)),
    key("m", "text_vocab_size", Count, Nothing(SYMBOLS)),
    key("m", "audio_encoder_dim", Count, Nothing(SIZES)),
    key("m", "audio_encoder_layers", Count, Nothing(SIZES)),
    key("m", "audio_encoder_heads", Count, Nothing(SIZES)),
    key("m", "decoder_dim", Count, Nothing(SIZES)),
    key("m", "decoder_layers", Count, Nothing(SIZES)),
    key("m", "decoder_heads", Count, Nothing(SIZES)),
    key("m", "decoder_strategy", Text, Nothing("the decoder moves all frames at once")),
    key("m", "use_duration_predictor", Switch, Always("always: durations are learned")),
    key("m", "speaker_embedding_dim", Count, Nothing(SIZES)),
    key(
        "m",
        "use_voice_conditioning",
        Switch,
        Always("always: the voice is read from a reference"),
    ),
    key("m", "voice_conditioning_layers", Count, Nothing(SIZES)),
    key("m", "voice_similarity_threshold", Number, Nothing(VOICE)),
    key("m", "enable_voice_adaptation", Switch, Nothing(VOICE)),
    key("m", "voice_encoder_dropout", Number, Nothing(VOICE)),
    key("m", "enable_speaker_interpolation", Switch, Nothing(VOICE)),
    key("m", "voice_cloning_temperature", Number, Nothing(VOICE)),
    key("m", "voice_conditioning_strength", Number, Nothing(VOICE)),
    key("m", "max_reference_audio_length", Number, Nothing(VOICE)),
    key("m", "min_reference_audio_length", Number, Nothing(VOICE)),
    key("m", "voice_feature_dim", Count, Nothing(SIZES)),
    key("m", "enable_voice_denoising", Switch, Nothing(SOUND)),
    key("m", "voice_cloning_loss_weight", Number, Nothing(LOSSES)),
    key("m", "use_pretrained_speaker_encoder", Switch, Nothing(VOICE)),
    key("m", "pretrained_speaker_encoder_path", Text, Nothing(VOICE)),
    key("m", "freeze_speaker_encoder", Switch, Nothing(VOICE)),
    key("m", "speaker_encoder_type", Text, Nothing(VOICE)),
    key("m", "contrastive_loss_temperature", Number, Nothing(LOSSES)),
    key("m", "contrastive_loss_margin", Number, Nothing(LOSSES)),
    key("m", "vocoder_type", Text, Nothing(VOCODER)),
    key("m", "vocoder_upsample_rates", Any, Nothing(VOCODER)),
    key("m", "vocoder_upsample_kernel_sizes", Any, Nothing(VOCODER)),
    key("m", "vocoder_resblock_kernel_sizes", Any, Nothing(VOCODER)),
    key("m", "vocoder_resblock_dilation_sizes", Any, Nothing(VOCODER)),
    key("m", "vocoder_initial_channel", Count, Nothing(VOCODER)),
    key("m", "tokenizer_type", Text, Nothing(SYMBOLS)),
    key("m", "tokenizer_model", Text, Nothing(SYMBOLS)),
    key(
        "m",
        "enable_gradient_checkpointing",
        Switch,
        Nothing("smaller batches with `train.grad_accum` need less memory"),
    ),
    key(
        "m",
        "max_attention_sequence_length",
        Count,
        Nothing("`batch.max_text_length` and `batch.max_mel_frames` limit lengths"),
    ),
    key(
        "m",
        "use_memory_efficient_attention",
        Switch,
        Always("always: attention is one fused operation"),
    ),
    // Keys of other versions and of files in circulation.
    key("d", "async_data_loading", Switch, Always(OVERLAP)),
    key("d", "sort_by_length", Switch, Always("always: batches have rows of similar length")),
    key("d", "enable_data_validation", Switch, Always("always: every row is checked")),
    key(
        "d",
        "prefetch_factor",
        Count,
        Nothing("`prefetch_buffer_size` sets how far loading is ahead"),
    ),
    key("d", "drop_last", Switch, Nothing("a last batch that is not full is used too")),
    key("d", "pad_to_multiple", Count, Nothing("batches are padded to a few fixed shapes")),
    key("d", "min_text_length", Count, Nothing("short texts are used too")),
    key("t", "enable_mixed_precision", Switch, Is("train.precision")),
    key("t", "evaluation_interval", Count, Nothing("`train.validate_every` counts steps")),
    key("t", "enable_automatic_evaluation", Switch, Nothing("`tandem evaluate` does that")),
    key("t", "log_interval", Count, Nothing("every step is in the record; a line comes every 100")),
    key("t", "tensorboard_log_dir", Text, Nothing("TensorBoard files are in the run directory")),
    key("t", "restart_period", Count, Nothing(SCHEDULE)),
    key("t", "restart_mult", Number, Nothing(SCHEDULE)),
    key("t", "auto_lr_reduction", Switch, Nothing(SCHEDULE)),
    key("t", "lr_reduction_factor", Number, Nothing(SCHEDULE)),
    key("t", "lr_reduction_patience", Count, Nothing(SCHEDULE)),
    key("t", "lr_schedule", Text, Nothing(SCHEDULE)),
    key("t", "early_stopping_restore_best_weights", Switch, Always(BEST)),
    key("t", "save_best_only", Switch, Nothing(BEST)),
    key(
        "t",
        "save_weights_only",
        Switch,
        Nothing("a checkpoint always has all that resuming needs"),
    ),
    key("t", "loss_scale_strategy", Text, Nothing(PRECISION)),
    key("t", "loss_scale_patience", Count, Nothing(PRECISION)),
    key(
        "t",
        "enable_gradient_monitoring",
        Switch,
        Always("always: gradient norms are in the record"),
    ),
    key("t", "track_loss_components", Switch, Always("always: each loss is in the record")),
    key(
        "t",
        "convergence_window",
        Count,
        Nothing("`train.patience` stops a run that does not improve"),
    ),
    key(
        "t",
        "convergence_threshold",
        Number,
        Nothing("`train.patience` stops a run that does not improve"),
    ),
    key("t", "use_simple_loss", Switch, Nothing(LOSSES)),
    key("t", "pitch_loss_weight", Number, Nothing(LOSSES)),
    key("t", "energy_loss_weight", Number, Nothing(LOSSES)),
    key("t", "feature_loss_weight", Number, Nothing(LOSSES)),
    key("t", "gst_style_loss_weight", Number, Nothing(LOSSES)),
    key("t", "vocoder_mel_loss_weight", Number, Nothing(VOCODER)),
    key("t", "vocoder_feature_loss_weight", Number, Nothing(VOCODER)),
    key("t", "label_smoothing", Number, Nothing(LOSSES)),
    key("t", "label_smoothing_factor", Number, Nothing(LOSSES)),
    key("t", "use_two_stage_training", Switch, Nothing(STAGES)),
    key("t", "stage1_epochs", Count, Nothing(STAGES)),
    key("t", "stage1_learning_rate", Number, Nothing(STAGES)),
    key("t", "stage1_checkpoint_path", Text, Nothing(STAGES)),
    key("t", "stage2_epochs", Count, Nothing(STAGES)),
    key("t", "stage2_learning_rate", Number, Nothing(STAGES)),
    key("t", "stage2_checkpoint_path", Text, Nothing(STAGES)),
    key("m", "d_model", Count, Nothing(SIZES)),
    key("m", "n_heads", Count, Nothing(SIZES)),
    key("m", "n_layers", Count, Nothing(SIZES)),
    key("m", "encoder_attention_heads", Count, Nothing(SIZES)),
    key("m", "decoder_attention_heads", Count, Nothing(SIZES)),
    key("m", "speaker_encoder_layers", Count, Nothing(SIZES)),
    key("mt", "dropout", Number, Nothing(DROPOUT)),
    key("mt", "dropout_rate", Number, Nothing(DROPOUT)),
    key("m", "attention_dropout", Number, Nothing(DROPOUT)),
    key("m", "prenet_dropout", Number, Nothing(DROPOUT)),
    key("m", "multi_language", Switch, Nothing("the languages are those of the corpus")),
    key("m", "enable_gst", Switch, Nothing(STYLE)),
    key("m", "gst_num_style_tokens", Count, Nothing(STYLE)),
    key("m", "gst_style_token_dim", Count, Nothing(STYLE)),
    key("m", "gst_style_embedding_dim", Count, Nothing(STYLE)),
    key("m", "gst_num_heads", Count, Nothing(STYLE)),
    // Places.
    key("p", "log_dir", Text, Nothing("logs are in the run directory")),
];

/// Tables that only tune that program, and why none of their keys has an effect here.
pub const IDLE_TABLES: [(&str, &str); 3] = [
    ("gpu_optimization", "the pipeline is always on, and measures itself"),
    ("gpu_optimizations", "the pipeline is always on, and measures itself"),
    ("logging", "every step is in the record; TensorBoard files are always written"),
];
