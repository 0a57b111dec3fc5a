//! Measures every mel kernel of this CPU against the `realfft` one, in turn.
//!
//! `cargo run --release -p tandem-data --example mel_speed [ROUNDS]`. Prints microseconds per
//! second of audio (best twentieth and median) and the ratio of medians to the general kernel.
#![allow(clippy::print_stdout, reason = "an example is a program")]

use std::time::Instant;
use tandem_data::audio::Sound;
use tandem_data::audio::mel::{MelConfig, MelExtractor, MelKernel};
use tandem_units::Samples;

const CLIPS: usize = 50;
/// Clips a kernel does before the next one has its turn.
const TURN: usize = 10;
const CLIP: usize = 103_635; // 4.7 s

fn main() {
    let only = std::env::args().nth(2);
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(15);
    let clips: Vec<Vec<i16>> = (0..CLIPS).map(clip).collect();
    let floats: Vec<Vec<f32>> =
        clips.iter().map(|clip| clip.iter().map(|&s| f32::from(s) / 32768.0).collect()).collect();
    let pcm = |floating: usize, i: usize| match floating {
        0 => Sound::I16(&clips[i]),
        _ => Sound::F32(&floats[i]),
    };
    let seconds = (TURN * CLIP) as f64 / 22050.0;
    let mut runs: Vec<(MelExtractor, usize, Vec<f64>)> = MelKernel::available()
        .into_iter()
        .filter(|kernel| only.as_ref().is_none_or(|only| only == kernel.name()))
        .flat_map(|kernel| [(kernel, 0), (kernel, 1)])
        .map(|(kernel, floating)| {
            let extractor = MelExtractor::with_kernel(MelConfig::SPEECH_22K, kernel);
            (extractor.expect("kernel is available"), floating, Vec::new())
        })
        .collect();
    let mut out = vec![0.0; runs[0].0.frames(Samples(CLIP)).0 * 80];
    // Short turns: other work on the machine then hits all kernels alike.
    for first in (0..rounds).flat_map(|_| (0..CLIPS).step_by(TURN)) {
        for (extractor, floating, times) in &mut runs {
            let start = Instant::now();
            for i in first..first + TURN {
                extractor.extract_into(pcm(*floating, i), &mut out).expect("valid signal");
                std::hint::black_box(&out);
            }
            times.push(start.elapsed().as_secs_f64() * 1e6 / seconds);
        }
    }
    for (_, _, times) in &mut runs {
        times.sort_by(f64::total_cmp);
    }
    let median = |times: &[f64]| times[times.len() / 2];
    let general = [0, 1].map(|floating| {
        let general =
            runs.iter().find(|(x, f, _)| (x.kernel(), *f) == (MelKernel::General, floating));
        general.map_or(f64::NAN, |(_, _, times)| median(times))
    });
    println!("kernel    input   best  median us/s   ratio to general");
    for (extractor, floating, times) in &runs {
        let (kernel, input) = (extractor.kernel().name(), ["i16", "f32"][*floating]);
        let ratio = general[*floating] / median(times);
        println!(
            "{kernel:9} {input:5} {:6.1} {:8.1}       {ratio:6.2}",
            times[times.len() / 20],
            median(times)
        );
    }
}

/// Tones that swell and fade over noise.
fn clip(seed: usize) -> Vec<i16> {
    let mut state = seed as u32 * 7919 + 1;
    (0..CLIP)
        .map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 16) as f32 / 32768.0 - 1.0;
            let t = i as f32 / 22050.0;
            let loud = (t * 13.0).sin().max(0.0);
            let tone = (t * 900.0).sin() + 0.5 * (t * 2700.0).sin() + 0.2 * (t * 11_000.0).sin();
            ((0.3 * loud * tone + (0.05 * loud + 0.001) * noise) * 32767.0) as i16
        })
        .collect()
}
