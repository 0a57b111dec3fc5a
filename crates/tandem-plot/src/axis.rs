//! Where an axis begins and ends, and which places of it are labelled.
//!
//! In: the extremes of what is drawn and what they measure. Out: [`Axis`] with round labels, few
//! enough for a phone. Pure.

use crate::plot::Measure;
use tandem_units::Lang;

/// An axis with labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Value at its beginning.
    pub from: f64,
    /// Value at its end, above `from`.
    pub to: f64,
    /// Labelled values with their labels.
    pub ticks: Vec<(f64, String)>,
    /// The unit of the labels, in words; empty where they have none.
    pub unit: String,
    /// Whether equal lengths are equal ratios.
    pub logarithmic: bool,
}

/// From this ratio of the largest to the smallest value on, a logarithmic axis shows more than a plain one.
const WIDE: f64 = 4.0;

impl Axis {
    /// For heights: begins and ends at a label.
    pub fn upright(least: f64, most: f64, measure: Measure, lang: Lang) -> Axis {
        if measure == Measure::Share {
            let ticks = [0.0, 0.25, 0.5, 0.75, 1.0];
            let label = |value: f64| (value, lang.number(value * 100.0, 0));
            let ticks = ticks.map(label).into();
            let unit = lang.say("%", "٪").into();
            return Axis { from: 0.0, to: 1.0, ticks, unit, logarithmic: false };
        }
        if measure == Measure::Logarithm && least > 0.0 && most >= WIDE * least {
            return Axis::by_ratios(least, most, lang);
        }
        let near_zero = least > 0.0 && least < 0.6 * most;
        let least = if measure == Measure::Bytes || near_zero { 0.0 } else { least };
        let most = if most > least { most } else { least + least.abs().max(1.0) };
        let scale = Scale::for_values(most, measure, lang);
        let step = round_step((most - least) / scale.size, 4, measure) * scale.size;
        let from = (least / step).floor() * step;
        let to = (most / step - 1e-9).ceil() * step;
        let ticks = ticks(from, to, step, &scale, lang);
        Axis { from, to, ticks, unit: scale.unit, logarithmic: false }
    }

    /// For lengths: begins and ends with the values, labels in between.
    pub fn along(least: f64, most: f64, measure: Measure, lang: Lang) -> Axis {
        let most = if most > least { most } else { least + least.abs().max(1.0) };
        let scale = Scale::for_values(most, measure, lang);
        let step = round_step((most - least) / scale.size, 5, measure) * scale.size;
        Axis {
            from: least,
            to: most,
            ticks: ticks(least, most, step, &scale, lang),
            unit: scale.unit,
            logarithmic: false,
        }
    }

    /// Logarithmic: labels at 1, 2 and 5 times a power of ten, or at the powers alone where there are many.
    fn by_ratios(least: f64, most: f64, lang: Lang) -> Axis {
        let powers = (least.log10().floor() as i32)..=(most.log10().ceil() as i32);
        let factors: &[f64] = if powers.clone().count() > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let places: Vec<f64> = powers
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
            .collect();
        let close = 1.0 + 1e-9;
        let from = places.iter().copied().rfind(|place| *place <= least * close).unwrap_or(least);
        let to = places.iter().copied().find(|place| place * close >= most).unwrap_or(most);
        let shown = places.into_iter().filter(|place| (from..=to).contains(place));
        let ticks = shown.map(|place| (place, lang.digits(&plain(place)))).collect();
        Axis { from, to, ticks, unit: String::new(), logarithmic: true }
    }

    /// How far a value is along the axis, 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        share.clamp(0.0, 1.0)
    }
}

/// The unit in which labels are written.
struct Scale {
    size: f64,
    unit: String,
}

impl Scale {
    fn for_values(most: f64, measure: Measure, lang: Lang) -> Scale {
        let choices: &[(f64, &str, &str)] = match measure {
            Measure::Count | Measure::Number | Measure::Logarithm | Measure::Share => {
                &[(1.0, "", "")]
            }
            Measure::Seconds => &[
                (3600.0, "h", "ساعت"),
                (60.0, "min", "دقیقه"),
                (1.0, "s", "ثانیه"),
                (1e-3, "ms", "میلی‌ثانیه"),
                (1e-6, "us", "میکروثانیه"),
            ],
            Measure::Bytes => &[
                ((1u64 << 30) as f64, "GiB", "گیگابایت"),
                ((1u64 << 20) as f64, "MiB", "مگابایت"),
                (1024.0, "KiB", "کیلوبایت"),
                (1.0, "B", "بایت"),
            ],
        };
        // Two of a unit are the least that makes it better than the one below.
        let fits = choices.iter().find(|(size, _, _)| most >= 2.0 * size);
        let (size, english, persian) = fits.or(choices.last()).copied().unwrap_or((1.0, "", ""));
        Scale { size, unit: lang.say(english, persian).into() }
    }
}

/// A step of 1, 2, 2.5 or 5 times a power of ten, so that about `wanted` of them make up `whole`.
fn round_step(whole: f64, wanted: usize, measure: Measure) -> f64 {
    let rough = (whole / wanted as f64).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power);
    if measure == Measure::Count { step.max(1.0).round() } else { step }
}

fn ticks(from: f64, to: f64, step: f64, scale: &Scale, lang: Lang) -> Vec<(f64, String)> {
    let decimals = (-(step / scale.size).log10().floor()).max(0.0) as usize;
    // 2.5 needs a digit more than its power of ten says.
    let halves = (step / scale.size * 10f64.powi(decimals as i32)).fract().abs() > 1e-6;
    let first = (from / step - 1e-9).ceil() as i64;
    let values = (first..first + 12).map(|place| place as f64 * step);
    values
        .take_while(|value| *value <= to + step * 1e-6)
        .map(|value| (value, label(value / scale.size, decimals + usize::from(halves), lang)))
        .collect()
}

/// 0.002, 5, 20000: a round number without zeros that say nothing.
fn plain(value: f64) -> String {
    match value {
        _ if !(1e-4..1e6).contains(&value) => format!("{value:.0e}"),
        _ if value < 1.0 => format!("{value:.4}").trim_end_matches('0').to_string(),
        _ => format!("{value:.0}"),
    }
}

fn label(value: f64, decimals: usize, lang: Lang) -> String {
    if decimals > 4 || value.abs() >= 1e6 {
        return lang.digits(&format!("{value:.1e}"));
    }
    lang.number(if value == 0.0 { 0.0 } else { value }, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(axis: Axis, labels: &str, unit: &str) {
        let found: Vec<String> = axis.ticks.into_iter().map(|(_, label)| label).collect();
        assert_eq!((found.join(" ").as_str(), axis.unit.as_str()), (labels, unit));
    }

    #[test]
    fn labels_are_round() {
        check(Axis::upright(0.7, 7.66, Measure::Number, Lang::En), "0 2 4 6 8", "");
        check(Axis::upright(0.61, 0.64, Measure::Number, Lang::En), "0.61 0.62 0.63 0.64", "");
        check(Axis::upright(0.2, 0.3, Measure::Share, Lang::Fa), "۰ ۲۵ ۵۰ ۷۵ ۱۰۰", "٪");
        check(Axis::upright(0.31, 7.4, Measure::Logarithm, Lang::En), "0.2 0.5 1 2 5 10", "");
        check(
            Axis::upright(2e-5, 3.0, Measure::Logarithm, Lang::Fa),
            "۱e-۵ ۰٫۰۰۰۱ ۰٫۰۰۱ ۰٫۰۱ ۰٫۱ ۱ ۱۰",
            "",
        );
        check(Axis::upright(0.61, 0.64, Measure::Logarithm, Lang::En), "0.61 0.62 0.63 0.64", "");
        check(Axis::upright(-1.0, 7.0, Measure::Logarithm, Lang::En), "-2 0 2 4 6 8", "");
        check(Axis::along(1.0, 60.0, Measure::Count, Lang::En), "20 40 60", "");
        check(Axis::along(0.0, 93.5, Measure::Seconds, Lang::En), "0 20 40 60 80", "s");
        check(Axis::along(0.0, 7200.0, Measure::Seconds, Lang::Fa), "۰٫۰ ۰٫۵ ۱٫۰ ۱٫۵ ۲٫۰", "ساعت");
        check(Axis::upright(9e7, 3.6e8, Measure::Bytes, Lang::En), "0 100 200 300 400", "MiB");
        check(
            Axis::upright(0.0, 6e-4, Measure::Number, Lang::En),
            "0.0000 0.0002 0.0004 0.0006",
            "",
        );
    }

    proptest! {
        #[test]
        fn every_value_has_a_place(least in -1e6..1e6f64, size in 0.0..1e7f64) {
            let measures =
                [Measure::Count, Measure::Number, Measure::Logarithm, Measure::Seconds, Measure::Bytes];
            for measure in measures {
                let least = if measure == Measure::Number { least } else { least.abs() };
                for axis in [
                    Axis::upright(least, least + size, measure, Lang::En),
                    Axis::along(least, least + size, measure, Lang::En),
                ] {
                    prop_assert!(axis.from <= least && axis.to >= least + size - size * 1e-9, "{axis:?}");
                    prop_assert!(axis.to > axis.from && axis.ticks.len() <= 12, "{axis:?}");
                }
            }
        }
    }
}
