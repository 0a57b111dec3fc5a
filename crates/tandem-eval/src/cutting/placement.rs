//! About where each sentence is, before anything is known about the voice.
//!
//! In: the lengths of the sentences in symbols, and the pauses of the recording. Out: the pauses between which each sentence
//! is said. The idea is Gale and Church's (1993) for translations: long sentences take long, and the best sequence of such
//! matches does not drift, because an error in one place would cost in every later one. Next: [`super::lattice`].

use super::pauses::Pause;
use super::script::Phrase;
use std::ops::Range;
use tandem_audio::mel::MelConfig;
use tandem_data::long_text::LongSentence;

/// Standard deviation of the length of a sentence: a share of it, and a constant, in frames.
const DEVIATION: (f32, f32) = (0.12, 15.0);
/// Cost of a pause inside a sentence, per frame, and the largest one.
const PAUSE_INSIDE: (f32, f32) = (0.03, 2.5);
/// Cost of two sentences without a pause between them.
const NO_PAUSE: f32 = 3.0;
/// Cost of a sentence that is not said.
const NOT_SAID: f32 = 12.0;
/// Cost of speech that is in no sentence: at all, and per frame.
const FOREIGN: (f32, f32) = (6.0, 0.05);
/// Pauses that one sentence can have inside.
const MOST_INSIDE: usize = 40;

/// From the end of one pause to the start of another; none: not found.
pub type Place = Option<(usize, usize)>;

#[derive(Clone, Copy)]
enum Move {
    Start,
    /// So many sentences since that pause.
    Said(u8, u32),
    NotSaid,
    Foreign,
}

/// The places that the text itself gives; none where a sentence has no time.
pub fn given(
    sentences: &[LongSentence],
    phrases: &[Phrase],
    ranges: &[Range<usize>],
    mel: &MelConfig,
    frames: usize,
) -> Option<Vec<Place>> {
    let frame = |seconds: f64| ((seconds * f64::from(mel.rate.0)) as usize / mel.hop.0).min(frames);
    let mut latest = 0;
    let mut place = |range: &Range<usize>| {
        let (start, end) = sentences[phrases[range.start].sentence].at?;
        let start = frame(start.max(0.0)).max(latest);
        latest = start;
        let end = frame(end.max(0.0));
        Some((end > start).then_some((start, end)))
    };
    ranges.iter().map(&mut place).collect()
}

/// `symbols` of each sentence; places are frames. `pauses` begins and ends with the ends of the recording.
pub fn place(symbols: &[usize], pauses: &[Pause]) -> Vec<Place> {
    // Frames of speech before each pause.
    let mut speech = vec![0f32; pauses.len()];
    for at in 1..pauses.len() {
        speech[at] = speech[at - 1] + (pauses[at].start - pauses[at - 1].end) as f32;
    }
    let all: usize = symbols.iter().sum();
    let per_symbol = speech.last().copied().unwrap_or(0.0) / all.max(1) as f32;
    let expected: Vec<f32> = symbols.iter().map(|count| *count as f32 * per_symbol).collect();
    let inside_cost = |pause: &Pause| (pause.frames() as f32 * PAUSE_INSIDE.0).min(PAUSE_INSIDE.1);
    let columns = pauses.len();
    let mut best = vec![vec![f32::INFINITY; columns]; symbols.len() + 1];
    let mut moves = vec![vec![Move::Start; columns]; symbols.len() + 1];
    best[0][0] = 0.0;
    for done in 0..=symbols.len() {
        for at in 0..columns {
            let mut found = (best[done][at], moves[done][at]);
            let mut consider = |cost: f32, way: Move| {
                if cost < found.0 {
                    found = (cost, way);
                }
            };
            if at > 0 {
                let frames = speech[at] - speech[at - 1];
                consider(best[done][at - 1] + FOREIGN.0 + FOREIGN.1 * frames, Move::Foreign);
            }
            if done > 0 {
                consider(best[done - 1][at] + NOT_SAID, Move::NotSaid);
                let single = expected[done - 1];
                let both = (done > 1).then(|| single + expected[done.saturating_sub(2)]);
                let longest = 3.0 * both.unwrap_or(single) + 10.0 * DEVIATION.1;
                let mut inside = 0.0;
                for from in (at.saturating_sub(MOST_INSIDE)..at).rev() {
                    let frames = speech[at] - speech[from];
                    if frames > longest {
                        break;
                    }
                    let mut said = |sentences: usize, expected: f32, more: f32| {
                        let off = (frames - expected) / (DEVIATION.0 * expected + DEVIATION.1);
                        let cost = best[done - sentences][from] + 0.5 * off * off + inside + more;
                        consider(cost, Move::Said(sentences as u8, from as u32));
                    };
                    said(1, single, 0.0);
                    if let Some(both) = both {
                        said(2, both, NO_PAUSE);
                    }
                    inside += inside_cost(&pauses[from]);
                }
            }
            (best[done][at], moves[done][at]) = found;
        }
    }
    let mut places = vec![None; symbols.len()];
    let (mut done, mut at) = (symbols.len(), columns - 1);
    while done > 0 || at > 0 {
        match moves[done][at] {
            Move::Start => break,
            Move::Foreign => at -= 1,
            Move::NotSaid => done -= 1,
            Move::Said(count, from) => {
                let (from, count) = (from as usize, usize::from(count));
                let (start, end) = (pauses[from].end, pauses[at].start);
                let of_both: f32 = expected[done - count..done].iter().sum();
                let mut before = 0.0;
                for sentence in done - count..done {
                    let share = |frames: f32| {
                        start + ((end - start) as f32 * frames / of_both.max(1e-3)) as usize
                    };
                    places[sentence] = Some((share(before), share(before + expected[sentence])));
                    before += expected[sentence];
                }
                (done, at) = (done - count, from);
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording of sentences of so many symbols, at a changing pace, with a pause after each and one inside of long ones.
    fn recording(symbols: &[usize]) -> (Vec<Pause>, Vec<(usize, usize)>) {
        let (mut pauses, mut places, mut at) = (vec![Pause { start: 0, end: 10 }], Vec::new(), 10);
        for (number, count) in symbols.iter().enumerate() {
            let frames = count * (7 + number % 3);
            if *count > 30 {
                pauses.push(Pause { start: at + frames / 2, end: at + frames / 2 + 12 });
            }
            places.push((at, at + frames));
            at += frames;
            pauses.push(Pause { start: at, end: at + 40 });
            at += 40;
        }
        (pauses, places)
    }

    #[test]
    fn sentences_are_found_by_their_lengths() {
        let symbols: Vec<usize> = (0..120).map(|number| 12 + (number * 37) % 41).collect();
        let (pauses, places) = recording(&symbols);
        let found = place(&symbols, &pauses);
        let right =
            found.iter().zip(&places).filter(|(found, place)| **found == Some(**place)).count();
        assert!(right >= 108, "{right} of 120");
    }

    #[test]
    fn a_text_without_its_sound_and_a_sound_without_its_text_move_nothing_far_away() {
        let mut symbols: Vec<usize> = (0..60).map(|number| 12 + (number * 37) % 41).collect();
        let (pauses, places) = recording(&symbols);
        symbols.insert(20, 35);
        symbols.remove(40);
        let found = place(&symbols, &pauses);
        let right = |range: std::ops::Range<usize>, shift: isize| {
            range.filter(|at| found[(*at as isize + shift) as usize] == Some(places[*at])).count()
        };
        assert!(right(0..17, 0) >= 14 && right(45..60, 0) >= 13, "{found:?}");
    }
}
