//! The scratch of the tuner on a card with 12 GB: as large as announced, and given back.

use crate::{BACKEND, in_child, product_error};
use std::env;
use std::thread::sleep;
use std::time::Duration;
use tandem_device::backend::{DeviceId, open, wait_for};
use tandem_device::inventory::Inventory;
use tandem_device::memory::{Phase, PhaseWatch, tuner_scratch};
use tandem_units::Bytes;

const NAME: &str = "gpu::memory_phases::the_scratch_of_the_tuner_is_as_announced_and_given_back";
const IN_CHILD: &str = "TANDEM_TEST_SCRATCH";

#[test]
fn the_scratch_of_the_tuner_is_as_announced_and_given_back() {
    if env::var_os(IN_CHILD).is_some() {
        return tune();
    }
    let _alone = crate::alone();
    in_child(NAME, &[(IN_CHILD, "1"), ("CUDA_STAND_IN_CARDS", "rtx3060-12")]);
}

fn tune() {
    let id = DeviceId { backend: BACKEND, index: 0 };
    let announced = tuner_scratch(&Inventory::detect().gpus(BACKEND)[0]).expect("a CUDA card");
    assert_eq!(announced, Bytes::mib(2048));
    let watch = PhaseWatch::start(&[id]);
    let device = open(id).unwrap();
    // Longer than two samples.
    let sampled = || sleep(Duration::from_millis(300));
    sampled();
    watch.enter(Phase::WarmUp);
    let off = product_error(&device);
    assert!(off < 1e-6, "{off}");
    device.memory_cleanup();
    wait_for(&device, "testing").unwrap();
    sampled();
    watch.enter(Phase::Training);
    sampled();
    eprintln!("peaks: {watch}; announced: {announced}");
    let peak = |phase| watch.peak(id, phase).expect("sampled").0;
    let [opening, tuning, training] = [Phase::Opening, Phase::WarmUp, Phase::Training].map(peak);
    let (scratch, slack) = (tuning - opening, Bytes::mib(256).0);
    assert!(scratch.abs_diff(announced.0) < slack, "{scratch}");
    assert!(training < opening + slack, "{training}");
}
