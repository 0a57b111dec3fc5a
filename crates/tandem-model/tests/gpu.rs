//! Two GPUs without a GPU: the data side on one software Vulkan device, the model on another.
//!
//! Needs feature `wgpu` and two drivers in `VK_DRIVER_FILES`; `scripts/gpu_tests.sh` sets
//! both up. Nothing is skipped without them. The drivers compile kernels for each new shape, so
//! shapes are tiny.

#![allow(clippy::print_stderr, reason = "the figures are shown with `--nocapture`")]

mod gpu {
    pub mod real_voice;
}

use burn::tensor::{Device, Tensor, TensorData};
use gpu::real_voice::{self, Transferred};
use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tandem_data::audio::mel::{MelConfig, MelExtractor};
use tandem_data::audio::{AudioConfig, Decoder, Sound};
use tandem_data::batch::{BatchShape, HostBatch, RowInfo};
use tandem_device::backend::{Backend, BackendChoice, DeviceError, DeviceId, open, wait_for};
use tandem_device::inventory::{DeviceClass, FoundDevice, Inventory};
use tandem_device::memory::{MemoryBaseline, MemoryError, check_worst_batch, figures_of};
use tandem_device::placement::{DeviceSettings, MemoryLimits, Mode, OpenDevices, Placement};
use tandem_model::device_mel::{
    BAND_TOLERANCE, DeviceMel, SoundBatch, TOLERANCE, choose_mel_place,
};
use tandem_model::train_batch::{AlignedBatch, DeviceBatch};
use tandem_units::Bytes;

/// Losses on the CPU and on a software GPU, of each of the same steps.
const LOSS_TOLERANCE: f32 = 1e-4;
const STEPS: u64 = 10;
const SHAPE: BatchShape = BatchShape { rows: 3, frames: 24, symbols: 7 };

/// Drivers share the CPUs and their figures, so only one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn placed(data: usize, model: usize) -> Placement {
    let settings = DeviceSettings {
        backend: BackendChoice::Only(Backend::Wgpu),
        data_gpu: Some(data),
        model_gpu: Some(model),
        ..DeviceSettings::default()
    };
    Placement::decide(&settings, &Inventory::detect()).expect("two software devices")
}

/// Speech of the demo corpus, cut to the lengths that fill the shape, and to less.
fn sounds() -> Vec<Vec<f32>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus/wavs");
    let mut decoder = Decoder::new(MelConfig::SPEECH_22K.rate, AudioConfig::default());
    let mut cut = |name: &str, samples: usize| {
        let bytes = std::fs::read(folder.join(name).with_extension("flac")).unwrap();
        let sound = decoder.decode(&bytes, Some("flac")).unwrap().to_f32();
        sound[11025..11025 + samples].to_vec()
    };
    vec![cut("en/en_emma_001", 23 * 256), cut("en/en_jack_002", 4000), cut("fa/fa_mina_001", 2500)]
}

/// The batch of the host, with the frames of the host kernel.
fn host_batch() -> HostBatch {
    let config = MelConfig::SPEECH_22K;
    let mut extractor = MelExtractor::new(config.clone()).unwrap();
    let mut batch = HostBatch::new(&config);
    batch.reset(SHAPE);
    for (row, sound) in sounds().iter().enumerate() {
        let mel = extractor.extract(Sound::F32(sound)).unwrap();
        let frames = mel.frames().0;
        let row = row as u32;
        let symbols = 7 - 2 * row as usize;
        let place =
            batch.push_row(RowInfo { row, frames, symbols, speaker: row, language: row % 2 });
        place.mel.copy_from_slice(mel.values());
        place
            .symbols
            .iter_mut()
            .enumerate()
            .for_each(|(at, s)| *s = 1 + (at as i32 + row as i32) % 9);
    }
    batch.finish();
    batch
}

fn mel_on(device: &Device) -> Tensor<3> {
    let config = MelConfig::SPEECH_22K;
    let mut batch = SoundBatch::new(&config);
    batch.reset(SHAPE.rows, SHAPE.frames);
    for sound in &sounds() {
        batch.push(Sound::F32(sound)).unwrap();
    }
    DeviceMel::new(&config, device).unwrap().extract(&batch).unwrap()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as().unwrap()
}

fn largest(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn two_software_devices_are_listed_with_their_drivers() {
    let _alone = alone();
    let found = Inventory::detect();
    let gpus = found.gpus(Backend::Wgpu);
    let is_software = |gpu: &FoundDevice| gpu.kind == DeviceClass::Software;
    assert!(gpus.iter().filter(|gpu| is_software(gpu)).count() >= 2, "{gpus:?}");
    assert_ne!(gpus[0].id, gpus[1].id);
    assert!(gpus.iter().all(|gpu| gpu.driver.is_some() && gpu.memory.is_some()), "{gpus:?}");
    // Software devices are only used if their backend is named.
    let auto = Placement::decide(&DeviceSettings::default(), &found).unwrap();
    assert!(auto.mode == Mode::Cpu || auto.model.kind.is_hardware_gpu(), "{auto:?}");
}

#[test]
fn flags_in_either_order_place_data_and_model_apart() {
    let _alone = alone();
    for (data, model) in [(0, 1), (1, 0)] {
        let placement = placed(data, model);
        assert_eq!((placement.mode, placement.data.id.index), (Mode::MultiGpu, data));
        let devices = placement.open().unwrap();
        assert!(devices.are_apart());
        let again = open(DeviceId { backend: Backend::Wgpu, index: model }).unwrap();
        assert_eq!(again, devices.model, "a device is opened once");
        eprintln!("{placement}\n");
    }
}

#[test]
fn without_flags_the_first_gpu_does_both() {
    let _alone = alone();
    let backend = BackendChoice::Only(Backend::Wgpu);
    let settings = DeviceSettings { backend, ..DeviceSettings::default() };
    let placement = Placement::decide(&settings, &Inventory::detect()).unwrap();
    assert_eq!((placement.mode, placement.model.id.index), (Mode::SingleGpu, 0));
    assert!(!placement.open().unwrap().are_apart());
    eprintln!("{placement}\n");
}

#[test]
fn a_batch_is_on_the_data_device_before_the_transfer_and_on_the_model_device_after_it() {
    let _alone = alone();
    let devices = placed(0, 1).open().unwrap();
    // Mel frames of the data device equal those of the host.
    let host = host_batch();
    let mel = values(mel_on(&devices.data));
    let off = largest(&mel, host.mel());
    eprintln!("mel: wgpu:0 against the host kernel, largest difference {off:.2e} in the logarithm");
    assert!(off <= TOLERANCE, "{off}");

    // Every tensor is on the data device before the transfer, on the model device after it.
    let aligned = batches(&mel).remove(0);
    let batch = aligned.to_device(&devices.data);
    let before = devices_of(&batch);
    assert!(before.iter().all(|device| *device == devices.data), "{before:?}");
    let batch = batch.to_device(&devices.model);
    let after = devices_of(&batch);
    assert!(after.iter().all(|device| *device == devices.model), "{after:?}");
    let symbols: Vec<i32> = batch.symbols.try_into_vec_as().unwrap();
    assert_eq!(symbols, aligned.symbol_ids);
    assert_eq!(values(batch.mel), aligned.mel);
}

fn devices_of(batch: &DeviceBatch) -> Vec<Device> {
    let DeviceBatch { symbols, languages, log_durations, symbol_weight, .. } = batch;
    let DeviceBatch { frame_symbols, position_symbols, mel, frame_weight, .. } = batch;
    let DeviceBatch { reference, reference_mask, noise, times, time_features, .. } = batch;
    vec![
        symbols.device(),
        languages.device(),
        log_durations.device(),
        symbol_weight.device(),
        frame_symbols.device(),
        position_symbols.device(),
        mel.device(),
        frame_weight.device(),
        reference.device(),
        reference_mask.device(),
        noise.device(),
        times.device(),
        time_features.device(),
    ]
}

/// Ten batches with frames of this device, or of the host.
fn batches(mel: &[f32]) -> Vec<AlignedBatch> {
    let host = host_batch();
    (0..STEPS).map(|step| real_voice::batch(&host, mel, step)).collect()
}

/// A line of the table.
struct Line {
    name: &'static str,
    devices: OpenDevices,
}

#[test]
fn training_on_software_gpus_gives_the_losses_of_the_cpu() {
    let _alone = alone();
    let host = host_batch();
    let cpu = OpenDevices { data: Device::flex(), model: Device::flex() };
    let reference = real_voice::train(&cpu, &batches(host.mel()));
    let last = reference.losses[STEPS as usize - 1];
    assert!(last.is_finite() && last < reference.losses[0], "it learns: {:?}", reference.losses);

    let apart = placed(0, 1).open().unwrap();
    let alike = |device: &Device| OpenDevices { data: device.clone(), model: device.clone() };
    let lines = [
        Line { name: "GPU 0", devices: alike(&apart.data) },
        Line { name: "GPU 1", devices: alike(&apart.model) },
        Line { name: "data 0, model 1", devices: apart },
    ];
    eprintln!("CPU: loss {last:.6} after ten steps, mel frames by the host's kernel");
    eprintln!(
        "{:<16} {:>14} {:>10} {:>14} {:>9}",
        "against the CPU", "mel, largest", "loss", "largest of 10", "took"
    );
    for Line { name, devices } in lines {
        let began = Instant::now();
        let mel = values(mel_on(&devices.data));
        let ran = real_voice::train(&devices, &batches(&mel));
        let mel = largest(&mel, host.mel());
        let off = largest(&reference.losses, &ran.losses);
        let (loss, took) = (ran.losses[STEPS as usize - 1], began.elapsed());
        eprintln!("{name:<16} {mel:>14.2e} {loss:>10.6} {off:>14.2e} {took:>9.1?}");
        assert!(mel <= TOLERANCE, "{name}: {mel}");
        assert!(off <= LOSS_TOLERANCE, "{name}: {:?}\n{:?}", reference.losses, ran.losses);
        check_places(name, &ran.on_data, &devices.data);
        check_places(name, &ran.on_model, &devices.model);
    }
}

/// Checks that every tensor is on this device.
#[track_caller]
fn check_places(name: &str, placed: &[Transferred], device: &Device) {
    assert!(placed.len() >= 10 * STEPS as usize, "{name}: {} are watched", placed.len());
    for Transferred { what, device: found } in placed {
        assert_eq!(found, device, "{name}: {what}");
    }
}

#[test]
fn swapped_devices_give_the_same_mel() {
    let _alone = alone();
    let devices = placed(1, 0).open().unwrap();
    let host = host_batch();
    let mel = values(mel_on(&devices.data).to_device(&devices.model));
    let off = largest(&mel, host.mel());
    eprintln!("mel: wgpu:1 against the host kernel, largest difference {off:.2e} in the logarithm");
    assert!(off <= TOLERANCE, "{off}");
}

#[test]
fn a_measurement_keeps_mel_frames_on_the_host_of_a_software_device() {
    let _alone = alone();
    let devices = placed(0, 1).open().unwrap();
    let sounds = sounds();
    let sounds: Vec<Sound<'_>> = sounds.iter().map(|sound| Sound::F32(sound)).collect();
    let config = MelConfig::SPEECH_22K;
    let choice = choose_mel_place(&config, &sounds, &devices.data, 1, 2).unwrap();
    eprintln!("{choice}");
    assert!(choice.difference <= BAND_TOLERANCE, "{choice:?}");
}

#[test]
fn the_allocator_reports_the_memory_of_one_device_only() {
    let _alone = alone();
    let devices = placed(0, 1).open().unwrap();
    let figures = |device: &Device| figures_of(device).expect("wgpu reports it");
    let (before, other_before) = (figures(&devices.data), figures(&devices.model));
    let tensor = Tensor::<1>::ones([4 << 20], &devices.data) * 3.0;
    wait_for(&devices.data, "testing").unwrap();
    let (after, other_after) = (figures(&devices.data), figures(&devices.model));
    assert!(after.in_use.0 >= before.in_use.0 + (16 << 20), "{before:?} {after:?}");
    assert!(after.reserved >= after.in_use);
    assert!(other_after.in_use.0 < other_before.in_use.0 + (1 << 20), "{other_after:?}");
    drop(tensor);
}

#[test]
fn a_budget_smaller_than_the_worst_batch_is_refused_before_step_1() {
    let _alone = alone();
    let devices = placed(0, 1).open().unwrap();
    // Values from the host: computed ones could be fused away.
    let step = || {
        let large = Tensor::<1>::from_data(
            TensorData::new(vec![1.5f32; 8 << 20], [8 << 20]),
            &devices.model,
        );
        assert_eq!(large.max().into_scalar::<f32>(), 1.5);
    };
    let check = |data, model| {
        let limits = MemoryLimits { data: Bytes::mib(data), model: Bytes::mib(model) };
        devices.model.memory_cleanup();
        let before = MemoryBaseline::measure(&devices);
        check_worst_batch(SHAPE, &devices, Some(limits), &before, step)
    };
    let error = check(64, 16).unwrap_err();
    let MemoryError::WorstBatch { needed, .. } = error else { panic!("{error:?}") };
    assert!(needed >= Bytes::mib(32), "{needed}");
    assert!(check(64, 4096).is_ok());
}

#[test]
fn a_missing_driver_is_an_error_and_no_panic() {
    // The loader reads its environment once, so another process tries a driver that does not
    // exist.
    if env::var_os(NO_DRIVER).is_some() {
        let id = DeviceId { backend: Backend::Wgpu, index: 0 };
        let error = open(id).unwrap_err();
        assert!(matches!(error, DeviceError::NoDriver { .. }), "{error:?}");
        let report = Inventory::detect();
        let report = report.report(Backend::Wgpu).unwrap();
        assert!(report.built && report.hint.as_ref().unwrap().starts_with("install "));
        return;
    }
    let name = "a_missing_driver_is_an_error_and_no_panic";
    let outcome = Command::new(env::current_exe().unwrap())
        .args(["--exact", name])
        .env(NO_DRIVER, "1")
        .env("VK_DRIVER_FILES", "/nowhere/no_driver.json")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success() && !said.contains("panicked"), "{said}");
}

const NO_DRIVER: &str = "TANDEM_TEST_NO_DRIVER";
