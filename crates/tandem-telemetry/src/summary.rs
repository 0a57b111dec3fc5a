//! Summary of a run: the source of reports, metrics and the progress line.
//!
//! In: events, one by one, from a record or straight from the writer's thread. Out:
//! [`Summary`], of a size that does not grow with the length of the run. The same events always give
//! the same summary. Next: [`crate::report`].

mod sums; // of each kind of event

pub use sums::{
    CheckpointSums, DeviceSums, QueueSums, SkipSums, SkippedRow, StageSums, StepSums, WarmUpSums,
};

use crate::clock::Nanos;
use crate::error::TelemetryError;
use crate::event::{
    Data, Decision, DecisionOutcome, DeviceRole, Event, Final, Graphs, Health, Kernels, Name,
    RunHeader, StageInterval, Stamped, Started, Validation, Warning,
};
use crate::ranks::{RankSums, rank_directories, same_job};
use crate::reader::{ReadNotes, RunRecord, visit_file};
use crate::run_parts::{main_part, parts};
use std::collections::BTreeMap;
use std::path::Path;
use sums::push_limited;

/// Summary of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub header: Option<RunHeader>,
    /// What the run found in its corpus at the start.
    pub data: Option<Data>,
    /// Time of the last event.
    pub last_at: Nanos,
    /// Shapes compiled before step 1.
    pub warm_up: Option<WarmUpSums>,
    /// Kernels tuned and compiled before step 1, and those from the cache.
    pub kernels: Option<Kernels>,
    /// Steps as CUDA graphs.
    pub graphs: Option<Graphs>,
    /// The end of the controlled start.
    pub started: Option<Started>,
    pub steps: StepSums,
    /// Optimizer steps without a usable batch.
    pub empty_steps: u64,
    /// The ranks of a data-parallel run.
    pub ranks: Option<RankSums>,
    /// The records of its other ranks, by rank, where the directory of the run has them.
    pub other_ranks: BTreeMap<usize, Summary>,
    /// Stages in the order of their first event, which is that of the path.
    pub stages: Vec<StageSums>,
    pub queues: BTreeMap<Name, QueueSums>,
    /// Devices by role and name.
    pub devices: BTreeMap<(DeviceRole, Name), DeviceSums>,
    pub skips: SkipSums,
    /// Changes that the controller kept or reverted, oldest first, at most [`Summary::KEEP`].
    pub decisions: Vec<Decision>,
    /// Decisions by outcome: tried, kept, reverted.
    pub decision_counts: [u64; 3],
    pub checkpoints: CheckpointSums,
    pub validation: Option<Validation>,
    /// The first warnings, at most [`Summary::KEEP`].
    pub warnings: Vec<Warning>,
    pub warning_count: u64,
    /// Health of the record, as of its newest line.
    pub health: Health,
    /// How the run ended, if it did.
    pub ending: Option<Final>,
}

impl Summary {
    /// Most examples of a kind in a summary.
    pub const KEEP: usize = 64;

    /// Summarises a record without holding its events in memory. Of a run's directory: the part that [`main_part`]
    /// names, with the skipped rows of all parts, what the newest part found in the corpus, and the records of the
    /// other ranks.
    pub fn read(path: &Path) -> Result<(Summary, ReadNotes), TelemetryError> {
        let main = main_part(path)?;
        let others = match path.is_dir() {
            true => parts(path)
                .map_err(|source| TelemetryError::Read { path: path.to_path_buf(), source })?,
            false => Vec::new(),
        };
        let mut all: Vec<&Path> = others.iter().map(|part| part.path.as_path()).collect();
        if !all.contains(&main.as_path()) {
            all.push(&main);
        }
        let (mut summary, mut notes) = (Summary::default(), ReadNotes::default());
        let (mut skips, mut data) = (SkipSums::default(), None);
        for part in all {
            let is_main = part == main;
            let (_, read) = visit_file(part, |stamped| {
                match &stamped.event {
                    Event::Skipped(skipped) => skips.add(skipped),
                    Event::Data(found) => data = Some(found.clone()),
                    _ => {}
                }
                if is_main {
                    summary.add(&stamped);
                }
            })?;
            if is_main {
                notes = read;
            }
        }
        (summary.skips, summary.data) = (skips, data);
        if path.is_dir() {
            summary.read_ranks(path);
        }
        Ok((summary, notes))
    }

    /// Adds the records of the other ranks. One that is missing, or cannot be read, is missing in the report.
    pub fn read_ranks(&mut self, run: &Path) {
        for (rank, directory) in rank_directories(run, self.header.as_ref()) {
            if let Ok((found, _)) = Summary::read(&directory)
                && same_job(self.header.as_ref(), found.header.as_ref())
            {
                self.other_ranks.insert(rank, found);
            }
        }
    }

    /// Items left out by this rank and by all others.
    pub fn all_skips(&self) -> SkipSums {
        let mut all = self.skips.clone();
        self.other_ranks.values().for_each(|other| all.merge(&other.skips));
        all
    }

    /// Warnings of this rank, and of the others with their number.
    pub fn all_warnings(&self) -> Vec<Warning> {
        let named = |rank: usize, warning: &Warning| Warning {
            code: warning.code.clone(),
            text: format!("rank {rank}: {}", warning.text),
        };
        let others = self.other_ranks.iter();
        let others =
            others.flat_map(|(rank, other)| other.warnings.iter().map(|one| named(*rank, one)));
        let mut all = self.warnings.clone();
        all.extend(others);
        all.truncate(Self::KEEP);
        all
    }

    pub fn all_warning_count(&self) -> u64 {
        self.warning_count + self.other_ranks.values().map(|other| other.warning_count).sum::<u64>()
    }

    /// Adds one event.
    pub fn add(&mut self, stamped: &Stamped) {
        self.last_at = self.last_at.max(stamped.at);
        match &stamped.event {
            Event::Run(header) => self.header = Some((**header).clone()),
            Event::Data(data) => self.data = Some(data.clone()),
            Event::WarmUp(warm_up) => self.warm_up.get_or_insert_default().add(warm_up),
            Event::Kernels(kernels) => self.kernels = Some(kernels.clone()),
            Event::Graphs(graphs) => self.graphs = Some(graphs.clone()),
            Event::Started(started) => self.started = Some(started.clone()),
            Event::Stage(interval) => self.add_stage(interval),
            Event::Step(step) => self.steps.add(step),
            Event::EmptyStep(_) => self.empty_steps += 1,
            Event::Ranks(interval) => self.ranks.get_or_insert_default().add(interval),
            Event::Queue(level) => self.queues.entry(level.queue.clone()).or_default().add(level),
            Event::Decision(decision) => self.add_decision(decision),
            Event::Skipped(skipped) => self.skips.add(skipped),
            Event::Device(sample) => {
                let key = (sample.role, sample.device.clone());
                self.devices.entry(key).or_default().add(sample);
            }
            Event::Checkpoint(checkpoint) => {
                self.checkpoints.count += 1;
                self.checkpoints.took.add(checkpoint.took.seconds().0);
                self.checkpoints.last_step = Some(checkpoint.step);
            }
            Event::Validation(validation) => self.validation = Some(validation.clone()),
            Event::Warning(warning) => {
                self.warning_count += 1;
                push_limited(&mut self.warnings, warning);
            }
            Event::Health(health) => self.health = health.clone(),
            Event::Final(ending) => self.ending = Some(ending.clone()),
            Event::Span(_) | Event::Slot(_) => {}
        }
    }

    fn add_stage(&mut self, interval: &StageInterval) {
        let known = self.stages.iter().position(|sums| sums.stage == interval.stage);
        let place = known.unwrap_or_else(|| {
            self.stages.push(StageSums::new(interval.stage.clone()));
            self.stages.len() - 1
        });
        self.stages[place].add(interval);
    }

    fn add_decision(&mut self, decision: &Decision) {
        self.decision_counts[decision.outcome as usize] += 1;
        if decision.outcome != DecisionOutcome::Trying {
            push_limited(&mut self.decisions, decision);
        }
    }
}

impl From<&RunRecord> for Summary {
    fn from(record: &RunRecord) -> Summary {
        let mut summary = Summary::default();
        record.events.iter().for_each(|stamped| summary.add(stamped));
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CacheState, Skipped, Step};
    use std::fs;

    /// A part of a run: what it found in the corpus, one skipped row, and so many steps.
    fn part(directory: &Path, name: &str, started: u64, row: &str, steps: u64) {
        let mut header = RunHeader::now("tandem", "0.1.0", serde_json::json!({}));
        header.started_unix_ms = started;
        let data = Data {
            usable: started,
            rejected: 0,
            eval: 0,
            list: None,
            cache: CacheState::Read,
            rebuilt: 0,
            seconds: 0.1,
            workers: 1,
        };
        let (id, why) = (Some(row.to_string()), "cannot be read".to_string());
        let skipped = Skipped { ticket: None, id, stage: "load".into(), why };
        let mut events = vec![Event::Run(Box::new(header)), data.into(), skipped.into()];
        events.extend((1..=steps).map(|step| Event::from(Step { step, ..Step::default() })));
        let lines = events
            .into_iter()
            .map(|event| serde_json::to_string(&Stamped { at: Nanos(0), event }).unwrap() + "\n");
        fs::write(directory.join(name), lines.collect::<String>()).unwrap();
    }

    #[test]
    fn a_directory_has_the_records_of_the_other_ranks_of_the_same_job() {
        let folder = tempfile::tempdir().unwrap();
        let write = |directory: &Path, rank: usize, job: &str, row: &str| {
            fs::create_dir_all(directory).unwrap();
            let ranks = serde_json::json!({"rank": rank, "ranks": 3, "job": job});
            let header = RunHeader::now("tandem", "0", serde_json::json!({"ranks": ranks}));
            let (id, why) = (Some(row.to_string()), "cannot be read".to_string());
            let skipped = Skipped { ticket: None, id, stage: "load".into(), why };
            let warning = Warning { code: "slow".into(), text: "slow disk".into() };
            let step = Step { step: 1, ..Step::default() };
            let events: [Event; 4] =
                [Event::Run(Box::new(header)), skipped.into(), warning.into(), step.into()];
            let lines = events.into_iter().map(|event| {
                serde_json::to_string(&Stamped { at: Nanos(0), event }).unwrap() + "\n"
            });
            fs::write(directory.join("run.jsonl"), lines.collect::<String>()).unwrap();
        };
        write(folder.path(), 0, "second", "row-a");
        write(&folder.path().join("ranks/1"), 1, "second", "row-b");
        // Of an earlier job, which had a rank 2, too.
        write(&folder.path().join("ranks/2"), 2, "first", "row-c");
        let (found, _) = Summary::read(folder.path()).unwrap();
        assert_eq!(found.other_ranks.keys().collect::<Vec<_>>(), [&1]);
        assert_eq!((found.skips.count, found.all_skips().count), (1, 2));
        assert_eq!(found.all_skips().rows.len(), 2);
        assert_eq!(found.all_warning_count(), 2);
        assert_eq!(found.all_warnings()[1].text, "rank 1: slow disk");
        let (alone, _) = Summary::read(&folder.path().join("run.jsonl")).unwrap();
        assert!(alone.other_ranks.is_empty(), "one file is one rank");
        let (one, _) = Summary::read(&folder.path().join("ranks/1")).unwrap();
        assert!(one.other_ranks.is_empty() && one.skips.count == 1);
    }

    #[test]
    fn a_directory_has_the_skipped_rows_of_all_parts_and_the_newest_corpus() {
        let folder = tempfile::tempdir().unwrap();
        part(folder.path(), "run.jsonl", 100, "row-a", 5);
        part(folder.path(), "run-from-00000005.jsonl", 200, "row-b", 3);
        // Resumed after the last step: the part before it has the figures.
        part(folder.path(), "run-from-00000008.jsonl", 300, "row-b", 0);
        let (found, _) = Summary::read(folder.path()).unwrap();
        assert_eq!(found.steps.all.count(), 3);
        assert_eq!(found.skips.count, 3);
        let rows: Vec<_> = found.skips.rows.iter().map(|row| (row.name(), row.times)).collect();
        assert_eq!(rows, [("row-a".to_string(), 1), ("row-b".to_string(), 2)]);
        assert_eq!(found.data.unwrap().usable, 300);
        let (alone, _) = Summary::read(&folder.path().join("run.jsonl")).unwrap();
        assert_eq!(
            (alone.skips.count, alone.data.unwrap().usable),
            (1, 100),
            "one file is one part"
        );
    }
}
