//! A graph under construction: nodes, constants, inputs and outputs.
//!
//! In: operations, written as methods and arithmetic of [`Value`]s. Out: a [`GraphProto`] whose nodes are in the order in
//! which they were written, which is a valid order to run them. Equal small constants are stored once. A body of a loop is
//! a [`Graph`] of its own that may use values of the graph around it; an operation belongs to the graph of its first value.

use crate::messages::{
    AttributeProto, Dimension, GraphProto, NodeProto, TensorProto, TensorShapeProto, TensorType,
    TypeProto, ValueInfoProto, attribute, element,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Add, Div, Mul, Sub};
use std::rc::Rc;

/// Constants with at most this many values are shared.
const SHARED: usize = 16;

#[derive(Default)]
struct GraphContents {
    proto: GraphProto,
    names: usize,
    /// Small constants by type, shape and bytes.
    constants: HashMap<(i32, Vec<i64>, Vec<u8>), Rc<str>>,
}

/// A graph under construction.
pub struct Graph {
    state: RefCell<GraphContents>,
    /// In front of every name, so that a body does not hide a name of the graph around it.
    prefix: String,
}

/// A value of a graph.
#[derive(Clone)]
pub struct Value<'g> {
    graph: &'g Graph,
    name: Rc<str>,
}

/// A length of an input or output.
pub enum Length {
    Fixed(usize),
    Named(&'static str),
}

impl Graph {
    pub fn new(prefix: &str) -> Graph {
        Graph { state: RefCell::default(), prefix: prefix.to_owned() }
    }

    /// The finished graph.
    pub fn finish(self, name: &str) -> GraphProto {
        GraphProto { name: Some(name.to_owned()), ..self.state.into_inner().proto }
    }

    pub fn input(&self, name: &str, kind: i32, shape: &[Length], about: &str) -> Value<'_> {
        self.state.borrow_mut().proto.input.push(declaration(name, kind, shape, about));
        self.value(name)
    }

    /// An input with a value that is used if the caller gives none.
    pub fn optional_input(
        &self,
        name: &str,
        shape: &[Length],
        default: (&[usize], Vec<f32>),
        about: &str,
    ) -> Value<'_> {
        let input = self.input(name, element::FLOAT, shape, about);
        let bytes = default.1.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.store(name, element::FLOAT, default.0, bytes);
        input
    }

    pub fn output(&self, value: &Value<'_>, name: &str, kind: i32, shape: &[Length], about: &str) {
        self.add_node("Identity", &[value], Vec::new(), vec![name.into()]);
        self.state.borrow_mut().proto.output.push(declaration(name, kind, shape, about));
    }

    /// A value of the graph around this one, as the first value of an operation of this graph.
    pub fn outer(&self, value: &Value<'_>) -> Value<'_> {
        self.value(&value.name)
    }

    /// The number of the round, in the body of a loop. Its other inputs and outputs follow.
    pub fn begin_loop_body(&self) -> Value<'_> {
        let name = |name: &str| format!("{}{name}", self.prefix);
        let number = self.input(&name("number"), element::INT64, &[], "");
        let condition = self.input(&name("continue"), element::BOOL, &[], "");
        self.output(&condition, &name("continue_after"), element::BOOL, &[], "");
        number
    }

    /// Runs a body so often. Each round gets the values of the round before; these are the first ones.
    pub fn repeat(&self, rounds: usize, first: &[&Value<'_>], inner: GraphProto) -> Vec<Value<'_>> {
        let (rounds, always) =
            (self.integer(rounds as i64), self.constant(element::BOOL, &[], vec![1]));
        let inputs: Vec<&Value<'_>> =
            [&rounds, &always].into_iter().chain(first.iter().copied()).collect();
        self.outputs("Loop", &inputs, vec![body("body", inner)], first.len())
    }

    pub fn floats(&self, shape: &[usize], values: &[f32]) -> Value<'_> {
        self.constant(element::FLOAT, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    pub fn doubles(&self, shape: &[usize], values: &[f64]) -> Value<'_> {
        self.constant(element::DOUBLE, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    pub fn integers(&self, shape: &[usize], values: &[i64]) -> Value<'_> {
        self.constant(element::INT64, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    pub fn float(&self, value: f32) -> Value<'_> {
        self.floats(&[], &[value])
    }

    pub fn double(&self, value: f64) -> Value<'_> {
        self.doubles(&[], &[value])
    }

    pub fn integer(&self, value: i64) -> Value<'_> {
        self.integers(&[], &[value])
    }

    /// Whole numbers as a one-dimensional tensor, as axes and shapes are given.
    pub fn list(&self, values: &[i64]) -> Value<'_> {
        self.integers(&[values.len()], values)
    }

    pub fn op(&self, kind: &str, inputs: &[&Value<'_>]) -> Value<'_> {
        self.op_with(kind, inputs, Vec::new())
    }

    pub fn op_with(
        &self,
        kind: &str,
        inputs: &[&Value<'_>],
        attributes: Vec<AttributeProto>,
    ) -> Value<'_> {
        self.outputs(kind, inputs, attributes, 1).remove(0)
    }

    /// An operation with several outputs.
    pub fn outputs(
        &self,
        kind: &str,
        inputs: &[&Value<'_>],
        attributes: Vec<AttributeProto>,
        count: usize,
    ) -> Vec<Value<'_>> {
        let names: Vec<Rc<str>> = (0..count).map(|_| self.new_name(kind)).collect();
        self.add_node(kind, inputs, attributes, names.clone());
        names.into_iter().map(|name| Value { graph: self, name }).collect()
    }

    pub fn concat(&self, parts: &[&Value<'_>], axis: i64) -> Value<'_> {
        self.op_with("Concat", parts, vec![int("axis", axis)])
    }

    /// Zeros of a shape that is computed.
    pub fn zeros(&self, shape: &Value<'_>) -> Value<'_> {
        // The default value of this operation is a zero of 32 bits.
        self.op("ConstantOfShape", &[shape])
    }

    /// The numbers from zero to the only element of `count`.
    pub fn range(&self, count: &Value<'_>) -> Value<'_> {
        let count = self.op("Squeeze", &[count]);
        self.op("Range", &[&self.integer(0), &count, &self.integer(1)])
    }

    fn value(&self, name: &str) -> Value<'_> {
        Value { graph: self, name: name.into() }
    }

    fn add_node(
        &self,
        kind: &str,
        inputs: &[&Value<'_>],
        attribute: Vec<AttributeProto>,
        outputs: Vec<Rc<str>>,
    ) {
        let output: Vec<String> = outputs.iter().map(ToString::to_string).collect();
        self.state.borrow_mut().proto.node.push(NodeProto {
            input: inputs.iter().map(|input| input.name.to_string()).collect(),
            name: output.first().map(|name| format!("node_{name}")),
            output,
            op_type: Some(kind.to_owned()),
            attribute,
        });
    }

    fn new_name(&self, kind: &str) -> Rc<str> {
        let mut state = self.state.borrow_mut();
        state.names += 1;
        format!("{}{kind}_{}", self.prefix, state.names).into()
    }

    fn constant(&self, kind: i32, shape: &[usize], bytes: Vec<u8>) -> Value<'_> {
        let small = shape.iter().product::<usize>() <= SHARED;
        let key = (kind, shape.iter().map(|&length| length as i64).collect(), bytes);
        if small && let Some(name) = self.state.borrow().constants.get(&key) {
            return Value { graph: self, name: Rc::clone(name) };
        }
        let name = self.new_name("constant");
        self.store(&name, kind, shape, key.2.clone());
        if small {
            self.state.borrow_mut().constants.insert(key, Rc::clone(&name));
        }
        Value { graph: self, name }
    }

    fn store(&self, name: &str, kind: i32, shape: &[usize], bytes: Vec<u8>) {
        self.state.borrow_mut().proto.initializer.push(TensorProto {
            dims: shape.iter().map(|&length| length as i64).collect(),
            data_type: Some(kind),
            name: Some(name.to_owned()),
            raw_data: Some(bytes),
        });
    }
}

fn declaration(name: &str, kind: i32, shape: &[Length], about: &str) -> ValueInfoProto {
    let length = |length: &Length| match length {
        Length::Fixed(value) => Dimension { dim_value: Some(*value as i64), dim_param: None },
        Length::Named(name) => Dimension { dim_value: None, dim_param: Some((*name).to_owned()) },
    };
    let shape = TensorShapeProto { dim: shape.iter().map(length).collect() };
    let tensor_type = Some(TensorType { elem_type: Some(kind), shape: Some(shape) });
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { tensor_type }),
        doc_string: Some(about.to_owned()).filter(|about| !about.is_empty()),
    }
}

fn attribute(name: &str, kind: i32) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind), ..AttributeProto::default() }
}

pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, attribute::INT) }
}

pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, attribute::INTS) }
}

pub fn float_attribute(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..attribute(name, attribute::FLOAT) }
}

pub fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.into()), ..attribute(name, attribute::STRING) }
}

pub fn body(name: &str, value: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(value), ..attribute(name, attribute::GRAPH) }
}

impl<'g> Value<'g> {
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// An operation with this value as its only input.
    pub fn op(&self, kind: &str) -> Value<'g> {
        self.graph.op(kind, &[self])
    }

    pub fn with(&self, kind: &str, other: &Value<'_>) -> Value<'g> {
        self.graph.op(kind, &[self, other])
    }

    pub fn matmul(&self, other: &Value<'_>) -> Value<'g> {
        self.with("MatMul", other)
    }

    pub fn cast(&self, kind: i32) -> Value<'g> {
        self.graph.op_with("Cast", &[self], vec![int("to", i64::from(kind))])
    }

    pub fn reshape(&self, shape: &[i64]) -> Value<'g> {
        self.with("Reshape", &self.graph.list(shape))
    }

    pub fn transpose(&self, order: &[i64]) -> Value<'g> {
        self.graph.op_with("Transpose", &[self], vec![ints("perm", order)])
    }

    /// The part from `start` up to `end` of an axis; negative numbers count from the end.
    pub fn slice(&self, axis: i64, start: i64, end: i64) -> Value<'g> {
        let graph = self.graph;
        let [start, end, axis] = [start, end, axis].map(|number| graph.list(&[number]));
        graph.op("Slice", &[self, &start, &end, &axis])
    }

    /// The part up to a computed end.
    pub fn slice_to(&self, axis: i64, end: &Value<'_>) -> Value<'g> {
        let graph = self.graph;
        graph.op("Slice", &[self, &graph.list(&[0]), end, &graph.list(&[axis])])
    }

    /// The rest of an axis from `start`.
    pub fn slice_from(&self, axis: i64, start: i64) -> Value<'g> {
        self.slice(axis, start, i64::MAX)
    }

    /// Each `step`th element of the first axis.
    pub fn every(&self, step: i64) -> Value<'g> {
        let graph = self.graph;
        let [start, end, axis, step] = [0, i64::MAX, 0, step].map(|number| graph.list(&[number]));
        graph.op("Slice", &[self, &start, &end, &axis, &step])
    }

    /// The length of an axis, as a tensor with one element.
    pub fn length(&self, axis: i64) -> Value<'g> {
        let bounds = vec![int("start", axis), int("end", axis + 1)];
        self.graph.op_with("Shape", &[self], bounds)
    }

    pub fn unsqueeze(&self, axis: i64) -> Value<'g> {
        self.with("Unsqueeze", &self.graph.list(&[axis]))
    }

    /// Rows by index, along the first axis.
    pub fn gather(&self, indices: &Value<'_>) -> Value<'g> {
        self.with("Gather", indices)
    }

    /// Zeros in front of and behind the first axis of a tensor with this many axes.
    pub fn pad_rows(&self, axes: usize, before: i64, after: i64) -> Value<'g> {
        let mut pads = vec![0; 2 * axes];
        (pads[0], pads[axes]) = (before, after);
        self.with("Pad", &self.graph.list(&pads))
    }

    /// The elements where `condition` holds, along the first axis.
    pub fn compress(&self, condition: &Value<'_>) -> Value<'g> {
        self.graph.op_with("Compress", &[self, condition], vec![int("axis", 0)])
    }

    pub fn sum(&self, axis: i64) -> Value<'g> {
        let axis = self.graph.list(&[axis]);
        self.graph.op_with("ReduceSum", &[self, &axis], vec![int("keepdims", 1)])
    }

    pub fn silu(&self) -> Value<'g> {
        self * &self.op("Sigmoid")
    }

    pub fn at_least(&self, low: f32) -> Value<'g> {
        self.with("Max", &self.graph.float(low))
    }

    pub fn at_most(&self, high: f32) -> Value<'g> {
        self.with("Min", &self.graph.float(high))
    }

    pub fn clip(&self, low: f32, high: f32) -> Value<'g> {
        self.graph.op("Clip", &[self, &self.graph.float(low), &self.graph.float(high)])
    }

    /// This value where it is true: `yes`, elsewhere `no`.
    pub fn choose(&self, yes: &Value<'_>, no: &Value<'_>) -> Value<'g> {
        self.graph.op("Where", &[self, yes, no])
    }

    /// Zeros in the shape of this one-dimensional tensor's only length, with `updates` added at `places`.
    pub fn scatter_add(&self, places: &Value<'_>, updates: &Value<'_>) -> Value<'g> {
        let attributes = vec![int("axis", 0), text("reduction", "add")];
        self.graph.op_with("ScatterElements", &[self, places, updates], attributes)
    }
}

/// The right side of an arithmetic operation.
pub trait Operand<'g> {
    fn value(self, graph: &'g Graph) -> Value<'g>;
}

impl<'g> Operand<'g> for Value<'g> {
    fn value(self, _: &'g Graph) -> Value<'g> {
        self
    }
}

impl<'g> Operand<'g> for &Value<'g> {
    fn value(self, _: &'g Graph) -> Value<'g> {
        self.clone()
    }
}

impl<'g> Operand<'g> for f32 {
    fn value(self, graph: &'g Graph) -> Value<'g> {
        graph.float(self)
    }
}

impl<'g> Operand<'g> for i64 {
    fn value(self, graph: &'g Graph) -> Value<'g> {
        graph.integer(self)
    }
}

macro_rules! arithmetic {
    ($($trait:ident, $method:ident;)*) => {$(
        impl<'g, R: Operand<'g>> $trait<R> for Value<'g> {
            type Output = Value<'g>;

            fn $method(self, right: R) -> Value<'g> {
                self.graph.op(stringify!($trait), &[&self, &right.value(self.graph)])
            }
        }

        impl<'g, R: Operand<'g>> $trait<R> for &Value<'g> {
            type Output = Value<'g>;

            fn $method(self, right: R) -> Value<'g> {
                self.graph.op(stringify!($trait), &[self, &right.value(self.graph)])
            }
        }
    )*};
}

// The traits of Rust have the names of the operations of ONNX.
arithmetic! {
    Add, add;
    Sub, sub;
    Mul, mul;
    Div, div;
}
