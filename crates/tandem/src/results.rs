//! The results template of `docs/results-template.md`, filled from a run and this machine.
//!
//! In: a run, its settings, the machine. Out: [`Results`]: sections of rows, as Markdown in English or Persian, or as
//! JSON. Cold and warm start are measured here: the corpus is prepared twice in a temporary cache. A row whose value is
//! not known says so. Sends nothing, and changes nothing of the user.

use crate::data_report::prepare_quietly;
use crate::failure::{Advised, Context, Result};
use crate::printer::Printer;
use crate::train_args::TrainArgs;
use crate::train_plan::TrainPlan;
use serde::Serialize;
use std::path::Path;
use sysinfo::System;
use tandem_device::backend::Backend;
use tandem_device::inventory::Inventory;
use tandem_disk::storage::Storage;
use tandem_page::Lang;
use tandem_pipeline::CancelToken;
use tandem_telemetry::run_parts::main_part;
use tandem_telemetry::{Report, Rules, Summary};
use tandem_train::{PrepareOptions, Summary as CorpusSummary};
use tandem_units::{Bytes, Seconds};

/// A filled template.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    pub sections: Vec<ResultSection>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ResultSection {
    pub title: Label,
    pub rows: Vec<ResultRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ResultRow {
    pub label: Label,
    pub value: String,
}

/// The same words in both languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    pub en: &'static str,
    pub fa: &'static str,
}

const fn label(en: &'static str, fa: &'static str) -> Label {
    Label { en, fa }
}

/// Whether the start is measured, which takes as long as preparing the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTimes {
    Measured,
    LeftOut,
}

/// Cold and warm start, and what the corpus holds.
struct Corpus {
    summary: CorpusSummary,
    cold: Seconds,
    warm: Seconds,
}

impl Results {
    pub fn collect(
        run: &Path,
        found: &Inventory,
        start: StartTimes,
        cancel: &CancelToken,
        out: &mut Printer,
    ) -> Result<Results> {
        let (summary, notes) = Summary::read(run)
            .with_context(|| format!("cannot read the run `{}`", run.display()))?;
        let report = Report::from_summary(&summary, Some(notes), &Rules::default());
        let plan = settings_of(run, out)?;
        let corpus = match start {
            StartTimes::Measured => Some(measure_start(&plan, cancel, out)?),
            StartTimes::LeftOut => None,
        };
        let sections = vec![
            machine(found, &plan, run),
            corpus_rows(&plan, &report, corpus.as_ref()),
            start_rows(&report, corpus.as_ref()),
            settings(&plan, &summary),
            throughput(&report),
            utilisation(&report),
        ];
        Ok(Results { sections })
    }

    /// As the document shows it.
    pub fn markdown(&self, lang: Lang) -> String {
        let word = |label: Label| lang.say(label.en, label.fa);
        let mut text = format!("# {}\n", lang.say("Results", "نتایج"));
        for section in &self.sections {
            let (what, value) = (lang.say("what", "چه"), lang.say("value", "مقدار"));
            text += &format!("\n## {}\n\n| {what} | {value} |\n|---|---|\n", word(section.title));
            for row in &section.rows {
                let value = row.value.replace('|', "\\|").replace('\n', " ");
                text += &format!("| {} | {value} |\n", word(row.label));
            }
        }
        text
    }

    /// Replaces private data in every value.
    pub fn redact(&mut self, redact: impl Fn(&str) -> String) {
        let rows = self.sections.iter_mut().flat_map(|section| &mut section.rows);
        rows.for_each(|row| row.value = redact(&row.value));
    }
}

/// The settings that the run was started with.
fn settings_of(run: &Path, out: &mut Printer) -> Result<TrainPlan> {
    let part = main_part(run)?;
    let directory = if run.is_dir() { run } else { part.parent().unwrap_or(Path::new(".")) };
    let config = directory.join("config.toml");
    if !config.is_file() {
        let fact =
            format!("`{}` has no `config.toml`: its settings are not known", directory.display());
        return Err(Advised::new(fact, "name the directory of a run of `tandem train`").into());
    }
    let mut args = TrainArgs::default();
    args.corpus.config = Some(config);
    args.resolve(out)
}

/// Prepares the corpus twice in a temporary cache. The system may have the recordings in memory already.
fn measure_start(plan: &TrainPlan, cancel: &CancelToken, out: &mut Printer) -> Result<Corpus> {
    let folder = tempfile::tempdir().context("cannot create a temporary cache")?;
    let cache_dir = Some(folder.path().to_path_buf());
    let options = PrepareOptions { cache_dir, ..plan.prepare.clone() };
    out.note("measuring a cold and a warm start in a temporary cache; `--quick` leaves this out");
    let mut took = || -> Result<CorpusSummary> {
        let prepared = prepare_quietly(&plan.corpus, &plan.data, &options, cancel, out)
            .with_context(|| format!("cannot prepare `{}`", plan.train_data.display()))?;
        Ok(prepared.summary)
    };
    let cold = took()?.took;
    let summary = took()?;
    let warm = summary.took;
    Ok(Corpus { summary, cold, warm })
}

fn row(label: Label, value: impl Into<String>) -> ResultRow {
    ResultRow { label, value: value.into() }
}

fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| NOT_MEASURED.into(), |value| value.to_string())
}

/// What a row says whose value is not known.
pub const NOT_MEASURED: &str = "not measured";

fn machine(found: &Inventory, plan: &TrainPlan, run: &Path) -> ResultSection {
    let built: Vec<&str> =
        Backend::ALL.into_iter().filter(|b| b.is_built()).map(Backend::name).collect();
    let system = System::long_os_version().ok();
    let kernel = System::kernel_version().ok();
    let cpu = found.cpu();
    let gpus: Vec<String> = found
        .backends
        .iter()
        .filter(|report| report.backend != Backend::Cpu)
        .flat_map(|report| &report.devices)
        .map(|gpu| format!("{}: {}, {}", gpu.id, gpu.name, known(gpu.memory)))
        .collect();
    let links: Vec<String> = found
        .links
        .iter()
        .map(|link| format!("{} - {}: {}", link.one, link.other, link.kind.name()))
        .collect();
    let listed = |list: Vec<String>| if list.is_empty() { "none".into() } else { list.join("; ") };
    let rows = vec![
        row(
            label("Tandem", "تندم"),
            format!("{} ({})", env!("CARGO_PKG_VERSION"), built.join(", ")),
        ),
        row(label("System", "سیستم"), format!("{}, kernel {}", known(system), known(kernel))),
        row(label("CPU", "پردازنده"), format!("{}, {} threads", cpu.name, found.processor.threads)),
        row(label("Memory", "حافظه"), known(cpu.memory)),
        row(label("GPUs", "GPUها"), listed(gpus)),
        row(label("Link between the GPUs", "اتصال میان GPUها"), listed(links)),
        row(label("Storage of the corpus", "حافظهٔ پیکره"), Storage::of(&plan.corpus).to_string()),
        row(label("Storage of the run", "حافظهٔ اجرا"), Storage::of(run).to_string()),
    ];
    ResultSection { title: label("Machine", "ماشین"), rows }
}

fn corpus_rows(plan: &TrainPlan, report: &Report, corpus: Option<&Corpus>) -> ResultSection {
    let data = report.data.as_ref();
    let summary = corpus.map(|corpus| &corpus.summary);
    let rows_of = data.map(|data| {
        format!("{} to train on, {} held out, {} rejected", data.usable, data.eval, data.rejected)
    });
    let names = |names: &std::collections::BTreeMap<String, usize>| match names.len() {
        0 => "not named".to_string(),
        _ => names
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let long: Option<usize> =
        summary.map(|s| s.too_long.iter().map(|kind| kind.rows).sum::<usize>());
    let rows = vec![
        row(label("Corpus", "پیکره"), plan.train_data.display().to_string()),
        row(label("Rows", "سطرها"), known(rows_of)),
        row(label("Length of all recordings", "طول همهٔ ضبط‌ها"), known(summary.map(|s| s.sound))),
        row(label("Languages", "زبان‌ها"), known(summary.map(|s| names(&s.languages)))),
        row(label("Speakers", "گویندگان"), known(summary.map(|s| names(&s.speakers)))),
        row(
            label("Longest recording, mel frames", "بلندترین ضبط، قاب مل"),
            known(summary.map(|s| s.longest_frames)),
        ),
        row(label("Rows beyond the length limits", "سطرهای بلندتر از حد"), known(long)),
    ];
    ResultSection { title: label("Corpus", "پیکره"), rows }
}

fn start_rows(report: &Report, corpus: Option<&Corpus>) -> ResultSection {
    let first = report.start.as_ref().map(|start| start.waited);
    let prepared = report.data.as_ref().map(|data| {
        let state = serde_json::to_value(data.cache).ok();
        let state = state.as_ref().and_then(|state| state.as_str()).unwrap_or_default().to_string();
        format!("{} (cache {state})", Seconds(data.seconds))
    });
    let rows = vec![
        row(label("Cold start (no cache)", "شروع سرد (بدون کش)"), known(corpus.map(|c| c.cold))),
        row(
            label("Warm start (cache read)", "شروع گرم (خواندن کش)"),
            known(corpus.map(|c| c.warm)),
        ),
        row(label("Preparation of this run", "آماده‌سازی این اجرا"), known(prepared)),
        row(label("Wait for the first batches", "انتظار برای نخستین دسته‌ها"), known(first)),
        row(
            label("Warm-up of kernels", "گرم‌کردن هسته‌ها"),
            report.warm_up.as_ref().map_or_else(
                || "none".into(),
                |warm_up| format!("{} shapes in {}", warm_up.shapes, warm_up.took),
            ),
        ),
    ];
    ResultSection { title: label("Start", "شروع"), rows }
}

fn settings(plan: &TrainPlan, summary: &Summary) -> ResultSection {
    let header = summary.header.as_ref().map(|header| &header.settings);
    let mode = header.and_then(|settings| settings.pointer("/placement/mode")?.as_str());
    let buffers = &plan.buffers;
    let precision = serde_json::to_value(plan.train.precision).ok();
    let precision = precision.as_ref().and_then(|name| name.as_str()).map(str::to_string);
    let rows = vec![
        row(label("Mode", "حالت"), known(mode)),
        row(label("Model size", "اندازهٔ مدل"), plan.train.model_size.name()),
        row(
            label("Batch size, gradient accumulation", "اندازهٔ دسته، انباشت گرادیان"),
            format!("{}, {}", plan.batch.batch_size, plan.train.grad_accum),
        ),
        row(label("Workers", "کارگرها"), buffers.workers.to_string()),
        row(
            label("Prefetch, host buffer (batches)", "پیش‌واکشی، بافر میزبان (دسته)"),
            format!("{}, {}", buffers.depth, buffers.host),
        ),
        row(label("Precision", "دقت عددی"), known(precision)),
        row(
            label("Features cached", "ویژگی‌ها در کش"),
            summary
                .header
                .as_ref()
                .and_then(|header| header.settings.pointer("/config/cache_dataset")?.as_bool())
                .map_or(NOT_MEASURED, |cached| if cached { "yes" } else { "no" }),
        ),
    ];
    ResultSection { title: label("Settings", "تنظیمات"), rows }
}

fn throughput(report: &Report) -> ResultSection {
    let steps = report.steps.as_ref();
    let figures = steps.map(|steps| steps.steady.unwrap_or(steps.all));
    let variation = steps.and_then(|steps| steps.variation.as_ref());
    let rate = |value: Option<f64>| known(value.map(|value| format!("{value:.2}")));
    let rows = vec![
        row(label("Steps", "گام‌ها"), known(steps.map(|steps| steps.all.count))),
        row(
            label("Step time: mean, std, p95", "زمان گام: میانگین، انحراف معیار، صدک ۹۵"),
            known(
                figures.map(|f| {
                    format!("{}, {}, {}", Seconds(f.mean), Seconds(f.std), Seconds(f.p95))
                }),
            ),
        ),
        row(label("Variation", "تغییرات"), known(variation)),
        row(label("Steps per second", "گام در ثانیه"), rate(steps.map(|s| s.steps_per_second))),
        row(
            label("Samples per second", "نمونه در ثانیه"),
            rate(steps.map(|s| s.samples_per_second)),
        ),
        row(label("Frames per second", "قاب در ثانیه"), rate(steps.map(|s| s.frames_per_second))),
        row(
            label("Model waited", "انتظار مدل"),
            known(steps.map(|steps| format!("{:.1} %", 100.0 * steps.stall))),
        ),
        row(label("Verdict", "حکم"), report.verdict.sentence.clone()),
        row(label("Grade", "نمره"), report.grading.sentence.clone()),
    ];
    ResultSection { title: label("Throughput", "توان عملیاتی"), rows }
}

fn utilisation(report: &Report) -> ResultSection {
    let lines: Vec<String> = report
        .devices
        .iter()
        .map(|device| {
            let busy = device
                .utilisation
                .map(|f| format!("busy {:.1} % (std {:.1})", 100.0 * f.mean, 100.0 * f.std));
            let memory = device.memory.map(|f| {
                let [mean, std, peak] = [f.mean, f.std, f.max].map(|bytes| Bytes(bytes as u64));
                format!("memory {mean} (std {std}), peak {peak}")
            });
            let facts: Vec<String> = [busy, memory].into_iter().flatten().collect();
            format!("{} ({}): {}", device.device, device.role.name(), facts.join(", "))
        })
        .collect();
    let of = |model: bool| {
        let wanted = report.devices.iter().zip(&lines);
        let wanted = wanted.filter(|(device, _)| (device.role.name() == "host") != model);
        let found: Vec<&str> = wanted.map(|(_, line)| line.as_str()).collect();
        if found.is_empty() { "none".to_string() } else { found.join("; ") }
    };
    let rows = vec![
        row(label("GPUs of the run", "GPUهای اجرا"), of(true)),
        row(label("Process and machine", "فرایند و ماشین"), of(false)),
    ];
    ResultSection {
        title: label("Utilisation and memory", "بهره‌وری و حافظه"), rows
    }
}

/// Where a run is looked for if none is named.
pub fn missing_run() -> Advised {
    Advised::new(
        "no run was found to fill the results template from",
        "train first (`tandem train --train-data demo --max-steps 200`), or name the run's directory",
    )
}
