//! The cost of loading, measured on the user's own corpus, with advice.
//!
//! In: a [`Prepared`] corpus. Out: [`Analysis`], plain figures and findings. Times the front end,
//! decoder, kernel and feed of training. Only the duration of a training step is assumed:
//! [`Consumer::step`].

use crate::feed::FeedSettings;
use crate::measure::feed_benchmark::{BatchCost, Consumer, LATE, benchmark_feed};
use crate::prepare::Prepared;
use crate::{DataSettings, TrainError};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_audio::mel::MelExtractor;
use tandem_audio::{Decoder, FileReader};
use tandem_data::corpus::{Corpus, Utterance};
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;
use tandem_telemetry::rules::UNEVEN_LOADING;
use tandem_telemetry::stats::{Figures, Stats};
use tandem_units::{Lang, Seconds};

/// How much to measure.
#[derive(Clone, Debug)]
pub struct AnalyzeOptions {
    /// Rows to time one by one, spread over the corpus.
    pub sample: usize,
    pub consumer: Consumer,
}

/// The cost of loading a corpus.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// Usable rows.
    pub rows: usize,
    /// Rows that were timed one by one.
    pub sampled: usize,
    pub text: TextCost,
    pub audio: AudioCost,
    pub cache: CacheCost,
    pub batches: BatchCost,
    /// Advice, the most urgent first; may be empty.
    pub findings: Vec<Finding>,
    /// The result in one sentence.
    pub verdict: String,
}

/// Text work: language, normalisation, symbols.
#[derive(Clone, Debug, Serialize)]
pub struct TextCost {
    /// Time per row, on one thread.
    pub per_row: Seconds,
    /// Estimate for all rows, on one thread.
    pub all_rows: Seconds,
}

/// Reading, decoding and mel frames of one recording, on one thread.
#[derive(Clone, Debug, Serialize)]
pub struct AudioCost {
    pub read: Figures,
    /// Decoding and resampling it, best of three.
    pub decode: Figures,
    pub mel: Figures,
    /// Coefficient of variation of read + decode time per second of sound, without the lowest and the
    /// highest 5 %.
    pub variation: f64,
    /// Seconds of sound per second of work.
    pub times_real_time: f64,
}

/// Start time with and without a cache.
#[derive(Clone, Debug, Serialize)]
pub struct CacheCost {
    /// Preparing every row on all workers: keys, stamps and writing included.
    pub cold: Seconds,
    /// The part of `cold` that is text, reading and decoding, from the sampled rows.
    pub rows: Seconds,
    /// Opening the cache.
    pub warm: Seconds,
    /// `cold / warm`.
    pub gain: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The measurement and its limit.
    pub fact: String,
    pub advice: String,
}

/// The two ways to start, measured as a user waits for them.
#[derive(Clone, Copy, Debug)]
pub struct StartTimes {
    /// Without a cache.
    pub cold: Seconds,
    /// With the cache of an earlier start.
    pub warm: Seconds,
}

/// Measures a prepared corpus.
pub fn analyze(
    prepared: &Arc<Prepared>,
    corpus: &Corpus,
    start: StartTimes,
    feed_settings: &FeedSettings,
    options: &AnalyzeOptions,
    recorder: &Recorder,
    cancel: &CancelToken,
) -> Result<Analysis, TrainError> {
    let sample = spread_out(&corpus.utterances, options.sample);
    let text = time_text(prepared, &sample, corpus.utterances.len())?;
    let audio = time_audio(&prepared.settings, corpus, &sample)?;
    let each = text.per_row.0 + audio.read.mean + audio.decode.mean;
    let rows = Seconds(each * corpus.utterances.len() as f64 / feed_settings.workers.max(1) as f64);
    let StartTimes { cold, warm } = start;
    let cache = CacheCost { cold, rows, warm, gain: cold.0 / warm.0.max(1e-9) };
    let batches = benchmark_feed(prepared, feed_settings, &options.consumer, recorder, cancel)?;
    let rows = prepared.summary.usable;
    let mut analysis = Analysis {
        rows,
        sampled: sample.len(),
        text,
        audio,
        cache,
        batches,
        findings: Vec::new(),
        verdict: String::new(),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    analysis.findings =
        findings(&analysis, prepared.summary.features, feed_settings.workers, cores);
    analysis.verdict = analysis.words(Lang::En);
    Ok(analysis)
}

fn spread_out(rows: &[Utterance], count: usize) -> Vec<&Utterance> {
    let step = rows.len().div_ceil(count.max(1)).max(1);
    rows.iter().step_by(step).collect()
}

fn time_text(
    prepared: &Prepared,
    sample: &[&Utterance],
    rows: usize,
) -> Result<TextCost, TrainError> {
    let language = |row: &Utterance| row.language.as_deref().and_then(|name| name.parse().ok());
    let texts: Vec<_> = sample.iter().map(|row| (row.text.as_str(), language(row))).collect();
    let start = Instant::now();
    prepared.front_end.read_many(&texts)?;
    let per_row = start.elapsed().as_secs_f64() / sample.len().max(1) as f64;
    Ok(TextCost { per_row: Seconds(per_row), all_rows: Seconds(per_row * rows as f64) })
}

fn time_audio(
    settings: &DataSettings,
    corpus: &Corpus,
    sample: &[&Utterance],
) -> Result<AudioCost, TrainError> {
    let mut file = FileReader::default();
    let mut decoder = Decoder::new(settings.mel.rate, settings.audio);
    let mut mel = MelExtractor::new(settings.mel.clone())?;
    let [mut read, mut decode, mut frames] = [(); 3].map(|()| Stats::default());
    let mut per_second = Vec::with_capacity(sample.len());
    let mut out = Vec::new();
    let (mut sound, mut work) = (0.0, 0.0);
    for row in sample {
        // A broken recording is in the list of rejected rows and is not loaded in training.
        let Some([reading, decoding, kernel, length]) = time_one(
            settings,
            &mut file,
            &mut decoder,
            &mut mel,
            &mut out,
            &corpus.audio_path(row),
        ) else {
            continue;
        };
        read.add(reading);
        decode.add(decoding);
        frames.add(kernel);
        per_second.push((reading + decoding) / length);
        sound += length;
        work += reading + decoding + kernel;
    }
    Ok(AudioCost {
        variation: figures(&without_extremes(per_second))?.variation,
        read: figures(&read)?,
        decode: figures(&decode)?,
        mel: figures(&frames)?,
        times_real_time: sound / work.max(1e-12),
    })
}

/// Drops the lowest and the highest 5 %: on a shared machine, a pause during one recording is not a
/// property of the corpus.
fn without_extremes(mut values: Vec<f64>) -> Stats {
    values.sort_by(f64::total_cmp);
    let cut = values.len() / 20;
    let mut stats = Stats::default();
    values[cut..values.len() - cut].iter().for_each(|value| stats.add(*value));
    stats
}

/// Read, decode, mel and length of one recording, in seconds; none where it cannot be used.
fn time_one(
    settings: &DataSettings,
    file: &mut FileReader,
    decoder: &mut Decoder,
    mel: &mut MelExtractor,
    out: &mut Vec<f32>,
    path: &std::path::Path,
) -> Option<[f64; 4]> {
    let start = Instant::now();
    let bytes = file.read(path, &settings.audio).ok()?;
    let read = start.elapsed();
    let extension = path.extension().and_then(|extension| extension.to_str());
    // Best of three: a pause of a shared machine is not a property of the recording.
    let mut decoding = Duration::MAX;
    for _ in 0..2 {
        let start = Instant::now();
        decoder.decode(bytes, extension).ok()?;
        decoding = decoding.min(start.elapsed());
    }
    let start = Instant::now();
    let sound = decoder.decode(bytes, extension).ok()?;
    let decoding = decoding.min(start.elapsed());
    let length = settings.mel.rate.seconds(sound.len());
    let values = mel.frames(sound.len()).0 * settings.mel.bands;
    if out.len() < values {
        out.resize(values, 0.0);
    }
    let decoded = start.elapsed();
    mel.extract_into(sound, &mut out[..values]).ok()?;
    let done = start.elapsed();
    let extracting = done - decoded;
    Some([read.as_secs_f64(), decoding.as_secs_f64(), extracting.as_secs_f64(), length.0])
}

fn figures(stats: &Stats) -> Result<Figures, TrainError> {
    stats.figures().ok_or(TrainError::NothingMeasured)
}

fn findings(analysis: &Analysis, cached: bool, workers: usize, cores: usize) -> Vec<Finding> {
    let Analysis { audio, batches, text, .. } = analysis;
    let mut findings = Vec::new();
    let mut found = |fact: String, advice: String| findings.push(Finding { fact, advice });
    if batches.late > 0 {
        let needed = (1.0 / batches.deliverable / batches.step.0 * workers as f64).ceil();
        // Never more workers than cores: they would only take turns.
        let wanted = (needed as usize).max(workers + 1).min(cores);
        let more = (wanted > workers).then(|| format!("raise `--num-workers` to {wanted}"));
        let cache = (!cached).then(|| "add `--cache-dataset`".to_string());
        let advice = match (more, cache) {
            (Some(more), Some(cache)) => format!("{more}, or {cache}"),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => format!(
                "all {cores} CPU cores load data from the cache already: a faster disk or CPU, or longer steps, \
                 would help"
            ),
        };
        found(
            format!(
                "{} of {} batches came more than {} ms late; the consumer was idle {:.0} % of the time",
                batches.late,
                batches.count,
                LATE.as_millis(),
                100.0 * batches.idle
            ),
            advice,
        );
    }
    if audio.variation > UNEVEN_LOADING && !cached {
        found(
            format!(
                "loading is uneven: its cost per second of sound varies by {:.0} % (limit {:.0} %)",
                100.0 * audio.variation,
                100.0 * UNEVEN_LOADING
            ),
            "store all recordings in one format on a local disk, or add `--cache-dataset`".into(),
        );
    }
    if batches.late > 0 && audio.decode.mean > audio.mel.mean + audio.read.mean && !cached {
        let share = audio.decode.mean / (audio.decode.mean + audio.mel.mean + audio.read.mean);
        found(
            format!("decoding is {:.0} % of the work on a recording", 100.0 * share),
            "add `--cache-dataset`: later epochs then only copy".into(),
        );
    }
    if text.per_row.0 > audio.read.mean + audio.decode.mean + audio.mel.mean {
        found(
            format!("text work ({}) costs more than the recording", text.per_row),
            "it is done once and cached; a second start does not repeat it".into(),
        );
    }
    findings
}

impl Analysis {
    /// The result in one sentence of this language.
    pub fn words(&self, lang: Lang) -> String {
        let batches = &self.batches;
        let (fastest, step) = (1.0 / batches.deliverable, batches.step.0);
        let (fastest, step_words) = (lang.seconds(fastest), lang.seconds(step));
        let slack = lang.number(step * batches.deliverable, 1);
        let idle = format!("{}{}", lang.number(100.0 * batches.idle, 0), lang.say(" %", "٪"));
        match (lang, batches.late) {
            (Lang::En, 0) => format!(
                "The data side keeps up: it makes a batch every {fastest}, {slack} times as fast as steps of \
                 {step_words} need it."
            ),
            (Lang::En, _) => format!(
                "The data side holds a run of {step_words} steps back: it makes a batch every {fastest}, and the \
                 consumer waits {idle} of the time."
            ),
            (Lang::Fa, 0) => format!(
                "بارگذاری داده‌ها به‌موقع است: هر {fastest} یک دسته آماده می‌شود، {slack} برابر سریع‌تر از نیاز گام‌های {step_words}."
            ),
            (Lang::Fa, _) => format!(
                "بارگذاری داده‌ها اجرایی با گام‌های {step_words} را کند می‌کند: هر {fastest} یک دسته آماده می‌شود و مصرف‌کننده {idle} از زمان بیکار می‌ماند."
            ),
        }
    }
}
