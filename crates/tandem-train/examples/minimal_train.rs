//! The whole path in one file: a corpus becomes batches, batches train a voice, the voice speaks.
//!
//! ```text
//! cargo run --release -p tandem-train --example minimal_train CORPUS OUT [STEPS]
//! ```
//!
//! Read it from top to bottom; each step names the file that does the work. `tandem train` (`run/trainer.rs`) is this
//! loop with what a long run needs: validation, checkpoints in the background, resume, several ranks, a run record, and
//! an end that loses nothing. A tiny voice says something after 2000 steps of a corpus of some minutes.
#![expect(clippy::print_stdout, reason = "an example for a terminal")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tandem_data::batch::BatchConfig;
use tandem_device::placement::OpenDevices;
use tandem_model::Device;
use tandem_model::between_threads::flush;
use tandem_model::checkpoint::{Checkpoints, Keep, Mark};
use tandem_model::gradients::LocalGradients;
use tandem_model::synthesis::text::{SpeakerChoice, SpeechOptions, Synthesizer};
use tandem_model::vocoder::griffin_lim::GriffinLimConfig;
use tandem_model::vocoder::{VocoderChoice, wav::write_wav};
use tandem_model::weights::weights_of;
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;
use tandem_train::feed::train_route::TrainRoute;
use tandem_train::run::job::RunStart;
use tandem_train::run::memory_accounting::MemoryAccounting;
use tandem_train::run::start::begin;
use tandem_train::run::state::{CheckpointSource, Snapshot};
use tandem_train::train_settings::TrainSettings;
use tandem_train::{DataSettings, FeedSettings, PrepareOptions, Watcher, prepare};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(corpus), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("usage: minimal_train CORPUS OUT [STEPS]".into());
    };
    let steps = arguments.next().map_or(Ok(2000), |steps| steps.parse())?;
    train(Path::new(&corpus), Path::new(&out), steps)?;
    speak(Path::new(&out))
}

pub fn train(corpus: &Path, out: &Path, steps: u64) -> Result<(), Box<dyn Error>> {
    let cancel = CancelToken::new();
    let recorder = Recorder::off();

    // 1. The corpus: manifest, recordings and texts are checked; symbols and lengths go into a cache beside it.
    //    The cache is read at the next start. (prepare.rs; tandem-data: corpus.rs, text.rs, audio.rs, cache.rs)
    let (data, options) = (DataSettings::default(), PrepareOptions::default());
    let prepared = Arc::new(prepare(corpus, &data, &options, &mut Quiet, &cancel)?);
    println!("{} usable rows", prepared.summary.usable);

    // 2. Settings. Each is a plain struct with defaults; the command line only fills these.
    let settings = TrainSettings { max_steps: Some(steps), ..TrainSettings::default() };
    let batch = BatchConfig { batch_size: 8, ..BatchConfig::default() };
    let feed = FeedSettings { reference_frames: 128, ..FeedSettings::new(batch) };
    let devices = OpenDevices { data: Device::flex(), model: Device::flex() };

    // 3. The model: text encoder, reference encoder, durations, flow-matching decoder, with random weights.
    //    (run/start.rs; tandem-model: network/voice.rs shows all of it, with its losses)
    let mut checkpoints = Checkpoints::open(out, Keep { last: 1 })?;
    let start = begin(&prepared, &feed, &settings, &devices, &checkpoints, &cancel)?;
    let RunStart { mut train_state, snapshots, state, document, speakers } = start;

    // 4. The route: load, mel frames, alignment and transfer run on threads of their own, each with a bounded queue.
    //    (feed/route.rs, feed/train_route.rs; tandem-pipeline: route.rs)
    let accounting = MemoryAccounting::new(None, &devices);
    let route = TrainRoute {
        prepared: &prepared,
        feed: &feed,
        devices: &devices,
        accounting: &accounting,
        document: &document,
        snapshots: &snapshots,
        flat_start: settings.alignment.flat_start,
        batches_per_step: settings.grad_accum as u64,
        seed: settings.seed,
        recorder: &recorder,
        cancel: &cancel,
        on_frozen: None,
    };
    let mut batches = route.start()?;

    // 5. The step: forward and backward pass, AdamW, and the moving average of the weights.
    //    (run/step.rs; tandem-model: micro_batches.rs, optimizer.rs)
    for step in 1..=steps {
        let Some(next) = batches.next()? else { break };
        train_state.accumulate_gradients(&next.batch.tensors());
        let Some(metrics) = train_state.optimizer_step(step, &mut LocalGradients)? else {
            continue;
        };
        // Other threads read weights: on a GPU, nothing of the step may be held back then.
        flush(&devices.model);
        // Alignment runs ahead of the training with text encoders of earlier steps.
        if snapshots.wants(step) {
            let encoder = train_state.inference_voice().encoder;
            let memory = accounting.aligner_snapshot(&encoder);
            snapshots.publish(step, encoder, memory);
        }
        if step % 100 == 0 || step == steps {
            let values: Vec<f32> = metrics.values.into_data().iter().collect();
            println!("step {step} loss {:.3}", values[0]);
        }
    }
    snapshots.close();
    drop(batches);

    // 6. The checkpoint: a directory that appears by one rename, with checksums. (tandem-model: checkpoint.rs)
    let snapshot = Snapshot {
        step: train_state.step,
        state,
        document,
        speakers,
        config: serde_json::Value::Null,
        weights: weights_of(&train_state.voice),
        optimizer: train_state.optimizer.state(),
        aligner_snapshots: snapshots.needed_from(train_state.step),
        memory: accounting.checkpoint(&train_state.voice),
    };
    let saved = checkpoints.save(&snapshot.contents()?, Mark::Last)?;
    println!("saved {}", saved.path.display());
    Ok(())
}

/// 7. Speech: text to symbols to mel frames to samples. (tandem-model: synthesis/text.rs, synthesis/mel.rs, vocoder.rs)
pub fn speak(run: &Path) -> Result<(), Box<dyn Error>> {
    let vocoder = VocoderChoice::OfVoice(GriffinLimConfig::SPEECH);
    let mut synthesizer = Synthesizer::open(run, &Device::flex(), &vocoder)?;
    let (text, options) = ("The evening train was late.", SpeechOptions::default());
    let speech =
        synthesizer.synthesize(text, &SpeakerChoice::AnyKnown, &options, &mut |_, _| {})?;
    let path = run.join("speech.wav");
    write_wav(&path, &speech.samples, synthesizer.trained().document.mel.rate)?;
    println!("wrote {}", path.display());
    Ok(())
}

/// Shows no progress.
struct Quiet;

impl Watcher for Quiet {
    fn waiting_for(&mut self, _owner: &str) {}
    fn progress(&mut self, _done: usize, _rows: usize) {}
}
