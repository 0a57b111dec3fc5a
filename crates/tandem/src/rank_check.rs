//! Compares predictions with real runs of two ranks on this machine.
//!
//! In: batch sizes and number of steps. Out: [`Tried`] configurations. Each rank has half of the cores. The
//! prediction follows from runs of one process and from the cost of sums that `tandem bench reduce` measures
//! first. Two such processes run at the same time, each for itself: one alone would have the other half of the cores
//! for its data work, which two ranks do not have. Needs a build with MPI and `mpirun`, which starts this program.

use crate::failure::{Advised, Context, Failure, Result};
use crate::printer::Printer;
use crate::reduce_file;
use std::path::Path;
use std::process::{Command, Stdio};
use tandem_insight::measured::bounded;
use tandem_insight::measured_run::MeasuredRun;
use tandem_insight::plan::of_two_ranks;
use tandem_insight::plan_check::Tried;
use tandem_insight::predict::Item;
use tandem_insight::reduce_cost::ReduceCost;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::Voice;
use tandem_model::{Device, Module};
use tandem_text::SymbolTable;
use tandem_units::Seed;

/// The configurations to run.
pub struct RankCheck {
    pub batches: Vec<usize>,
    /// Measured steps of each run.
    pub steps: u64,
    pub model_size: ModelSize,
}

/// Steps before the measured ones, and after them: of two processes, the one that started first still trains while the
/// other one is measured.
const WARM_UP: u64 = 6;
/// Runs of two ranks for each configuration, of which the median counts: on a shared machine single ones are off by a fifth.
const ROUNDS: usize = 3;
/// Retries of a configuration if the machine was disturbed.
const AGAIN: u32 = 3;
/// Two runs of one rank that differ by less than this factor were not disturbed.
const SAME: f64 = 1.15;

/// Fails in a build that cannot start two ranks.
pub fn needs_mpi() -> Result<(), Advised> {
    match cfg!(feature = "mpi") {
        true => Ok(()),
        false => Err(Advised::new(
            "runs of two ranks cannot be checked: this build has no MPI",
            "build with `--features mpi` (docs/scale-out.md), or leave them out: --mode single",
        )),
    }
}

impl RankCheck {
    /// Runs all configurations and prints each result.
    pub fn run(&self, out: &mut Printer) -> Result<Vec<Tried>> {
        needs_mpi()?;
        let scratch = tempfile::tempdir().context("cannot create a temporary directory")?;
        let reduce = self.measure_reduce(scratch.path())?;
        let seconds = reduce.of_model(parameters(self.model_size));
        out.note(&format!("a sum of the gradients over two ranks: {:.2} ms", 1e3 * seconds));
        let mut tried = Vec::new();
        for &batch in &self.batches {
            tried.push(self.compare(batch, seconds, scratch.path(), out)?);
        }
        Ok(tried)
    }

    fn measure_reduce(&self, scratch: &Path) -> Result<ReduceCost> {
        let file = scratch.join("reduce.json");
        let save = file.display().to_string();
        finish(ranks(2)?.args(["bench", "reduce", "--largest", "4", "--save", &save]))?;
        let found = reduce_file::read(Some(&file))?;
        found.map(|(_, cost)| cost).ok_or_else(|| Failure::bare("no sum was measured"))
    }

    /// Two processes and two ranks in turns: a machine that others use changes meanwhile. Each run of two ranks is
    /// predicted from the runs before and after it.
    fn compare(
        &self,
        batch: usize,
        reduce: f64,
        scratch: &Path,
        out: &mut Printer,
    ) -> Result<Tried> {
        let (mut rounds, mut again) = (Vec::new(), 0);
        let mut before = self.train_apart(batch, scratch)?;
        while rounds.len() < ROUNDS {
            let together = self.train(2, batch, scratch)?;
            let after = self.train_apart(batch, scratch)?;
            let ratio = mean(&before.concat()) / mean(&after.concat()).max(1e-12);
            let disturbed = !(1.0 / SAME..=SAME).contains(&ratio);
            let around = [steps_of_ranks(&before, reduce), steps_of_ranks(&after, reduce)].concat();
            before = after;
            if again < AGAIN && disturbed {
                again += 1;
                continue;
            }
            rounds.push((mean(&around), mean(&together)));
        }
        rounds.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let (predicted, measured) = rounds[ROUNDS / 2];
        let what = format!("batch {batch}, 2 ranks with half of the cores each");
        let group = format!("{batch} ranks");
        let one = Tried { what, group, predicted, measured, again };
        out.note(&one.line());
        Ok(one)
    }

    /// Two processes that train the same batches at the same time and know nothing of each other: the times of each.
    fn train_apart(&self, batch: usize, scratch: &Path) -> Result<[Vec<f64>; 2]> {
        let (one, other) = std::thread::scope(|scope| {
            let other = std::thread::Builder::new()
                .name("second-run".into())
                .spawn_scoped(scope, || self.train(1, batch, scratch))
                .context("cannot start a thread");
            let one = self.train(1, batch, scratch);
            let ended = other.and_then(|thread| {
                thread.join().unwrap_or_else(|_| Err(Failure::bare("a run of the check panicked")))
            });
            (one, ended)
        });
        Ok([one?, other?])
    }

    /// Seconds of the measured steps. One rank trains the same batches as two, one after the other.
    fn train(&self, count: usize, batch: usize, scratch: &Path) -> Result<Vec<f64>> {
        let run = tempfile::tempdir_in(scratch).context("cannot create a temporary directory")?;
        let skip = WARM_UP as usize * 2 / count;
        let measured = self.steps as usize * 2 / count;
        let directory = run.path().join("run").display().to_string();
        let (batch, last) = (batch.to_string(), (skip + measured + skip).to_string());
        let mut command = ranks(count)?;
        command.args(["train", "--train-data", "demo", "--cache-dataset", "--no-adapt"]);
        command.args(["--model-size", self.model_size.name(), "--batch-size", &batch]);
        command.args(["--num-workers", "1", "--model-start-delay", "0", "--max-steps", &last]);
        command.args(["--checkpoint-every", "1000000", "--validate-every", "1000000"]);
        command.args(["--sample-every", "1000000", "--checkpoint-dir", &directory]);
        finish(&mut command)?;
        let record = MeasuredRun::read(Path::new(&directory)).context("the run has no record")?;
        let all = record.warm_up.iter().chain(&record.steps).map(|step| step.took);
        Ok(all.skip(skip).take(measured).collect())
    }
}

/// This program as so many ranks, each with half of the cores.
fn ranks(count: usize) -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let mut command = match count {
        1 => Command::new(program),
        _ => {
            let mut command = Command::new("mpirun");
            command.args(["-np", &count.to_string(), "--bind-to", "none", "--oversubscribe"]);
            // Containers run as root, which Open MPI refuses without these.
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
            command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command.arg(program);
            command
        }
    };
    command.env("RAYON_NUM_THREADS", (cores / 2).max(1).to_string());
    command.stdin(Stdio::null());
    Ok(command)
}

/// Runs a command to its end; a failure has its last words.
fn finish(command: &mut Command) -> Result<()> {
    let output = command.output().map_err(|error| {
        let fact = format!("cannot start `{}`: {error}", command.get_program().to_string_lossy());
        Advised::new(fact, "install Open MPI: openmpi-bin; docs/scale-out.md")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = last[last.len().saturating_sub(3)..].join("; ");
    Err(Failure::bare(format!("a run of the check failed ({}): {last}", output.status)))
}

fn parameters(size: ModelSize) -> u64 {
    let config = VoiceConfig::of(size, SymbolTable::standard().len(), 2, 80);
    Voice::new(&config, Seed(0), &Device::flex()).num_params() as u64
}

/// Steps of two ranks, from two processes that each trained all batches: either process takes the first of two
/// consecutive batches, and the other one the second. Their times are not averaged before: a rank waits for the other
/// one in every step, also where that was slow by chance.
fn steps_of_ranks([one, other]: &[Vec<f64>; 2], reduce: f64) -> Vec<f64> {
    let item = |(&first, &second): (&f64, &f64), index: usize| Item {
        train: if index.is_multiple_of(2) { first } else { second },
        ..Item::default()
    };
    let taken = |first: &[f64], second: &[f64]| -> Vec<Item> {
        let pairs = first.iter().zip(second).enumerate();
        pairs.map(|(index, pair)| item(pair, index)).collect()
    };
    let orders = [taken(one, other), taken(other, one)];
    orders.iter().flat_map(|items| of_two_ranks(items, reduce)).map(|item| item.train).collect()
}

/// The mean without the extremes.
fn mean(times: &[f64]) -> f64 {
    let times = bounded(times.to_vec());
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_two_ranks_waits_for_the_slower_one_in_either_order() {
        let apart = [vec![1.0, 2.0, 3.0, 4.0], vec![1.5, 1.0, 9.0, 4.5]];
        // The first process has batches 0 and 2, the other one 1 and 3; then the reverse.
        assert_eq!(steps_of_ranks(&apart, 0.25), [1.25, 4.75, 2.25, 9.25]);
    }

    #[test]
    fn a_process_that_recorded_fewer_steps_shortens_both() {
        let apart = [vec![1.0, 2.0, 3.0], vec![2.0, 1.0]];
        assert_eq!(steps_of_ranks(&apart, 0.0), [1.0, 2.0]);
    }
}
