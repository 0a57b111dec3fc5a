//! An evaluation in one sentence, from documented thresholds.
//!
//! In: the means of an evaluation, and how the held-out loss moved at the end of the run. Out: a sentence such as
//! "clearly speech, a little dull, 4 % too slow; more steps would help: ...". The thresholds are those of
//! `docs/training.md`, which a test compares. Whether words are understood is not measured here: `--judge` does that.

use tandem_model::metrics::Tally;

/// From this share below the baseline on, with its words. Measured: 33 % after 120 steps of the demo, 54 % at its end.
pub const CLOSENESS: [(f64, &str); 4] = [
    (0.50, "close to the recordings"),
    (0.35, "clearly speech"),
    (0.15, "rough"),
    (0.0, "hardly speech yet"),
];
/// Below this share of the recordings' change a voice is a little dull, and below the second dull.
pub const DULL: [f64; 2] = [0.90, 0.75];
/// Above this share it is noisy.
pub const NOISY: f64 = 1.20;
/// A length error that is heard.
pub const PACE: f64 = 0.03;
/// A pitch error that is heard, in semitones.
pub const PITCH: f64 = 2.0;
/// A difference of level that is heard, in dB.
pub const LEVEL: f64 = 3.0;
/// The held-out loss is still falling if its best is in this last part of the validations.
pub const STILL_FALLING: f64 = 0.2;

/// Held-out losses of a run, in order: what would help a voice is read from their end.
#[derive(Clone, Debug, Default)]
pub struct HeldOut(pub Vec<(u64, f64)>);

impl HeldOut {
    /// What more training would bring; none where there are too few validations to tell.
    fn what_helps(&self) -> Option<String> {
        let (last, _) = *self.0.last()?;
        let (best, _) = *self.0.iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
        if self.0.len() < 4 {
            return None;
        }
        let falling = best as f64 >= (1.0 - STILL_FALLING) * last as f64;
        Some(match falling {
            true => {
                format!("more steps would help: the held-out loss was still falling at step {best}")
            }
            false => format!(
                "more data would help more than more steps: the held-out loss was best after step {best} of {last}"
            ),
        })
    }
}

/// The sentence, without a capital and a full stop.
pub fn in_words(all: &Tally, held_out: &HeldOut) -> String {
    let closeness = CLOSENESS.iter().find(|(least, _)| all.gain > *least);
    let Some((_, closeness)) = closeness else {
        return "no better than the mean frame: nothing was learned".into();
    };
    let mut said = vec![closeness.to_string()];
    let detail = all.change_over_time.min(all.change_over_bands);
    match detail {
        _ if all.change_over_time.max(all.change_over_bands) > NOISY => said.push("noisy".into()),
        _ if detail < DULL[1] => said.push("dull".into()),
        _ if detail < DULL[0] => said.push("a little dull".into()),
        _ => {}
    }
    if all.duration_bias.abs() >= PACE {
        let pace = if all.duration_bias > 0.0 { "slow" } else { "fast" };
        said.push(format!("{:.0} % too {pace}", 100.0 * all.duration_bias.abs()));
    }
    if let Some(pitch) = all.pitch_error.filter(|pitch| *pitch >= PITCH) {
        said.push(format!("{pitch:.1} semitones off in pitch"));
    }
    if all.level.abs() >= LEVEL {
        let level = if all.level > 0.0 { "loud" } else { "quiet" };
        said.push(format!("{:.0} dB too {level}", all.level.abs()));
    }
    if said.len() == 1 {
        said.push("with the recordings' detail, pace and level".into());
    }
    let helps = held_out.what_helps().map(|helps| format!("; {helps}")).unwrap_or_default();
    format!("{}{helps}", said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Tally {
        Tally {
            utterances: 9,
            gain: 0.54,
            change_over_time: 1.0,
            change_over_bands: 0.95,
            ..Tally::default()
        }
    }

    #[track_caller]
    fn check(tally: Tally, losses: &[f64], wanted: &str) {
        let steps = losses.iter().enumerate().map(|(n, loss)| (100 * (n as u64 + 1), *loss));
        assert_eq!(in_words(&tally, &HeldOut(steps.collect())), wanted);
    }

    #[test]
    fn every_figure_beyond_its_threshold_is_said_and_no_other() {
        check(good(), &[], "close to the recordings, with the recordings' detail, pace and level");
        let dull = Tally { gain: 0.4, change_over_bands: 0.8, duration_bias: 0.04, ..good() };
        check(dull, &[], "clearly speech, a little dull, 4 % too slow");
        let off = Tally {
            gain: 0.2,
            change_over_time: 0.5,
            duration_bias: -0.12,
            pitch_error: Some(4.6),
            level: -5.0,
            ..good()
        };
        let words = "rough, dull, 12 % too fast, 4.6 semitones off in pitch, 5 dB too quiet";
        check(off, &[], words);
        check(Tally { change_over_time: 1.3, ..good() }, &[], "close to the recordings, noisy");
        let nothing = "no better than the mean frame: nothing was learned";
        check(Tally { gain: 0.0, ..good() }, &[], nothing);
    }

    #[test]
    fn the_thresholds_are_those_of_the_documents() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/training.md");
        let page = std::fs::read_to_string(page).expect("the page");
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let words = CLOSENESS.map(|(_, words)| words).join(", ");
        let shares = CLOSENESS.map(|(share, _)| percent(share)).join(", ");
        for row in [
            format!("| {words} | `below` over {shares} "),
            format!(
                "| the smaller `detail` below {}, below {}; the larger above {} |",
                percent(DULL[0]),
                percent(DULL[1]),
                percent(NOISY)
            ),
            format!("| the mean length is off by {} or more |", percent(PACE)),
            format!("| {PITCH} semitones or more |"),
            format!("| {LEVEL} dB or more |"),
            format!("was in the last {} of the steps", percent(STILL_FALLING)),
        ] {
            assert!(page.contains(&row), "not in docs/training.md: {row}");
        }
    }

    #[test]
    fn what_would_help_follows_from_the_held_out_loss() {
        let start = "close to the recordings, with the recordings' detail, pace and level";
        check(good(), &[5.0, 4.0, 3.0], start);
        let falling = "more steps would help: the held-out loss was still falling at step 500";
        check(good(), &[5.0, 4.0, 3.0, 2.5, 2.0], &format!("{start}; {falling}"));
        let over = "more data would help more than more steps: the held-out loss was best after step 200 of 500";
        check(good(), &[5.0, 2.0, 2.1, 2.2, 2.3], &format!("{start}; {over}"));
    }
}
