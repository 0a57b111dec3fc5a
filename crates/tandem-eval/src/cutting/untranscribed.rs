//! Rows of a recording without a text: cut where nobody speaks.
//!
//! In: samples. Out: [`CutRows`] with empty texts. Parts that have no pause where they could be divided are left out.

use super::pauses::{CLEAR, Levels};
use super::rows::{CutRow, CutRows, CutSettings};
use tandem_audio::mel::MelConfig;
use tandem_units::Samples;

/// A longer pause always divides: it is no part of a sentence. In seconds.
const ALWAYS: f64 = 0.7;

pub fn rows(samples: &[f32], mel: &MelConfig, settings: &CutSettings) -> CutRows {
    let frame = mel.hop.0 as f64 / f64::from(mel.rate.0);
    let frames = mel.frames(Samples(samples.len())).0;
    let pauses = Levels::of(samples, frames, mel.hop).pauses(CLEAR);
    let seconds = |frames: usize| frames as f64 * frame;
    let mut rows = Vec::new();
    // Speech between two pauses, by their numbers; the first one is the last.
    let mut waiting = vec![(0, pauses.len() - 1)];
    while let Some((before, after)) = waiting.pop() {
        if before >= after {
            continue;
        }
        let speech = (seconds(pauses[before].end), seconds(pauses[after].start));
        let length = speech.1 - speech.0;
        let inside = (before + 1..after).max_by_key(|number| pauses[*number].frames());
        let divide = length > settings.longest - 2.0 * settings.margin;
        match inside.filter(|number| divide || seconds(pauses[*number].frames()) > ALWAYS) {
            Some(number) => waiting.extend([(number, after), (before, number)]),
            None if divide || length < settings.shortest => {}
            None => rows.push(CutRow {
                sentence: rows.len(),
                start: speech.0 - settings.margin.min(seconds(pauses[before].frames()) / 2.0),
                end: speech.1 + settings.margin.min(seconds(pauses[after].frames()) / 2.0),
                text: String::new(),
                excess: None,
                speech,
            }),
        }
    }
    CutRows { rows, length: samples.len() as f64 / f64::from(mel.rate.0), ..CutRows::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speech_is_divided_at_its_longest_pauses_until_it_is_short_enough() {
        // Speech of 3, 3, 3, 1 and 12 s; the pause behind the second part is long enough for an end.
        let parts = [(3.0, 0.3), (3.0, 1.0), (3.0, 0.2), (1.0, 1.0), (12.0, 0.5)];
        let mut samples = vec![0.001f32; 11_025];
        for (speech, pause) in parts {
            samples.extend(
                (0..(speech * 22_050.0) as usize).map(|i| if i % 20 < 10 { 0.3f32 } else { -0.3 }),
            );
            samples.extend(vec![0.001f32; (pause * 22_050.0) as usize]);
        }
        let found = rows(&samples, &MelConfig::SPEECH_22K, &CutSettings::default());
        let shown: Vec<f64> = found.rows.iter().flat_map(|row| [row.start, row.end]).collect();
        // And not the part of 12 s.
        let expected = [0.35, 6.95, 7.65, 12.15];
        assert_eq!(shown.len(), expected.len(), "{shown:?}");
        let near = |(found, expected): (&f64, &f64)| (found - expected).abs() < 0.04;
        assert!(shown.iter().zip(&expected).all(near), "{shown:?}");
    }
}
