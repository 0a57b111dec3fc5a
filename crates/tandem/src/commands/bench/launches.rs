//! `tandem bench launches`: what a training step asks of the CUDA driver, against limits.
//!
//! Counted by the stand-in driver of `tools/cuda-stand-in`; any other driver is an error that says so.

use super::target::{self, Limit, Target};
use crate::corpus_args::at_least_one;
use crate::exit::ExitStatus;
use crate::failure::{Result, ensure};
use crate::printer::Printer;
use crate::setting_flags::{OfPlaces, SettingFlags, words};
use serde::Serialize;
use tandem_data::batch::BatchShape;
use tandem_device::backend::{Backend, DeviceError, DriverCounts, kernel_report};
use tandem_device::inventory::Inventory;
use tandem_device::placement::Placement;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_text::SymbolTable;
use tandem_train::measure::launches::{Costs, LaunchCounts, count_launches};
use tandem_train::train_settings::TrainSettings;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model size
    #[arg(long, value_name = "SIZE", default_value = "tiny", value_parser = words::<ModelSize>())]
    model_size: ModelSize,
    /// Utterances of a batch
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    batch_size: usize,
    /// Mel frames of each utterance
    #[arg(long, value_name = "N", default_value_t = 128)]
    frames: usize,
    /// Symbols of each utterance
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = at_least_one)]
    symbols: usize,
    /// Counted steps, after six that compile and tune
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    steps: usize,
    /// Exit code 1 above so many launches per step
    #[arg(long, value_name = "N")]
    max_launches: Option<u64>,
    /// Log what each launch of one more step costs, for xtask/measurements/kernel_report.sh
    #[arg(long)]
    costs: bool,
    #[command(flatten)]
    devices: SettingFlags<OfPlaces>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  xtask/tests/cuda_tests.sh launches --model-size small
  tandem bench launches --backend cuda --data-gpu 0 --model-gpu 1 --max-launches 2000";

#[derive(Serialize)]
struct Figures {
    model_size: ModelSize,
    batch_size: usize,
    frames: usize,
    symbols: usize,
    counts: LaunchCounts,
    targets: Vec<Target>,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    ensure(
        args.frames >= args.symbols,
        "every symbol needs a frame: give at least as many `--frames` as `--symbols`",
    )?;
    let asked = args.devices.device_settings()?;
    let placement = Placement::decide(&asked, &Inventory::detect())?;
    // The CPU has no driver, and other backends do not count.
    if placement.model.id.backend != Backend::Cuda {
        return Err(DeviceError::NotCounted.into());
    }
    let devices = placement.open()?;
    let config = VoiceConfig::of(args.model_size, SymbolTable::standard().len(), 2, 80);
    let shape = BatchShape { rows: args.batch_size, frames: args.frames, symbols: args.symbols };
    let settings = TrainSettings { model_size: args.model_size, ..TrainSettings::default() };
    let costs = if args.costs { Costs::Logged } else { Costs::NotLogged };
    let counts = count_launches(&config, &settings, shape, &devices, args.steps as u64, costs)?;
    let Args { model_size, batch_size, frames, symbols, .. } = args;
    let targets = targets(&counts, args.max_launches);
    let figures = Figures { model_size, batch_size, frames, symbols, counts, targets };
    if let Some(report) = kernel_report() {
        out.note(&format!("kernels: {}", report.kernels));
    }
    if args.json {
        out.json(&figures)?;
    } else {
        let size = model_size.name();
        out.line(&format!(
            "{size}, batches of {batch_size} x {frames} frames, {symbols} symbols; per step:"
        ))?;
        target::print(&figures.targets, out)?;
    }
    Ok(target::status(&figures.targets))
}

/// The training thread must neither read from the device nor wait for it, and a transfer computes nothing.
fn targets(counts: &LaunchCounts, max_launches: Option<u64>) -> Vec<Target> {
    let LaunchCounts { steps, upload, training, optimizer_launches, replayed } = *counts;
    let each = |count: u64| count as f64 / steps as f64;
    let note = |name: &str, count: u64, how: &str| Target::note(name, each(count), "", how.into());
    let limit = |name: &str, count: u64, most: f64, how: &str| {
        Target::new(name, each(count), "", Limit::AtMost(most), how.into())
    };
    let training_how = "losses, gradients, optimizer";
    let launches = match max_launches {
        Some(most) => limit("launches", training.launches, most as f64, training_how),
        None => note("launches", training.launches, training_how),
    };
    // The count ends with a wait, which may count once more than a wait without work.
    let waits = |counts: DriverCounts| counts.synchronisations.saturating_sub(1);
    let graph_how = "the same as a CUDA graph";
    let upload_how = "batch to the data card and from there to the model card";
    vec![
        launches,
        note("launches of the optimizer", optimizer_launches, "after all gradients"),
        note("copies to the card", training.copies_to_device, training_how),
        limit("copies to the host", training.copies_to_host, 0.0, training_how),
        note("copies on the card", training.copies_on_device, training_how),
        limit("synchronisations", waits(training), 0.0, training_how),
        note("allocations", training.allocations, training_how),
        limit("launches with a graph", replayed.launches, 5.0, graph_how),
        limit("copies to the host", replayed.copies_to_host, 0.0, graph_how),
        limit("synchronisations", waits(replayed), 0.0, graph_how),
        note("allocations", replayed.allocations, graph_how),
        limit("launches of a transfer", upload.launches, 0.0, upload_how),
        note("copies to the card", upload.copies_to_device, upload_how),
        note("copies to the host", upload.copies_to_host, upload_how),
        note("bytes to the card", upload.bytes_to_device, upload_how),
        note("synchronisations", upload.synchronisations, upload_how),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(training: DriverCounts) -> LaunchCounts {
        let replayed = DriverCounts { launches: 30, ..DriverCounts::default() };
        let upload = DriverCounts::default();
        LaunchCounts { steps: 10, upload, training, optimizer_launches: 0, replayed }
    }

    #[test]
    fn a_step_that_waits_or_reads_back_or_launches_too_much_fails() {
        let quiet = DriverCounts { launches: 9_000, synchronisations: 1, ..Default::default() };
        let check = |training, most| target::status(&targets(&counts(training), Some(most)));
        assert_eq!(check(quiet, 900), ExitStatus::Done);
        assert_eq!(check(quiet, 899), ExitStatus::Negative);
        let waits = DriverCounts { synchronisations: 11, ..quiet };
        assert_eq!(check(waits, 900), ExitStatus::Negative);
        let reads = DriverCounts { copies_to_host: 1, ..quiet };
        assert_eq!(check(reads, 900), ExitStatus::Negative);
        let replayed = DriverCounts { launches: 51, ..DriverCounts::default() };
        let graphs = LaunchCounts { replayed, ..counts(quiet) };
        assert_eq!(target::status(&targets(&graphs, None)), ExitStatus::Negative);
    }
}
