//! Flags that choose devices and memory budgets.
//!
//! Flag, then environment, then configuration file, then default. Decides nothing about the
//! machine: that is `Placement::decide`, with what `Inventory::detect` finds.

use crate::corpus_args::{at_least_one, switch};
use crate::failure::Advised;
use serde::{Deserialize, Serialize};
use tandem_device::backend::{BackendChoice, F32Products};
use tandem_device::placement::MelOn;
use tandem_device::placement::{DeviceSettings, Isolation, LocalRank, Shapes};
use tandem_units::Bytes;

/// Which devices a command uses. All there is for a command that only computes steps.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Devices")]
pub struct PlaceArgs {
    /// Compute backend: auto, cpu, wgpu, vulkan, metal, cuda or rocm [default: auto]
    #[arg(long, value_name = "NAME", env = "TANDEM_BACKEND")]
    pub backend: Option<BackendChoice>,
    /// GPU for data preparation; requires --model-gpu. With several ranks on a machine: one for each, `0,2`
    #[arg(long, value_name = "N", env = "TANDEM_DATA_GPU", value_delimiter = ',')]
    pub data_gpu: Vec<usize>,
    /// GPU for the model; requires --data-gpu. With several ranks on a machine: one for each, `1,3`
    #[arg(long, value_name = "N", env = "TANDEM_MODEL_GPU", value_delimiter = ',')]
    pub model_gpu: Vec<usize>,
}

impl PlaceArgs {
    pub fn resolve(&self) -> Result<DeviceSettings, Advised> {
        let devices = DeviceArgs { place: self.clone(), ..DeviceArgs::default() };
        devices.resolve(&DeviceConfig::default())
    }
}

#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Devices")]
pub struct DeviceArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Samples that may wait on the host; without --prefetch-buffer-size also those that may wait for
    /// the model [default: 50 on the host]
    #[arg(long, value_name = "N", env = "TANDEM_BUFFER_SIZE", value_parser = at_least_one)]
    pub buffer_size: Option<usize>,
    /// Give data and model a memory budget each, and enforce it
    #[arg(
        long,
        value_name = "BOOL",
        env = "TANDEM_ENABLE_MEMORY_ISOLATION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = switch()
    )]
    pub enable_memory_isolation: Option<bool>,
    /// Memory budget of the data side in MB, with memory isolation [default: 8192, less on a small card]
    #[arg(long, value_name = "MB", env = "TANDEM_DATA_GPU_MEMORY", value_parser = megabytes)]
    pub data_gpu_memory: Option<u64>,
    /// Memory budget of the model in MB, with memory isolation [default: 16384, less on a small card]
    #[arg(long, value_name = "MB", env = "TANDEM_MODEL_GPU_MEMORY", value_parser = megabytes)]
    pub model_gpu_memory: Option<u64>,
    /// Pad batches to a small fixed set of shapes, so that kernels are compiled once [default: true]
    #[arg(
        long,
        value_name = "BOOL",
        env = "TANDEM_ENABLE_STATIC_SHAPES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = switch()
    )]
    pub enable_static_shapes: Option<bool>,
    /// Where mel frames are computed: auto (measured at the start), host or device [default: auto]
    #[arg(long, value_name = "PLACE", env = "TANDEM_MEL_ON")]
    pub mel_on: Option<MelOn>,
}

/// The same in a configuration file, under `[devices]`. Absent keys keep their defaults.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceConfig {
    pub backend: Option<BackendChoice>,
    pub data_gpu: Option<usize>,
    pub model_gpu: Option<usize>,
    pub buffer_size: Option<usize>,
    pub enable_memory_isolation: Option<bool>,
    pub data_gpu_memory: Option<u64>,
    pub model_gpu_memory: Option<u64>,
    pub enable_static_shapes: Option<bool>,
    pub mel_on: Option<MelOn>,
}

impl DeviceConfig {
    /// The settings as keys of a configuration file. The buffer is part of [`Buffers`].
    ///
    /// [`Buffers`]: tandem_train::feed::buffers::Buffers
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
            buffer_size: None,
            enable_memory_isolation: Some(isolated),
            data_gpu_memory: data,
            model_gpu_memory: model,
            enable_static_shapes: Some(settings.shapes == Shapes::Static),
            mel_on: Some(settings.mel_on),
        }
    }

    /// The first invalid key that no later check would refuse, its value, and what is expected.
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
    /// Merges flags and file. A budget that would have no effect is refused, not ignored.
    pub fn resolve(&self, file: &DeviceConfig) -> Result<DeviceSettings, Advised> {
        let isolated =
            self.enable_memory_isolation.or(file.enable_memory_isolation).unwrap_or(false);
        let data_memory = self.data_gpu_memory.or(file.data_gpu_memory).map(Bytes::mib);
        let model_memory = self.model_gpu_memory.or(file.model_gpu_memory).map(Bytes::mib);
        if !isolated && (data_memory.is_some() || model_memory.is_some()) {
            let fact = "a memory budget is set, but memory isolation is off";
            return Err(Advised::new(fact, "add --enable-memory-isolation, or remove the budget"));
        }
        let fixed = self.enable_static_shapes.or(file.enable_static_shapes).unwrap_or(true);
        // Both GPUs come from the same place: one from the file and one from a flag would be a pair
        // that the user never wrote.
        let (data, model) = (&self.place.data_gpu, &self.place.model_gpu);
        let (data_gpu, model_gpu) = match (data.first(), model.first()) {
            (None, None) => (file.data_gpu, file.model_gpu),
            (data, model) => (data.copied(), model.copied()),
        };
        if data.len().max(model.len()) > 1 && data.len() != model.len() {
            let fact =
                format!("`--data-gpu` names {} GPUs and `--model-gpu` {}", data.len(), model.len());
            return Err(Advised::new(fact, "name one GPU of each for each rank of a machine"));
        }
        if let Some((_, gpu)) =
            model.iter().enumerate().find(|(place, gpu)| model[..*place].contains(gpu))
        {
            let fact = format!("`--model-gpu` names GPU {gpu} twice: two ranks would train on it");
            return Err(Advised::new(fact, "name another model GPU for each rank of a machine"));
        }
        let further_pairs = data.iter().copied().zip(model.iter().copied()).skip(1).collect();
        Ok(DeviceSettings {
            backend: self.place.backend.or(file.backend).unwrap_or_default(),
            data_gpu,
            model_gpu,
            further_pairs,
            local: LocalRank::ALONE,
            isolation: match isolated {
                true => Isolation::On { data: data_memory, model: model_memory },
                false => Isolation::Off,
            },
            shapes: if fixed { Shapes::Static } else { Shapes::PerBatch },
            mel_on: self.mel_on.or(file.mel_on).unwrap_or_default(),
            // Part of the training settings.
            products: F32Products::Full,
        })
    }
}

/// So that the size in bytes does not overflow.
const MOST_MEGABYTES: u64 = 1 << 30;

fn megabytes(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(count) if (1..=MOST_MEGABYTES).contains(&count) => Ok(count),
        _ => Err("expected a whole number of megabytes, 1 or more".into()),
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
    fn defaults_are_auto_no_budget_and_static_shapes() {
        let plain = settings(&[], "");
        assert_eq!(plain, DeviceSettings::default());
        assert_eq!(plain.shapes, Shapes::Static);
    }

    #[test]
    fn a_flag_overrides_the_file() {
        let text = "backend = \"cpu\"\nenable_static_shapes = false\n";
        let from_file = settings(&[], text);
        assert_eq!(from_file.backend, BackendChoice::Only(Backend::Cpu));
        assert_eq!(from_file.shapes, Shapes::PerBatch);
        let flags = ["--backend", "wgpu", "--enable-static-shapes"];
        let from_flags = settings(&flags, text);
        assert_eq!(from_flags.backend, BackendChoice::Only(Backend::Wgpu));
        assert_eq!(from_flags.shapes, Shapes::Static);
        assert_eq!(settings(&[], "mel_on = \"host\"").mel_on, MelOn::Host);
        assert_eq!(settings(&["--mel-on", "device"], "mel_on = \"host\"").mel_on, MelOn::Device);
        assert_eq!(settings(&["--enable-static-shapes=false"], "").shapes, Shapes::PerBatch);
    }

    #[test]
    fn a_pair_of_gpus_is_never_half_from_a_flag_and_half_from_the_file() {
        let text = "data_gpu = 0\nmodel_gpu = 1\n";
        let both = settings(&[], text);
        assert_eq!((both.data_gpu, both.model_gpu), (Some(0), Some(1)));
        let one = settings(&["--data-gpu", "3"], text);
        assert_eq!((one.data_gpu, one.model_gpu), (Some(3), None), "an error further on");
    }

    #[test]
    fn several_pairs_are_for_the_ranks_of_a_machine() {
        let pairs = settings(&["--data-gpu", "0,2", "--model-gpu", "1,3"], "");
        assert_eq!((pairs.data_gpu, pairs.model_gpu), (Some(0), Some(1)));
        assert_eq!(pairs.further_pairs, [(2, 3)]);
        let uneven = typed(&["--data-gpu", "0,2", "--model-gpu", "1"]);
        let refused = uneven.resolve(&DeviceConfig::default()).unwrap_err();
        assert_eq!(refused.to_string(), "`--data-gpu` names 2 GPUs and `--model-gpu` 1");
        let twice = typed(&["--data-gpu", "0,2", "--model-gpu", "1,1"]);
        let refused = twice.resolve(&DeviceConfig::default()).unwrap_err();
        assert!(refused.to_string().starts_with("`--model-gpu` names GPU 1 twice"), "{refused}");
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
