//! Ids of the caller to symbols of the voice.
//!
//! In: ids as the caller looked them up, `[1, phonemes]`. Out: the voice's symbols `[symbols]`, and the place of each in
//! the input. Padding is dropped, and a letter followed by a mark is joined: see [`crate::symbol_map`].

use crate::graph::{Graph, Value};
use crate::symbol_map::SymbolMap;

/// The symbols of a text.
pub struct InputSymbols<'g> {
    pub symbols: Value<'g>,
    /// The index of each in the input.
    pub places: Value<'g>,
    /// The number of ids in the input.
    pub count: Value<'g>,
}

pub fn input_symbols<'g>(
    graph: &'g Graph,
    ids: &Value<'g>,
    lengths: &Value<'g>,
    map: &SymbolMap,
) -> InputSymbols<'g> {
    let ids = ids.reshape(&[-1]);
    let count = ids.length(0);
    let ids = ids.slice_to(0, lengths);
    let real = ids.with("Greater", &graph.integer(0));
    let places = graph.range(&ids.length(0)).compress(&real);
    let ids = ids.compress(&real);

    // Column 0 is no mark, the others are marks.
    let columns = map.marks.len() + 1;
    let mut mark_of = vec![0; map.len()];
    for (index, &mark) in map.marks.iter().enumerate() {
        mark_of[mark as usize] = index as i64 + 1;
    }
    let alone = |id: usize| if id < map.known { id as i64 } else { 0 };
    let mut joined: Vec<i64> =
        (0..map.len()).flat_map(|id| std::iter::repeat_n(alone(id), columns)).collect();
    let mut joins = vec![0; map.len() * columns];
    for &(letter, mark, whole) in &map.pairs {
        let place = letter as usize * columns + mark + 1;
        (joined[place], joins[place]) = (whole, 1);
    }
    let (joined, joins) = (graph.list(&joined), graph.list(&joins));
    let mark = graph.list(&mark_of).gather(&ids);
    let next_mark = graph.concat(&[&mark.slice_from(0, 1), &graph.list(&[0])], 0);
    let pair = &ids * (columns as i64) + next_mark;
    let symbols = joined.gather(&pair);
    // A mark that was joined with the letter before it is no symbol of its own; nor is one that the table does not have.
    let taken = graph.concat(&[&graph.list(&[0]), &joins.gather(&pair).slice(0, 0, -1)], 0);
    let kept = (&symbols * (graph.integer(1) - taken)).with("Greater", &graph.integer(0));
    InputSymbols { symbols: symbols.compress(&kept), places: places.compress(&kept), count }
}
