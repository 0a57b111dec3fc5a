//! Items, stages and limits for tests of complete runs.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use tandem_pipeline::{
    Emitter, Feed, Payload, PipelineError, QueueLimits, Stage, StageError, Ticketed,
};
use tandem_units::{Bytes, Epoch, Ticket};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(pub u64);

impl Payload for Number {
    fn size(&self) -> Bytes {
        Bytes(8)
    }
}

pub type Item = Ticketed<Number>;

pub fn ticket(seq: u64) -> Ticket {
    Ticket { epoch: Epoch(0), seq }
}

pub fn items(count: u64) -> impl Iterator<Item = Item> + Send {
    (0..count).map(|seq| Ticketed { ticket: ticket(seq), body: Number(seq) })
}

pub fn hold(items: usize) -> QueueLimits {
    QueueLimits::bytes(Bytes::kib(64)).items(items)
}

/// A stage from a function.
pub struct Does<F>(pub &'static str, pub F);

impl<F> Stage for Does<F>
where
    F: FnMut(Item, &mut dyn Emitter<Item>) -> Result<(), StageError> + Send + 'static,
{
    type In = Item;
    type Out = Item;

    fn name(&self) -> &'static str {
        self.0
    }

    fn step(&mut self, item: Item, out: &mut dyn Emitter<Item>) -> Result<(), StageError> {
        (self.1)(item, out)
    }
}

pub fn pass(name: &'static str) -> impl Stage<In = Item, Out = Item> {
    Does(name, |item, out: &mut dyn Emitter<Item>| out.push(item))
}

pub fn all<T: Payload>(feed: &mut Feed<T>) -> Result<Vec<T>, PipelineError> {
    std::iter::from_fn(|| feed.next().transpose()).collect()
}

pub fn numbers(items: &[Item]) -> Vec<u64> {
    items.iter().map(|item| item.body.0).collect()
}
