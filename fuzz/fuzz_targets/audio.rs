//! Any bytes as a recording: sound within the limits or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_data::audio::{AudioLimits, Decoder};
use tandem_units::SampleRate;

fuzz_target!(|bytes: &[u8]| {
    let limits = AudioLimits::default();
    let longest = limits.max_length;
    let rate = SampleRate(22050);
    let mut decoder = Decoder::new(rate, limits);
    if let Ok(sound) = decoder.decode(bytes, None) {
        let samples = sound.to_f32();
        assert!(samples.len() as f64 / 22050.0 <= longest.0 + 1.0);
        assert!(samples.iter().all(|sample| sample.is_finite()));
    }
});
