//! What the stand-in driver counts, `tools/cuda-stand-in`, and what training steps cost by it.

use super::real_voice::settings;
use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::ops::Sub;
use tandem_device::backend::wait_for;
use tandem_device::placement::OpenDevices;
use tandem_model::gradients::GradientSum;
use tandem_model::network::size::VoiceConfig;
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::Optimizer;
use tandem_model::train_batch::{AlignedBatch, DeviceBatch};
use tandem_units::Seed;

/// What the driver did for a number of steps.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub steps: u64,
    /// Batches to the data device and from there to the model device.
    pub upload: DriverCounts,
    /// Losses, gradients, weights: the calls of the training thread.
    pub training: DriverCounts,
}

/// Counts after a few steps, when every kernel is compiled.
pub fn count_steps(config: &VoiceConfig, batch: &AlignedBatch, devices: &OpenDevices) -> Counted {
    const WARM_UP: u64 = 3;
    const STEPS: u64 = 10;
    let uploads = |count: u64| -> Vec<DeviceBatch> {
        (0..count).map(|_| batch.to_device(&devices.data).to_device(&devices.model)).collect()
    };
    let voice = Voice::new(config, Seed(7), &devices.model.clone().autodiff());
    let mut optimizer = Optimizer::new(&voice);
    let mut train = |batches: Vec<DeviceBatch>, voice: Voice| {
        batches.into_iter().fold(voice, |voice, batch| {
            let losses = voice.losses(&batch);
            let mut sum = GradientSum::default();
            sum.add(&voice, losses.total().backward(), batch.utterances);
            optimizer.step(voice, sum, &settings(1)).0
        })
    };
    let voice = train(uploads(WARM_UP), voice);
    finish_work(devices);
    let before = DriverCounts::now();
    let batches = uploads(STEPS);
    let upload = finish_work(devices) - before;
    let before = DriverCounts::now();
    let voice = train(batches, voice);
    let training = finish_work(devices) - before;
    drop(voice);
    Counted { steps: STEPS, upload, training }
}

/// Waits for all queued work. The counts then, without these waits.
fn finish_work(devices: &OpenDevices) -> DriverCounts {
    // The first wait may end with work of its own; the second is nothing but waiting.
    let [_, waits] = [(); 2].map(|()| {
        let before = DriverCounts::now().synchronisations;
        for device in [&devices.data, &devices.model] {
            wait_for(device, "counting").unwrap();
        }
        DriverCounts::now().synchronisations - before
    });
    let counts = DriverCounts::now();
    DriverCounts { synchronisations: counts.synchronisations - 2 * waits, ..counts }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |what: &str, counts: DriverCounts| {
            let each = |count: u64| count as f64 / self.steps as f64;
            write!(
                f,
                "{what}, per step: {:.1} launches, {:.1} copies to the device ({:.0} bytes), {:.1} to the \
                 host, {:.1} on the device, {:.1} synchronisations, {:.1} allocations",
                each(counts.launches),
                each(counts.copies_to_device),
                each(counts.bytes_to_device),
                each(counts.copies_to_host),
                each(counts.copies_on_device),
                each(counts.synchronisations),
                each(counts.allocations),
            )
        };
        line("upload and transfer", self.upload)?;
        line("; training", self.training)
    }
}

/// Calls since the program started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCounts {
    pub launches: u64,
    pub copies_to_device: u64,
    pub copies_to_host: u64,
    pub copies_on_device: u64,
    pub synchronisations: u64,
    pub allocations: u64,
    pub bytes_to_device: u64,
}

impl DriverCounts {
    pub fn now() -> DriverCounts {
        let mut counts = [0u64; 9];
        // SAFETY: the function of driver.c fills at most as many numbers as it is told.
        let known = unsafe {
            let read: extern "C" fn(*mut u64, c_int) -> c_int =
                std::mem::transmute(function(c"cuda_stand_in_counts"));
            read(counts.as_mut_ptr(), counts.len() as c_int)
        };
        assert_eq!(known as usize, counts.len(), "the order of `Count` in driver.h");
        let [launches, to_device, to_host, on_device, sync, alloc, _, bytes, _] = counts;
        DriverCounts {
            launches,
            copies_to_device: to_device,
            copies_to_host: to_host,
            copies_on_device: on_device,
            synchronisations: sync,
            allocations: alloc,
            bytes_to_device: bytes,
        }
    }
}

impl Sub for DriverCounts {
    type Output = DriverCounts;

    fn sub(self, before: DriverCounts) -> DriverCounts {
        DriverCounts {
            launches: self.launches - before.launches,
            copies_to_device: self.copies_to_device - before.copies_to_device,
            copies_to_host: self.copies_to_host - before.copies_to_host,
            copies_on_device: self.copies_on_device - before.copies_on_device,
            synchronisations: self.synchronisations - before.synchronisations,
            allocations: self.allocations - before.allocations,
            bytes_to_device: self.bytes_to_device - before.bytes_to_device,
        }
    }
}

/// From now on launches are checked and counted, and kernels not computed: results are meaningless.
pub fn stop_computing() {
    // SAFETY: the function of modules.c takes nothing and returns nothing.
    unsafe {
        let stop: extern "C" fn() = std::mem::transmute(function(c"cuda_stand_in_stop_computing"));
        stop();
    }
}

fn function(name: &CStr) -> *mut c_void {
    // SAFETY: the library is loaded already, and both strings end with a zero.
    let found = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "the stand-in driver is not loaded");
        libc::dlsym(library, name.as_ptr())
    };
    assert!(!found.is_null(), "{name:?}: the driver is not the stand-in of this version");
    found
}
