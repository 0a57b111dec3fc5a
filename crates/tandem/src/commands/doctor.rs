//! `tandem doctor`: collects the data for a bug report in one file.
//!
//! Out: machine, devices, links, storage, build, settings and the report of a run, as sections of text;
//! with `--results` the filled results template ([`crate::results`]). Home
//! directory, user name, host name and values that look like secrets are replaced, unless `--full` is
//! given. Sends nothing over the network.

use crate::config;
use crate::exit::ExitStatus;
use crate::failure::{Advised, Failure, Result, explain};
use crate::interrupt::cancel_on_signals;
use crate::page_args::LangArg;
use crate::printer::Printer;
use crate::results::{Results, StartTimes, missing_run};
use crate::run_directory::{RUNS, newest_record};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use sysinfo::System;
use tandem_device::backend::Backend;
use tandem_device::inventory::Inventory;
use tandem_device::placement::Placement;
use tandem_disk::replace_file::replace_file;
use tandem_disk::storage::Storage;
use tandem_insight::redact::Redactor;
use tandem_telemetry::{Report, Rules, RunRecord, Summary};
use tandem_units::Bytes;
use zip::write::SimpleFileOptions;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Run whose report and settings are included: its directory or record [default: the newest run
    /// below `runs`]
    run: Option<PathBuf>,
    /// Configuration file to include
    #[arg(long, value_name = "FILE", env = "TANDEM_CONFIG")]
    config: Option<PathBuf>,
    /// Output file: .zip for an archive, otherwise text [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Fill the results template instead: machine, corpus, cold and warm start, settings, throughput,
    /// utilisation of the run, as Markdown
    #[arg(long)]
    results: bool,
    /// With --results: do not measure the start, which prepares the corpus in a temporary cache
    #[arg(long, requires = "results")]
    quick: bool,
    #[command(flatten)]
    language: LangArg,
    /// Do not replace names, paths and secrets
    #[arg(long)]
    full: bool,
    /// Print as JSON, one entry for each section
    #[arg(long, conflicts_with = "out")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem doctor                                    to read
  tandem doctor runs/first -o report.zip           to attach
  tandem doctor --config run.toml -o report.txt
  tandem doctor --results runs/first -o results.md     the results template, filled
  tandem doctor --results runs/first --lang fa --quick

Your home directory, user name and host name are replaced, and values that look like secrets. Look \
through it before you share it.";

/// A section of the report.
#[derive(Serialize)]
struct Section {
    /// Title, and file name in an archive.
    name: &'static str,
    text: String,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    if args.results {
        return results(&args, out);
    }
    let mut sections = sections(&args, out);
    if !args.full {
        let who = redactor();
        sections.iter_mut().for_each(|section| section.text = who.redact(&section.text));
    }
    if args.json {
        out.json(&sections)?;
        return Ok(ExitStatus::Done);
    }
    let Some(path) = args.out else {
        out.line(as_text(&sections).trim_end())?;
        return Ok(ExitStatus::Done);
    };
    let zipped = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("zip"));
    let bytes = if zipped { as_zip(&sections)? } else { as_text(&sections).into_bytes() };
    save(&path, &bytes, args.full, out)
}

/// The filled results template.
fn results(args: &Args, out: &mut Printer) -> Result<ExitStatus> {
    let run = args.run.clone().or_else(found_run).ok_or_else(missing_run)?;
    let start = if args.quick { StartTimes::LeftOut } else { StartTimes::Measured };
    let cancel = cancel_on_signals()?;
    let mut filled = Results::collect(&run, &Inventory::detect(), start, &cancel, out)?;
    if !args.full {
        let who = redactor();
        filled.redact(|text| who.redact(text));
    }
    if args.json {
        out.json(&filled)?;
        return Ok(ExitStatus::Done);
    }
    let text = filled.markdown(args.language.lang);
    match &args.out {
        Some(path) => save(path, text.as_bytes(), args.full, out),
        None => {
            out.line(text.trim_end())?;
            Ok(ExitStatus::Done)
        }
    }
}

fn save(path: &Path, bytes: &[u8], full: bool, out: &mut Printer) -> Result<ExitStatus> {
    replace_file(path, bytes).map_err(|cause| {
        let fact = format!("cannot write `{}`: {cause}", path.display());
        Advised::new(fact, "name a file in a directory that exists and may be written to")
    })?;
    let size = Bytes(bytes.len() as u64);
    out.note(&format!("written: {} ({size}); check it before you share it", path.display()));
    if full {
        out.note("names, paths and secrets are not replaced (`--full`)");
    }
    Ok(ExitStatus::Done)
}

/// The newest run of this directory.
fn found_run() -> Option<PathBuf> {
    newest_record(Path::new(RUNS)).or_else(former_run)
}

fn sections(args: &Args, out: &mut Printer) -> Vec<Section> {
    let found = Inventory::detect();
    let run = args.run.clone().or_else(found_run);
    let mut sections = vec![
        Section { name: "program", text: program() },
        Section { name: "machine", text: machine(&found, run.as_deref()) },
        Section { name: "devices", text: devices(&found) },
        Section { name: "placement", text: placement(args.config.as_deref(), &found, out) },
    ];
    if let Some(path) = &args.config {
        let text = std::fs::read_to_string(path);
        let text = text.unwrap_or_else(|cause| format!("cannot be read: {cause}"));
        sections.push(Section { name: "config", text });
    }
    match run {
        Some(run) => sections.extend(of_run(&run)),
        None => sections.push(Section { name: "report", text: "no run was given".into() }),
    }
    sections
}

/// The default directory of earlier versions.
fn former_run() -> Option<PathBuf> {
    let former = Path::new("run");
    former.join(RunRecord::FILE_NAME).is_file().then(|| former.into())
}

fn program() -> String {
    let built: Vec<&str> =
        Backend::ALL.into_iter().filter(|b| b.is_built()).map(Backend::name).collect();
    let mut text = format!(
        "tandem {}\nbackends in this build: {}\n",
        env!("CARGO_PKG_VERSION"),
        built.join(", ")
    );
    // Only variables that change the behaviour of the program.
    const OTHERS: [&str; 5] = [
        "CUDA_VISIBLE_DEVICES",
        "VK_DRIVER_FILES",
        "VK_ICD_FILENAMES",
        "RUST_BACKTRACE",
        "RAYON_NUM_THREADS",
    ];
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into()))
        })
        .filter(|(name, _)| name.starts_with("TANDEM_") || OTHERS.contains(&name.as_str()))
        .collect();
    variables.sort();
    for (name, value) in variables {
        text += &format!("{name}={value}\n");
    }
    text
}

fn machine(found: &Inventory, run: Option<&Path>) -> String {
    let unknown = || "not known".to_string();
    let system = System::long_os_version().ok().unwrap_or_else(unknown);
    let kernel = System::kernel_version().ok().unwrap_or_else(unknown);
    let cpu = found.cpu();
    let memory = cpu.memory.map_or_else(unknown, |bytes| bytes.to_string());
    format!(
        "system: {system}, kernel {kernel}, {}\nhost: {}\nCPU: {}, {} threads ({})\nmemory: {memory}\n\
         storage: {}\n",
        std::env::consts::ARCH,
        System::host_name().ok().unwrap_or_else(unknown),
        cpu.name,
        found.processor.threads,
        found.processor.vector_units.join(", "),
        Storage::of(run.unwrap_or(Path::new("."))),
    )
}

fn devices(found: &Inventory) -> String {
    let mut text = String::new();
    for report in &found.backends {
        for device in &report.devices {
            let memory = device.memory.map_or("memory not known".into(), |bytes| bytes.to_string());
            let driver = device.driver.as_deref().unwrap_or("driver not known");
            let bus = device.pci.map(|pci| format!(", {pci}")).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {}, {memory}, {driver}{bus}", device.id, device.name);
        }
        if report.devices.is_empty() {
            let why = report.fault.clone().or(report.hint.clone()).unwrap_or_default();
            let _ = writeln!(text, "{}: none ({why})", report.backend.name());
        }
    }
    for link in &found.links {
        let (kind, through) = (link.kind.name(), link.kind.through());
        let _ = writeln!(text, "link {} - {}: {kind}, {through}", link.one, link.other);
    }
    for card in &found.unused_cards {
        let _ = writeln!(text, "unused card of {} at {} ({})", card.vendor, card.pci, card.model);
    }
    text
}

/// The devices of a run; an error in the settings is part of the report.
fn placement(config: Option<&Path>, found: &Inventory, out: &mut Printer) -> String {
    let decided = config::read(config, out)
        .and_then(|file| Ok(Placement::decide(&file.devices.settings()?, found)?));
    match decided {
        Ok(placement) => placement.to_string(),
        Err(error) => anstream::adapter::strip_str(&explain(&error)).to_string(),
    }
}

/// The report of a run, and the settings next to its record.
fn of_run(run: &Path) -> Vec<Section> {
    let report = match Summary::read(run) {
        Ok((summary, notes)) => {
            let report = Report::from_summary(&summary, Some(notes), &Rules::default());
            let header = summary.header.map(|header| header.settings).unwrap_or_default();
            let settings = serde_json::to_string_pretty(&header).unwrap_or_default();
            format!("{}\n\nsettings of the run\n{settings}\n", report.to_string().trim_end())
        }
        Err(error) => anstream::adapter::strip_str(&explain(&error.into())).to_string(),
    };
    let mut sections = vec![Section { name: "report", text: report }];
    if let Ok(text) = std::fs::read_to_string(run.join("config.toml")) {
        sections.push(Section { name: "run-config", text });
    }
    sections
}

fn as_text(sections: &[Section]) -> String {
    let shown = sections
        .iter()
        .map(|section| format!("== {} ==\n{}\n", section.name, section.text.trim_end()));
    shown.collect::<Vec<_>>().join("\n")
}

fn as_zip(sections: &[Section]) -> Result<Vec<u8>> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for section in sections {
        archive.start_file(format!("{}.txt", section.name), options).map_err(Failure::foreign)?;
        archive.write_all(section.text.as_bytes())?;
    }
    Ok(archive.finish().map_err(Failure::foreign)?.into_inner())
}

fn redactor() -> Redactor {
    let home = etcetera::home_dir().ok().map(|home| home.display().to_string());
    let user = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
    Redactor { home, user, host: System::host_name().ok() }
}
