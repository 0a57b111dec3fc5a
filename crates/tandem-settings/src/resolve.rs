//! Which of several values counts.

use crate::{Setting, SettingTable};
use std::ffi::OsString;

/// What a run begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    NewWeights,
    /// The weights of a trained voice.
    FineTuning,
}

/// What was typed as a flag or set as an environment variable, by key. The command line prefers the flag.
#[derive(Clone, Debug, Default)]
pub struct Typed(Vec<(&'static Setting, OsString)>);

impl Typed {
    /// The same with this value, instead of one that the setting may have already.
    pub fn with(mut self, setting: &'static Setting, text: impl Into<OsString>) -> Typed {
        self.0.retain(|(other, _)| other.key != setting.key);
        self.0.push((setting, text.into()));
        self
    }

    /// The same with the values of another group of flags.
    pub fn and(self, others: Typed) -> Typed {
        others.0.into_iter().fold(self, |all, (setting, text)| all.with(setting, text))
    }

    pub fn get(&self, key: &str) -> Option<&OsString> {
        self.0.iter().find(|(setting, _)| setting.key == key).map(|(_, text)| text)
    }
}

/// Flag or environment variable, then file, then what is usual for a fine-tuned voice, then the default. `file` has the
/// default where it does not set a key.
pub fn resolve<T: SettingTable>(
    file: T,
    is_in_file: &dyn Fn(&str) -> bool,
    typed: &Typed,
    start: Start,
) -> Result<T, String> {
    let mut resolved = file;
    for setting in T::settings() {
        let usual = setting.fine_tuning.filter(|_| start == Start::FineTuning);
        if let Some(text) = typed.get(setting.key).or_else(|| typed.get(setting.same_flag_as)) {
            resolved.set(setting.key, text)?;
        } else if let Some(usual) = usual.filter(|_| !is_in_file(setting.key)) {
            resolved.set(setting.key, usual.as_ref())?;
        }
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OnResume, Range, changes, check, settings};

    settings! {
        /// A table inside.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Rates in "train.rates" {
            /// Peak
            /// of the rate
            lr: f64 = 1e-3, "--lr RATE" { range: Range::AboveZero, fine_tuning: Some("3e-4"), on_resume: OnResume::Warn, }
        }
    }

    settings! {
        /// A table.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Training in "train" {
            /// Steps
            max_steps: Option<u64> = None, "--max-steps N" { range: Range::AtLeastOne, }
            /// Not a flag
            keep: usize = 3, "" {}
            table rates: Rates;
        }
    }

    fn resolved(in_file: &[&str], file: f64, typed: &[&str], start: Start) -> f64 {
        let file = Training { rates: Rates { lr: file }, ..Training::default() };
        let flags =
            typed.iter().fold(Typed::default(), |all, text| all.with(&Rates::SETTINGS[0], text));
        resolve(file, &|key| in_file.contains(&key), &flags, start).expect("a value").rates.lr
    }

    #[test]
    fn flag_then_file_then_fine_tuning_then_default() {
        let key = &["train.rates.lr"][..];
        assert_eq!(resolved(&[], 1e-3, &[], Start::NewWeights), 1e-3);
        assert_eq!(resolved(&[], 1e-3, &[], Start::FineTuning), 3e-4);
        assert_eq!(
            resolved(key, 1e-3, &[], Start::FineTuning),
            1e-3,
            "stated, though equal to the default"
        );
        assert_eq!(resolved(key, 0.5, &["0.25"], Start::FineTuning), 0.25);
        assert_eq!(resolved(key, 0.5, &["0.25"], Start::NewWeights), 0.25);
    }

    #[test]
    fn a_declaration_says_everything_of_a_setting() {
        let all = Training::settings();
        let keys: Vec<&str> = all.iter().map(|setting| setting.key).collect();
        assert_eq!(keys, ["train.rates.lr", "train.max_steps", "train.keep"]);
        let lr = all[0];
        assert_eq!(
            (lr.variable, lr.long_flag(), lr.value_name()),
            ("TANDEM_LR", Some("--lr"), "RATE")
        );
        assert_eq!(lr.flag_help(), "Peak of the rate; with --from 3e-4 [default: 0.001]");
        assert_eq!((lr.accepts)("x").unwrap_err(), "invalid float literal");
        assert_eq!(all[1].variable, "TANDEM_MAX_STEPS");
        assert_eq!(all[1].flag_help(), "Steps");
        assert_eq!(
            (all[2].variable, all[2].long_flag(), all[2].shown_name()),
            ("", None, "train.keep")
        );
    }

    #[test]
    fn values_out_of_range_and_changes_are_named() {
        let usual = Training::default();
        assert!(check(&usual).is_ok());
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused =
                check(&Training { rates: Rates { lr: wrong }, ..usual.clone() }).unwrap_err();
            assert_eq!(refused.setting.key, "train.rates.lr", "{wrong}");
        }
        let zero = check(&Training { max_steps: Some(0), ..usual.clone() }).unwrap_err();
        assert_eq!((zero.setting.key, zero.value.as_str()), ("train.max_steps", "0"));
        let now = Training { rates: Rates { lr: 0.5 }, keep: 9, ..usual.clone() };
        let warned = changes(&usual, &now, OnResume::Warn);
        let [lr] = &warned[..] else { panic!("{warned:?}") };
        assert_eq!(
            (lr.setting.key, lr.before.as_str(), lr.now.as_str()),
            ("train.rates.lr", "0.001", "0.5")
        );
        assert_eq!(changes(&usual, &now, OnResume::Continue)[0].setting.key, "train.keep");
    }
}
