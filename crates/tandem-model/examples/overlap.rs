//! Measures what overlaps between two devices: which calls return before their work is done, which
//! wait, and whether training continues while a batch is copied. `docs/devices.md` has the results.
//!
//! `cargo run --release -p tandem-model --features wgpu --example overlap -- wgpu 0 1`

#![allow(clippy::print_stdout, reason = "an example is read on the terminal")]

use burn::tensor::{Device, Tensor};
use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tandem_data::batch::BatchShape;
use tandem_device::backend::{BackendChoice, DeviceError, guarded, wait_for};
use tandem_device::inventory::Inventory;
use tandem_device::placement::{DeviceSettings, OpenDevices, Placement};
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::train_batch::{AlignedBatch, UploadedBatch};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [backend, data, model] = args.as_slice() else {
        return Err("expected: BACKEND DATA_GPU MODEL_GPU".into());
    };
    let settings = DeviceSettings {
        backend: BackendChoice::Only(backend.parse::<BackendChoice>().and_then(only)?),
        data_gpu: Some(data.parse()?),
        model_gpu: Some(model.parse()?),
        ..DeviceSettings::default()
    };
    let placement = Placement::decide(&settings, &Inventory::detect())?;
    println!("{placement}\n");
    let devices = placement.open()?;
    let batch = full_batch();
    // Compiles and tunes kernels before the measurement.
    drop(upload(&batch, &devices.model)?.tensors());
    for device in [&devices.data, &devices.model] {
        drop((work(device), step(device)));
        wait_for(device, DOING)?;
    }
    calls(&devices, &batch)?;
    while_copying(&devices, &batch)?;
    Ok(())
}

const DOING: &str = "measuring";

/// Which calls return before their work is done.
fn calls(devices: &OpenDevices, batch: &AlignedBatch) -> Result<(), DeviceError> {
    let OpenDevices { data, model } = devices;
    for (name, device) in [("data", data), ("model", model)] {
        let from = Instant::now();
        black_box(work(device));
        wait_for(device, DOING)?;
        println!("work queued on the {name} device takes {:.0?}", from.elapsed());
    }
    println!("\n{:<50}{:>14}{:>14}", "call", "returns after", "done after");
    line("noise and packing", model, || Ok(batch.pack()))?;
    line("upload to an idle model device", model, || upload(batch, model))?;
    let queued = work(model);
    line("upload behind queued work of the model device", model, || upload(batch, model))?;
    drop(queued);
    let queued = work(data);
    line("upload behind queued work of the data device", model, || upload(batch, model))?;
    drop(queued);
    Ok(())
}

/// Makes a call and waits for its target device.
fn line<T>(
    name: &str,
    device: &Device,
    call: impl FnOnce() -> Result<T, DeviceError>,
) -> Result<(), DeviceError> {
    let from = Instant::now();
    let batch = call()?;
    let returned = from.elapsed();
    wait_for(device, DOING)?;
    println!("{name:<50}{returned:>14.1?}{:>14.1?}", from.elapsed());
    drop(batch);
    Ok(())
}

/// Whether small steps continue while another thread uploads batches to the same device. First with queued work of the
/// other device, which uses the same CPUs on software devices, then with batches.
fn while_copying(devices: &OpenDevices, batch: &AlignedBatch) -> Result<(), DeviceError> {
    println!(
        "\n{:<34}{:>9}{:>7}{:>12}{:>13}",
        "steps of the model", "lasts", "steps", "longest", "longest call"
    );
    let OpenDevices { data, model } = devices;
    steps_during("during work of the data device", model, || {
        black_box(work(data));
        wait_for(data, DOING)
    })?;
    steps_during("during uploads of 20 batches", model, || {
        for _ in 0..20 {
            drop(upload(batch, model)?);
        }
        Ok(())
    })
}

/// Steps until the other thread is done: their number, the longest one, and the longest call that
/// queues one.
fn steps_during(
    name: &str,
    model: &Device,
    other: impl FnOnce() -> Result<(), DeviceError> + Send,
) -> Result<(), DeviceError> {
    let over = AtomicBool::new(false);
    let from = Instant::now();
    let (mut steps, mut longest, mut longest_call) = (0, Duration::ZERO, Duration::ZERO);
    let lasted = thread::scope(|scope| {
        let body = || {
            let outcome = other();
            over.store(true, Ordering::Relaxed);
            outcome.map(|()| from.elapsed())
        };
        let other = thread::Builder::new().name("transfer".into()).spawn_scoped(scope, body);
        let other = other.expect("a thread");
        while !over.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let value = step(model);
            longest_call = longest_call.max(begin.elapsed());
            wait_for(model, DOING)?;
            longest = longest.max(begin.elapsed());
            steps += 1;
            drop(value);
        }
        other.join().expect("no panic")
    })?;
    println!("{name:<34}{lasted:>9.0?}{steps:>7}{longest:>12.1?}{longest_call:>13.1?}");
    Ok(())
}

fn only(choice: BackendChoice) -> Result<tandem_device::backend::Backend, String> {
    match choice {
        BackendChoice::Only(backend) => Ok(backend),
        BackendChoice::Auto => Err("give a backend".into()),
    }
}

/// A batch of 16 x 800 frames: 8 MB with its noise.
fn full_batch() -> AlignedBatch {
    let config = VoiceConfig::of(ModelSize::Tiny, 100, 2, 80);
    AlignedBatch::fullest(BatchShape { rows: 16, frames: 800, symbols: 200 }, &config, 256)
}

fn upload(batch: &AlignedBatch, device: &Device) -> Result<UploadedBatch, DeviceError> {
    guarded("uploading a batch", || batch.pack().upload(device))
}

/// Queues long matrix products without waiting.
fn work(device: &Device) -> Tensor<2> {
    products(device, 512, 12)
}

/// Queues short matrix products.
fn step(device: &Device) -> Tensor<2> {
    products(device, 64, 2)
}

fn products(device: &Device, size: usize, count: usize) -> Tensor<2> {
    let mut value = Tensor::<2>::ones([size, size], device) * 1e-3;
    for _ in 0..count {
        value = value.clone().matmul(value) * 1e-3;
    }
    // Some libraries collect operations before they submit them.
    let _ = device.flush();
    value
}
