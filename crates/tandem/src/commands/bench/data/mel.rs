//! Samples to mel frames in memory, on one core: each kernel against realfft, frame by frame.

use super::clips::{Clip, seconds};
use crate::commands::bench::target::{Limit, Target, best_tenth, median};
use crate::failure::Result;
use std::time::Instant;
use tandem_audio::Sound;
use tandem_audio::mel::{MelConfig, MelExtractor, MelKernel};

/// Clips of one measurement: half a minute of audio, some milliseconds of work.
const PER_TIMING: usize = 8;

/// All kernels of this machine, alternating.
pub fn measure(clips: &[Clip], rounds: usize) -> Result<Vec<Target>> {
    let config = MelConfig::SPEECH_22K;
    let kernels: Vec<_> = MelKernel::available();
    let kernels = kernels.into_iter().filter(|kernel| kernel.serves(&config));
    let mut sides = Vec::new();
    for kernel in kernels {
        sides.push((kernel, MelExtractor::with_kernel(config.clone(), kernel)?, Vec::new()));
    }
    let longest = clips.iter().map(Vec::len).max().unwrap_or(0);
    let mut out = vec![0.0; config.frames(tandem_units::Samples(longest)).0 * config.bands];
    for round in 0..rounds.max(3) * 4 {
        let some = &clips[round * PER_TIMING % (clips.len() - PER_TIMING)..][..PER_TIMING];
        for (_, extractor, times) in &mut sides {
            times.push(1e6 * time(extractor, some, &mut out)? / seconds(some));
        }
    }
    let reference = sides.iter().find(|(kernel, ..)| *kernel == MelKernel::General);
    let reference = reference.map(|(_, _, times)| times.clone()).unwrap_or_default();
    let best = MelKernel::best_for(&config);
    let mut targets = Vec::new();
    for (kernel, _, times) in &sides {
        let ratios = reference.iter().zip(times).map(|(slow, fast)| slow / fast).collect();
        let how = format!("median of {} alternating rounds, one core", times.len());
        let name = format!("mel, {} against realfft", kernel.name());
        let limit = match kernel {
            MelKernel::Avx512 => Some(Limit::AtLeast(3.0)),
            MelKernel::Avx2 => Some(Limit::AtLeast(2.3)),
            _ => None,
        };
        match limit {
            Some(limit) => targets.push(Target::new(&name, median(ratios), "x", limit, how)),
            None if *kernel != MelKernel::General => {
                targets.push(Target::note(&name, median(ratios), "x", how));
            }
            None => {}
        }
        let name = format!("mel, {} per second of sound", kernel.name());
        let how = format!("best tenth; median {:.1} us", median(times.clone()));
        let figure = best_tenth(times.clone());
        targets.push(if *kernel == best {
            Target::new(&name, figure, "us", Limit::AtMost(45.0), how)
        } else {
            Target::note(&name, figure, "us", how)
        });
    }
    Ok(targets)
}

fn time(extractor: &mut MelExtractor, clips: &[Clip], out: &mut [f32]) -> Result<f64> {
    let bands = extractor.config().bands;
    let start = Instant::now();
    for clip in clips {
        let sound = Sound::I16(clip);
        let frames = extractor.frames(sound.len()).0;
        extractor.extract_into(sound, &mut out[..frames * bands])?;
    }
    Ok(start.elapsed().as_secs_f64())
}
