use super::*;
use crate::backend::DeviceId;
use crate::inventory::{BackendReport, BusCard, DeviceClass, Link, LinkKind, Processor};
use tandem_units::Hint;

const GIB: u64 = 1 << 30;

fn gpu(backend: Backend, index: usize, kind: DeviceClass, gib: u64) -> FoundDevice {
    FoundDevice {
        id: DeviceId { backend, index },
        name: format!("Card {index}"),
        kind,
        memory: Some(Bytes(gib * GIB)),
        driver: None,
        pci: None,
    }
}

fn cuda(memory: &[u64]) -> (Backend, Vec<FoundDevice>) {
    let cards = memory.iter().enumerate();
    let cards = cards.map(|(index, &gib)| gpu(Backend::Cuda, index, DeviceClass::Discrete, gib));
    (Backend::Cuda, cards.collect())
}

fn software(count: usize) -> (Backend, Vec<FoundDevice>) {
    let one = |index| gpu(Backend::Wgpu, index, DeviceClass::Software, 16);
    (Backend::Wgpu, (0..count).map(one).collect())
}

/// A machine with these devices, independent of this build and machine.
fn machine(found: &[(Backend, Vec<FoundDevice>)]) -> Inventory {
    let report = |backend: Backend| {
        let listed = found.iter().find(|(of, _)| *of == backend);
        BackendReport {
            backend,
            built: listed.is_some() || backend == Backend::Cpu,
            devices: listed.map(|(_, devices)| devices.clone()).unwrap_or_default(),
            fault: listed.map(|_| "it lists no device".into()),
            hint: None,
        }
    };
    let processor =
        Processor { name: "A CPU".into(), threads: 8, memory: None, vector_units: vec![] };
    let backends = Backend::ALL.map(report).to_vec();
    Inventory { backends, links: vec![], unused_cards: vec![], processor }
}

fn asked(data: Option<usize>, model: Option<usize>) -> DeviceSettings {
    DeviceSettings { data_gpu: data, model_gpu: model, ..DeviceSettings::default() }
}

#[track_caller]
fn placed(asked: &DeviceSettings, found: &Inventory) -> (Mode, String, String) {
    let placement = Placement::decide(asked, found).expect("a placement");
    (placement.mode, placement.data.id.to_string(), placement.model.id.to_string())
}

/// The placement fails with this fact and this hint.
#[track_caller]
fn refused(asked: &DeviceSettings, found: &Inventory, fact: &str, instead: &str) {
    let error = Placement::decide(asked, found).expect_err("no placement");
    let text = error.to_string();
    assert!(text.starts_with("insufficient GPUs for multi-GPU mode"), "{text}");
    assert!(text.contains(fact), "`{fact}` is not in: {text}");
    let hint = error.hint().expect("a hint");
    assert!(hint.contains(instead), "`{instead}` is not in: {hint}");
}

#[test]
fn both_flags_mean_two_gpus_in_the_given_order() {
    let four = machine(&[cuda(&[24, 24, 24, 24])]);
    let in_order = placed(&asked(Some(0), Some(1)), &four);
    assert_eq!(in_order, (Mode::MultiGpu, "cuda:0".into(), "cuda:1".into()));
    let reversed = placed(&asked(Some(3), Some(1)), &four);
    assert_eq!(reversed, (Mode::MultiGpu, "cuda:3".into(), "cuda:1".into()));
}

#[test]
fn no_flags_mean_the_one_gpu_and_no_gpu_means_the_cpu() {
    let two = machine(&[cuda(&[24, 24])]);
    let single = placed(&asked(None, None), &two);
    assert_eq!(single, (Mode::SingleGpu, "cuda:0".into(), "cuda:0".into()));
    let none = placed(&asked(None, None), &machine(&[]));
    assert_eq!(none, (Mode::Cpu, "cpu".into(), "cpu".into()));
}

#[test]
fn one_flag_alone_is_refused() {
    let two = machine(&[cuda(&[24, 24])]);
    let fact = "`--data-gpu 1` was given without `--model-gpu`; found cuda:0 (Card 0), cuda:1";
    refused(&asked(Some(1), None), &two, fact, "--data-gpu 1 --model-gpu 0");
    let fact = "`--model-gpu 0` was given without `--data-gpu`";
    refused(&asked(None, Some(0)), &two, fact, "--data-gpu 1 --model-gpu 0");
}

#[test]
fn the_same_gpu_twice_is_refused() {
    let two = machine(&[cuda(&[24, 24])]);
    refused(&asked(Some(1), Some(1)), &two, "both name GPU 1", "--data-gpu 1 --model-gpu 0");
    let one = machine(&[cuda(&[24])]);
    refused(&asked(Some(0), Some(0)), &one, "both name GPU 0", "train on the one GPU");
}

#[test]
fn a_gpu_that_does_not_exist_is_refused() {
    let two = machine(&[cuda(&[24, 24])]);
    let fact = "`--model-gpu 5` names a GPU that does not exist";
    refused(&asked(Some(1), Some(5)), &two, fact, "--data-gpu 1 --model-gpu 0");
    let fact = "`--data-gpu 0` names a GPU that does not exist; found no GPU";
    refused(&asked(Some(0), Some(1)), &machine(&[]), fact, "train on the CPU");
    refused(&asked(Some(0), Some(1)), &machine(&[]), fact, "this build has no GPU backend");
    let instead = machine(&[cuda(&[])]);
    let error = Placement::decide(&asked(Some(0), Some(1)), &instead).unwrap_err();
    assert!(!error.hint().unwrap().contains("no GPU backend"), "{:?}", error.hint());
}

#[test]
fn software_devices_are_only_used_if_their_backend_is_named() {
    let tests = machine(&[software(2)]);
    assert_eq!(placed(&asked(None, None), &tests).0, Mode::Cpu);
    refused(&asked(Some(0), Some(1)), &tests, "found no GPU", "add --backend wgpu");
    let backend = BackendChoice::Only(Backend::Wgpu);
    let named = DeviceSettings { backend, ..asked(Some(1), Some(0)) };
    assert_eq!(placed(&named, &tests), (Mode::MultiGpu, "wgpu:1".into(), "wgpu:0".into()));
}

#[test]
fn mel_frames_are_never_computed_in_tf32() {
    let two = machine(&[cuda(&[24, 24])]);
    let tf32 = |mel_on, data, model| DeviceSettings {
        products: F32Products::Tf32,
        mel_on,
        ..asked(data, model)
    };
    let error = Placement::decide(&tf32(MelOn::Device, None, None), &two).unwrap_err();
    let device = "cuda:0".to_string();
    assert_eq!(error, PlacementError::MelInTf32 { device });
    assert!(error.hint().unwrap().contains("`--data-gpu`"));
    let apart = Placement::decide(&tf32(MelOn::Device, Some(0), Some(1)), &two).unwrap();
    assert!(apart.to_string().contains("matrix products of the model: TF32"), "{apart}");
    assert!(Placement::decide(&tf32(MelOn::Auto, None, None), &two).is_ok());
}

#[test]
fn auto_uses_the_first_backend_with_a_hardware_gpu() {
    let integrated = gpu(Backend::Wgpu, 0, DeviceClass::Integrated, 8);
    let mut found = vec![(Backend::Wgpu, vec![integrated]), cuda(&[])];
    assert_eq!(placed(&asked(None, None), &machine(&found)).2, "wgpu:0");
    found[1] = cuda(&[24]);
    assert_eq!(placed(&asked(None, None), &machine(&found)).2, "cuda:0");
    let backend = BackendChoice::Only(Backend::Cpu);
    let cpu = DeviceSettings { backend, ..asked(None, None) };
    assert_eq!(placed(&cpu, &machine(&found)), (Mode::Cpu, "cpu".into(), "cpu".into()));
}

#[test]
fn a_named_backend_is_never_replaced() {
    let only = |backend| DeviceSettings {
        backend: BackendChoice::Only(backend),
        ..DeviceSettings::default()
    };
    let found = machine(&[cuda(&[])]);
    let error = Placement::decide(&only(Backend::Rocm), &found).unwrap_err();
    assert_eq!(error.to_string(), "backend `rocm` is not in this build");
    assert!(error.hint().unwrap().contains("--features rocm"));
    let error = Placement::decide(&only(Backend::Cuda), &found).unwrap_err();
    assert_eq!(error.to_string(), "backend `cuda` has no device here: it lists no device");
    assert!(error.hint().unwrap().contains("libcuda.so"));
}

/// A driver that is too old is not one that is missing.
#[test]
fn a_backend_without_devices_says_its_own_way_out() {
    let mut found = machine(&[cuda(&[])]);
    for report in &mut found.backends {
        report.hint = Some("install driver 525 or newer".into());
    }
    let backend = BackendChoice::Only(Backend::Cuda);
    let settings = DeviceSettings { backend, ..DeviceSettings::default() };
    let hint = Placement::decide(&settings, &found).unwrap_err().hint().unwrap();
    assert!(hint.starts_with("install driver 525 or newer, or leave `--backend` out"), "{hint}");
}

#[track_caller]
fn limits(memory: &[u64], pair: (usize, usize), isolation: Isolation) -> (u64, u64) {
    let found = machine(&[cuda(memory)]);
    let (data, model) = pair;
    let (data, model) = if data == model { (None, None) } else { (Some(data), Some(model)) };
    let settings = DeviceSettings { isolation, ..asked(data, model) };
    let limits = Placement::decide(&settings, &found).unwrap().limits.expect("budgets");
    (limits.data.0 >> 20, limits.model.0 >> 20)
}

#[test]
fn budgets_follow_the_table_and_never_exceed_the_cards() {
    let fitted = Isolation::On { data: None, model: None };
    assert_eq!(limits(&[24, 24], (0, 1), fitted), (8192, 16384));
    assert_eq!(limits(&[12, 8], (1, 0), fitted), (8192, 12288));
    assert_eq!(limits(&[24], (0, 0), fitted), (8192, 16384));
    assert_eq!(limits(&[16], (0, 0), fitted), (6144, 10240));
    assert_eq!(limits(&[12], (0, 0), fitted), (4096, 8192));
    assert_eq!(limits(&[6], (0, 0), fitted), (2048, 4096));
    let typed = Isolation::On { data: Some(Bytes::mib(20000)), model: None };
    assert_eq!(limits(&[24], (0, 0), typed), (20000, 4576), "what is left of the card");
}

#[test]
fn a_budget_larger_than_the_card_is_refused_with_the_largest_valid_one() {
    let found = machine(&[cuda(&[24, 8])]);
    let isolation = Isolation::On { data: None, model: Some(Bytes::mib(9000)) };
    let settings = DeviceSettings { isolation, ..asked(Some(0), Some(1)) };
    let error = Placement::decide(&settings, &found).unwrap_err();
    let fact = "--model-gpu-memory asks for 8.8 GiB of cuda:1 (Card 1), which has 8.0 GiB";
    assert_eq!(error.to_string(), fact);
    assert_eq!(error.hint().unwrap(), "set --model-gpu-memory 8192 or less");
}

#[test]
fn the_banner_names_mode_devices_and_limits() {
    let found = machine(&[cuda(&[24, 24])]);
    let isolation = Isolation::On { data: None, model: Some(Bytes::mib(10240)) };
    let settings = DeviceSettings { isolation, ..asked(Some(1), Some(0)) };
    let banner = Placement::decide(&settings, &found).unwrap().to_string();
    let expected = "mode: multi-GPU\ndata device: cuda:1 (Card 1)\nmodel device: cuda:0 (Card 0)\n\
                    memory limits: data 8192 MB, model 10240 MB\n\
                    tuner: 2.0 GiB more on each card for a moment, at the first start\n\
                    shapes: static";
    assert_eq!(banner, expected);
    let banner = Placement::decide(&asked(None, None), &machine(&[])).unwrap().to_string();
    assert!(banner.starts_with("mode: CPU buffered\ndata device: cpu ("), "{banner}");
    assert!(banner.contains("memory limits: none") && !banner.contains("tuner"), "{banner}");
}

#[test]
fn the_hint_names_a_card_that_this_build_does_not_support() {
    let mut found = machine(&[]);
    let pci = "0000:3b:00.0".parse().unwrap();
    let (vendor, backend) = ("NVIDIA", Backend::Cuda);
    found.unused_cards = vec![BusCard { pci, vendor, model: "2684".into(), backend }];
    let settings = asked(Some(0), Some(1));
    refused(&settings, &found, "found no GPU", "a card of NVIDIA is at 0000:3b:00.0");
    refused(&settings, &found, "found no GPU", "--features cuda");
}

#[test]
fn a_slow_link_of_the_pair_is_a_warning() {
    let mut found = machine(&[cuda(&[24, 24, 24])]);
    let id = |index| DeviceId { backend: Backend::Cuda, index };
    found.links = vec![
        Link { one: id(0), other: id(1), kind: LinkKind::Pix },
        Link { one: id(0), other: id(2), kind: LinkKind::Sys },
    ];
    let warning =
        |data, model| Placement::decide(&asked(Some(data), Some(model)), &found).unwrap().warning;
    assert_eq!(warning(1, 0), None);
    let text = warning(2, 0).expect("a bad pair");
    assert!(text.contains("SYS") && text.contains("slow"), "{text}");
}

#[test]
fn each_rank_of_a_machine_has_its_own_gpu() {
    let found = machine(&[cuda(&[24, 24])]);
    let on = |rank, ranks| {
        let local = LocalRank { rank, ranks };
        Placement::decide(&DeviceSettings { local, ..DeviceSettings::default() }, &found)
    };
    let model = |rank| on(rank, 2).expect("a placement").model.id.to_string();
    assert_eq!([model(0), model(1)], ["cuda:0", "cuda:1"]);
    let error = on(2, 3).expect_err("two GPUs");
    assert!(
        error.to_string().starts_with("3 ranks on this machine need 3 GPUs; found "),
        "{error}"
    );
    assert!(error.hint().expect("a hint").starts_with("start 2 ranks on this machine"));
    let none = machine(&[]);
    let local = LocalRank { rank: 1, ranks: 2 };
    let cpu = Placement::decide(&DeviceSettings { local, ..DeviceSettings::default() }, &none);
    assert_eq!(cpu.expect("a placement").mode, Mode::Cpu);
}

#[test]
fn each_rank_of_a_machine_has_its_own_pair() {
    let found = machine(&[cuda(&[24, 24, 24, 24])]);
    let pairs = |rank, ranks| DeviceSettings {
        further_pairs: vec![(2, 3)],
        local: LocalRank { rank, ranks },
        ..asked(Some(0), Some(1))
    };
    let second = placed(&pairs(1, 2), &found);
    assert_eq!(second, (Mode::MultiGpu, "cuda:2".into(), "cuda:3".into()));
    let error = Placement::decide(&pairs(0, 1), &found).expect_err("one rank");
    assert!(error.to_string().contains("2 pairs for 1 ranks on this machine"), "{error}");
}
