//! The worst rows as a page to listen to and to decide on.
//!
//! In: a ranking, and the corpus. Out: [`Page`] with a player for each row. Its decisions are saved by the browser as
//! `decisions.tsv`, which `prepare` and `train` read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tandem_audio::flac_stream::flac_file;
use tandem_audio::{Decoder, FileReader};
use tandem_data::DataError;
use tandem_data::corpus::{DECISIONS, Decision, Decisions};
use tandem_eval::transcripts::sound::SoundFigures;
use tandem_eval::transcripts::{Ranked, Ranking};
use tandem_page::Lang;
use tandem_page::page::{Fact, Page, Review, ReviewRow, Section, Tone, Verdict};
use tandem_page::prose::Prose;
use tandem_train::Prepared;

/// Shares and levels from which a recording is bad to train on.
const MUCH_CLIPPED: f64 = 1e-4;
const LITTLE_RANGE: f32 = 30.0;
/// Silence of so many seconds at an end, or inside, is learned as speech.
const MUCH_SILENCE: f64 = 0.8;
/// So much faster or slower than the median is unusual.
const PACE: f64 = 1.6;

/// The first `top` rows of a ranking.
pub fn page(
    ranking: &Ranking,
    prepared: &Prepared,
    top: usize,
    lang: Lang,
) -> Result<Page, DataError> {
    let decisions = Decisions::read(&prepared.root)?;
    let mut sounds = Sounds::of(prepared);
    let mut paces: Vec<f64> = ranking.rows.iter().map(|row| row.symbols_per_second).collect();
    paces.sort_by(f64::total_cmp);
    let pace = paces.get(paces.len() / 2).copied().unwrap_or(1.0);
    let rows = ranking.rows.iter().take(top).map(|row| {
        let heard = sounds.read(row);
        ReviewRow {
            id: row.id.clone(),
            text: row.text.clone(),
            reasons: reasons(row),
            facts: facts(row, heard.as_ref().ok().map(|(figures, _)| figures), pace, lang),
            sound: heard.map(|(_, address)| address),
            decided: decisions.of(&row.id).map(|decision| match decision {
                Decision::Keep => "keep",
                Decision::Fix(_) => "fix",
                Decision::Drop => "drop",
            }),
        }
    });
    let review = Review { file: DECISIONS.into(), rows: rows.collect() };
    let mut page = Page::new(lang, lang.say("Rows to listen to", "سطرهایی برای شنیدن"));
    page.subtitle = Prose::code(ranking.corpus.display().to_string());
    let (count, all) =
        (lang.count(ranking.suspicious as u64), lang.count(ranking.rows.len() as u64));
    let sentence = lang.say(
        format!("{count} of {all} rows should be checked; the worst come first."),
        format!("{count} از {all} سطر را باید بررسی کرد؛ بدترین‌ها اول آمده‌اند."),
    );
    let tone = if ranking.suspicious == 0 { Tone::Good } else { Tone::Fair };
    page.add(
        Section::new("review", lang.say("The worst rows", "بدترین سطرها"))
            .with(Verdict::new(tone, sentence))
            .with(review),
    );
    Ok(page)
}

/// The sentences of the ranking are in English in both languages.
fn reasons(row: &Ranked) -> Vec<Prose> {
    let named =
        |ids: &[String]| ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    let mut reasons = row.reasons.clone();
    if !row.same_recording.is_empty() {
        reasons.push(format!("the same recording as {}", named(&row.same_recording)));
    }
    if !row.same_text.is_empty() {
        reasons.push(format!("the same text as {}", named(&row.same_text)));
    }
    reasons.iter().map(|reason| Prose::of(reason)).collect()
}

fn facts(row: &Ranked, sound: Option<&SoundFigures>, pace: f64, lang: Lang) -> Vec<Fact> {
    let judged = |fact: Fact, bad: bool| if bad { fact.toned(Tone::Bad) } else { fact };
    let times = row.symbols_per_second / pace.max(1e-3);
    let mut facts = vec![
        judged(
            Fact::new(lang.say("suspicion", "میزان تردید"), lang.number(row.suspicion, 2)),
            row.suspicion >= 1.0,
        ),
        Fact::new(lang.say("length", "طول"), lang.seconds(row.seconds.0)),
        judged(
            Fact::new(lang.say("pace, median 1", "سرعت گفتار، میانه ۱"), lang.number(times, 2)),
            !(1.0 / PACE..PACE).contains(&times),
        ),
    ];
    let Some(sound) = sound else { return facts };
    let silence = sound.before.max(sound.after);
    facts.extend([
        judged(
            Fact::new(lang.say("clipped", "بریده‌شده"), lang.percent(sound.clipped)),
            sound.clipped > MUCH_CLIPPED,
        ),
        judged(
            Fact::new(
                lang.say("speech above noise, dB", "گفتار بالاتر از نویز، dB"),
                lang.number(f64::from(sound.range), 0),
            ),
            sound.range < LITTLE_RANGE,
        ),
        judged(
            Fact::new(lang.say("silence at an end", "سکوت در یک سر"), lang.seconds(silence)),
            silence > MUCH_SILENCE,
        ),
        judged(
            Fact::new(lang.say("longest pause", "بلندترین مکث"), lang.seconds(sound.longest_pause)),
            sound.longest_pause > MUCH_SILENCE,
        ),
    ]);
    facts
}

/// Reads recordings as training hears them.
struct Sounds<'a> {
    prepared: &'a Prepared,
    file: FileReader,
    decoder: Decoder,
}

impl Sounds<'_> {
    fn of(prepared: &Prepared) -> Sounds<'_> {
        let settings = &prepared.settings;
        let decoder = Decoder::new(settings.mel.rate, settings.audio);
        Sounds { prepared, file: FileReader::default(), decoder }
    }

    /// Figures of a recording, and its sound as an address; or why it cannot be heard.
    fn read(&mut self, row: &Ranked) -> Result<(SoundFigures, String), String> {
        let path = self.prepared.root.join(&row.audio);
        let rate = self.decoder.rate();
        let bytes =
            self.file.read(&path, self.decoder.config()).map_err(|error| error.to_string())?;
        let kind = row.audio.extension().and_then(|kind| kind.to_str());
        let sound = self.decoder.decode(bytes, kind).map_err(|error| error.to_string())?;
        let figures = SoundFigures::of(&sound.to_f32(), rate);
        let address =
            format!("data:audio/flac;base64,{}", STANDARD.encode(flac_file(sound, rate)?));
        Ok((figures, address))
    }
}
