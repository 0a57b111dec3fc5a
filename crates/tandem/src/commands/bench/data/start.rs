//! Time from the start to the first batch with a warm cache, and memory during preparing.

use super::batches::prepared;
use super::clips::{Clip, write_corpus};
use crate::commands::bench::target::{Limit, Target, median};
use crate::failure::{Advised, Context, Failure, Result, ensure};
use crate::printer::Printer;
use serde::Deserialize;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_data::batch::BatchConfig;
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;
use tandem_train::prepare::row::Features;
use tandem_train::{FeedSettings, feed};

/// The number of rows of LJSpeech.
const ROWS: usize = 13_100;

/// Warm start of 13,100 rows; peak memory for a tenth and for all of them.
pub fn measure(clips: &[Clip], dir: &Path) -> Result<Vec<Target>> {
    let (small, large) = (dir.join("small"), dir.join("large"));
    write_corpus(clips, ROWS / 10, &small)?;
    write_corpus(clips, ROWS, &large)?;
    // Each in its own process, since the peak memory of a process never falls.
    let (little, much) = (prepare_apart(&small)?, prepare_apart(&large)?);
    let warm = (0..5).map(|_| warm_start(&large)).collect::<Result<Vec<_>>>()?;
    let per_row = (much.peak_memory - little.peak_memory) / (ROWS - ROWS / 10) as f64;
    let peaks = format!(
        "{:.0} MiB for {} rows, {:.0} MiB for {ROWS}, prepared in {:.1} s",
        little.peak_memory / MIB,
        ROWS / 10,
        much.peak_memory / MIB,
        much.took
    );
    Ok(vec![
        Target::new(
            "warm start, 13,100 rows, to the first batch",
            median(warm),
            "s",
            Limit::AtMost(0.1),
            "median of 5, files in the system's cache".into(),
        ),
        Target::note("memory while preparing, per row", per_row, "B", peaks),
    ])
}

/// A million rows, and the memory for fewer: each prepared and opened by a process of its own.
pub fn measure_million(dir: &Path, out: &mut Printer) -> Result<Vec<Target>> {
    const MILLION: usize = 1_000_000;
    let root = dir.join("million");
    // A quarter of a second each: only the number of rows matters here.
    let speech = super::clips::cut()?;
    let clips: Vec<Clip> = speech.iter().map(|clip| clip[20_000..25_512].to_vec()).collect();
    let mut fewer = String::new();
    for rows in [10_000, 100_000] {
        let root = dir.join(format!("rows-{rows}"));
        write_corpus(&clips, rows, &root)?;
        let [cold, warm] = [prepare_apart(&root)?, prepare_apart(&root)?];
        let [cold, warm] = [cold, warm].map(|run| run.peak_memory / MIB);
        fewer += &format!("; {rows} rows: {cold:.0} cold, {warm:.0} warm");
        // A directory of a hundred thousand links slows the file system for what follows.
        std::fs::remove_dir_all(&root)?;
    }
    write_corpus(&clips, MILLION, &root)?;
    let cold = prepare_apart(&root)?;
    out.note(&format!("prepared in {:.0} s", cold.took));
    // Files that were just written are not remembered as verified.
    std::thread::sleep(Duration::from_secs(4));
    let first = prepare_apart(&root)?;
    let mut warm = Vec::new();
    for _ in 0..5 {
        warm.push(prepare_apart(&root)?);
    }
    let peak = warm.iter().map(|run| run.peak_memory).fold(first.peak_memory, f64::max) / MIB;
    let how = format!(
        "median of 5; the stamp of every recording checked; {:.2} s for the start that verified the texts; \
         prepared cold in {:.0} s",
        first.took, cold.took
    );
    let took = median(warm.iter().map(|run| run.took).collect());
    Ok(vec![
        Target::new("warm start, 1,000,000 rows", took, "s", Limit::AtMost(0.8), how),
        Target::new(
            "memory of that, cold",
            cold.peak_memory / MIB,
            "MiB",
            Limit::AtMost(150.0),
            format!("peak of the process; warm {peak:.0}{fewer}"),
        ),
    ])
}

const MIB: f64 = 1_048_576.0;

/// Fields of `tandem prepare --json`.
#[derive(Deserialize)]
struct Run {
    took: f64,
    peak_memory: f64,
}

fn prepare_apart(root: &Path) -> Result<Run> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let output = Command::new(program).arg("prepare").arg(root).arg("--json").output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Advised::new(said, "run `tandem bench data --dir` on a larger disk").into());
    }
    serde_json::from_slice(&output.stdout).map_err(Failure::foreign)
}

fn warm_start(root: &Path) -> Result<f64> {
    let start = Instant::now();
    let prepared = Arc::new(prepared(root, Features::OnTheFly)?);
    let settings = FeedSettings::new(BatchConfig::default());
    let mut feed = feed(&prepared, &settings, &Recorder::off(), &CancelToken::new())?;
    ensure(feed.next()?.is_some(), "the corpus has no batch")?;
    let took = start.elapsed().as_secs_f64();
    ensure(prepared.summary.rebuilt == 0, "the start was not warm")?;
    Ok(took)
}
