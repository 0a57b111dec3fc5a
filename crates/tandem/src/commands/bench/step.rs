//! `tandem bench step`: duration of a training step and its parts on this machine.
//!
//! Uses the real model, losses, gradients and optimizer, on a batch without padding.

use super::target::{best_tenth, median};
use crate::counted::parameters;
use crate::exit::ExitStatus;
use crate::failure::{Context, Failure, Result, ensure};
use crate::printer::Printer;
use crate::setting_flags::{OfPlaces, SettingFlags, words};
use serde::Serialize;
use std::time::Instant;
use tandem_data::batch::BatchShape;
use tandem_device::backend::wait_for;
use tandem_device::inventory::Inventory;
use tandem_device::placement::Placement;
use tandem_model::micro_batches::batch_gradients;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::{Optimizer, StepSettings};
use tandem_model::train_batch::AlignedBatch;
use tandem_model::{Device, Module};
use tandem_text::SymbolTable;
use tandem_units::Seed;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model size
    #[arg(long, value_name = "SIZE", default_value = "tiny", value_parser = words::<ModelSize>())]
    model_size: ModelSize,
    /// Utterances of a batch
    #[arg(long, value_name = "N", default_value_t = 8)]
    batch_size: usize,
    /// Mel frames of each utterance
    #[arg(long, value_name = "N", default_value_t = 300)]
    frames: usize,
    /// Symbols of each utterance
    #[arg(long, value_name = "N", default_value_t = 60)]
    symbols: usize,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Measured steps, after three warm-up steps
    #[arg(long, value_name = "N", default_value_t = 20)]
    steps: usize,
    #[command(flatten)]
    devices: SettingFlags<OfPlaces>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem bench step
  tandem bench step --model-size small --batch-size 16 --frames 400 --threads 1 --json";

/// Steps before the measurement: kernels are compiled, memory is allocated.
const WARM_UP: usize = 3;

#[derive(Serialize)]
struct Figures {
    model_size: ModelSize,
    parameters: usize,
    batch_size: usize,
    frames: usize,
    symbols: usize,
    threads: usize,
    device: String,
    steps: usize,
    /// Median and best tenth of the whole step, in milliseconds.
    step_ms: f64,
    step_best_ms: f64,
    /// Medians of its parts.
    gradients_ms: f64,
    optimizer_ms: f64,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    ensure(args.steps > 0 && args.batch_size > 0, "nothing to measure: give at least 1")?;
    ensure(
        args.symbols > 0 && args.frames >= args.symbols,
        "every symbol needs a frame: give at least as many `--frames` as `--symbols`",
    )?;
    if let Some(threads) = args.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1));
        pool.build_global()
            .map_err(Failure::foreign)
            .context("cannot set the number of threads")?;
    }
    let asked = args.devices.device_settings()?;
    let placement = Placement::decide(&asked, &Inventory::detect())?;
    let device = placement.open()?.model;
    let name = placement.model.name.clone();
    // Inside the thread pool, as in the trainer.
    let figures = rayon::scope(|_| measure(&args, &device, name))?;
    if args.json {
        out.json(&figures)?;
    } else {
        print(&figures, out)?;
    }
    Ok(ExitStatus::Done)
}

fn measure(args: &Args, device: &Device, name: String) -> Result<Figures> {
    let symbols = SymbolTable::standard().len();
    let config = VoiceConfig::of(args.model_size, symbols, 2, 80);
    let mut voice = Voice::new(&config, Seed(0), &device.clone().autodiff());
    let mut optimizer = Optimizer::new(&voice);
    let shape = BatchShape { rows: args.batch_size, frames: args.frames, symbols: args.symbols };
    let batch = AlignedBatch::fullest(shape, &config, 128).to_device(device);
    let mut times: [Vec<f64>; 3] = Default::default();
    for step in 1..=(WARM_UP + args.steps) as u64 {
        let began = Instant::now();
        let sum = batch_gradients(&voice, &batch, 1.0);
        wait_for(device, "measuring a step")?;
        let gradients = Instant::now();
        optimizer.step_in(&mut voice, sum, &settings(step));
        wait_for(device, "measuring a step")?;
        let end = Instant::now();
        if step > WARM_UP as u64 {
            let parts = [gradients - began, end - gradients, end - began];
            for (list, took) in times.iter_mut().zip(parts) {
                list.push(took.as_secs_f64() * 1e3);
            }
        }
    }
    let [gradients, moved, whole] = times;
    Ok(Figures {
        model_size: args.model_size,
        parameters: voice.num_params(),
        batch_size: args.batch_size,
        frames: args.frames,
        symbols: args.symbols,
        threads: rayon::current_num_threads(),
        device: name,
        steps: args.steps,
        step_ms: median(whole.clone()),
        step_best_ms: best_tenth(whole),
        gradients_ms: median(gradients),
        optimizer_ms: median(moved),
    })
}

fn settings(step: u64) -> StepSettings {
    StepSettings {
        rate: 1e-4,
        weight_decay: 0.01,
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-8,
        clip: 1.0,
        ema: 0.999,
        step,
    }
}

fn print(f: &Figures, out: &mut Printer) -> Result<()> {
    out.line(&format!(
        "{} ({}), {} x {} frames, {} symbols, on {} with {} threads",
        f.model_size.name(),
        parameters(f.parameters),
        f.batch_size,
        f.frames,
        f.symbols,
        f.device,
        f.threads
    ))?;
    out.line(&format!(
        "step {:.0} ms (best tenth {:.0} ms): gradients {:.0}, optimizer {:.0}; {:.0} frames/s",
        f.step_ms,
        f.step_best_ms,
        f.gradients_ms,
        f.optimizer_ms,
        1e3 * (f.batch_size * f.frames) as f64 / f.step_ms
    ))
}
