//! Flags that say where data work and training happen: what was typed becomes what was decided.
//!
//! Flag, then environment, then configuration file, then default. Decides nothing about the
//! machine: that is `Placement::decide`, with what `Inventory::detect` finds.

use crate::failure::Advised;
use serde::{Deserialize, Serialize};
use tandem_device::backend::BackendChoice;
use tandem_device::placement::MelOn;
use tandem_device::placement::{DEFAULT_BUFFER, DeviceSettings, Isolation, Shapes};
use tandem_units::Bytes;

/// Which devices, and how much of them.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Devices")]
pub struct DeviceArgs {
    /// What reaches the GPU: auto, cpu, wgpu, vulkan, metal, cuda or rocm [default: auto]
    #[arg(long, value_name = "NAME", env = "TANDEM_BACKEND")]
    pub backend: Option<BackendChoice>,
    /// GPU that prepares data; needs --model-gpu too
    #[arg(long, value_name = "N", env = "TANDEM_DATA_GPU")]
    pub data_gpu: Option<usize>,
    /// GPU that trains; needs --data-gpu too
    #[arg(long, value_name = "N", env = "TANDEM_MODEL_GPU")]
    pub model_gpu: Option<usize>,
    /// Samples that may wait for the model [default: 50]
    #[arg(long, value_name = "N", env = "TANDEM_BUFFER_SIZE", value_parser = at_least_one)]
    pub buffer_size: Option<usize>,
    /// Give each device a budget and keep to it
    #[arg(long, env = "TANDEM_ENABLE_MEMORY_ISOLATION")]
    pub enable_memory_isolation: bool,
    /// Budget for data work in MB, with memory isolation [default: 8192, less on a small card]
    #[arg(long, value_name = "MB", env = "TANDEM_DATA_GPU_MEMORY", value_parser = megabytes)]
    pub data_gpu_memory: Option<u64>,
    /// Budget for the model in MB, with memory isolation [default: 16384, less on a small card]
    #[arg(long, value_name = "MB", env = "TANDEM_MODEL_GPU_MEMORY", value_parser = megabytes)]
    pub model_gpu_memory: Option<u64>,
    /// Pad batches to a small fixed set of shapes [default: true]
    #[arg(
        long,
        value_name = "BOOL",
        env = "TANDEM_ENABLE_STATIC_SHAPES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub enable_static_shapes: Option<bool>,
    /// Where mel frames are made: auto (measured at the start), host or device [default: auto]
    #[arg(long, value_name = "PLACE", env = "TANDEM_MEL_ON")]
    pub mel_on: Option<MelOn>,
}

/// The same in a configuration file, under `[devices]`. Absent keys keep their defaults.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceConfig {
    /// What reaches the GPU.
    pub backend: Option<BackendChoice>,
    /// GPU that prepares data.
    pub data_gpu: Option<usize>,
    /// GPU that trains.
    pub model_gpu: Option<usize>,
    /// Samples that may wait for the model.
    pub buffer_size: Option<usize>,
    /// Whether each device has a budget.
    pub enable_memory_isolation: Option<bool>,
    /// Budget for data work in MB.
    pub data_gpu_memory: Option<u64>,
    /// Budget for the model in MB.
    pub model_gpu_memory: Option<u64>,
    /// Whether batches are padded to a small fixed set of shapes.
    pub enable_static_shapes: Option<bool>,
    /// Where mel frames are made.
    pub mel_on: Option<MelOn>,
}

impl DeviceConfig {
    /// What was decided, as a file would say it.
    pub fn of(settings: &DeviceSettings) -> DeviceConfig {
        let megabytes = |budget: Option<Bytes>| budget.map(|budget| budget.0 >> 20);
        let (isolated, data, model) = match settings.isolation {
            Isolation::Off => (false, None, None),
            Isolation::On { data, model } => (true, megabytes(data), megabytes(model)),
        };
        DeviceConfig {
            backend: Some(settings.backend),
            data_gpu: settings.data_gpu,
            model_gpu: settings.model_gpu,
            buffer_size: Some(settings.buffer_size),
            enable_memory_isolation: Some(isolated),
            data_gpu_memory: data,
            model_gpu_memory: model,
            enable_static_shapes: Some(settings.shapes == Shapes::Static),
            mel_on: Some(settings.mel_on),
        }
    }

    /// The first key whose value no later step would refuse, that value, and what it should be.
    pub fn fault(&self) -> Option<(&'static str, u64, &'static str)> {
        let (count, budget) = ("1 or more", "megabytes, from 1 to 1073741824");
        let bounds = [
            ("devices.buffer_size", self.buffer_size.map(|count| count as u64), u64::MAX, count),
            ("devices.data_gpu_memory", self.data_gpu_memory, MOST_MEGABYTES, budget),
            ("devices.model_gpu_memory", self.model_gpu_memory, MOST_MEGABYTES, budget),
        ];
        bounds.into_iter().find_map(|(key, value, most, expected)| {
            let wrong = value.filter(|value| !(1..=most).contains(value))?;
            Some((key, wrong, expected))
        })
    }
}

impl DeviceArgs {
    /// Decides what is asked for. A budget that nobody would keep is refused, not ignored.
    pub fn resolve(&self, file: &DeviceConfig) -> Result<DeviceSettings, Advised> {
        let isolated =
            self.enable_memory_isolation || file.enable_memory_isolation.unwrap_or(false);
        let data = self.data_gpu_memory.or(file.data_gpu_memory).map(Bytes::mib);
        let model = self.model_gpu_memory.or(file.model_gpu_memory).map(Bytes::mib);
        if !isolated && (data.is_some() || model.is_some()) {
            let fact = "a memory budget was given, and memory isolation is off";
            return Err(Advised::new(fact, "add --enable-memory-isolation, or leave it out"));
        }
        let fixed = self.enable_static_shapes.or(file.enable_static_shapes).unwrap_or(true);
        // A pair belongs together: half of it from a file and half typed would name a pair that
        // nobody wrote down.
        let (data_gpu, model_gpu) = match (self.data_gpu, self.model_gpu) {
            (None, None) => (file.data_gpu, file.model_gpu),
            typed => typed,
        };
        Ok(DeviceSettings {
            backend: self.backend.or(file.backend).unwrap_or_default(),
            data_gpu,
            model_gpu,
            buffer_size: self.buffer_size.or(file.buffer_size).unwrap_or(DEFAULT_BUFFER),
            isolation: if isolated { Isolation::On { data, model } } else { Isolation::Off },
            shapes: if fixed { Shapes::Static } else { Shapes::PerBatch },
            mel_on: self.mel_on.or(file.mel_on).unwrap_or_default(),
        })
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("expected a whole number from 1 up".into()),
    }
}

/// So that the size in bytes is a number, too.
const MOST_MEGABYTES: u64 = 1 << 30;

fn megabytes(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(count) if (1..=MOST_MEGABYTES).contains(&count) => Ok(count),
        _ => Err("expected a whole number of megabytes from 1 up".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use tandem_device::backend::Backend;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        devices: DeviceArgs,
    }

    fn typed(flags: &[&str]) -> DeviceArgs {
        let all = ["tandem"].iter().chain(flags);
        Typed::try_parse_from(all).map(|typed| typed.devices).expect("flags that parse")
    }

    fn file(text: &str) -> DeviceConfig {
        toml::from_str(text).expect("a file that parses")
    }

    fn settings(flags: &[&str], text: &str) -> DeviceSettings {
        typed(flags).resolve(&file(text)).expect("settings")
    }

    #[test]
    fn nothing_said_means_auto_fifty_samples_no_budget_and_static_shapes() {
        let plain = settings(&[], "");
        assert_eq!(plain, DeviceSettings::default());
        assert_eq!((plain.buffer_size, plain.shapes), (50, Shapes::Static));
    }

    #[test]
    fn a_flag_comes_before_the_file() {
        let text = "backend = \"cpu\"\nbuffer_size = 7\nenable_static_shapes = false\n";
        let from_file = settings(&[], text);
        assert_eq!(from_file.backend, BackendChoice::Only(Backend::Cpu));
        assert_eq!((from_file.buffer_size, from_file.shapes), (7, Shapes::PerBatch));
        let flags = ["--backend", "wgpu", "--buffer-size", "9", "--enable-static-shapes"];
        let from_flags = settings(&flags, text);
        assert_eq!(from_flags.backend, BackendChoice::Only(Backend::Wgpu));
        assert_eq!((from_flags.buffer_size, from_flags.shapes), (9, Shapes::Static));
        assert_eq!(settings(&[], "mel_on = \"host\"").mel_on, MelOn::Host);
        assert_eq!(settings(&["--mel-on", "device"], "mel_on = \"host\"").mel_on, MelOn::Device);
        assert_eq!(settings(&["--enable-static-shapes=false"], "").shapes, Shapes::PerBatch);
    }

    #[test]
    fn a_pair_of_gpus_is_never_half_typed_and_half_from_the_file() {
        let text = "data_gpu = 0\nmodel_gpu = 1\n";
        let both = settings(&[], text);
        assert_eq!((both.data_gpu, both.model_gpu), (Some(0), Some(1)));
        let one = settings(&["--data-gpu", "3"], text);
        assert_eq!((one.data_gpu, one.model_gpu), (Some(3), None), "an error further on");
    }

    #[test]
    fn budgets_are_megabytes_and_need_isolation() {
        let flags = ["--enable-memory-isolation", "--data-gpu-memory", "6144"];
        let asked = settings(&flags, "model_gpu_memory = 100").isolation;
        let (data, model) = (Some(Bytes::mib(6144)), Some(Bytes::mib(100)));
        assert_eq!(asked, Isolation::On { data, model });
        let refused = typed(&flags[1..]).resolve(&DeviceConfig::default()).unwrap_err();
        assert!(refused.to_string().contains("memory isolation is off"), "{refused}");
    }

    #[test]
    fn zeros_and_unknown_names_are_refused() {
        for flags in [
            ["--buffer-size", "0"],
            ["--data-gpu-memory", "0"],
            ["--backend", "cudas"],
            ["--mel-on", "gpu"],
        ] {
            assert!(Typed::try_parse_from(["tandem"].iter().chain(&flags)).is_err(), "{flags:?}");
        }
        assert_eq!(file("buffer_size = 0").fault().map(|f| f.0), Some("devices.buffer_size"));
        let most = |count: u64| file(&format!("data_gpu_memory = {count}")).fault();
        assert_eq!(most(MOST_MEGABYTES), None);
        assert_eq!(most(MOST_MEGABYTES + 1).map(|f| f.0), Some("devices.data_gpu_memory"));
        assert_eq!(file("").fault(), None);
        assert!(toml::from_str::<DeviceConfig>("backend = \"cudas\"").is_err());
        assert!(toml::from_str::<DeviceConfig>("data_gpus = 1").is_err());
    }
}
