//! The rules of [`tandem_text::espeak_symbols`] as a part of the graph.
//!
//! In: the symbols of a text as espeak-ng writes them. Out: the same text in the symbols of the voice, and the place of each
//! in the input. A symbol that is inserted has the place of the one that it was made from. Does nothing without rules.

use crate::graph::{Graph, Value};
use crate::input_symbols::InputSymbols;
use crate::messages::element;
use tandem_text::SymbolTable;
use tandem_text::espeak_symbols::{Neighbour, Rewrite};

/// How far the neighbours of a rule may be away.
const FARTHEST: usize = 3;

pub fn rewritten<'g>(
    graph: &'g Graph,
    input: InputSymbols<'g>,
    rules: &[Rewrite],
    table: &SymbolTable,
) -> InputSymbols<'g> {
    let mut text = Text { graph, table, sets: Vec::new(), input };
    let mut rest = rules;
    while let Some(rule) = rest.first() {
        let simple = rest.iter().take_while(|rule| is_simple(rule)).count();
        match simple {
            0 => text.apply(rule),
            _ => text.replace(&rest[..simple]),
        }
        rest = &rest[simple.max(1)..];
    }
    text.input
}

/// Without neighbours, and with at most one new symbol: many of them are one look-up.
fn is_simple(rule: &Rewrite) -> bool {
    rule.before.is_empty() && rule.after.is_empty() && rule.into.chars().count() <= 1
}

struct Text<'g, 't> {
    graph: &'g Graph,
    table: &'t SymbolTable,
    /// For each kind of neighbour: one for the ids that it may be, zero for the others.
    sets: Vec<(Neighbour, Value<'g>)>,
    input: InputSymbols<'g>,
}

impl<'g> Text<'g, '_> {
    fn replace(&mut self, rules: &[Rewrite]) {
        let mut ids: Vec<i64> = (0..self.table.len() as i64).collect();
        for rule in rules {
            let (old, new) = (self.id(rule.symbol), rule.into.chars().next());
            let new = new.map_or(0, |symbol| self.id(symbol));
            ids.iter_mut().filter(|id| **id == old).for_each(|id| *id = new);
        }
        self.input.symbols = self.graph.list(&ids).gather(&self.input.symbols);
        self.drop_removed();
    }

    fn apply(&mut self, rule: &Rewrite) {
        let graph = self.graph;
        let fires = self.fires(rule);
        let mut into = rule.into.chars().rev().map(|symbol| self.id(symbol));
        let last = graph.integer(into.next().unwrap_or(0));
        let changed = fires.choose(&last, &self.input.symbols);
        self.input.symbols = match into.next() {
            None => changed,
            Some(first) => {
                let first = fires.choose(&graph.integer(first), &graph.integer(0));
                let both = |left: &Value<'g>, right: &Value<'g>| {
                    graph.concat(&[&left.unsqueeze(1), &right.unsqueeze(1)], 1).reshape(&[-1])
                };
                self.input.places = both(&self.input.places, &self.input.places);
                both(&first, &changed)
            }
        };
        if rule.into.chars().count() != 1 {
            self.drop_removed();
        }
    }

    /// Where a rule applies: `[symbols]`, of bool.
    fn fires(&mut self, rule: &Rewrite) -> Value<'g> {
        let graph = self.graph;
        let symbols = self.input.symbols.clone();
        let zeros = graph.list(&[0; FARTHEST]);
        let padded = graph.concat(&[&zeros, &symbols, &zeros], 0);
        let far = FARTHEST as i64;
        let neighbour = |away: i64| match far - away {
            0 => padded.slice_from(0, far + away),
            rest => padded.slice(0, far + away, -rest),
        };
        let same = symbols.with("Equal", &graph.integer(self.id(rule.symbol)));
        let mut fires = same.cast(element::INT64);
        let before = rule.before.iter().rev().zip(1..).map(|(set, away): (_, i64)| (set, -away));
        for (set, away) in before.chain(rule.after.iter().zip(1..)) {
            fires = fires * self.set(*set).gather(&neighbour(away));
        }
        fires.with("Greater", &graph.integer(0))
    }

    fn set(&mut self, neighbour: Neighbour) -> Value<'g> {
        if let Some((_, known)) = self.sets.iter().find(|(known, _)| *known == neighbour) {
            return known.clone();
        }
        let edges = SymbolTable::EDGE_SYMBOLS;
        let holds = |id: usize| {
            let symbol = self.table.symbol(tandem_text::SymbolId(id as u16));
            i64::from(neighbour.holds(symbol.filter(|symbol| !edges.contains(symbol))))
        };
        let values: Vec<i64> = (0..self.table.len()).map(holds).collect();
        let set = self.graph.list(&values);
        self.sets.push((neighbour, set.clone()));
        set
    }

    fn drop_removed(&mut self) {
        let kept = self.input.symbols.with("Greater", &self.graph.integer(0));
        self.input.symbols = self.input.symbols.compress(&kept);
        self.input.places = self.input.places.compress(&kept);
    }

    /// All symbols of the rules are in the table: tested beside the rules.
    fn id(&self, symbol: char) -> i64 {
        self.table.id(symbol).map_or(0, |id| i64::from(id.0))
    }
}
