//! How clean a recording is: clipping, noise and silence.
//!
//! In: samples. Out: [`SoundFigures`]. Pauses are found by energy alone, as in [`crate::cutting`].

use crate::cutting::{CLEAR, Levels};
use serde::Serialize;
use tandem_units::{Hop, SampleRate};

/// A sample at full scale; several in a row are clipped.
const FULL: f32 = 0.999;
const IN_A_ROW: usize = 3;
const HOP: Hop = Hop(256);

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SoundFigures {
    /// Share of samples at full scale, three or more in a row.
    pub clipped: f64,
    /// Level of the quietest twentieth, in dB of full scale.
    pub noise: f32,
    /// How much louder the loudest twentieth is, in dB.
    pub range: f32,
    /// Silence at both ends and the longest pause inside, in seconds.
    pub before: f64,
    pub after: f64,
    pub longest_pause: f64,
}

impl SoundFigures {
    pub fn of(samples: &[f32], rate: SampleRate) -> SoundFigures {
        let levels = Levels::of(samples, (samples.len() / HOP.0).max(1), HOP);
        let pauses = levels.pauses(CLEAR);
        let seconds = |frames: usize| (frames * HOP.0) as f64 / f64::from(rate.0);
        let inside = pauses.get(1..pauses.len() - 1).unwrap_or_default();
        let longest = inside.iter().map(|pause| pause.frames()).max().unwrap_or_default();
        SoundFigures {
            clipped: clipped(samples) as f64 / samples.len().max(1) as f64,
            noise: levels.noise,
            range: levels.loud - levels.noise,
            before: seconds(pauses[0].frames()),
            after: seconds(pauses[pauses.len() - 1].frames()),
            longest_pause: seconds(longest),
        }
    }
}

fn clipped(samples: &[f32]) -> usize {
    let runs = samples.chunk_by(|a, b| (a.abs() >= FULL) == (b.abs() >= FULL));
    runs.filter(|run| run.len() >= IN_A_ROW && run[0].abs() >= FULL).map(<[f32]>::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_noise_and_silence_are_measured() {
        let rate = SampleRate(22_050);
        let part = |seconds: f64, level: f32| {
            (0..(seconds * 22_050.0) as usize).map(move |i| if i % 2 == 0 { level } else { -level })
        };
        let quiet = part(0.5, 0.001).chain(part(1.0, 0.3)).chain(part(0.4, 0.001));
        let samples: Vec<f32> = quiet.chain(part(0.5, 0.3)).chain(part(0.2, 0.001)).collect();
        let found = SoundFigures::of(&samples, rate);
        assert_eq!(found.clipped, 0.0);
        assert!((found.noise + 60.0).abs() < 1.0 && (found.range - 49.5).abs() < 1.0, "{found:?}");
        let near = |value: f64, expected: f64| (value - expected).abs() < 0.03;
        assert!(
            near(found.before, 0.5) && near(found.after, 0.2) && near(found.longest_pause, 0.4),
            "{found:?}"
        );
        let loud: Vec<f32> = part(1.0, 1.0).collect();
        assert_eq!(SoundFigures::of(&loud, rate).clipped, 1.0);
    }
}
