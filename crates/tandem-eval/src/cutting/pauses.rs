//! Where a recording is quiet.
//!
//! In: samples. Out: [`Levels`], the level of each frame, and [`Pause`]s, from which to which frame nobody speaks.
//! Energy alone decides: speech is what is clearly above the noise of this recording. Next: [`super::placement`].

use tandem_units::Hop;

/// Quieter than this below loud speech is silence in any recording, in dB.
const RANGE: f32 = 60.0;
/// Where the threshold lies between the noise (0) and loud speech (1).
const THRESHOLD: f32 = 0.3;
/// A sound shorter than this many frames in a pause is a click, not speech.
const CLICK: usize = 2;
/// A shorter pause is often inside a word, such as before a plosive: it says nothing about where a sentence ends.
pub const CLEAR: usize = 8;
/// The shortest in which a sentence may be cut, where it is known to end. In the corpus Kathleen every twentieth pause between
/// two sentences is shorter than 75 ms.
pub const SHORT: usize = 3;

/// Frames from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub start: usize,
    pub end: usize,
}

impl Pause {
    pub fn frames(&self) -> usize {
        self.end - self.start
    }
}

/// How loud each frame is.
pub struct Levels {
    /// In dB of full scale.
    pub frames: Vec<f32>,
    pub threshold: f32,
    /// Of the quietest and the loudest twentieth.
    pub noise: f32,
    pub loud: f32,
}

impl Levels {
    /// Each frame has the samples of half a hop on both sides of its centre.
    pub fn of(samples: &[f32], frames: usize, hop: Hop) -> Levels {
        let level = |frame: usize| {
            let (centre, half) = (frame * hop.0, hop.0 / 2);
            let start = centre.saturating_sub(half).min(samples.len());
            let inside = &samples[start..(centre + half).min(samples.len())];
            let energy: f64 = inside.iter().map(|&sample| f64::from(sample).powi(2)).sum();
            (10.0 * (energy / inside.len().max(1) as f64 + 1e-12).log10()) as f32
        };
        let frames: Vec<f32> = (0..frames).map(level).collect();
        let mut sorted = frames.clone();
        sorted.sort_by(f32::total_cmp);
        let at =
            |share: f64| sorted.get((share * sorted.len() as f64) as usize).copied().unwrap_or(0.0);
        let loud = at(0.95);
        let noise = at(0.05);
        let floor = noise.max(loud - RANGE);
        Levels { threshold: floor + THRESHOLD * (loud - floor), noise, loud, frames }
    }

    /// Those of at least `shortest` frames, in order. The silence at both ends is a pause too, however short: the first starts
    /// at 0, the last ends at the end.
    pub fn pauses(&self, shortest: usize) -> Vec<Pause> {
        let all = self.frames.len();
        let mut pauses: Vec<Pause> = Vec::new();
        let mut frame = 0;
        while frame < all {
            let length =
                self.frames[frame..].iter().take_while(|level| **level < self.threshold).count();
            if length == 0 {
                frame += 1;
                continue;
            }
            let end = frame + length;
            match pauses.last_mut() {
                Some(last)
                    if frame - last.end < CLICK && last.frames() > CLICK && length > CLICK =>
                {
                    last.end = end
                }
                _ => pauses.push(Pause { start: frame, end }),
            }
            frame = end;
        }
        pauses.retain(|pause| pause.frames() >= shortest || pause.start == 0 || pause.end == all);
        if pauses.first().is_none_or(|first| first.start > 0) {
            pauses.insert(0, Pause { start: 0, end: 0 });
        }
        if pauses.last().is_none_or(|last| last.end < all) {
            pauses.push(Pause { start: all, end: all });
        }
        pauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten frames of ten samples per entry: true is a loud tone, false is noise 50 dB below it.
    fn levels(parts: &[(bool, usize)]) -> Levels {
        let mut samples = Vec::new();
        for (loud, frames) in parts {
            let level = if *loud { 0.3f32 } else { 0.001 };
            samples.extend((0..frames * 10).map(|i| if i % 2 == 0 { level } else { -level }));
        }
        Levels::of(&samples, samples.len() / 10, Hop(10))
    }

    #[test]
    fn pauses_are_between_speech_and_clicks_do_not_divide_them() {
        let quiet_and_loud =
            [(false, 20), (true, 50), (false, 25), (true, 30), (false, 4), (true, 30)];
        let mut found = levels(&quiet_and_loud);
        found.frames[82] = 0.0;
        let pauses = found.pauses(CLEAR);
        assert_eq!(pauses.len(), 3, "{pauses:?}");
        assert!(pauses[0].start == 0 && pauses[0].end.abs_diff(20) <= 1, "{pauses:?}");
        assert!(pauses[1].start.abs_diff(70) <= 1 && pauses[1].end.abs_diff(95) <= 1, "{pauses:?}");
        assert_eq!(pauses[2], Pause { start: 159, end: 159 });
    }
}
