//! The part of TensorBoard's event format that we write, as protobuf messages.
//!
//! Field numbers and meanings are those published in TensorFlow's `tensorflow/core/util/event.proto`
//! and `tensorflow/core/framework/{summary,tensor,tensor_shape}.proto`. Declared by hand, so that no
//! protobuf compiler is needed to build; fields we never write are left out, which protobuf
//! allows.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Event {
    /// Seconds since 1970.
    #[prost(double, tag = "1")]
    pub(crate) wall_time: f64,
    #[prost(int64, tag = "2")]
    pub(crate) step: i64,
    #[prost(oneof = "What", tags = "3, 5, 7")]
    pub(crate) what: Option<What>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
    #[prost(message, tag = "7")]
    SessionLog(SessionLog),
}

/// `SessionLog.status`: points of this step and later ones, from earlier files, are void.
pub(crate) const SESSION_START: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SessionLog {
    #[prost(int32, tag = "1")]
    pub(crate) status: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(crate) value: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Value {
    #[prost(string, tag = "1")]
    pub(crate) tag: String,
    #[prost(message, optional, tag = "9")]
    pub(crate) metadata: Option<SummaryMetadata>,
    #[prost(oneof = "Content", tags = "2, 4, 8")]
    pub(crate) content: Option<Content>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Content {
    #[prost(float, tag = "2")]
    SimpleValue(f32),
    #[prost(message, tag = "4")]
    Image(Image),
    #[prost(message, tag = "8")]
    Tensor(Tensor),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Image {
    #[prost(int32, tag = "1")]
    pub(crate) height: i32,
    #[prost(int32, tag = "2")]
    pub(crate) width: i32,
    /// 3: red, green, blue.
    #[prost(int32, tag = "3")]
    pub(crate) colorspace: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) encoded_image_string: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SummaryMetadata {
    #[prost(message, optional, tag = "1")]
    pub(crate) plugin_data: Option<PluginData>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PluginData {
    #[prost(string, tag = "1")]
    pub(crate) plugin_name: String,
    /// A message that the plugin alone understands.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) content: Vec<u8>,
}

/// What the plugin `audio` wants to know, from `tensorboard/plugins/audio/plugin_data.proto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AudioPluginData {
    #[prost(int32, tag = "2")]
    pub(crate) encoding: i32,
}

/// `AudioPluginData.Encoding.WAV`.
pub(crate) const WAV: i32 = 11;

/// `DataType.DT_STRING`.
pub(crate) const DT_STRING: i32 = 7;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tensor {
    #[prost(int32, tag = "1")]
    pub(crate) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) tensor_shape: Option<TensorShape>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(crate) string_val: Vec<Vec<u8>>,
}

/// No dimensions: one value.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorShape {
    #[prost(message, repeated, tag = "2")]
    pub(crate) dim: Vec<Dim>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Dim {
    #[prost(int64, tag = "1")]
    pub(crate) size: i64,
}
