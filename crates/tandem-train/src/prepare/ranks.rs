//! Rows that other ranks process: `mpirun -np N tandem prepare`.
//!
//! In, on rank 0: chunks of rows. Out: the same outcomes that this process would have computed. Rank 0 reads the
//! manifests, gives rows to the others as they have time, and is the only one that writes: the cache has the
//! same bytes as that of one process. The other ranks run [`serve`]. All ranks see the same files: corpus and
//! cache are on one machine or on a shared file system. What rank 0 has written is recovered by the next
//! preparation, whichever rank dies.

use crate::TrainError;
use crate::prepare::row::{
    Content, Fault, Outcome, PrepareContext, ProcessRows, ProcessedRows, RowChunk, RowData,
    RowOrigin, RowText,
};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tandem_cluster::{Cluster, ClusterError};
use tandem_data::cache::{EntryLocation, LeftText, Leftovers, Record};
use tandem_data::corpus::Utterance;
use tandem_disk::Fingerprint;
use tandem_pipeline::{CancelToken, Emitter, PipelineError, Stage, StageError};

/// A worker of the preparation: a thread of this process, or another rank.
pub enum RowWorker {
    Here(Box<ProcessRows>),
    There(RemoteRows),
}

/// Hands out the workers: first one for each other rank, then threads of this process.
#[derive(Clone)]
pub struct RowWorkers {
    context: Arc<PrepareContext>,
    cluster: Option<Cluster>,
    ranks: Arc<Mutex<Vec<usize>>>,
}

impl RowWorkers {
    pub fn new(context: Arc<PrepareContext>, cluster: Option<Cluster>) -> RowWorkers {
        let ranks = cluster.as_ref().map_or(1, Cluster::ranks);
        RowWorkers { context, cluster, ranks: Arc::new(Mutex::new((1..ranks).rev().collect())) }
    }

    /// Other ranks that are not handed out yet.
    pub fn elsewhere(&self) -> usize {
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn next(&self) -> RowWorker {
        let rank = self.ranks.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match (&self.cluster, rank) {
            (Some(cluster), Some(rank)) => RowWorker::There(RemoteRows {
                cluster: cluster.clone(),
                rank,
                context: self.context.clone(),
            }),
            _ => RowWorker::Here(Box::new(ProcessRows::new(&self.context))),
        }
    }
}

impl Stage for RowWorker {
    type In = RowChunk;
    type Out = ProcessedRows;

    fn name(&self) -> &'static str {
        "process"
    }

    fn step(
        &mut self,
        rows: RowChunk,
        out: &mut dyn Emitter<ProcessedRows>,
    ) -> Result<(), StageError> {
        match self {
            RowWorker::Here(here) => here.step(rows, out),
            RowWorker::There(there) => {
                out.item(&format_args!("rows at rank {}", there.rank));
                out.push(there.process(rows.0)?)
            }
        }
    }
}

/// The rows of one other rank.
pub struct RemoteRows {
    cluster: Cluster,
    rank: usize,
    context: Arc<PrepareContext>,
}

impl RemoteRows {
    fn process(&self, rows: Vec<Utterance>) -> Result<ProcessedRows, StageError> {
        let request = serde_json::to_vec(&rows).map_err(TrainError::Settings);
        let request = request.map_err(StageError::stop)?;
        self.cluster.send(self.rank, request).map_err(StageError::stop)?;
        let bytes = self.cluster.receive(self.rank).map_err(StageError::stop)?;
        let reply = Reply::decode(&bytes).map_err(StageError::stop)?;
        self.context.damaged.fetch_add(reply.damaged, Ordering::Relaxed);
        if reply.outcomes.len() != rows.len() {
            return Err(StageError::stop(garbled("another number of rows")));
        }
        Ok(ProcessedRows(rows.into_iter().zip(reply.outcomes).collect()))
    }
}

/// Tells the other ranks that there are no more rows.
pub fn end_service(cluster: &Cluster) -> Result<(), ClusterError> {
    (1..cluster.ranks()).try_for_each(|rank| cluster.send(rank, Vec::new()))
}

/// Processes what rank 0 sends, on so many threads, until it says that there is no more.
pub fn serve(
    cluster: &Cluster,
    context: &Arc<PrepareContext>,
    workers: usize,
    cancel: &CancelToken,
) -> Result<(), TrainError> {
    let mut workers: Vec<_> = (0..workers.max(1)).map(|_| ProcessRows::new(context)).collect();
    loop {
        let request = cluster.receive(0)?;
        if request.is_empty() {
            return Ok(());
        }
        if cancel.is_cancelled() {
            return Err(PipelineError::Cancelled.into());
        }
        let rows: Vec<Utterance> =
            serde_json::from_slice(&request).map_err(TrainError::Settings)?;
        let outcomes = process_on(&mut workers, rows)?;
        let damaged = context.damaged.swap(0, Ordering::Relaxed);
        cluster.send(0, Reply { outcomes, damaged }.encode()?)?;
    }
}

/// The rows in order, divided among the workers.
fn process_on(
    workers: &mut [ProcessRows],
    rows: Vec<Utterance>,
) -> Result<Vec<Outcome>, TrainError> {
    let share = rows.len().div_ceil(workers.len()).max(1);
    std::thread::scope(|scope| {
        let started: Vec<_> = workers
            .iter_mut()
            .zip(rows.chunks(share))
            .map(|(worker, rows)| {
                let rows = rows.to_vec();
                std::thread::Builder::new()
                    .name("tandem-process".into())
                    .spawn_scoped(scope, move || worker.process(rows))
            })
            .collect();
        let mut outcomes = Vec::new();
        for thread in started {
            let processed = thread.map_err(TrainError::Thread)?.join();
            let processed = processed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match processed {
                Ok(ProcessedRows(rows)) => {
                    outcomes.extend(rows.into_iter().map(|(_, outcome)| outcome));
                }
                Err(StageError::Stop(cause)) => return Err(remote_failure(&*cause)),
                Err(StageError::Skip(cause)) => return Err(remote_failure(&*cause)),
            }
        }
        Ok(outcomes)
    })
}

fn remote_failure(cause: &dyn std::error::Error) -> TrainError {
    let below = cause.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    TrainError::RemoteRows { why: format!("{cause}{below}") }
}

/// What an interrupted build left, for the other ranks.
pub fn encode_leftovers(left: &Leftovers) -> Result<Vec<u8>, TrainError> {
    let text = left.text.iter().map(|(key, text)| {
        let LeftText { place, frames, symbols, language } = text;
        (key.0, place.segment, place.offset, *frames, *symbols, language.clone())
    });
    let mel = left.mel.iter().map(|(key, place)| (key.0, place.segment, place.offset));
    let all: (Vec<_>, Vec<_>) = (text.collect(), mel.collect());
    serde_json::to_vec(&all).map_err(TrainError::Settings)
}

type LeftTextParts = ([u8; 16], u32, u64, u32, u32, String);
type LeftMelParts = ([u8; 16], u32, u64);

pub fn decode_leftovers(bytes: &[u8]) -> Result<Leftovers, TrainError> {
    let (text, mel): (Vec<LeftTextParts>, Vec<LeftMelParts>) =
        serde_json::from_slice(bytes).map_err(TrainError::Settings)?;
    let text = text.into_iter().map(|(key, segment, offset, frames, symbols, language)| {
        let place = EntryLocation { segment, offset };
        (Fingerprint(key), LeftText { place, frames, symbols, language })
    });
    let place = |(key, segment, offset)| (Fingerprint(key), EntryLocation { segment, offset });
    Ok(Leftovers { text: text.collect(), mel: mel.into_iter().map(place).collect() })
}

struct Reply {
    outcomes: Vec<Outcome>,
    damaged: usize,
}

/// An outcome without its mel frames, which follow as raw floats.
#[derive(Serialize, Deserialize)]
struct Head {
    record: Vec<u8>,
    origin: RowOrigin,
    content: HeadContent,
    /// Number of floats.
    mel: Option<usize>,
}

#[derive(Serialize, Deserialize)]
enum HeadContent {
    Cached,
    Recovered(String),
    New(RowText),
    Unusable(Fault),
}

impl Reply {
    /// The length of the heads, the heads as JSON, then all mel frames.
    fn encode(self) -> Result<Vec<u8>, TrainError> {
        let (mut heads, mut frames) = (Vec::new(), Vec::new());
        for Outcome { record, origin, content } in self.outcomes {
            let mut mel = None;
            let content = match content {
                Content::Cached => HeadContent::Cached,
                Content::Recovered(language) => HeadContent::Recovered(language),
                Content::Unusable(fault) => HeadContent::Unusable(fault),
                Content::New(data) => {
                    let RowData { text, mel: floats } = *data;
                    mel = floats.as_ref().map(Vec::len);
                    frames.extend(floats.into_iter().flatten());
                    HeadContent::New(text)
                }
            };
            heads.push(Head { record: record.as_bytes().to_vec(), origin, content, mel });
        }
        let heads = serde_json::to_vec(&(self.damaged, heads)).map_err(TrainError::Settings)?;
        let mut bytes = (heads.len() as u64).to_le_bytes().to_vec();
        bytes.extend(heads);
        bytes.extend(frames.iter().flat_map(|float: &f32| float.to_le_bytes()));
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Reply, TrainError> {
        let (length, rest) = bytes.split_at_checked(8).ok_or_else(|| garbled("no length"))?;
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
        let (heads, floats) = rest.split_at_checked(length).ok_or_else(|| garbled("too short"))?;
        let (damaged, heads): (usize, Vec<Head>) =
            serde_json::from_slice(heads).map_err(TrainError::Settings)?;
        let mut floats = floats
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        let mut outcomes = Vec::with_capacity(heads.len());
        for Head { record, origin, content, mel } in heads {
            let record = Record::from_bytes(&record).ok_or_else(|| garbled("a bad record"))?;
            let content = match content {
                HeadContent::Cached => Content::Cached,
                HeadContent::Recovered(language) => Content::Recovered(language),
                HeadContent::Unusable(fault) => Content::Unusable(fault),
                HeadContent::New(text) => {
                    let mel = mel.map(|count| floats.by_ref().take(count).collect());
                    Content::New(Box::new(RowData { text, mel }))
                }
            };
            outcomes.push(Outcome { record, origin, content });
        }
        Ok(Reply { outcomes, damaged })
    }
}

fn garbled(what: &str) -> TrainError {
    TrainError::RemoteRows { why: format!("its answer has {what}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_data::corpus::RejectReason;

    #[test]
    fn outcomes_arrive_as_they_were_sent() {
        let record = Record { frames: 7, line: 3, ..Record::default() };
        let text = RowText {
            language: "fa".into(),
            symbols: vec![1, 500],
            normalized: "سلام".into(),
            phonemes: String::new(),
            words: Default::default(),
        };
        let fault = Fault {
            reason: RejectReason::BrokenAudio,
            message: "broken".into(),
            fix: "repair it".into(),
            symbols: None,
        };
        let new = |mel| Content::New(Box::new(RowData { text: text.clone(), mel }));
        let contents =
            [new(Some(vec![0.5, -0.0])), Content::Cached, new(None), Content::Unusable(fault)];
        let outcome = |content| Outcome { record, origin: RowOrigin::Processed, content };
        let sent = Reply { outcomes: contents.map(outcome).into(), damaged: 2 };
        let found = Reply::decode(&sent.encode().unwrap()).unwrap();
        assert_eq!((found.damaged, found.outcomes.len()), (2, 4));
        assert!(found.outcomes.iter().all(|outcome| outcome.record == record));
        let Content::New(data) = &found.outcomes[0].content else { panic!("not new") };
        assert_eq!((&data.text, &data.mel), (&text, &Some(vec![0.5, -0.0])));
        assert!(matches!(&found.outcomes[2].content, Content::New(data) if data.mel.is_none()));
        assert!(
            matches!(&found.outcomes[3].content, Content::Unusable(f) if f.message == "broken")
        );
        assert!(Reply::decode(&[1, 2, 3]).is_err());
    }
}
