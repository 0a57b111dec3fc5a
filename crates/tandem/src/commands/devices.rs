//! `tandem devices`: the devices of this machine and build, and which ones a run would use.
//!
//! The result goes to stdout as a table or JSON. Opens no device.

use crate::config;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::printer::Printer;
use crate::setting_flags::{OfDevices, SettingFlags};
use serde::Serialize;
use std::path::PathBuf;
use tandem_device::inventory::{BackendReport, FoundDevice, Inventory};
use tandem_device::placement::Placement;
use tandem_settings::Start;
use tandem_train::PrepareOptions;
use tandem_train::feed::buffers::{BufferRequest, Buffers};
use tandem_units::Bytes;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Configuration file of Tandem or MyXTTS in TOML or YAML; flags and environment variables
    /// override it
    #[arg(long, value_name = "FILE", env = "TANDEM_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub devices: SettingFlags<OfDevices>,
}

const EXAMPLES: &str = "\
Examples:
  tandem devices                                  all devices, and those a run would use
  tandem devices --data-gpu 0 --model-gpu 1       check a pair before a run
  tandem devices --backend wgpu --json            for scripts";

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    found: &'a Inventory,
    /// The devices that a run with these flags would use.
    placement: &'a Placement,
    /// The buffers of such a run, with the batch size and workers of the file.
    buffers: &'a Buffers,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let file = config::read(args.config.as_deref(), out)?;
    let file = file.with_typed(&args.devices.typed, Start::NewWeights)?;
    let asked = file.devices.settings()?;
    let buffers = Buffers::decide(&BufferRequest {
        prefetch: file.prefetch_buffer_size,
        samples: file.devices.buffer_size,
        batch_size: file.batch.batch_size,
        workers: file.num_workers.unwrap_or(PrepareOptions::default().workers),
    })?;
    let found = Inventory::detect();
    let placement =
        Placement::decide(&asked, &found).context("the requested devices cannot be used")?;
    if args.json {
        out.json(&Answer { found: &found, placement: &placement, buffers: &buffers })?;
        return Ok(ExitStatus::Done);
    }
    show_devices(&found, out)?;
    show_links(&found, out)?;
    show_missing(&found, out)?;
    out.line("")?;
    out.line(&placement.to_string())?;
    out.line(&buffers.to_string())?;
    if let Some(warning) = &placement.warning {
        out.note(&format!("warning: {warning}"));
    }
    Ok(ExitStatus::Done)
}

fn show_devices(found: &Inventory, out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&["device", "name", "kind", "memory", "driver", "bus"]);
    for device in found.backends.iter().flat_map(|report| &report.devices) {
        table.add_row(row(device));
    }
    out.line(&table.to_string())?;
    let cpu = &found.processor;
    let units = match cpu.vector_units.as_slice() {
        [] => "no known vector units".to_owned(),
        units => units.join(", "),
    };
    out.line(&format!("\nCPU: {} threads, {units}", cpu.threads))
}

fn row(device: &FoundDevice) -> [String; 6] {
    let unknown = || "-".to_owned();
    [
        device.id.to_string(),
        device.name.clone(),
        device.kind.name().to_owned(),
        device.memory.map_or_else(unknown, |memory: Bytes| memory.to_string()),
        device.driver.clone().unwrap_or_else(unknown),
        device.pci.map_or_else(unknown, |pci| pci.to_string()),
    ]
}

fn show_links(found: &Inventory, out: &mut Printer) -> Result<()> {
    for link in &found.links {
        let (kind, through) = (link.kind.name(), link.kind.through());
        out.line(&format!("link {} - {}: {kind}, {through}", link.one, link.other))?;
    }
    for warning in found.links.iter().filter_map(|link| link.warning()) {
        out.note(&format!("warning: {warning}"));
    }
    Ok(())
}

fn show_missing(found: &Inventory, out: &mut Printer) -> Result<()> {
    for card in &found.unused_cards {
        out.note(&format!(
            "card of {} at {} (model {}) is not used: see backend {} below",
            card.vendor, card.pci, card.model, card.backend
        ));
    }
    for report in found.backends.iter().filter(|report| !report.devices.is_empty()) {
        if let Some(fault) = &report.fault {
            let hint = report.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
            out.note(&format!("devices of {} cannot be used: {fault}{hint}", report.backend));
        }
    }
    let without = |report: &&BackendReport| report.devices.is_empty();
    let missing: Vec<_> = found.backends.iter().filter(without).collect();
    if missing.is_empty() {
        return Ok(());
    }
    out.line("")?;
    let mut table = Printer::table(&["unavailable backend", "for", "how to enable"]);
    for report in missing {
        let hint = report.hint.clone().or(report.fault.clone()).unwrap_or_default();
        table.add_row([report.backend.name(), report.backend.serves(), &hint]);
    }
    out.line(&table.to_string())
}
