//! The sampler: its events, its warnings, and that no caller waits for it. File trees replace the kernel's,
//! and a test library replaces NVIDIA's driver.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tandem_device::sampler::{
    Amd, Cgroup, GpuAddress, Machine, Nvidia, NvidiaDriver, Process, SampleError, Sampler, Silent,
    Source, Vendor, WatchedGpu, standard_sources,
};
use tandem_telemetry::event::{DeviceRole, DeviceSample, RunHeader};
use tandem_telemetry::{Recording, Summary};
use tandem_units::Bytes;

/// Only a sampler that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(300);

fn recording() -> Recording {
    Recording::in_memory(RunHeader::now("test", "0", serde_json::json!({}))).unwrap().0
}

fn watched(vendor: Vendor, address: GpuAddress) -> WatchedGpu {
    WatchedGpu { device: "gpu:0".into(), role: DeviceRole::Model, vendor, address }
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }
}

/// Fails at some samples, and counts all.
struct Fake {
    looks: Arc<AtomicU64>,
    broken: std::ops::Range<u64>,
    takes: Duration,
}

impl Fake {
    fn new(broken: std::ops::Range<u64>) -> (Fake, Arc<AtomicU64>) {
        let looks = Arc::new(AtomicU64::new(0));
        (Fake { looks: looks.clone(), broken, takes: Duration::ZERO }, looks)
    }
}

impl Source for Fake {
    fn name(&self) -> &str {
        "fake"
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(self.takes);
        if self.broken.contains(&look) {
            return Err(SampleError::UnknownVendor);
        }
        let utilisation = Some(0.5);
        Ok(Some(DeviceSample { utilisation, ..DeviceSample::new("fake".into(), DeviceRole::Host) }))
    }
}

fn sampled(source: Fake, until: impl Fn() -> bool) -> Summary {
    let recording = recording();
    let every = Duration::from_millis(1);
    let handle = Sampler::start(vec![Box::new(source)], recording.recorder(), every).unwrap();
    let limit = Instant::now() + PATIENCE;
    while !until() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(handle);
    recording.finish().summary
}

#[test]
fn every_sample_becomes_an_event_until_the_handle_is_dropped() {
    let (source, looks) = Fake::new(0..0);
    let summary = sampled(source, || looks.load(Ordering::SeqCst) >= 20);
    let after = looks.load(Ordering::SeqCst);
    let sums = &summary.devices[&(DeviceRole::Host, "fake".into())];
    assert!(after >= 20 && sums.samples == after, "{} of {after}", sums.samples);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(looks.load(Ordering::SeqCst), after, "it continued after its end");
}

#[test]
fn a_failing_source_is_reported_once_and_tried_again() {
    let (source, looks) = Fake::new(0..3);
    let summary = sampled(source, || looks.load(Ordering::SeqCst) >= 5);
    assert_eq!(summary.warning_count, 1);
    let warning = &summary.warnings[0];
    assert_eq!(warning.code, "not_measured");
    assert!(warning.text.starts_with("fake is not measured: "), "{}", warning.text);
    assert!(summary.devices[&(DeviceRole::Host, "fake".into())].samples >= 1, "it came back");
}

#[test]
fn ending_waits_neither_for_the_next_sample_nor_for_a_driver_that_hangs() {
    for (every, takes) in [(3600, 0), (1, 3600)] {
        let (mut source, looks) = Fake::new(0..0);
        source.takes = Duration::from_secs(takes);
        let recording = recording();
        let every = Duration::from_secs(every);
        let sources: Vec<Box<dyn Source>> = vec![Box::new(source)];
        let handle = Sampler::start(sources, recording.recorder(), every).unwrap();
        while looks.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let start = Instant::now();
        drop(handle);
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    }
}

/// Two AMD cards in the reverse order of their bus, one card of another vendor, one output.
fn amd_tree(root: &Path) {
    let card = |number: u32, vendor: &str, bus: &str, files: &[(&str, &str)]| {
        let device = format!("card{number}/device");
        let path = |name: &str| format!("{device}/{name}");
        let (vendor_file, facts) = (path("vendor"), path("uevent"));
        write(root, &[(&vendor_file, vendor)]);
        write(root, &[(&facts, &format!("DRIVER=amdgpu\nPCI_SLOT_NAME={bus}"))]);
        files.iter().for_each(|(name, text)| write(root, &[(&path(name), text)]));
    };
    card(0, "0x10de", "0000:01:00.0", &[("gpu_busy_percent", "1")]);
    card(
        1,
        "0x1002",
        "0000:0a:00.0",
        &[("gpu_busy_percent", "97"), ("unique_id", "1b3f00d5a2e1c001")],
    );
    card(
        2,
        "0x1002",
        "0000:03:00.0",
        &[
            ("gpu_busy_percent", "42"),
            ("mem_info_vram_used", "1048576"),
            ("mem_info_vram_total", "17163091968"),
            ("hwmon/hwmon5/temp1_input", "61500"),
            ("hwmon/hwmon5/power1_average", "211000000"),
        ],
    );
    write(root, &[("card2-DP-1/status", "connected"), ("version", "drm 1.1.0")]);
}

#[test]
fn an_amd_card_is_sampled_in_our_units() {
    let room = tempfile::tempdir().unwrap();
    amd_tree(room.path());
    let mut source = Amd::new(watched(Vendor::Amd, GpuAddress::Index(0)), room.path());
    let sample = source.sample().unwrap().unwrap();
    assert_eq!(
        sample,
        DeviceSample {
            device: "gpu:0".into(),
            role: DeviceRole::Model,
            utilisation: Some(0.42),
            activity: None,
            memory_used: Some(Bytes::mib(1)),
            memory_total: Some(Bytes(17_163_091_968)),
            temperature: Some(61.5),
            power: Some(211.0),
        }
    );
    write(room.path(), &[("card2/device/gpu_busy_percent", "7")]);
    assert_eq!(source.sample().unwrap().unwrap().utilisation, Some(0.07));
}

#[test]
fn an_amd_card_is_found_by_bus_and_by_index() {
    let room = tempfile::tempdir().unwrap();
    amd_tree(room.path());
    let busy = |address| {
        let sample = Amd::new(watched(Vendor::Amd, address), room.path()).sample()?;
        Ok::<_, SampleError>(sample.unwrap().utilisation)
    };
    assert_eq!(busy(GpuAddress::Index(1)).unwrap(), Some(0.97), "the second on the bus");
    assert_eq!(busy(GpuAddress::PciBus("0000:0A:00.0".into())).unwrap(), Some(0.97));
    assert_eq!(busy(GpuAddress::Uuid("GPU-1b3f00d5a2e1c001".into())).unwrap(), Some(0.97));
    let missing = busy(GpuAddress::Index(2)).unwrap_err().to_string();
    assert!(missing.starts_with("no AMD card number 2 under"), "{missing}");
    assert!(busy(GpuAddress::PciBus("0000:01:00.0".into())).is_err(), "another vendor");
}

#[test]
fn an_amd_card_without_figures_or_with_invalid_ones_is_an_error() {
    let room = tempfile::tempdir().unwrap();
    write(room.path(), &[("card0/device/vendor", "0x1002")]);
    let mut source = Amd::new(watched(Vendor::Amd, GpuAddress::Index(0)), room.path());
    assert!(matches!(source.sample(), Err(SampleError::NoFigures { .. })));
    write(room.path(), &[("card0/device/gpu_busy_percent", "many")]);
    assert!(matches!(source.sample(), Err(SampleError::Number { .. })));
    let mut nowhere = Amd::new(watched(Vendor::Amd, GpuAddress::Index(0)), Path::new("/nowhere"));
    assert!(matches!(nowhere.sample(), Err(SampleError::File { .. })));
}

#[test]
fn a_container_has_the_smallest_limit_above_it() {
    let room = tempfile::tempdir().unwrap();
    write(
        room.path(),
        &[
            ("proc/self/cgroup", "0::/pod/box"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu memory"),
            ("sys/fs/cgroup/cpu.stat", "usage_usec 999999999"),
            ("sys/fs/cgroup/pod/memory.max", "4096"),
            ("sys/fs/cgroup/pod/memory.current", "3000"),
            ("sys/fs/cgroup/pod/cpu.max", "50000 100000"),
            ("sys/fs/cgroup/pod/box/memory.max", "max"),
            ("sys/fs/cgroup/pod/box/memory.current", "1024"),
            ("sys/fs/cgroup/pod/box/cpu.max", "max 100000"),
            ("sys/fs/cgroup/pod/box/cpu.stat", "usage_usec 1000000\nuser_usec 1"),
        ],
    );
    let mut source = Cgroup::new(room.path());
    let begin = Instant::now();
    let first = source.sample().unwrap().unwrap();
    assert_eq!((&*first.device, first.role), ("cgroup", DeviceRole::Host));
    assert_eq!((first.memory_used, first.memory_total), (Some(Bytes(1024)), Some(Bytes(4096))));
    assert_eq!(first.utilisation, None, "nothing to compare with");
    // 25 ms of CPU time between the samples, on half a CPU.
    write(room.path(), &[("sys/fs/cgroup/pod/box/cpu.stat", "usage_usec 1025000")]);
    std::thread::sleep(Duration::from_millis(50));
    let share = source.sample().unwrap().unwrap().utilisation.unwrap();
    let least = 0.025 / begin.elapsed().as_secs_f32() / 0.5;
    assert!(share >= least && share <= 1.0, "{least} {share}");
}

#[test]
fn control_groups_of_version_1_are_read_too() {
    let room = tempfile::tempdir().unwrap();
    write(
        room.path(),
        &[
            // The second path is not visible in the container: the group itself is mounted there.
            ("proc/self/cgroup", "9:cpuacct,cpu:/\n4:memory:/docker/f00\n0::/"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "2048"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
            ("sys/fs/cgroup/cpuacct/cpuacct.usage", "1000000000"),
        ],
    );
    let mut source = Cgroup::new(room.path());
    let first = source.sample().unwrap().unwrap();
    assert_eq!((first.memory_used, first.memory_total), (Some(Bytes(2048)), None), "no limit");
    write(room.path(), &[("sys/fs/cgroup/cpuacct/cpuacct.usage", "1010000000")]);
    std::thread::sleep(Duration::from_millis(20));
    let share = source.sample().unwrap().unwrap().utilisation.unwrap();
    assert!(share > 0.0 && share < 1.0, "{share}");
    write(room.path(), &[("sys/fs/cgroup/memory/memory.limit_in_bytes", "8192")]);
    assert_eq!(source.sample().unwrap().unwrap().memory_total, Some(Bytes(8192)));
}

#[test]
fn a_system_without_control_groups_gives_no_sample_and_no_error() {
    let room = tempfile::tempdir().unwrap();
    assert_eq!(Cgroup::new(room.path()).sample().unwrap(), None);
    write(room.path(), &[("proc/self/cgroup", "0::/"), ("sys/fs/cgroup/cgroup.controllers", "")]);
    assert_eq!(Cgroup::new(room.path()).sample().unwrap(), None, "the root group has no figures");
}

#[test]
fn the_utilisation_of_this_process_is_measured() {
    let mut source = Process::new();
    let first = source.sample().unwrap().unwrap();
    assert_eq!(first.utilisation, None);
    assert!(first.memory_used.unwrap() > Bytes::mib(1));
    let begin = Instant::now();
    let mut memory = vec![1u8; 64 << 20];
    while begin.elapsed() < Duration::from_millis(100) {
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = byte.wrapping_add(1));
    }
    let second = source.sample().unwrap().unwrap();
    let share = second.utilisation.unwrap();
    assert!(share > 0.01 && share < 1.5, "{share}");
    let grown = second.memory_used.unwrap().0.saturating_sub(first.memory_used.unwrap().0);
    assert!(grown > 60 << 20, "{grown}");
    drop(memory);
}

#[test]
fn load_and_memory_of_the_machine_are_measured() {
    let mut source = Machine::new();
    assert_eq!(source.sample().unwrap().unwrap().utilisation, None);
    std::thread::sleep(Duration::from_millis(250));
    let sample = source.sample().unwrap().unwrap();
    let share = sample.utilisation.unwrap();
    assert!((0.0..=1.001).contains(&share), "{share}");
    assert!(sample.memory_used.unwrap() <= sample.memory_total.unwrap());
}

#[test]
fn a_run_without_known_gpus_has_host_samples_and_a_warning() {
    let other = watched(Vendor::of_pci(0x10005), GpuAddress::Index(0));
    assert!(matches!(Silent::new(other.clone()).sample(), Err(SampleError::UnknownVendor)));
    let recording = recording();
    let every = Duration::from_millis(1);
    let handle = Sampler::start(standard_sources(&[other]), recording.recorder(), every).unwrap();
    let host = |name: &'static str| (DeviceRole::Host, name.into());
    let limit = Instant::now() + PATIENCE;
    let looked = || {
        let devices = recording.recorder().summary().devices;
        devices.contains_key(&host("process")) && devices.contains_key(&host("machine"))
    };
    while !looked() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(handle);
    let summary = recording.finish().summary;
    assert!(summary.devices.contains_key(&host("process")));
    assert!(summary.devices.contains_key(&host("machine")));
    assert_eq!(summary.warning_count, 1, "{:?}", summary.warnings);
    assert!(summary.warnings[0].text.starts_with("gpu:0 is not measured"));
}

/// A test version of NVIDIA's library: two cards, the first one from before Hopper.
fn fake_nvml(room: &Path) -> PathBuf {
    let library = room.join("libfake-nvml.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kit/fake_nvml.c");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
    assert!(command.status().expect("a C compiler").success());
    library
}

#[test]
fn an_nvidia_card_is_sampled_in_our_units() {
    let room = tempfile::tempdir().unwrap();
    let driver = Arc::new(NvidiaDriver::at(&fake_nvml(room.path())));
    let source = |address| Nvidia::new(watched(Vendor::Nvidia, address), Arc::clone(&driver));
    let sample = source(GpuAddress::Index(0)).sample().unwrap().unwrap();
    assert_eq!(
        sample,
        DeviceSample {
            device: "gpu:0".into(),
            role: DeviceRole::Model,
            utilisation: Some(0.97),
            activity: None,
            memory_used: Some(Bytes::mib(3)),
            memory_total: Some(Bytes::mib(24576)),
            temperature: Some(61.0),
            power: None,
        },
        "power is not supported by this card"
    );
    let mut newer = source(GpuAddress::PciBus("0000:0a:00.0".into()));
    let first = newer.sample().unwrap().unwrap();
    assert_eq!((first.activity, first.power), (None, Some(250.5)), "needs two samples");
    assert_eq!(newer.sample().unwrap().unwrap().activity, Some(0.25));
    assert_eq!(newer.sample().unwrap().unwrap().activity, Some(0.25));
    let by_uuid = source(GpuAddress::Uuid("GPU-new".into())).sample().unwrap().unwrap();
    assert_eq!(by_uuid.power, Some(250.5));
    let lost = source(GpuAddress::Index(7)).sample().unwrap_err();
    assert!(matches!(lost, SampleError::Nvidia(_)), "{lost:?}");
}

#[test]
fn a_machine_without_the_nvidia_library_gets_an_error() {
    let driver = Arc::new(NvidiaDriver::at(Path::new("/nowhere/libnvidia-ml.so.1")));
    let mut source = Nvidia::new(watched(Vendor::Nvidia, GpuAddress::Index(0)), driver);
    for _ in 0..2 {
        let error = source.sample().unwrap_err();
        assert!(matches!(error, SampleError::Driver(_)), "{error:?}");
    }
    let recording = recording();
    let every = Duration::from_secs(3600);
    let handle = Sampler::start(vec![Box::new(source)], recording.recorder(), every).unwrap();
    let limit = Instant::now() + PATIENCE;
    while recording.recorder().summary().warnings.is_empty() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(handle);
    let warnings = recording.finish().summary.warnings;
    let text = &warnings[0].text;
    assert_eq!(text.matches("cannot open shared object file").count(), 1, "{text}");
}

#[test]
fn the_newest_sample_of_a_device_can_be_read_during_a_run() {
    let (fake, looks) = Fake::new(0..0);
    let recording = recording();
    let every = Duration::from_millis(1);
    let handle = Sampler::start(vec![Box::new(fake)], recording.recorder(), every).unwrap();
    let latest = handle.latest();
    let began = Instant::now();
    while latest.all().is_empty() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let samples = latest.all();
    assert_eq!(samples.len(), 1);
    assert_eq!((&*samples[0].device, samples[0].utilisation), ("fake", Some(0.5)));
    assert!(looks.load(Ordering::SeqCst) > 0);
}
