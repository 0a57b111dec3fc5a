//! Selects the kernel at run time, or by the caller's choice.
//!
//! In: settings and CPU features. Out: [`Engine`], which runs the kernel compiled for it.

use super::Sound;
use super::config::{MelConfig, MelError};
use super::fast::Fast;
use super::general::General;
#[cfg(target_arch = "aarch64")]
use super::lanes::neon::Neon;
use super::lanes::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::lanes::{avx2::Avx2, avx512::Avx512};
use super::plan::fits;
use std::fmt;

/// An implementation of the features. All give the same values within the stated tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MelKernel {
    /// Sixteen frames at once; x86-64 with AVX-512F.
    Avx512,
    /// Eight frames at once; x86-64 with AVX2 and FMA.
    Avx2,
    /// Four frames at once; ARM 64-bit.
    Neon,
    /// Eight frames at once in plain Rust.
    Portable,
    /// One frame after the other with `realfft`: any setting.
    General,
}

impl MelKernel {
    /// Every kernel, fastest first.
    pub const ALL: [MelKernel; 5] =
        [Self::Avx512, Self::Avx2, Self::Neon, Self::Portable, Self::General];

    /// The kernels that run on this CPU, fastest first.
    pub fn available() -> Vec<MelKernel> {
        Self::ALL.into_iter().filter(|kernel| kernel.runs_here()).collect()
    }

    /// The fastest kernel for these settings on this CPU.
    pub fn best_for(config: &MelConfig) -> MelKernel {
        let all = Self::ALL.into_iter();
        all.filter(|kernel| kernel.serves(config))
            .find(|kernel| kernel.runs_here())
            .unwrap_or(Self::General)
    }

    /// Whether this kernel supports these settings. `General` supports all; the others need
    /// 1024 points and a hop of 256.
    pub fn serves(self, config: &MelConfig) -> bool {
        self == Self::General || fits(config)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Neon => "neon",
            Self::Portable => "portable",
            Self::General => "general",
        }
    }

    fn runs_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => Avx512::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Avx2::detect().is_some(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => Neon::detect().is_some(),
            Self::Portable | Self::General => true,
            _ => false,
        }
    }
}

impl fmt::Display for MelKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel with its tables and scratch.
pub(super) enum Engine {
    #[cfg(target_arch = "x86_64")]
    Avx512(Box<Fast<Avx512>>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Box<Fast<Avx2>>),
    #[cfg(target_arch = "aarch64")]
    Neon(Box<Fast<Neon>>),
    Portable(Box<Fast<Portable>>),
    General(Box<General>),
}

impl Engine {
    pub(super) fn new(config: &MelConfig, kernel: MelKernel) -> Result<Self, MelError> {
        let refuse = |why| Err(MelError::Kernel { kernel: kernel.name(), why });
        if !kernel.serves(config) {
            return refuse("it is built for 1024 points and a hop of 256");
        }
        match kernel {
            #[cfg(target_arch = "x86_64")]
            MelKernel::Avx512 => match Avx512::detect() {
                Some(simd) => Ok(Self::Avx512(Fast::new(simd, config)?)),
                None => refuse("this CPU has no AVX-512"),
            },
            #[cfg(target_arch = "x86_64")]
            MelKernel::Avx2 => match Avx2::detect() {
                Some(simd) => Ok(Self::Avx2(Fast::new(simd, config)?)),
                None => refuse("this CPU has no AVX2 with FMA"),
            },
            #[cfg(target_arch = "aarch64")]
            MelKernel::Neon => match Neon::detect() {
                Some(simd) => Ok(Self::Neon(Fast::new(simd, config)?)),
                None => refuse("this CPU has no NEON"),
            },
            MelKernel::Portable => Ok(Self::Portable(Fast::new(Portable, config)?)),
            MelKernel::General => Ok(Self::General(General::new(config)?)),
            #[cfg(target_arch = "x86_64")]
            MelKernel::Neon => refuse("it is for ARM 64-bit"),
            #[cfg(target_arch = "aarch64")]
            MelKernel::Avx512 | MelKernel::Avx2 => refuse("it is for x86-64"),
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            MelKernel::Avx512 | MelKernel::Avx2 | MelKernel::Neon => {
                refuse("it is for another kind of CPU")
            }
        }
    }

    pub(super) fn kernel(&self) -> MelKernel {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => MelKernel::Avx512,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => MelKernel::Avx2,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => MelKernel::Neon,
            Self::Portable(_) => MelKernel::Portable,
            Self::General(_) => MelKernel::General,
        }
    }

    /// Features of at least one sample; `out` is exactly frames times bands long.
    pub(super) fn run(&mut self, pcm: Sound<'_>, out: &mut [f32]) {
        match self {
            // SAFETY: `Fast<Avx512>` holds an `Avx512`, the proof that the CPU has AVX-512F.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(fast) => unsafe { run_avx512(fast, pcm, out) },
            // SAFETY: `Fast<Avx2>` holds an `Avx2`, the proof that the CPU has AVX2 and FMA.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(fast) => unsafe { run_avx2(fast, pcm, out) },
            // SAFETY: `Fast<Neon>` holds a `Neon`, the proof that the CPU has NEON.
            #[cfg(target_arch = "aarch64")]
            #[allow(unused_unsafe, reason = "safe where NEON is part of the target")]
            Self::Neon(fast) => unsafe { run_neon(fast, pcm, out) },
            Self::Portable(fast) => match pcm {
                Sound::I16(samples) => fast.run(samples, out),
                Sound::F32(samples) => fast.run(samples, out),
            },
            Self::General(general) => match pcm {
                Sound::I16(samples) => general.run(samples, |s| f32::from(s) / 32768.0, out),
                Sound::F32(samples) => general.run(samples, |s| s, out),
            },
        }
    }
}

/// A function for one instruction set; the whole kernel is inlined into it.
macro_rules! entry {
    ($name:ident, $lanes:ty, $features:literal) => {
        #[target_feature(enable = $features)]
        fn $name(fast: &mut Fast<$lanes>, pcm: Sound<'_>, out: &mut [f32]) {
            match pcm {
                Sound::I16(samples) => fast.run(samples, out),
                Sound::F32(samples) => fast.run(samples, out),
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
entry!(run_avx512, Avx512, "avx512f");
#[cfg(target_arch = "x86_64")]
entry!(run_avx2, Avx2, "avx2,fma");
#[cfg(target_arch = "aarch64")]
entry!(run_neon, Neon, "neon");
