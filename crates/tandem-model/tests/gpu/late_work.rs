//! Work that the cards do later than its calls return. A source that is reused too early, or a stream that does not
//! wait for another, changes the losses here.

use crate::gpu::real_voice;
use crate::{alone, batches, host_batch, placed};
use std::env;
use tandem_device::backend::delay_work;

const STEPS: usize = 4;

#[test]
fn late_work_changes_no_bit_of_a_loss() {
    let _alone = alone();
    let devices = placed(0, 1).open().unwrap();
    let host = host_batch();
    let train = || {
        let losses = real_voice::train(&devices, &batches(host.mel())[..STEPS]).losses;
        losses.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    };
    // The first steps tune kernels, and try candidates of which the last digits differ.
    train();
    let on_time = train();
    let seeds = if env::var_os("TANDEM_TEST_QUICK").is_some() { 2 } else { 5 };
    for seed in 1..=seeds {
        let late = Late::start(seed);
        assert_eq!(train(), on_time, "seed {seed}");
        drop(late);
    }
    eprintln!("losses of {STEPS} steps: the same bits with {seeds} seeds of delays");
}

/// Delays that end with the test.
struct Late;

impl Late {
    fn start(seed: u64) -> Late {
        let delays = c"launch=60us,copy=400us,set=300us,event=150us,free=300us";
        assert!(
            delay_work(delays, seed),
            "xtask/tests/cuda_tests.sh runs this on the stand-in driver"
        );
        Late
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        delay_work(c"", 0);
    }
}
