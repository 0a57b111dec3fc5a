//! `tandem import`: makes a clean corpus in LJSpeech layout of a corpus in any known layout.
//!
//! In: SOURCE, which is only read: a corpus, or long recordings with their texts. Out: OUT with `wavs/ID.flac`, a manifest, `ORIGIN.toml`, and `rejected.tsv` where rows
//! could not be used. The manifest is written last: without it the import is unfinished, and the same command continues
//! it. No file that exists is written again.

mod long; // long recordings, cut into sentences
mod manifest; // metadata.csv of OUT
mod origin; // ORIGIN.toml, licence files
mod source; // rows of a corpus, or of long recordings

use crate::advised::Advised;
use crate::corpus_args::at_least_one;
use crate::data_report::{MANY, table_of};
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::printer::Printer;
use crate::setting_flags::{OfImport, SettingFlags};
use long::{CutShare, LongArgs, LongSettings};
use manifest::ManifestWriter;
use origin::Origin;
use serde::Serialize;
use source::{Located, Source};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_data::corpus::{CorpusConfig, CorpusRow, RejectReason, RejectedRow, Utterance};
use tandem_data::import::{Importer, imported_id};
use tandem_disk::directory_lock::{Attempt, DirectoryLock};
use tandem_disk::replace_file::replace_file;
use tandem_pipeline::{CancelToken, PipelineError};
use tandem_settings::Start;
use tandem_train::file_config::FileConfig;
use tandem_train::prepare::check_workers;
use tandem_train::prepare::summary::rejected_as_tsv;
use tandem_units::{Hint, SampleRate, Seconds};

/// Rows for each worker between two looks at the progress.
const ROWS_PER_WORKER: usize = 16;

const EXAMPLES: &str = "\
Examples:
  tandem import corpora/VCTK corpora/vctk-clean
  tandem import cv-corpus/fa corpora/fa --rate 22050 --loudness -23 --trim-silence -40
  tandem import nemo/train.jsonl corpora/nemo --recordings-dir /data/recordings
  tandem import corpora/home corpora/home-clean --licence CC-BY-4.0 --origin \"recorded at home\"
  tandem import book.mp3 corpora/book        its text beside it: book.srt, .vtt, .json, .tsv or .txt
  tandem import --cut chapters corpora/book  every recording below it, each with its text
  tandem import --cut talks corpora/talks --judge 'python3 judge.py'

SOURCE is only read. Ctrl-C loses nothing: the same command continues where it stopped. No file is \
overwritten. Rows that are parts of long recordings are cut.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Corpus directory in any known layout, or a manifest in one
    source: PathBuf,
    /// Directory of the new corpus; empty, or of an import that was interrupted
    #[arg(value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    settings: SettingFlags<OfImport>,
    /// Sample rate of the new corpus in Hz, from 8000 to 96000 [default: 22050]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(8000..=96_000))]
    rate: Option<u32>,
    /// Licence of the recordings and texts, kept in ORIGIN.toml
    #[arg(long, value_name = "TEXT", visible_alias = "license")]
    licence: Option<String>,
    /// Where the corpus is from, kept in ORIGIN.toml
    #[arg(long, value_name = "TEXT")]
    origin: Option<String>,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", env = "TANDEM_NUM_WORKERS", value_parser = at_least_one)]
    num_workers: Option<usize>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Long recordings")]
    long: LongArgs,
}

struct ImportSettings {
    source: PathBuf,
    output: PathBuf,
    corpus: CorpusConfig,
    /// None: SOURCE is a corpus.
    long: Option<LongSettings>,
    audio: AudioConfig,
    rate: SampleRate,
    workers: usize,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let settings = ImportSettings::resolve(&args)?;
    let cancel = cancel_on_signals()?;
    let summary = import(&settings, &args, &cancel, out).with_context(|| {
        let (source, output) = (settings.source.display(), settings.output.display());
        format!("cannot import `{source}` into `{output}`")
    })?;
    if args.json {
        out.json(&summary)?;
    } else {
        summary.print(out)?;
    }
    Ok(ExitStatus::Done)
}

impl ImportSettings {
    fn resolve(args: &Args) -> Result<ImportSettings> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = args.num_workers.unwrap_or(cores);
        check_workers(workers)?;
        let typed = &args.settings.typed;
        let settings = FileConfig::default().with_typed(typed, Start::NewWeights)?;
        Ok(ImportSettings {
            source: args.source.clone(),
            output: args.output.clone(),
            corpus: settings.corpus,
            long: args.long.resolve(&args.source)?,
            audio: settings.audio,
            rate: args.rate.map_or(MelConfig::SPEECH_22K.rate, SampleRate),
            workers,
        })
    }
}

/// What an import did.
#[derive(Debug, Default, Serialize)]
struct ImportSummary {
    source: PathBuf,
    output: PathBuf,
    recognised: String,
    /// Rows of the source.
    rows: usize,
    /// Rows of the new manifest.
    imported: usize,
    /// Of these, recordings that an earlier, interrupted import wrote.
    there: usize,
    rejected: usize,
    /// What of long recordings is in the corpus.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<CutShare>,
    /// Length of the recordings that were written now.
    written: Seconds,
    /// The import was finished before.
    finished_before: bool,
    #[serde(skip)]
    rejected_rows: Vec<RejectedRow>,
}

impl ImportSummary {
    fn print(&self, out: &mut Printer) -> Result<()> {
        let output = self.output.display();
        if self.finished_before {
            return out.line(&format!(
                "{output} is complete: nothing was done. To import again, name another directory"
            ));
        }
        if !self.rejected_rows.is_empty() {
            out.line(&table_of(&self.rejected_rows, MANY))?;
            out.line(&format!("all rejected rows are listed in {output}/{REJECTED}\n"))?;
        }
        out.line(&format!("source     {} ({})", self.source.display(), self.recognised))?;
        let there = match self.there {
            0 => String::new(),
            there => format!(", {there} of them by an earlier import"),
        };
        let rows =
            format!("{}: {} imported{there}, {} rejected", self.rows, self.imported, self.rejected);
        out.line(&format!("rows       {rows}"))?;
        if let Some(cut) = &self.cut {
            out.line(&format!("cut        {cut}"))?;
        }
        out.line(&format!("written    {} of sound", self.written))?;
        out.line(&format!("next       tandem prepare {output}"))
    }
}

const REJECTED: &str = "rejected.tsv";

fn import(
    settings: &ImportSettings,
    args: &Args,
    cancel: &CancelToken,
    out: &mut Printer,
) -> Result<ImportSummary> {
    let located = Located::find(settings)?;
    out.note(&format!("layout: {}", located.description));
    // A single recording is not a directory that OUT could be in.
    if settings.long.is_none() || settings.source.is_dir() {
        check_apart(&located.root, &settings.output)?;
    }
    let output = &settings.output;
    let origin = Origin::of(settings, &located, args.licence.clone(), args.origin.clone());
    origin.begin(output)?;
    let _lock = lock(output)?;
    let mut summary = ImportSummary {
        source: settings.source.clone(),
        output: output.clone(),
        recognised: located.description.clone(),
        ..ImportSummary::default()
    };
    if manifest::exists(output) {
        summary.finished_before = true;
        return Ok(summary);
    }
    origin::copy_licences(&located.root, output)?;
    let source = Source::open(settings, cancel, out)?;
    summary.cut = source.cut.clone();
    let mut manifests = ManifestWriter::create(output, source.columns, source.held_out)?;
    let done = write_rows(settings, source, &mut manifests, &mut summary, cancel, out);
    if let Err(error) = done {
        manifests.discard();
        return Err(error);
    }
    let rejected = &mut summary.rejected_rows;
    rejected.sort_by(|a, b| (&a.manifest, a.line).cmp(&(&b.manifest, b.line)));
    summary.rejected = rejected.len();
    if summary.imported == 0 {
        manifests.discard();
        out.note(&table_of(rejected, MANY));
        return Err(Advised::new("no row can be used", "correct the rows above").into());
    }
    if !rejected.is_empty() {
        let list = output.join(REJECTED);
        replace_file(&list, rejected_as_tsv(rejected).as_bytes())
            .with_context(|| format!("cannot write `{}`", list.display()))?;
    }
    manifests.finish()?;
    Ok(summary)
}

/// The new corpus must not become a part of the old one.
fn check_apart(root: &Path, output: &Path) -> Result<()> {
    let output = std::path::absolute(output).unwrap_or_else(|_| output.to_path_buf());
    let there = output.ancestors().find_map(|above| above.canonicalize().ok());
    let inside = there.is_some_and(|there| there.starts_with(root));
    match inside {
        true => Err(Advised::new(
            "OUT is inside SOURCE",
            "name a directory outside the corpus that is read: SOURCE is never changed",
        )
        .into()),
        false => Ok(()),
    }
}

fn lock(output: &Path) -> Result<DirectoryLock> {
    let attempt = DirectoryLock::try_take(output)
        .with_context(|| format!("cannot write into `{}`", output.display()))?;
    match attempt {
        Attempt::Held(lock) => Ok(lock),
        Attempt::Busy(owner) => {
            let fact = format!("another `tandem` writes into this directory ({owner})");
            Err(Advised::new(fact, "wait for it, or name another directory").into())
        }
    }
}

fn write_rows(
    settings: &ImportSettings,
    source: Source,
    manifests: &mut ManifestWriter,
    summary: &mut ImportSummary,
    cancel: &CancelToken,
    out: &Printer,
) -> Result<()> {
    let Source { root, manifests: sources, most, mut rows, .. } = source;
    let mut progress = out.progress("importing", most as u64);
    let importer = |_| Importer::new(&root, settings.rate, settings.audio);
    let mut workers: Vec<Importer> = (0..settings.workers).map(importer).collect();
    loop {
        let mut chunk = Vec::new();
        while chunk.len() < ROWS_PER_WORKER * workers.len()
            && let Some(row) = rows.next()
        {
            summary.rows += 1;
            match row? {
                CorpusRow::Usable(row) => chunk.push(row),
                CorpusRow::Rejected(row) => summary.rejected_rows.push(row),
            }
        }
        if chunk.is_empty() {
            progress.done();
            return Ok(());
        }
        let outcomes = import_chunk(&mut workers, &chunk, &settings.output, cancel)?;
        for (row, outcome) in chunk.iter().zip(outcomes) {
            match outcome {
                Outcome::There => summary.there += 1,
                Outcome::Written(length) => summary.written = Seconds(summary.written.0 + length.0),
                Outcome::Unusable(reason, message, fix) => {
                    let manifest = sources[usize::from(row.manifest)].display().to_string();
                    let (line, id) = (row.line, row.id.clone());
                    let rejected = RejectedRow { manifest, line, id, reason, message, fix };
                    summary.rejected_rows.push(rejected);
                    continue;
                }
            }
            summary.imported += 1;
            manifests.add(row)?;
        }
        progress.at(summary.rows as u64);
    }
}

/// What became of a row.
enum Outcome {
    /// An interrupted import wrote it.
    There,
    Written(Seconds),
    Unusable(RejectReason, String, String),
}

/// The rows on all workers, in order.
fn import_chunk(
    workers: &mut [Importer],
    rows: &[Utterance],
    output: &Path,
    cancel: &CancelToken,
) -> Result<Vec<Outcome>> {
    let next = &AtomicUsize::new(0);
    let work = |worker: &mut Importer| -> Result<Vec<(usize, Outcome)>> {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(row) = rows.get(at) else { return Ok(done) };
            if cancel.is_cancelled() {
                return Err(PipelineError::Cancelled.into());
            }
            done.push((at, import_row(worker, row, output)?));
        }
    };
    let work = &work;
    let mut done = std::thread::scope(|scope| {
        let started: Vec<_> = workers
            .iter_mut()
            .map(|worker| {
                let thread = std::thread::Builder::new().name("tandem-import".into());
                thread.spawn_scoped(scope, move || work(worker))
            })
            .collect();
        let mut all = Vec::new();
        for thread in started {
            let thread = thread.context("cannot start a worker thread")?;
            let rows = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all.extend(rows);
        }
        Ok::<_, crate::failure::Failure>(all)
    })?;
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Writes the recording of one row, unless it is there. Only a write that fails ends the import.
fn import_row(worker: &mut Importer, row: &Utterance, output: &Path) -> Result<Outcome> {
    let path = output.join("wavs").join(format!("{}.flac", imported_id(&row.id)));
    if path.exists() {
        return Ok(Outcome::There);
    }
    match worker.flac(row) {
        Ok((bytes, length)) => {
            let failed = || format!("cannot write `{}`", path.display());
            tandem_disk::create_dir_all(path.parent().unwrap_or(output)).with_context(failed)?;
            replace_file(&path, &bytes).with_context(failed)?;
            Ok(Outcome::Written(length))
        }
        Err(error) => {
            let fix = error.hint().unwrap_or_else(|| "export the recording again".into());
            Ok(Outcome::Unusable(RejectReason::BrokenAudio, error.to_string(), fix))
        }
    }
}
