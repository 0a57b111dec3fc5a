//! Ends the program where a training step does not return from its device.
//!
//! In: the newest samples of the devices. Out: [`OnFrozen`], which the watchdog calls: it prints the error and the state
//! of the devices, and exits.

use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use std::io::Write;
use std::sync::Arc;
use tandem_device::sampler::LatestSamples;
use tandem_pipeline::PipelineError;
use tandem_pipeline::watchdog::OnFrozen;
use tandem_telemetry::event::DeviceSample;

/// A training step that does not return from its device cannot be stopped from outside: the program
/// ends, and the newest checkpoint on disk is what can be resumed. A frozen stage ends its run by itself.
pub fn end_frozen_run(latest: LatestSamples) -> OnFrozen {
    Arc::new(move |frozen| {
        if frozen.stage != "train" {
            return;
        }
        let failed: Result<()> = Err(PipelineError::Frozen(frozen.clone())).context(
            "the training step does not end; `--resume` continues from the newest checkpoint",
        );
        let Err(error) = failed else { return };
        // The printer may belong to the frozen thread.
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "{}", crate::failure::explain(&error));
        for sample in latest.all() {
            let _ = writeln!(stderr, "{}", describe_sample(&sample));
        }
        std::process::exit(ExitStatus::Failed as i32);
    })
}

fn describe_sample(sample: &DeviceSample) -> String {
    let busy = sample.utilisation.map(|share| format!("{:.0} % busy", 100.0 * share));
    let memory = sample.memory_used.map(|bytes| format!("{bytes} in use"));
    let heat = sample.temperature.map(|degrees| format!("{degrees:.0} degrees"));
    let facts: Vec<String> = [busy, memory, heat].into_iter().flatten().collect();
    format!("device {}: {}", sample.device, facts.join(", "))
}
