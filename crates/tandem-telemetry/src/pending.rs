//! A value that is not available yet, such as a loss that the device is still computing.
//!
//! In: a [`Promise`], fulfilled by the thread that reads the device. Out: a [`Pending`] inside
//! an event. Neither side ever waits: the record's writer polls, and writes `null` for a
//! value that did not arrive in time. Next: [`crate::event`].

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A value that is known, pending, or never going to arrive.
#[derive(Clone, Debug)]
pub struct Pending<T>(State<T>);

#[derive(Clone, Debug)]
enum State<T> {
    Known(T),
    Never,
    // The inner `None` means that the promise was dropped without a value.
    Later(Arc<OnceLock<Option<T>>>),
}

/// The present state of a [`Pending`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Poll<T> {
    /// Poll again later.
    Waiting,
    Ready(T),
    /// It will not arrive: its promise was dropped.
    Never,
}

/// The sending side of a [`Pending`]. Dropping it without a value ends the wait of the other side.
#[derive(Debug)]
pub struct Promise<T>(Arc<OnceLock<Option<T>>>);

impl<T: Copy> Pending<T> {
    /// A value that is known already.
    pub fn known(value: T) -> Pending<T> {
        Pending(State::Known(value))
    }

    /// A value that is set later.
    pub fn later() -> (Promise<T>, Pending<T>) {
        let cell = Arc::new(OnceLock::new());
        (Promise(Arc::clone(&cell)), Pending(State::Later(cell)))
    }

    /// The present state. Costs one atomic read; never waits.
    pub fn poll(&self) -> Poll<T> {
        match &self.0 {
            State::Known(value) => Poll::Ready(*value),
            State::Never => Poll::Never,
            State::Later(cell) => match cell.get() {
                None => Poll::Waiting,
                Some(Some(value)) => Poll::Ready(*value),
                Some(None) => Poll::Never,
            },
        }
    }

    /// The value, if it is here.
    pub fn value(&self) -> Option<T> {
        match self.poll() {
            Poll::Ready(value) => Some(value),
            Poll::Waiting | Poll::Never => None,
        }
    }
}

/// A known value, or one that never arrives.
impl<T> From<Option<T>> for Pending<T> {
    fn from(value: Option<T>) -> Pending<T> {
        Pending(value.map_or(State::Never, State::Known))
    }
}

impl<T> Promise<T> {
    pub fn set(self, value: T) {
        // Only this promise can fill the cell, so the first attempt succeeds.
        let _ = self.0.set(Some(value));
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        // No effect after `set`: the cell is full already.
        let _ = self.0.set(None);
    }
}

/// Two values are equal when their present states are equal.
impl<T: Copy + PartialEq> PartialEq for Pending<T> {
    fn eq(&self, other: &Pending<T>) -> bool {
        self.poll() == other.poll()
    }
}

/// A number, `null` where it never arrived, or a string for NaN and the infinities.
///
/// A NaN loss is what a reader searches for, so it must differ from a missing one.
impl Serialize for Pending<f32> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value() {
            None => serializer.serialize_none(),
            Some(value) if value.is_nan() => serializer.serialize_str("NaN"),
            Some(f32::INFINITY) => serializer.serialize_str("inf"),
            Some(f32::NEG_INFINITY) => serializer.serialize_str("-inf"),
            Some(value) => serializer.serialize_f32(value),
        }
    }
}

impl<'de> Deserialize<'de> for Pending<f32> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrWord)
    }
}

struct NumberOrWord;

impl Visitor<'_> for NumberOrWord {
    type Value = Pending<f32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, null, \"NaN\", \"inf\" or \"-inf\"")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Pending::known(value as f32))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Pending::known(value as f32))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Pending::known(value as f32))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Pending(State::Never))
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Pending(State::Never))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
        match word {
            "NaN" => Ok(Pending::known(f32::NAN)),
            "inf" => Ok(Pending::known(f32::INFINITY)),
            "-inf" => Ok(Pending::known(f32::NEG_INFINITY)),
            _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_kept_on_another_thread_is_seen() {
        let (promise, pending) = Pending::later();
        assert_eq!(pending.poll(), Poll::Waiting);
        std::thread::scope(|scope| scope.spawn(|| promise.set(0.5)).join()).unwrap();
        assert_eq!(pending.poll(), Poll::Ready(0.5));
    }

    #[test]
    fn a_dropped_promise_ends_the_wait() {
        let (promise, pending) = Pending::<f32>::later();
        drop(promise);
        assert_eq!(pending.poll(), Poll::Never);
    }

    #[track_caller]
    fn check(value: Pending<f32>, json: &str) {
        assert_eq!(serde_json::to_string(&value).unwrap(), json);
        let back: Pending<f32> = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), json);
    }

    #[test]
    fn json_keeps_the_difference_between_a_broken_loss_and_a_missing_one() {
        check(Pending::known(0.25), "0.25");
        check(Pending::known(f32::NAN), "\"NaN\"");
        check(Pending::known(f32::NEG_INFINITY), "\"-inf\"");
        let (_promise, pending) = Pending::later();
        check(pending, "null");
        assert!(serde_json::from_str::<Pending<f32>>("\"soon\"").is_err());
    }
}
