//! `tandem bench scale`: batches per second of several ranks, against one of them. Started by `mpirun`.
//!
//! Turns alternate: rank 0 trains alone while the others wait, then all ranks train at the same time but each for
//! itself, then all train together. The second is what the machine allows: cores that share a memory bus, a power
//! budget or an execution unit are slower together than alone, whatever the ranks do. Other programs on a shared
//! machine slow all three. Real model, losses, gradients, sums and optimizer, on a batch without padding.

use super::reduce::started_alone;
use super::target::{Limit, Target, median, print, status};
use crate::exit::ExitStatus;
use crate::failure::{Failure, Result, ensure};
use crate::printer::Printer;
use crate::ranks::{self, RankArgs};
use crate::setting_flags::{OfPlaces, SettingFlags, words};
use std::time::Instant;
use tandem_cluster::Cluster;
use tandem_data::batch::BatchShape;
use tandem_device::backend::wait_for;
use tandem_device::inventory::Inventory;
use tandem_device::placement::{LocalRank, Placement};
use tandem_model::Device;
use tandem_model::gradients::{GradientReducer, GradientSum, LocalGradients, ReduceError};
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::Optimizer;
use tandem_model::train_batch::{AlignedBatch, DeviceBatch};
use tandem_text::SymbolTable;
use tandem_train::run::all_reduce::AllReduce;
use tandem_train::run::step::TrainState;
use tandem_train::train_settings::TrainSettings;
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
    /// CPU threads of each rank
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Steps of a turn
    #[arg(long, value_name = "N", default_value_t = 5)]
    steps: usize,
    /// Turns of each kind
    #[arg(long, value_name = "N", default_value_t = 10)]
    turns: usize,
    #[command(flatten)]
    devices: SettingFlags<OfPlaces>,
    #[command(flatten)]
    ranks: RankArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mpirun -np 2 --bind-to none tandem bench scale
  mpirun -np 2 --bind-to none tandem bench scale --model-size small --turns 5

Exit code 1: a rank adds too little, or the sum of gradients takes more than 3 % of a step.";

/// What each rank must add, as a share of one rank alone. A small model computes longer for each value
/// that it sends.
fn least_share(size: ModelSize) -> f64 {
    if matches!(size, ModelSize::Micro | ModelSize::Tiny) { 0.925 } else { 0.95 }
}
/// The largest share of a step that the sum of gradients may take.
const MOST_REDUCE: f64 = 0.03;

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    ensure(args.steps > 0 && args.turns > 0 && args.batch_size > 0, "give at least 1")?;
    ensure(
        args.symbols > 0 && args.frames >= args.symbols,
        "every symbol needs a frame: give at least as many `--frames` as `--symbols`",
    )?;
    let cluster = ranks::join(&args.ranks, out)?;
    let Some(cluster) = cluster else { return Err(started_alone("bench scale").into()) };
    let done = measure(&args, &cluster, out);
    ranks::leave(Some(&cluster), done)
}

fn measure(args: &Args, cluster: &Cluster, out: &mut Printer) -> Result<ExitStatus> {
    let mut asked = args.devices.device_settings()?;
    asked.local = LocalRank { rank: cluster.local_rank(), ranks: cluster.local_ranks() };
    let device = Placement::decide(&asked, &Inventory::detect())?.open()?.model;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.max(1)).build();
    let pool = pool.map_err(Failure::foreign)?;
    let turns = pool.install(|| take_turns(args, cluster, &device))?;
    let ranks = cluster.ranks();
    let ratio = |turn: &Turn| ranks as f64 * turn.alone / turn.together;
    let apart = |turn: &Turn| turn.apart.iter().map(|time| turn.alone / time).sum::<f64>();
    let ratios = turns.iter().map(ratio).collect();
    let allowed = median(turns.iter().map(apart).collect());
    let kept = median(turns.iter().map(|turn| ratio(turn) / apart(turn)).collect());
    let reduce = turns.iter().map(|turn| turn.reduce / turn.together).collect();
    let waiting = median(turns.iter().map(|turn| turn.waiting / turn.together).collect());
    let step =
        |time: fn(&Turn) -> f64| 1e3 * median(turns.iter().map(time).collect()) / args.steps as f64;
    let how = format!(
        "median of {} turns of {} steps: {:.1} ms alone, {:.1} ms each for itself, {:.1} ms together",
        turns.len(),
        args.steps,
        step(|turn| turn.alone),
        step(|turn| turn.apart.iter().sum::<f64>() / turn.apart.len() as f64),
        step(|turn| turn.together)
    );
    let least = least_share(args.model_size) * ranks as f64;
    let name = format!("batches/s of {ranks} ranks, one rank = 1");
    let targets = [
        Target::new(&name, median(ratios), "", Limit::AtLeast(least), how),
        Target::note(
            "the same, each rank for itself",
            allowed,
            "",
            "without communication: what this machine allows".into(),
        ),
        Target::note("of which ranks that train together keep", kept, "", "share".into()),
        Target::new(
            "sum of gradients, share of a step",
            median(reduce),
            "",
            Limit::AtMost(MOST_REDUCE),
            "from the first bucket to the last tensor, all ranks ready".into(),
        ),
        Target::note("waiting for the slower rank", waiting, "", "share of a step".into()),
    ];
    match args.json {
        true => out.json(&targets)?,
        false => print(&targets, out)?,
    }
    Ok(status(&targets))
}

/// Seconds of the steps of a turn.
struct Turn {
    alone: f64,
    /// Of every rank: all at the same time, without a word between them.
    apart: Vec<f64>,
    together: f64,
    reduce: f64,
    waiting: f64,
}

fn take_turns(args: &Args, cluster: &Cluster, device: &Device) -> Result<Vec<Turn>> {
    let symbols = SymbolTable::standard().len();
    let config = VoiceConfig::of(args.model_size, symbols, 2, 80);
    let voice = Voice::new(&config, Seed(0), &device.clone().autodiff());
    let shape = BatchShape { rows: args.batch_size, frames: args.frames, symbols: args.symbols };
    let batch = AlignedBatch::fullest(shape, &config, 128).to_device(device);
    let mut together = Together {
        all_reduce: AllReduce::new(cluster.clone(), &voice, device),
        cluster: cluster.clone(),
        reduce: 0.0,
        waiting: 0.0,
    };
    let optimizer = Optimizer::new(&voice);
    let settings = TrainSettings::default();
    let mut state = TrainState::new(voice, optimizer, 0, &settings, 1000);
    let mut turns = Vec::new();
    // The first turn allocates memory and compiles kernels.
    for turn in 0..=args.turns {
        cluster.barrier()?;
        let from = Instant::now();
        if cluster.is_first() {
            train(&mut state, &batch, args.steps, device, &mut LocalGradients)?;
        }
        let alone = from.elapsed().as_secs_f64();
        cluster.barrier()?;
        let from = Instant::now();
        train(&mut state, &batch, args.steps, device, &mut LocalGradients)?;
        let mut apart = vec![0.0; cluster.ranks()];
        apart[cluster.rank()] = from.elapsed().as_secs_f64();
        // Every rank has the times of all, and waits for the slowest.
        let apart = cluster.sum_f64(apart)?;
        (together.reduce, together.waiting) = (0.0, 0.0);
        let from = Instant::now();
        train(&mut state, &batch, args.steps, device, &mut together)?;
        let both = from.elapsed().as_secs_f64();
        if turn > 0 {
            let Together { reduce, waiting, .. } = together;
            turns.push(Turn { alone, apart, together: both, reduce, waiting });
        }
    }
    Ok(turns)
}

fn train(
    state: &mut TrainState,
    batch: &DeviceBatch,
    steps: usize,
    device: &Device,
    reducer: &mut dyn GradientReducer,
) -> Result<()> {
    for _ in 0..steps {
        state.accumulate_gradients(batch);
        wait_for(device, "measuring a step")?;
        let next = state.step + 1;
        state.optimizer_step(next, reducer)?;
        wait_for(device, "measuring a step")?;
    }
    Ok(())
}

/// The reducer of all ranks, with its times.
struct Together {
    all_reduce: AllReduce,
    cluster: Cluster,
    reduce: f64,
    waiting: f64,
}

impl GradientReducer for Together {
    fn reduce(&mut self, gradients: &mut GradientSum) -> Result<(), ReduceError> {
        let arrived = Instant::now();
        // The trainer's ranks agree on a step here.
        self.cluster.barrier().map_err(|error| ReduceError(Box::new(error)))?;
        self.waiting += arrived.elapsed().as_secs_f64();
        let from = Instant::now();
        let utterances = gradients.utterances * self.cluster.ranks();
        *gradients = self.all_reduce.sum(std::mem::take(gradients), utterances)?;
        self.reduce += from.elapsed().as_secs_f64();
        Ok(())
    }
}
