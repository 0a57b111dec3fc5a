//! Flags and environment variables of declared settings.
//!
//! In: the declarations ([`Setting`]). Out: [`Typed`], the values of the command line. A flag, its variable and its help
//! follow from the declaration; a value is checked when it is parsed, and counts by [`tandem_settings::resolve()`].

use crate::config::set_keys::SetKeys;
use crate::failure::Advised;
use clap::builder::{
    OsStringValueParser, PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser,
    ValueParser,
};
use clap::{Arg, ArgMatches, Command, ValueHint};
use std::ffi::OsString;
use std::marker::PhantomData;
use tandem_data::batch::BatchConfig;
use tandem_settings::{Setting, SettingTable, SettingValue, Start, Typed, ValueKind, resolve};
use tandem_train::train_settings::TrainSettings;

/// The settings that a command has flags for.
pub trait FlagGroup: Clone + std::fmt::Debug + Default {
    fn has(setting: &Setting) -> bool;
}

macro_rules! groups {
    ($($(#[$about:meta])* $Group:ident: $has:expr;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default)]
        pub struct $Group;

        impl FlagGroup for $Group {
            fn has(setting: &Setting) -> bool {
                let has: fn(&str) -> bool = $has;
                has(setting.key)
            }
        }
    )*};
}

groups! {
    /// All of a training run.
    OfTraining: |key| key.starts_with("train.");
    /// Those of every command that runs the trainer.
    OfEveryRun: |key| matches!(key, "train.model_size" | "train.grad_accum" | "train.precision");
    /// Which rows are left out.
    OfLengths: |key| matches!(key, "batch.max_text_length" | "batch.max_mel_frames");
    /// What is in a batch, and in which order.
    OfBatches: |key| matches!(key, "batch.batch_size" | "batch.frame_budget" | "batch.seed");
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

/// All declared settings: those of a table, then those of the tables in it.
pub fn all_declared() -> Vec<&'static Setting> {
    let mut all = [BatchConfig::settings(), TrainSettings::settings()].concat();
    all.sort_by_key(|setting| setting.key.matches('.').count());
    all
}

/// A declared setting by its key.
pub fn declared(key: &str) -> Option<&'static Setting> {
    all_declared().into_iter().find(|setting| setting.key == key)
}

fn flags_of<G: FlagGroup>() -> impl Iterator<Item = &'static Setting> {
    all_declared().into_iter().filter(|setting| setting.long_flag().is_some() && G::has(setting))
}

/// [`tandem_settings::resolve()`] for a table in which nothing depends on how a run starts.
pub fn resolved<T: SettingTable>(file: T, set_keys: &SetKeys, typed: &Typed) -> Result<T, Advised> {
    resolve(file, &|key| set_keys.contains(key), typed, Start::NewWeights).map_err(refused)
}

/// A value that was accepted as a flag is refused here only if a declaration contradicts itself.
pub fn refused(fact: String) -> Advised {
    Advised::new(fact, "`tandem reference` lists every key with its flag")
}

fn flag(setting: &'static Setting) -> Arg {
    let long = setting.long_flag().unwrap_or_default().trim_start_matches('-');
    let flag = Arg::new(setting.key)
        .long(long)
        .value_name(setting.value_name())
        .env(setting.variable)
        .help(setting.flag_help())
        .help_heading(setting.heading)
        // A negative number is refused with its range, not as an unknown flag.
        .allow_hyphen_values(setting.kind == ValueKind::Number)
        .value_parser(parser(setting));
    // For completions of a shell.
    let hint =
        if setting.kind == ValueKind::Path { ValueHint::AnyPath } else { ValueHint::Unknown };
    let flag = flag.value_hint(hint);
    match setting.without_value {
        Some(value) => flag.num_args(0..=1).default_missing_value(value),
        None => flag,
    }
}

fn parser(setting: &'static Setting) -> ValueParser {
    match setting.kind {
        ValueKind::Word => possible(setting.words, setting.hidden_words).map(OsString::from).into(),
        ValueKind::Path => PathBufValueParser::new().map(OsString::from).into(),
        ValueKind::Text => OsStringValueParser::new().into(),
        ValueKind::Count | ValueKind::Number => {
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
            match matches.get_one::<OsString>(setting.key) {
                Some(text) => all.with(setting, text),
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
        command.args(flags_of::<G>().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
