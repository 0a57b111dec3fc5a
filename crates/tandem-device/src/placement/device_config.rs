//! The table `[devices]` of a configuration file.
//!
//! In: what the user set. Out: [`DeviceSettings`], or an error for what contradicts itself. Decides nothing about the
//! machine: that is [`super::Placement::decide`].

use super::{DeviceSettings, Isolation, LocalRank, MelOn, Shapes};
use crate::backend::{BackendChoice, F32Products};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use tandem_settings::{Range, SettingValue, ValueKind, settings};
use tandem_units::{Bytes, Hint};

settings! {
    /// Devices, memory budgets and shapes.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct DeviceConfig in "devices" {
        /// Compute backend: auto, cpu, wgpu, vulkan, metal, cuda or rocm
        backend: BackendChoice = BackendChoice::Auto, "--backend NAME" {
            names_words: true,
            heading: DEVICES,
        }
        /// GPU for data preparation; requires --model-gpu. With several ranks on a machine: one for each, `0,2`
        data_gpu: GpuIndexes = GpuIndexes(Vec::new()), "--data-gpu N" {
            range: Range::FromZero,
            heading: DEVICES,
            myxtts: &["dt.data_gpu"],
        }
        /// GPU for the model; requires --data-gpu. With several ranks on a machine: one for each, `1,3`
        model_gpu: GpuIndexes = GpuIndexes(Vec::new()), "--model-gpu N" {
            range: Range::FromZero,
            heading: DEVICES,
            myxtts: &["dt.model_gpu"],
        }
        /// Samples that may wait on the host; without --prefetch-buffer-size also those that may wait for
        /// the model
        buffer_size: Option<usize> = None, "--buffer-size N" {
            range: Range::AtLeastOne,
            default_in_words: "50 on the host",
            heading: DEVICES,
            myxtts: &["dt.pipeline_buffer_size", "dt.buffer_size"],
        }
        /// Give data and model a memory budget each, and enforce it
        enable_memory_isolation: bool = false, "--enable-memory-isolation BOOL" {
            heading: DEVICES,
            myxtts: &["dt.enable_memory_isolation"],
        }
        /// Memory budget of the data side in MB, with memory isolation
        data_gpu_memory: Option<u64> = None, "--data-gpu-memory MB" {
            range: MEGABYTES,
            default_in_words: "8192, less on a small card",
            heading: DEVICES,
            myxtts: &["dt.data_gpu_memory"],
        }
        /// Memory budget of the model in MB, with memory isolation
        model_gpu_memory: Option<u64> = None, "--model-gpu-memory MB" {
            range: MEGABYTES,
            default_in_words: "16384, less on a small card",
            heading: DEVICES,
            myxtts: &["dt.model_gpu_memory"],
        }
        /// Pad batches to a small fixed set of shapes, so that kernels are compiled once
        enable_static_shapes: bool = true, "--enable-static-shapes BOOL" {
            heading: DEVICES,
            myxtts: &["dt.static_shapes", "dt.enable_static_shapes", "dt.pad_to_fixed_length"],
        }
        /// Where mel frames are computed: auto (measured at the start), host or device
        mel_on: MelOn = MelOn::Auto, "--mel-on PLACE" { names_words: true, heading: DEVICES }
    }
}

/// The part of the help.
const DEVICES: &str = "Devices";
/// So that the size in bytes does not overflow.
const MEGABYTES: Range = Range::Between(1.0, (1u64 << 30) as f64);

impl DeviceConfig {
    /// The settings as keys of a configuration file. The buffer is decided elsewhere.
    pub fn of(settings: &DeviceSettings) -> DeviceConfig {
        let megabytes = |budget: Option<Bytes>| budget.map(|budget| budget.0 >> 20);
        let (isolated, data, model) = match settings.isolation {
            Isolation::Off => (false, None, None),
            Isolation::On { data, model } => (true, megabytes(data), megabytes(model)),
        };
        let (data_gpus, model_gpus): (Vec<usize>, Vec<usize>) =
            settings.further_pairs.iter().copied().unzip();
        let all = |first: Option<usize>, others: Vec<usize>| {
            GpuIndexes(first.into_iter().chain(others).collect())
        };
        DeviceConfig {
            backend: settings.backend,
            data_gpu: all(settings.data_gpu, data_gpus),
            model_gpu: all(settings.model_gpu, model_gpus),
            buffer_size: None,
            enable_memory_isolation: isolated,
            data_gpu_memory: data,
            model_gpu_memory: model,
            enable_static_shapes: settings.shapes == Shapes::Static,
            mel_on: settings.mel_on,
        }
    }

    /// A budget that would have no effect is refused, not ignored.
    pub fn settings(&self) -> Result<DeviceSettings, DeviceConfigError> {
        let isolated = self.enable_memory_isolation;
        let (data, model) =
            (self.data_gpu_memory.map(Bytes::mib), self.model_gpu_memory.map(Bytes::mib));
        if !isolated && data.or(model).is_some() {
            return Err(DeviceConfigError::BudgetWithoutIsolation);
        }
        let (data_gpus, model_gpus) = (&self.data_gpu.0, &self.model_gpu.0);
        if data_gpus.len().max(model_gpus.len()) > 1 && data_gpus.len() != model_gpus.len() {
            return Err(DeviceConfigError::Uneven {
                data: data_gpus.len(),
                model: model_gpus.len(),
            });
        }
        let twice = |(place, gpu): (usize, &usize)| model_gpus[..place].contains(gpu);
        if let Some(at) = model_gpus.iter().enumerate().position(twice) {
            return Err(DeviceConfigError::Twice { gpu: model_gpus[at] });
        }
        let pairs = data_gpus.iter().copied().zip(model_gpus.iter().copied());
        Ok(DeviceSettings {
            backend: self.backend,
            data_gpu: data_gpus.first().copied(),
            model_gpu: model_gpus.first().copied(),
            further_pairs: pairs.skip(1).collect(),
            local: LocalRank::ALONE,
            isolation: match isolated {
                true => Isolation::On { data, model },
                false => Isolation::Off,
            },
            shapes: match self.enable_static_shapes {
                true => Shapes::Static,
                false => Shapes::PerBatch,
            },
            mel_on: self.mel_on,
            // Part of the training settings.
            products: F32Products::Full,
        })
    }
}

/// Device settings that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceConfigError {
    #[error("a memory budget is set, but memory isolation is off")]
    BudgetWithoutIsolation,
    #[error("`--data-gpu` names {data} GPUs and `--model-gpu` {model}")]
    Uneven { data: usize, model: usize },
    #[error("`--model-gpu` names GPU {gpu} twice: two ranks would train on it")]
    Twice { gpu: usize },
}

impl Hint for DeviceConfigError {
    fn hint(&self) -> Option<String> {
        Some(
            match self {
                Self::BudgetWithoutIsolation => {
                    "add --enable-memory-isolation, or remove the budget"
                }
                Self::Uneven { .. } => "name one GPU of each for each rank of a machine",
                Self::Twice { .. } => "name another model GPU for each rank of a machine",
            }
            .into(),
        )
    }
}

/// One GPU, or one for each rank of a machine; none is named if it is empty. In a file: a number, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuIndexes(pub Vec<usize>);

impl SettingValue for GpuIndexes {
    const KIND: ValueKind = ValueKind::Count;
    const IS_LIST: bool = true;

    fn parse(text: &str) -> Result<GpuIndexes, String> {
        Vec::parse(text).map(GpuIndexes)
    }

    fn text(&self) -> String {
        self.0.text()
    }
}

impl Serialize for GpuIndexes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [] => serializer.serialize_none(),
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for GpuIndexes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<GpuIndexes, D::Error> {
        deserializer.deserialize_any(IndexVisitor)
    }
}

struct IndexVisitor;

impl<'de> Visitor<'de> for IndexVisitor {
    type Value = GpuIndexes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 up")
    }

    fn visit_unit<E: Error>(self) -> Result<GpuIndexes, E> {
        Ok(GpuIndexes::default())
    }

    fn visit_u64<E: Error>(self, index: u64) -> Result<GpuIndexes, E> {
        let index = usize::try_from(index).map_err(E::custom)?;
        Ok(GpuIndexes(vec![index]))
    }

    fn visit_i64<E: Error>(self, index: i64) -> Result<GpuIndexes, E> {
        match u64::try_from(index) {
            Ok(index) => self.visit_u64(index),
            Err(_) => Err(E::invalid_value(serde::de::Unexpected::Signed(index), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<GpuIndexes, A::Error> {
        let mut indexes = Vec::new();
        while let Some(index) = list.next_element()? {
            indexes.push(index);
        }
        Ok(GpuIndexes(indexes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use tandem_settings::check;

    fn file(text: &str) -> DeviceConfig {
        serde_json::from_str(text).expect("a table")
    }

    fn settings(text: &str) -> DeviceSettings {
        file(text).settings().expect("settings")
    }

    #[test]
    fn defaults_are_auto_no_budget_and_static_shapes() {
        assert_eq!(settings("{}"), DeviceSettings::default());
        assert_eq!(settings("{}").shapes, Shapes::Static);
    }

    #[test]
    fn settings_are_written_so_that_they_are_read_again() {
        for text in [
            "{}",
            r#"{"backend": "cpu", "enable_static_shapes": false, "mel_on": "host"}"#,
            r#"{"data_gpu": 3, "model_gpu": 1}"#,
            r#"{"data_gpu": [0, 2], "model_gpu": [1, 3]}"#,
            r#"{"enable_memory_isolation": true, "data_gpu_memory": 6144}"#,
        ] {
            let decided = settings(text);
            let written = serde_json::to_string(&DeviceConfig::of(&decided)).unwrap();
            assert_eq!(settings(&written), decided, "{text}");
        }
        assert_eq!(settings(r#"{"backend": "cpu"}"#).backend, BackendChoice::Only(Backend::Cpu));
    }

    #[test]
    fn several_pairs_are_for_the_ranks_of_a_machine() {
        let pairs = settings(r#"{"data_gpu": [0, 2], "model_gpu": [1, 3]}"#);
        assert_eq!((pairs.data_gpu, pairs.model_gpu), (Some(0), Some(1)));
        assert_eq!(pairs.further_pairs, [(2, 3)]);
        let refused = |text| file(text).settings().unwrap_err();
        let uneven = refused(r#"{"data_gpu": [0, 2], "model_gpu": 1}"#);
        assert_eq!(uneven, DeviceConfigError::Uneven { data: 2, model: 1 });
        let twice = refused(r#"{"data_gpu": [0, 2], "model_gpu": [1, 1]}"#);
        assert_eq!(twice, DeviceConfigError::Twice { gpu: 1 });
    }

    #[test]
    fn budgets_are_megabytes_and_need_isolation() {
        let budgets = r#""data_gpu_memory": 6144, "model_gpu_memory": 100"#;
        let asked = settings(&format!(r#"{{"enable_memory_isolation": true, {budgets}}}"#));
        let (data, model) = (Some(Bytes::mib(6144)), Some(Bytes::mib(100)));
        assert_eq!(asked.isolation, Isolation::On { data, model });
        let refused = file(&format!("{{{budgets}}}")).settings().unwrap_err();
        assert_eq!(refused, DeviceConfigError::BudgetWithoutIsolation);
    }

    #[test]
    fn values_out_of_range_and_unknown_names_are_refused() {
        let wrong = |text| check(&file(text)).err().map(|refused| refused.setting.key);
        assert_eq!(wrong("{}"), None);
        assert_eq!(wrong(r#"{"buffer_size": 0}"#), Some("devices.buffer_size"));
        assert_eq!(wrong(r#"{"data_gpu_memory": 1073741824}"#), None);
        assert_eq!(wrong(r#"{"data_gpu_memory": 1073741825}"#), Some("devices.data_gpu_memory"));
        for text in [r#"{"backend": "cudas"}"#, r#"{"data_gpus": 1}"#, r#"{"data_gpu": -1}"#] {
            assert!(serde_json::from_str::<DeviceConfig>(text).is_err(), "{text}");
        }
    }
}
