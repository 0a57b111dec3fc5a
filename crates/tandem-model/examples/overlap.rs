//! Measures what really overlaps between two devices: which calls return before their work is
//! done, and which wait. `docs/devices.md` quotes it.
//!
//! `cargo run --release -p tandem-model --features wgpu --example overlap -- wgpu 0 1`

#![allow(clippy::print_stdout, reason = "an example is read on the terminal")]

use burn::tensor::{Device, Tensor};
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};
use tandem_data::audio::mel::MelConfig;
use tandem_data::batch::{BatchShape, HostBatch, RowInfo};
use tandem_model::device::{BackendChoice, wait_for};
use tandem_model::inventory::Inventory;
use tandem_model::placement::{DeviceSettings, Placement};
use tandem_model::transfer::transfer;
use tandem_model::upload::upload;

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
    let placement = Placement::decide(&settings, &Inventory::look())?;
    println!("{placement}\n");
    let devices = placement.open()?;
    let batch = full_batch();
    let warm = transfer(upload(&batch, &devices.data)?, &devices.model)?;
    for device in [&devices.data, &devices.model] {
        drop(work(device));
        wait_for(device, "warming up")?;
    }
    drop(warm);

    let busy = |device: &Device| -> Result<Duration, Box<dyn Error>> {
        let from = Instant::now();
        black_box(work(device));
        wait_for(device, "measuring")?;
        Ok(from.elapsed())
    };
    println!("work queued on the data device takes   {:>9.2?}", busy(&devices.data)?);
    println!("work queued on the model device takes  {:>9.2?}\n", busy(&devices.model)?);

    println!("{:<58}{:>12}{:>14}", "call", "returns after", "done after");
    let line = |name: &str, call: Duration, done: Duration| {
        println!("{name:<58}{call:>12.2?}{done:>14.2?}");
    };
    let from = Instant::now();
    let uploaded = upload(&batch, &devices.data)?;
    let call = from.elapsed();
    wait_for(&devices.data, "measuring")?;
    line("upload to an idle data device", call, from.elapsed());

    let queued = work(&devices.data);
    let from = Instant::now();
    let behind = upload(&batch, &devices.data)?;
    let call = from.elapsed();
    wait_for(&devices.data, "measuring")?;
    line("upload behind queued work of the data device", call, from.elapsed());
    drop((queued, behind));

    let from = Instant::now();
    let moved = transfer(uploaded.clone(), &devices.model)?;
    let call = from.elapsed();
    wait_for(&devices.model, "measuring")?;
    line("transfer, both idle", call, from.elapsed());
    drop(moved);

    let queued = work(&devices.data);
    let from = Instant::now();
    let moved = transfer(uploaded.clone(), &devices.model)?;
    let call = from.elapsed();
    wait_for(&devices.model, "measuring")?;
    line("transfer behind queued work of the data device", call, from.elapsed());
    drop((queued, moved));

    let queued = work(&devices.model);
    let from = Instant::now();
    let moved = transfer(uploaded, &devices.model)?;
    let call = from.elapsed();
    wait_for(&devices.model, "measuring")?;
    line("transfer behind queued work of the model device", call, from.elapsed());
    drop((queued, moved));
    Ok(())
}

fn only(choice: BackendChoice) -> Result<tandem_model::device::Backend, String> {
    match choice {
        BackendChoice::Only(backend) => Ok(backend),
        BackendChoice::Auto => Err("name a backend".into()),
    }
}

/// A batch of 16 x 800 frames: 4 MB.
fn full_batch() -> HostBatch {
    let mut batch = HostBatch::new(&MelConfig::SPEECH_22K);
    batch.reset(BatchShape { rows: 16, frames: 800, symbols: 200 });
    for row in 0..16 {
        let info = RowInfo { row, frames: 800, symbols: 200, speaker: 0, language: 0 };
        batch.push_row(info).mel.fill(row as f32);
    }
    batch.finish();
    batch
}

/// Products that take a while, queued and not waited for.
fn work(device: &Device) -> Tensor<2> {
    let mut value = Tensor::<2>::ones([512, 512], device) * 1e-3;
    for _ in 0..12 {
        value = value.clone().matmul(value) * 1e-3;
    }
    // Some libraries gather operations before they hand them over.
    let _ = device.flush();
    value
}
