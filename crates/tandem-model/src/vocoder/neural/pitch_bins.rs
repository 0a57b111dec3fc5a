//! Pitch as classes of 20 cents, and back.
//!
//! In: a pitch in Hz, or what the pitch network says about a frame. Out: the other. A class is a fifth of a semitone; a
//! pitch between two classes is a weighted mean.

/// Classes of pitch.
pub const PITCH_BINS: usize = 200;
/// Outputs of the pitch network for one frame: whether it is voiced, then the classes.
pub const PITCH_OUTPUTS: usize = PITCH_BINS + 1;
/// The pitch of the first class.
pub const LOWEST: f32 = 55.0;
/// Classes of an octave.
pub const PER_OCTAVE: f32 = 60.0;
/// Deviation of a target around its pitch, in classes.
const SPREAD: f32 = 1.25;
/// Classes on each side of the best one that are averaged.
pub const AROUND: usize = 3;

/// The probability of each class for a frame of this pitch: a bell around it. The sum is one.
pub fn target_of(hertz: f32, out: &mut [f32]) {
    let centre = (hertz.max(1.0) / LOWEST).log2() * PER_OCTAVE;
    let centre = centre.clamp(0.0, (PITCH_BINS - 1) as f32);
    let bell = |bin: usize| (-0.5 * ((bin as f32 - centre) / SPREAD).powi(2)).exp();
    out.iter_mut().enumerate().for_each(|(bin, out)| *out = bell(bin));
    let sum: f32 = out.iter().sum();
    out.iter_mut().for_each(|value| *value /= sum);
}

/// The pitch of a frame, from the outputs of the pitch network; none if it is unvoiced.
pub fn pitch_of(outputs: &[f32]) -> Option<f32> {
    let (voiced, classes) = outputs.split_first()?;
    if *voiced <= 0.0 {
        return None;
    }
    let best = classes.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?.0;
    let range = best.saturating_sub(AROUND)..(best + AROUND + 1).min(classes.len());
    let weight = |bin: usize| (classes[bin] - classes[best]).exp();
    let sum: f32 = range.clone().map(weight).sum();
    let mean = range.map(|bin| bin as f32 * weight(bin)).sum::<f32>() / sum;
    Some(LOWEST * (mean / PER_OCTAVE).exp2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pitch_survives_its_classes() {
        for hertz in [60.0, 101.3, 222.2, 440.0] {
            let mut outputs = vec![0.0; PITCH_OUTPUTS];
            target_of(hertz, &mut outputs[1..]);
            outputs[1..].iter_mut().for_each(|value| *value = value.max(1e-30).ln());
            outputs[0] = -1.0;
            assert_eq!(pitch_of(&outputs), None);
            outputs[0] = 1.0;
            let found = pitch_of(&outputs).unwrap();
            assert!((found / hertz - 1.0).abs() < 1e-3, "{hertz}: {found}");
        }
    }
}
