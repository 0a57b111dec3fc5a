//! Whether synthesized speech follows the reference recording.

use super::super::target::Target;
use crate::failure::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;
use tandem_data::corpus::{Corpus, Split, Utterance};
use tandem_model::Device;
use tandem_model::metrics::{PitchConfig, PitchTrack, cosine_distance};
use tandem_model::synthesis::mel::{Reference, SamplingOptions};
use tandem_model::synthesis::text::Synthesizer;
use tandem_model::vocoder::VocoderChoice;
use tandem_text::Language;

/// Held-out texts, synthesized for each speaker of the language.
const TEXTS: usize = 3;

/// A speaker: a reference segment, and features of another recording.
struct Speaker {
    reference: Reference,
    vector: Vec<f32>,
    pitch: Option<f64>,
}

/// How often the speech is nearest to the requested speaker, and how often the speaker with the higher
/// pitch of a pair is synthesized with the higher pitch.
pub fn measure(run: &Path, corpus: &Path) -> Result<Vec<Target>> {
    let mut synthesizer = Synthesizer::open(run, &Device::flex(), &VocoderChoice::default())?;
    let corpus = Corpus::read(corpus, &Default::default())?;
    let (mut right, mut spoken, mut ordered, mut pairs) = (0, 0, 0, 0);
    for (tag, speakers) in speakers(&synthesizer, &corpus)? {
        let language: Language = tag.parse()?;
        let texts = corpus.of(Split::Eval).filter(|row| row.language.as_deref() == Some(&tag));
        for row in texts.take(TEXTS) {
            let reading = synthesizer.read(&row.text, Some(language))?;
            let symbols: Vec<i32> =
                reading.transcript.ids().iter().map(|id| i32::from(id.0)).collect();
            let mut heard = Vec::new();
            for (asked, speaker) in speakers.iter().enumerate() {
                let sampling = SamplingOptions::default();
                let said = synthesizer.synthesize_mel(
                    &symbols,
                    language,
                    &speaker.reference,
                    &sampling,
                )?;
                let own = Reference { mel: said.mel.clone(), level: None };
                let vector = synthesizer.speaker_embedding(&own)?;
                spoken += 1;
                right += usize::from(nearest(&vector, &speakers) == Some(asked));
                heard.push(pitch_of(&mut synthesizer, said.mel)?);
            }
            for (one, first) in speakers.iter().enumerate() {
                for (other, second) in speakers.iter().enumerate().skip(one + 1) {
                    let (Some(a), Some(b)) = (first.pitch, second.pitch) else { continue };
                    let (Some(x), Some(y)) = (heard[one], heard[other]) else { continue };
                    pairs += 1;
                    ordered += usize::from((a > b) == (x > y));
                }
            }
        }
    }
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    Ok(vec![
        Target::note(
            "speech is nearest to the requested speaker",
            share(right, spoken),
            "%",
            format!("{right} of {spoken}, by the reference encoder; three speakers a language"),
        ),
        Target::note(
            "pitch order of two speakers is kept",
            share(ordered, pairs),
            "%",
            format!("{ordered} of {pairs} pairs, by median pitch"),
        ),
    ])
}

fn speakers(synthesizer: &Synthesizer, corpus: &Corpus) -> Result<BTreeMap<String, Vec<Speaker>>> {
    let mut rows: BTreeMap<(String, String), Vec<&Utterance>> = BTreeMap::new();
    for row in corpus.of(Split::Train) {
        let (Some(speaker), Some(language)) = (&row.speaker, &row.language) else { continue };
        rows.entry((language.clone(), speaker.clone())).or_default().push(row);
    }
    let mut found: BTreeMap<String, Vec<Speaker>> = BTreeMap::new();
    for ((language, name), rows) in rows {
        let [first, second, ..] = rows.as_slice() else { continue };
        let hear = |row: &Utterance| {
            synthesizer
                .read_reference(&corpus.audio_path(row))
                .with_context(|| format!("speaker `{name}`"))
        };
        let (reference, other) = (hear(first)?, hear(second)?);
        let vector = synthesizer.speaker_embedding(&other)?;
        let pitch = recorded_pitch(&corpus.audio_path(second))?;
        found.entry(language).or_default().push(Speaker { reference, vector, pitch });
    }
    Ok(found)
}

fn nearest(vector: &[f32], speakers: &[Speaker]) -> Option<usize> {
    let distance = |speaker: &Speaker| cosine_distance(vector, &speaker.vector).unwrap_or(2.0);
    let places = speakers.iter().enumerate();
    let best = places.min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
    best.map(|(place, _)| place)
}

fn pitch_of(synthesizer: &mut Synthesizer, mut mel: Vec<f32>) -> Result<Option<f64>> {
    synthesizer.trained().document.scale.restore(&mut mel);
    let sound = synthesizer.vocode(&mel)?;
    Ok(PitchTrack::of(&sound, &PitchConfig::SPEECH_22K)?.median())
}

fn recorded_pitch(path: &Path) -> Result<Option<f64>> {
    use tandem_audio::{AudioConfig, Decoder, FileReader};
    let limits = AudioConfig::default();
    let mut file = FileReader::default();
    let bytes = file.read(path, &limits)?;
    let mut decoder = Decoder::new(PitchConfig::SPEECH_22K.rate, limits);
    let sound = decoder.decode(bytes, path.extension().and_then(|ending| ending.to_str()))?;
    Ok(PitchTrack::of(&sound.to_f32(), &PitchConfig::SPEECH_22K)?.median())
}
