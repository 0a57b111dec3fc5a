//! Reusable memory: a buffer returns to its pool when it is dropped.
//!
//! In: a function that creates a buffer. Out: [`Pooled`] buffers; a new one is created only when
//! none is spare. A buffer keeps its capacity and its contents: the caller clears it if needed. So
//! a batch in pooled buffers costs no allocation once the pipeline is full.

use crate::sync::{Mutex, lock};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Spare buffers of one kind. Clones share them.
pub struct Pool<T>(Arc<PoolShared<T>>);

struct PoolShared<T> {
    spare: Mutex<Spare<T>>,
    keep: usize,
    make: Box<dyn Fn() -> T + Send + Sync>,
}

struct Spare<T> {
    buffers: Vec<T>,
    created: u64,
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Pool<T> {
        Pool(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Pool<T> {
    /// A pool that keeps at most `keep` spare buffers; further ones are freed.
    pub fn new(keep: usize, make: impl Fn() -> T + Send + Sync + 'static) -> Pool<T> {
        let spare = Mutex::new(Spare { buffers: Vec::with_capacity(keep), created: 0 });
        Pool(Arc::new(PoolShared { spare, keep, make: Box::new(make) }))
    }

    /// A spare buffer with its old contents, or a new one.
    pub fn take(&self) -> Pooled<T> {
        let mut spare = lock(&self.0.spare);
        let found = spare.buffers.pop();
        if found.is_none() {
            spare.created += 1;
        }
        drop(spare);
        let buffer = found.unwrap_or_else(|| (self.0.make)());
        Pooled { buffer: Some(buffer), pool: self.clone() }
    }

    /// Buffers created so far. The number stays constant while memory is reused.
    pub fn created(&self) -> u64 {
        lock(&self.0.spare).created
    }
}

/// A buffer that returns to its pool when dropped.
pub struct Pooled<T: Send + 'static> {
    // `None` only inside `drop`.
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
            assert_eq!(pool.created(), 1);
        });
    }

    #[test]
    fn no_more_spare_buffers_are_kept_than_the_limit() {
        model(|| {
            let pool = Pool::new(2, || ());
            drop([pool.take(), pool.take(), pool.take()]);
            assert_eq!(pool.created(), 3);
            drop([pool.take(), pool.take(), pool.take()]);
            assert_eq!(pool.created(), 4, "two came from the pool");
        });
    }
}
