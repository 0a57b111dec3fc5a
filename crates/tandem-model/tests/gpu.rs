//! Two GPUs without a GPU: the data side on one device, the model on another.
//!
//! `xtask/tests/gpu_tests.sh` runs them with feature `wgpu` on two software Vulkan devices,
//! `xtask/tests/cuda_tests.sh` with `cuda` on two devices of the stand-in driver and with `vulkan` on a newer Mesa.
//! Nothing is skipped without them. Kernels are compiled for each new shape, so shapes are tiny.

#![allow(clippy::print_stderr, reason = "the figures are shown with `--nocapture`")]

mod gpu {
    #[cfg(feature = "cuda")]
    pub mod kernel_cache;
    #[cfg(feature = "cuda")]
    pub mod late_work;
    #[cfg(feature = "cuda")]
    pub mod memory_phases;
    pub mod optimizer;
    pub mod own_kernels;
    pub mod real_voice;
    #[cfg(feature = "cuda")]
    pub mod step_graph;
}

use burn::tensor::{Device, Int, Tensor, TensorData};
use gpu::real_voice::{self, Transferred};
use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tandem_audio::mel::{MelConfig, MelExtractor};
use tandem_audio::{AudioConfig, Decoder, Sound};
use tandem_data::batch::{BatchShape, HostBatch, RowInfo};
use tandem_device::backend::{
    Backend, BackendChoice, DeviceError, DeviceId, F32Products, open, open_for, wait_for,
};
use tandem_device::inventory::{DeviceClass, Inventory};
use tandem_device::memory::{MemoryBaseline, MemoryError, check_worst_batch, figures_of};
use tandem_device::placement::{DeviceSettings, MemoryLimits, Mode, OpenDevices, Placement};
use tandem_model::device_mel::{
    BAND_TOLERANCE, DeviceMel, SoundBatch, TOLERANCE, choose_mel_place,
};
use tandem_model::train_batch::{AlignedBatch, DeviceBatch};
use tandem_units::{Bytes, Hint};

/// The backend under test.
const BACKEND: Backend = match () {
    () if cfg!(feature = "cuda") => Backend::Cuda,
    () if cfg!(feature = "vulkan") => Backend::Vulkan,
    () => Backend::Wgpu,
};

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
        backend: BackendChoice::Only(BACKEND),
        data_gpu: Some(data),
        model_gpu: Some(model),
        ..DeviceSettings::default()
    };
    Placement::decide(&settings, &Inventory::detect()).expect("two devices")
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
fn two_devices_are_listed_with_their_drivers() {
    let _alone = alone();
    let found = Inventory::detect();
    let gpus = found.gpus(BACKEND);
    // The stand-in driver presents cards.
    let kind = if cfg!(feature = "cuda") { DeviceClass::Discrete } else { DeviceClass::Software };
    assert!(gpus.iter().filter(|gpu| gpu.kind == kind).count() >= 2, "{gpus:?}");
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
        let again = open(DeviceId { backend: BACKEND, index: model }).unwrap();
        assert_eq!(again, devices.model, "a device is opened once");
        eprintln!("{placement}\n");
    }
}

#[test]
fn without_flags_the_first_gpu_does_both() {
    let _alone = alone();
    let backend = BackendChoice::Only(BACKEND);
    let settings = DeviceSettings { backend, ..DeviceSettings::default() };
    let placement = Placement::decide(&settings, &Inventory::detect()).unwrap();
    assert_eq!((placement.mode, placement.model.id.index), (Mode::SingleGpu, 0));
    assert!(!placement.open().unwrap().are_apart());
    eprintln!("{placement}\n");
}

#[test]
fn a_batch_with_frames_of_the_data_device_arrives_on_the_model_device_as_it_was_packed() {
    let _alone = alone();
    let devices = placed(0, 1).open().unwrap();
    // Mel frames of the data device equal those of the host.
    let host = host_batch();
    let mel = values(mel_on(&devices.data));
    let off = largest(&mel, host.mel());
    eprintln!(
        "mel: {BACKEND}:0 against the host kernel, largest difference {off:.2e} in the logarithm"
    );
    assert!(off <= TOLERANCE, "{off}");

    // Uploaded by a thread of its own, as in a run.
    let aligned = batches(&mel).remove(0);
    let upload = || aligned.pack().upload(&devices.model);
    let uploaded = std::thread::scope(|scope| scope.spawn(upload).join().unwrap());
    let batch = uploaded.tensors();
    let placed = devices_of(&batch);
    assert!(placed.iter().all(|device| *device == devices.model), "{placed:?}");
    assert_eq!(bits_of(batch), bits_of(aligned.to_device(&Device::flex())));
    // A replayed batch is taken again.
    assert_eq!(bits_of(uploaded.tensors()), bits_of(aligned.to_device(&Device::flex())));
}

/// Every tensor of a batch by its bits.
fn bits_of(batch: DeviceBatch) -> Vec<Vec<u32>> {
    let DeviceBatch { symbols, languages, text, positions, log_durations, .. } = batch.clone();
    let DeviceBatch { symbol_weight, frame_symbols, position_symbols, mel, .. } = batch.clone();
    let DeviceBatch { frame_weight, reference, reference_mask, noise, times, .. } = batch.clone();
    fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<u32> {
        values(tensor).into_iter().map(f32::to_bits).collect()
    }
    fn ints<const D: usize>(tensor: Tensor<D, Int>) -> Vec<u32> {
        let values: Vec<i32> = tensor.try_into_vec_as().unwrap();
        values.into_iter().map(i32::cast_unsigned).collect()
    }
    vec![
        ints(symbols),
        ints(languages),
        floats(text.mask()),
        floats(positions.mask()),
        floats(log_durations),
        floats(symbol_weight),
        ints(frame_symbols),
        ints(position_symbols),
        floats(mel),
        floats(frame_weight),
        floats(reference),
        floats(reference_mask),
        floats(noise),
        floats(times),
        floats(batch.time_features),
    ]
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
fn training_on_gpus_gives_the_losses_of_the_cpu() {
    let _alone = alone();
    let host = host_batch();
    let cpu = OpenDevices { data: Device::flex(), model: Device::flex() };
    let reference = real_voice::train(&cpu, &batches(host.mel()));
    let last = reference.losses[STEPS as usize - 1];
    assert!(last.is_finite() && last < reference.losses[0], "it learns: {:?}", reference.losses);

    let apart = placed(0, 1).open().unwrap();
    let alike = |device: &Device| OpenDevices { data: device.clone(), model: device.clone() };
    let mut lines = vec![
        Line { name: "GPU 0", devices: alike(&apart.data) },
        Line { name: "GPU 1", devices: alike(&apart.model) },
        Line { name: "data 0, model 1", devices: apart },
    ];
    // Each device compiles its own kernels. The last line alone compiles half of them.
    if env::var_os("TANDEM_TEST_QUICK").is_some() {
        lines.drain(..2);
    }
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
    eprintln!(
        "mel: {BACKEND}:1 against the host kernel, largest difference {off:.2e} in the logarithm"
    );
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
    let figures = |device: &Device| figures_of(device).expect("the allocator reports it");
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

/// Products of two matrices whose elements need all bits of an f32, and how far the worst is from the exact
/// one, as a share of the sum of the absolute products. Long enough rows for the tuner to prefer tensor cores.
fn product_error(device: &Device) -> f32 {
    const SIDE: usize = 64;
    const INNER: usize = 1024;
    let element = |at: usize| ((at * 7919 % 1009) as f32 / 1009.0 - 0.5) * 1.000_123;
    let (left, right): (Vec<f32>, Vec<f32>) =
        (0..SIDE * INNER).map(|at| (element(at), element(at + 3))).unzip();
    let on_device = |values: &[f32], shape| {
        Tensor::<2>::from_data(TensorData::new(values.to_vec(), shape), device)
    };
    let product = on_device(&left, [SIDE, INNER]).matmul(on_device(&right, [INNER, SIDE]));
    let exact = |row: usize, column: usize| {
        let terms = (0..INNER)
            .map(|k| f64::from(left[row * INNER + k]) * f64::from(right[k * SIDE + column]));
        terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
    };
    let off = values(product).into_iter().enumerate().map(|(at, found)| {
        let (sum, size) = exact(at / SIDE, at % SIDE);
        ((f64::from(found) - sum).abs() / size) as f32
    });
    off.fold(0.0, f32::max)
}

#[test]
fn products_of_f32_keep_all_bits() {
    let _alone = alone();
    let off = product_error(&placed(0, 1).open().unwrap().model);
    eprintln!("f32 products: {off:.2e} of the sum of absolute products");
    assert!(off < 1e-6, "{off}");
}

#[test]
fn tf32_is_a_choice_and_only_where_the_device_has_it() {
    if env::var_os(IN_CHILD).is_none() {
        in_child("tf32_is_a_choice_and_only_where_the_device_has_it", &[]);
        return;
    }
    let id = DeviceId { backend: BACKEND, index: 1 };
    if !cfg!(feature = "cuda") {
        let error = open_for(id, F32Products::Tf32).unwrap_err();
        assert_eq!(error, DeviceError::NoTf32 { id });
        assert!(error.hint().unwrap().contains("`--mixed-precision off`"));
        return;
    }
    let placement = Placement { products: F32Products::Tf32, ..placed(0, 1) };
    let devices = placement.open().unwrap();
    // The data device computes mel frames, which need all bits.
    let (data, model) = (product_error(&devices.data), product_error(&devices.model));
    eprintln!("TF32 products: {model:.2e}, on the data device {data:.2e}");
    assert!(data < 1e-6 && (5e-6..1e-3).contains(&model), "{data} {model}");
    assert_eq!(open(id).unwrap_err(), DeviceError::OpenOtherwise { id });
}

#[test]
fn a_missing_driver_is_an_error_and_no_panic() {
    // Loaders read their environment once, so another process tries a driver that does not
    // exist.
    if env::var_os(IN_CHILD).is_some() {
        let error = open(DeviceId { backend: BACKEND, index: 0 }).unwrap_err();
        assert!(matches!(error, DeviceError::NoDriver { .. }), "{error:?}");
        let report = Inventory::detect();
        let report = report.report(BACKEND).unwrap();
        assert!(report.built && report.hint.as_ref().unwrap().starts_with("install "));
        return;
    }
    let nowhere = [("VK_DRIVER_FILES", "/nowhere/no_driver.json"), ("LD_LIBRARY_PATH", "/nowhere")];
    in_child("a_missing_driver_is_an_error_and_no_panic", &nowhere);
}

#[cfg(feature = "cuda")]
#[test]
fn a_missing_libdevice_is_one_error_with_the_command_that_gets_it() {
    if env::var_os(IN_CHILD).is_some() {
        let id = DeviceId { backend: BACKEND, index: 0 };
        let found = Inventory::detect();
        let report = found.report(BACKEND).unwrap();
        assert_eq!(report.devices.len(), 2, "the driver is there: {report:?}");
        let fault = report.fault.as_ref().expect("listed as a fault of the backend");
        assert!(fault.contains("libdevice.10.bc"), "{fault}");
        let error = open(id).unwrap_err();
        assert!(matches!(error, DeviceError::NoLibdevice { .. }), "{error:?}");
        assert!(error.hint().unwrap().contains("`pip install nvidia-cuda-nvcc-cu12`"));
        return;
    }
    let nowhere = ["CUDA_PATH", "CUDA_HOME", "CUDA_ROOT", "CONDA_PREFIX", "VIRTUAL_ENV", "HOME"];
    let nowhere = nowhere.map(|name| (name, "/nowhere"));
    in_child("a_missing_libdevice_is_one_error_with_the_command_that_gets_it", &nowhere);
}

/// The stand-in drivers of older versions lack the functions that came later.
#[cfg(feature = "cuda")]
#[test]
fn drivers_since_cuda_12_0_work_and_older_ones_are_refused() {
    const NAME: &str = "drivers_since_cuda_12_0_work_and_older_ones_are_refused";
    let version = env::var("TANDEM_TEST_DRIVER").unwrap_or_default();
    let id = DeviceId { backend: BACKEND, index: 0 };
    match version.as_str() {
        "12.0" => {
            let found = Inventory::detect();
            assert_eq!(found.gpus(BACKEND)[0].driver.as_deref(), Some("CUDA 12.0"));
            let off = product_error(&open(id).unwrap());
            assert!(off < 1e-6, "{off}");
        }
        "11.8" => {
            let error = open(id).unwrap_err();
            assert_eq!(error, DeviceError::OldDriver { found: "11.8".into() });
            assert!(error.hint().unwrap().contains("525"));
            let settings = DeviceSettings {
                backend: BackendChoice::Only(BACKEND),
                ..DeviceSettings::default()
            };
            let refused = Placement::decide(&settings, &Inventory::detect()).unwrap_err();
            assert!(refused.hint().unwrap().starts_with("install driver 525"), "{refused:?}");
        }
        _ => {
            let drivers =
                env::var("CUDA_STAND_IN_DRIVERS").expect("xtask/tests/cuda_tests.sh sets it");
            for version in ["12.0", "11.8"] {
                let directory = format!("{drivers}/{version}");
                let driver =
                    [("TANDEM_TEST_DRIVER", version), ("LD_LIBRARY_PATH", directory.as_str())];
                in_child(NAME, &driver);
            }
        }
    }
}

/// Runs one test of this program in a process of its own, which may open devices otherwise. Returns what it said.
fn in_child(name: &str, variables: &[(&str, &str)]) -> String {
    let outcome = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(IN_CHILD, "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let ran = String::from_utf8_lossy(&outcome.stdout).contains("1 passed");
    assert!(outcome.status.success() && ran && !said.contains("panicked"), "{said}");
    eprint!("{said}");
    said
}

const IN_CHILD: &str = "TANDEM_TEST_IN_CHILD";
