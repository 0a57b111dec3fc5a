//! A table of settings, and what holds for every table: ranges and differences.

use crate::{OnResume, Setting};
use std::ffi::OsStr;
use tandem_units::Hint;

/// The settings of a table and of the tables in it. [`settings!`](crate::settings) implements it.
pub trait SettingTable: Default {
    /// Those of the table itself, in the order of the declaration.
    const SETTINGS: &'static [Setting];

    /// Sets a key to what was typed. The key is one of this table or of a table in it.
    fn set(&mut self, key: &str, typed: &OsStr) -> Result<(), String>;

    /// Shows every setting with its value, those of tables inside first.
    fn visit(&self, see: &mut dyn FnMut(&'static Setting, Seen));

    /// All settings, as [`SettingTable::visit`] shows them.
    fn settings() -> Vec<&'static Setting> {
        let mut all = Vec::new();
        Self::default().visit(&mut |setting, _| all.push(setting));
        all
    }
}

/// A value as it is compared and shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub text: String,
    pub number: Option<f64>,
}

/// A value outside of its range.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{}` is {value}, expected {}", setting.key, setting.range.expected())]
pub struct OutOfRange {
    pub setting: &'static Setting,
    pub value: String,
}

impl Hint for OutOfRange {
    fn hint(&self) -> Option<String> {
        let key = self.setting.key;
        Some(match self.setting.long_flag() {
            Some(flag) => {
                format!("correct `{flag}` or the key `{key}`, or leave it out for the default")
            }
            None => format!("correct `{key}`, or leave it out for the default"),
        })
    }
}

/// Refuses the first value that is out of its range.
pub fn check<T: SettingTable>(table: &T) -> Result<(), OutOfRange> {
    let mut found = None;
    table.visit(&mut |setting, seen| {
        if found.is_none() && seen.number.is_some_and(|number| !setting.range.contains(number)) {
            found = Some(OutOfRange { setting, value: seen.text });
        }
    });
    found.map_or(Ok(()), Err)
}

/// A setting that is not what it was.
#[derive(Clone, Debug)]
pub struct Difference {
    pub setting: &'static Setting,
    pub before: String,
    pub now: String,
}

/// The settings with this rule that differ.
pub fn changes<T: SettingTable>(before: &T, now: &T, rule: OnResume) -> Vec<Difference> {
    let mut old = Vec::new();
    before.visit(&mut |_, seen| old.push(seen.text));
    let (mut old, mut found) = (old.into_iter(), Vec::new());
    now.visit(&mut |setting, seen| {
        let before = old.next().unwrap_or_default();
        if setting.on_resume == rule && before != seen.text {
            found.push(Difference { setting, before, now: seen.text });
        }
    });
    found
}

/// Declares a table of settings: the struct, its default, and a [`Setting`] for each field.
///
/// A field has a comment (the help), a type, a default and a flag with the name of its value (`""` for none). What else
/// is known of it stands in braces, with the names of [`Setting`]. Then come the tables inside, and fields
/// that are no settings. The table `""` has the keys outside of tables.
///
/// ```
/// use std::ffi::OsStr;
/// use tandem_settings::{Range, SettingTable, check, settings};
///
/// settings! {
///     /// How a kettle boils.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Kettle in "kitchen.kettle" {
///         /// Litres of water
///         water: f64 = 0.5, "--water LITRES" { range: Range::AboveZero }
///         /// Cups to fill
///         cups: u32 = 2, "--cups N" {}
///     }
/// }
///
/// let mut kettle = Kettle::default();
/// kettle.set("kitchen.kettle.water", OsStr::new("-1")).expect("a number");
/// assert_eq!(check(&kettle).unwrap_err().setting.key, "kitchen.kettle.water");
/// assert_eq!(Kettle::SETTINGS[1].flag_help(), "Cups to fill [default: 2]");
/// assert_eq!(Kettle::SETTINGS[1].variable, "TANDEM_CUPS");
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub struct $Table:ident in $place:literal {
            $(
                $(#[doc = $help:literal])+
                $(#[serde($($serde:tt)*)])*
                $name:ident: $kind:ty = $default:expr, $flag:literal { $($known:ident: $what:expr),* $(,)? }
            )*
            $(table $inner:ident: $Inner:ty;)*
            $(#[serde($($other_serde:tt)*)] no_setting $other:ident: $Other:ty;)*
        }
    ) => {
        $(#[$about])*
        pub struct $Table {
            $($(#[doc = $help])+ $(#[serde($($serde)*)])* pub $name: $kind,)*
            $(pub $inner: $Inner,)*
            $(#[serde($($other_serde)*)] pub $other: $Other,)*
        }

        impl Default for $Table {
            fn default() -> $Table {
                $Table {
                    $($name: $default,)*
                    $($inner: Default::default(),)*
                    $($other: Default::default(),)*
                }
            }
        }

        impl $crate::SettingTable for $Table {
            const SETTINGS: &'static [$crate::Setting] = &[$({
                const LENGTH: usize = $crate::setting::variable_length($flag);
                const VARIABLE: &[u8] = &$crate::setting::variable::<LENGTH>($flag);
                $crate::Setting {
                    $($known: $what,)*
                    ..$crate::Setting::of::<$kind>(
                        $crate::setting::full_key(concat!($place, ".", stringify!($name))),
                        concat!($($help),+),
                        $flag,
                        $crate::setting::text_of(VARIABLE),
                        || $crate::SettingValue::text(&{ let default: $kind = $default; default }),
                    )
                }
            },)*];

            fn set(&mut self, key: &str, typed: &std::ffi::OsStr) -> Result<(), String> {
                use $crate::setting::full_key;
                $(if key == full_key(concat!($place, ".", stringify!($name))) {
                    self.$name = $crate::SettingValue::parse_os(typed)?;
                    return Ok(());
                })*
                $(if key.starts_with(full_key(concat!($place, ".", stringify!($inner), "."))) {
                    return $crate::SettingTable::set(&mut self.$inner, key, typed);
                })*
                Err(format!("there is no setting `{key}`"))
            }

            fn visit(&self, see: &mut dyn FnMut(&'static $crate::Setting, $crate::Seen)) {
                $($crate::SettingTable::visit(&self.$inner, see);)*
                let values = [$($crate::Seen {
                    text: $crate::SettingValue::text(&self.$name),
                    number: $crate::SettingValue::number(&self.$name),
                },)*];
                <$Table as $crate::SettingTable>::SETTINGS.iter().zip(values).for_each(|(setting, seen)| see(setting, seen));
            }
        }
    };
}
