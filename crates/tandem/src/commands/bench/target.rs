//! A measured value and its target.

use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::printer::Printer;
use owo_colors::OwoColorize;
use serde::Serialize;

/// A measured value and its target.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    pub name: String,
    pub measured: f64,
    pub unit: &'static str,
    /// The target; `None`: for information only.
    pub limit: Option<Limit>,
    /// Whether the target is met.
    pub met: Option<bool>,
    /// How it was measured.
    pub how: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    /// A value with a target.
    pub fn new(name: &str, measured: f64, unit: &'static str, limit: Limit, how: String) -> Target {
        let met = match limit {
            Limit::AtLeast(least) => measured >= least,
            Limit::AtMost(most) => measured <= most,
        };
        Target { name: name.into(), measured, unit, limit: Some(limit), met: Some(met), how }
    }

    /// A value for information only.
    pub fn note(name: &str, measured: f64, unit: &'static str, how: String) -> Target {
        Target { name: name.into(), measured, unit, limit: None, met: None, how }
    }
}

/// Prints a table.
pub fn print(targets: &[Target], out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&["what", "measured", "target", "", "how"]);
    for target in targets {
        let limit = match target.limit {
            Some(Limit::AtLeast(least)) => format!(">= {}", rounded(least)),
            Some(Limit::AtMost(most)) => format!("<= {}", rounded(most)),
            None => String::new(),
        };
        let verdict = match target.met {
            Some(true) => "met".green().to_string(),
            Some(false) => "missed".red().to_string(),
            None => String::new(),
        };
        let measured = format!("{} {}", rounded(target.measured), target.unit);
        table.add_row([&target.name, &measured, &limit, &verdict, &target.how]);
    }
    out.line(&table.to_string())
}

/// Exit code 1 if a target was missed.
pub fn status(targets: &[Target]) -> ExitStatus {
    let missed = targets.iter().any(|target| target.met == Some(false));
    if missed { ExitStatus::Negative } else { ExitStatus::Done }
}

/// Three significant digits with thousands separators, without an exponent.
fn rounded(number: f64) -> String {
    match number.abs() {
        size if size >= 1e4 => {
            let digits = format!("{number:.0}");
            let (sign, digits) = digits.split_at(usize::from(number < 0.0));
            let groups: Vec<&str> = digits
                .as_bytes()
                .rchunks(3)
                .rev()
                .filter_map(|group| std::str::from_utf8(group).ok())
                .collect();
            format!("{sign}{}", groups.join(","))
        }
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// The median; NaN of nothing.
pub fn median(mut figures: Vec<f64>) -> f64 {
    tandem_units::median(&mut figures).unwrap_or(f64::NAN)
}

/// The 10th percentile: the speed of the machine without disturbance.
pub fn best_tenth(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 10).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_to_three_digits() {
        let pairs = [(0.127, "0.13"), (3.456, "3.46"), (61.27, "61.3"), (1234.5, "1234")];
        for (number, text) in pairs {
            assert_eq!(rounded(number), text);
        }
        assert_eq!(rounded(60_123.4), "60,123");
        assert_eq!(rounded(-1_234_567.0), "-1,234,567");
    }

    #[test]
    fn a_missed_target_gives_exit_code_1() {
        let met = Target::new("a", 3.0, "x", Limit::AtLeast(3.0), String::new());
        let missed = Target::new("b", 3.0, "x", Limit::AtMost(2.9), String::new());
        assert_eq!(status(std::slice::from_ref(&met)), ExitStatus::Done);
        assert_eq!(status(&[met, missed]), ExitStatus::Negative);
    }
}
