//! Seconds, samples, frames and bytes, and the rates that convert them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// A duration in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seconds(pub f64);

/// A number of audio samples of one channel.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Samples(pub usize);

/// A number of mel frames.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Frames(pub usize);

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Samples per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SampleRate(pub u32);

/// Samples from one mel frame to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hop(pub usize);

impl SampleRate {
    /// The duration of `samples`.
    pub fn seconds(self, samples: Samples) -> Seconds {
        Seconds(samples.0 as f64 / f64::from(self.0))
    }

    /// The number of samples in `length`, rounded to the nearest.
    pub fn samples(self, length: Seconds) -> Samples {
        Samples((length.0 * f64::from(self.0)).round().max(0.0) as usize)
    }
}

impl Hop {
    /// Frames of a centred transform over `samples`: one per whole hop, and one more.
    pub fn frames(self, samples: Samples) -> Frames {
        Frames(samples.0 / self.0 + 1)
    }
}

impl Bytes {
    pub const fn kib(count: u64) -> Bytes {
        Bytes(count << 10)
    }

    pub const fn mib(count: u64) -> Bytes {
        Bytes(count << 20)
    }

    /// The size of a slice in memory.
    pub const fn of_slice<T>(slice: &[T]) -> Bytes {
        Bytes(size_of_val(slice) as u64)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 { write!(f, "{} B", self.0) } else { write!(f, "{value:.1} {}", UNITS[unit]) }
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        let size = value.abs();
        if size >= 3600.0 {
            write!(f, "{:.1} h", value / 3600.0)
        } else if size >= 60.0 {
            write!(f, "{:.1} min", value / 60.0)
        } else if value == 0.0 {
            f.write_str("0 s")
        } else if size >= 1.0 {
            write!(f, "{value:.2} s")
        } else if size >= 1e-3 {
            write!(f, "{:.2} ms", value * 1e3)
        } else {
            write!(f, "{:.2} us", value * 1e6)
        }
    }
}

impl fmt::Display for SampleRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Hz", self.0)
    }
}

macro_rules! arithmetic {
    ($($quantity:ident),*) => {$(
        impl Add for $quantity {
            type Output = $quantity;
            fn add(self, other: $quantity) -> $quantity { $quantity(self.0 + other.0) }
        }
        impl Sub for $quantity {
            type Output = $quantity;
            fn sub(self, other: $quantity) -> $quantity { $quantity(self.0 - other.0) }
        }
        impl AddAssign for $quantity {
            fn add_assign(&mut self, other: $quantity) { self.0 += other.0; }
        }
        impl Sum for $quantity {
            fn sum<I: Iterator<Item = $quantity>>(items: I) -> $quantity {
                items.fold($quantity::default(), |total, item| total + item)
            }
        }
    )*};
}

arithmetic!(Seconds, Samples, Frames, Bytes);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_speech_has_eighty_seven_frames() {
        assert_eq!(Hop(256).frames(Samples(22050)), Frames(87));
        assert_eq!(SampleRate(22050).seconds(Samples(11025)), Seconds(0.5));
        assert_eq!(SampleRate(22050).samples(Seconds(0.5)), Samples(11025));
    }

    #[test]
    fn quantities_print_in_a_readable_unit() {
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes::mib(512).to_string(), "512.0 MiB");
        assert_eq!(Seconds(0.0123).to_string(), "12.30 ms");
        assert_eq!(Seconds(7200.0).to_string(), "2.0 h");
    }
}
