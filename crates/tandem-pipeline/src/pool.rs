//! Memory that is used again: buffers return to their pool when the last holder drops them.
//!
//! In: a way to make a buffer. Out: [`Pooled`] buffers, made anew only when none is spare. A
//! buffer keeps its capacity and its contents; who takes one clears what it does not want. A
//! batch built from pooled buffers therefore costs no allocation once the pipeline is full.

use crate::sync::{Mutex, lock};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Spare buffers of one kind. Copies share them.
pub struct Pool<T>(Arc<Shelf<T>>);

struct Shelf<T> {
    spare: Mutex<Spare<T>>,
    keep: usize,
    make: Box<dyn Fn() -> T + Send + Sync>,
}

struct Spare<T> {
    buffers: Vec<T>,
    made: u64,
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Pool<T> {
        Pool(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Pool<T> {
    /// A pool that keeps at most so many spare buffers; further ones are freed.
    pub fn new(keep: usize, make: impl Fn() -> T + Send + Sync + 'static) -> Pool<T> {
        let spare = Mutex::new(Spare { buffers: Vec::with_capacity(keep), made: 0 });
        Pool(Arc::new(Shelf { spare, keep, make: Box::new(make) }))
    }

    /// A spare buffer as it was left, or a new one.
    pub fn take(&self) -> Pooled<T> {
        let mut spare = lock(&self.0.spare);
        let found = spare.buffers.pop();
        if found.is_none() {
            spare.made += 1;
        }
        drop(spare);
        let buffer = found.unwrap_or_else(|| (self.0.make)());
        Pooled { buffer: Some(buffer), pool: self.clone() }
    }

    /// Buffers made so far; a number that stands still shows that memory is used again.
    pub fn made(&self) -> u64 {
        lock(&self.0.spare).made
    }
}

/// A buffer that goes back to its pool when dropped.
pub struct Pooled<T: Send + 'static> {
    // Empty only inside `drop`.
    buffer: Option<T>,
    pool: Pool<T>,
}

impl<T: Send + 'static> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.buffer.as_ref().expect("filled until dropped")
    }
}

impl<T: Send + 'static> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.buffer.as_mut().expect("filled until dropped")
    }
}

impl<T: Send + 'static> Drop for Pooled<T> {
    fn drop(&mut self) {
        let mut spare = lock(&self.pool.0.spare);
        if spare.buffers.len() < self.pool.0.keep {
            spare.buffers.extend(self.buffer.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::model;

    #[test]
    fn a_dropped_buffer_is_taken_again_with_its_capacity() {
        model(|| {
            let pool = Pool::new(2, Vec::<f32>::new);
            let mut first = pool.take();
            first.extend(std::iter::repeat_n(1.0, 1000));
            let address = first.as_ptr();
            drop(first);
            let again = pool.take();
            assert_eq!((again.as_ptr(), again.capacity() >= 1000), (address, true));
            assert_eq!(pool.made(), 1);
        });
    }

    #[test]
    fn no_more_spares_are_kept_than_asked_for() {
        model(|| {
            let pool = Pool::new(2, || ());
            drop([pool.take(), pool.take(), pool.take()]);
            assert_eq!(pool.made(), 3);
            drop([pool.take(), pool.take(), pool.take()]);
            assert_eq!(pool.made(), 4, "two came from the pool");
        });
    }
}
