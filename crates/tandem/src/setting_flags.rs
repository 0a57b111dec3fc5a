//! Flags and environment variables of declared settings.
//!
//! In: the declarations ([`Setting`]). Out: [`Typed`], the values of the command line. A flag, its variable and its help
//! follow from the declaration; a value is parsed when it is typed, and counts by [`FileConfig::with_typed`].

use crate::failure::Result;
use clap::builder::{
    BoolishValueParser, OsStringValueParser, PathBufValueParser, PossibleValue,
    PossibleValuesParser, TypedValueParser, ValueParser,
};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use std::ffi::OsString;
use std::marker::PhantomData;
use tandem_device::placement::DeviceSettings;
use tandem_settings::{Setting, SettingValue, Start, Typed, ValueKind};
use tandem_train::file_config::{FileConfig, all_settings, setting};

/// The settings that a command has flags for.
pub trait FlagGroup: Clone + std::fmt::Debug + Default {
    fn has(setting: &Setting) -> bool;
    /// The part of the help that lists them.
    fn heading(setting: &Setting) -> Option<&'static str>;
}

macro_rules! groups {
    ($($(#[$about:meta])* $Group:ident: $has:expr $(, under $heading:expr)?;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default)]
        pub struct $Group;

        impl FlagGroup for $Group {
            fn has(setting: &Setting) -> bool {
                let has: fn(&str) -> bool = $has;
                has(setting.key)
            }

            fn heading(setting: &Setting) -> Option<&'static str> {
                let own: Option<&'static str> = Some(setting.heading);
                $(let own: Option<&'static str> = own.and($heading);)?
                own
            }
        }
    )*};
}

groups! {
    /// What is trained and validated on.
    OfData: |key| matches!(key, "train_data" | "val_data");
    /// How a run begins.
    OfStart: |key| matches!(key, "model_start_delay" | "adapt");
    /// All of a training run.
    OfTraining: |key| key.starts_with("train.");
    /// Those of every command that runs the trainer.
    OfEveryRun: |key| matches!(key, "train.model_size" | "train.grad_accum" | "train.precision");
    /// How texts are read.
    OfText: |key| key.starts_with("text.");
    /// How the files of a corpus are read.
    OfCorpus: |key| key.starts_with("corpus.");
    /// The same for an import, which reads nothing else.
    OfImport: |key| key.starts_with("corpus.") || key.starts_with("audio."), under None;
    /// How a recording is prepared.
    OfAudio: |key| key.starts_with("audio.");
    /// The same for a command that reads one recording.
    OfRecording: |key| key.starts_with("audio."), under None;
    /// Which rows are left out.
    OfLengths: |key| matches!(key, "batch.max_text_length" | "batch.max_mel_frames");
    /// How a corpus is prepared; none of it changes the result.
    OfPreparing: |key| {
        matches!(key, "num_workers" | "cache_dataset" | "cache_dir" | "max_rejected")
            || key.starts_with("pipeline.")
    };
    /// What is in a batch, and in which order.
    OfBatches: |key| matches!(key, "batch.batch_size" | "batch.frame_budget" | "batch.seed");
    /// How many batches may wait for the model.
    OfPrefetch: |key| key == "prefetch_buffer_size";
    /// How many samples may wait on the host, of a command with few device settings.
    OfHostBuffer: |key| key == "devices.buffer_size", under Some("Batches");
    /// Devices, memory budgets and shapes.
    OfDevices: |key| key.starts_with("devices.");
    /// Which devices a command uses: all there is for one that only computes steps.
    OfPlaces: |key| matches!(key, "devices.backend" | "devices.data_gpu" | "devices.model_gpu");
}

impl SettingFlags<OfPlaces> {
    /// The devices of a command that reads no configuration.
    pub fn device_settings(&self) -> Result<DeviceSettings> {
        let config = FileConfig::default().with_typed(&self.typed, Start::NewWeights)?;
        Ok(config.devices.settings()?)
    }
}

/// A setting as if its flag were typed.
pub fn typed(key: &str, value: impl Into<OsString>) -> Typed {
    Typed::default().with(setting(key).expect("a declared setting"), value)
}

/// The flags of a group, as clap fills them.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags<G> {
    pub typed: Typed,
    group: PhantomData<G>,
}

impl<G> From<Typed> for SettingFlags<G> {
    fn from(typed: Typed) -> SettingFlags<G> {
        SettingFlags { typed, group: PhantomData }
    }
}

fn flags_of<G: FlagGroup>() -> impl Iterator<Item = &'static Setting> {
    all_settings().into_iter().filter(|setting| setting.long_flag().is_some() && G::has(setting))
}

fn flag<G: FlagGroup>(setting: &'static Setting) -> Arg {
    let long = setting.long_flag().unwrap_or_default().trim_start_matches('-');
    let hint = match setting.kind {
        ValueKind::Path => ValueHint::AnyPath,
        _ => ValueHint::Unknown,
    };
    let flag = Arg::new(setting.key)
        .long(long)
        .visible_aliases(Some(setting.alias).filter(|alias| !alias.is_empty()))
        .value_name(setting.value_name())
        .env(setting.variable)
        .help(setting.flag_help())
        .help_heading(G::heading(setting))
        // A negative number is refused with its range, not as an unknown flag.
        .allow_hyphen_values(setting.kind == ValueKind::Number)
        .action(if setting.is_list { ArgAction::Append } else { ArgAction::Set })
        .value_parser(parser(setting))
        // For completions of a shell.
        .value_hint(hint);
    match (setting.without_value, setting.kind) {
        (Some(value), _) => flag.num_args(0..=1).default_missing_value(value),
        // A word after a switch is not its value.
        (None, ValueKind::Switch) => {
            flag.num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        (None, _) => flag,
    }
}

fn parser(setting: &'static Setting) -> ValueParser {
    match setting.kind {
        ValueKind::Word if !setting.names_words => {
            possible(setting.words, setting.hidden_words).map(OsString::from).into()
        }
        ValueKind::Path => PathBufValueParser::new().map(OsString::from).into(),
        ValueKind::Text => OsStringValueParser::new().into(),
        // As people write it in the environment: `yes`, `1`, `off`.
        ValueKind::Switch => {
            BoolishValueParser::new().map(|on| OsString::from(on.to_string())).into()
        }
        ValueKind::Word
        | ValueKind::Count
        | ValueKind::Number
        | ValueKind::Character
        | ValueKind::Counts
        | ValueKind::Texts => {
            let accepts = setting.accepts;
            ValueParser::new(move |text: &str| accepts(text).map(|()| OsString::from(text)))
        }
    }
}

fn possible(words: &[&'static str], hidden: &[&'static str]) -> PossibleValuesParser {
    let hidden = hidden.iter().map(|word| PossibleValue::new(*word).hide(true));
    PossibleValuesParser::new(words.iter().map(|word| PossibleValue::new(*word)).chain(hidden))
}

/// The words of a type, for flags that are no settings.
pub fn words<T: SettingValue + Clone + Send + Sync + 'static>() -> impl TypedValueParser<Value = T>
{
    possible(T::WORDS, T::HIDDEN_WORDS).try_map(|word| T::parse(&word))
}

impl<G: FlagGroup> clap::FromArgMatches for SettingFlags<G> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = flags_of::<G>().fold(Typed::default(), |all, setting| {
            match matches.get_many::<OsString>(setting.key) {
                Some(texts) => {
                    let texts: Vec<&std::ffi::OsStr> = texts.map(OsString::as_os_str).collect();
                    all.with(setting, texts.join(std::ffi::OsStr::new(",")))
                }
                None => all,
            }
        });
        Ok(typed.into())
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<G: FlagGroup> clap::Args for SettingFlags<G> {
    fn augment_args(command: Command) -> Command {
        command.args(flags_of::<G>().map(flag::<G>))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
