//! Whether the largest batch of a command fits into memory, before anything large is allocated.
//!
//! In: resolved settings, the prepared corpus, devices. Out: the estimate, or an error with the largest batch that fits.
//! The one place where commands ask [`tandem_train::run::memory_estimate`].

use crate::corpus_args::BatchSettings;
use crate::failure::Result;
use crate::printer::Printer;
use crate::train_plan::TrainPlan;
use tandem_device::memory::free_host_memory;
use tandem_device::placement::{Mode, Placement};
use tandem_model::network::size::VoiceConfig;
use tandem_train::feed::Rows;
use tandem_train::run::memory_estimate::{MemoryEstimate, MemoryPlan, ModelPlan};
use tandem_train::{FeedSettings, Prepared};

/// The settings for this corpus, whose batches have no more rows than it, and the memory they need.
pub fn fit_to_corpus(
    plan: &mut TrainPlan,
    prepared: &Prepared,
    placement: &Placement,
    out: &mut Printer,
) -> Result<MemoryEstimate> {
    let rows = Rows::of(prepared, plan.feed_settings().split);
    let batches = BatchSettings { batch: plan.batch.clone(), buffers: plan.buffers };
    let (limited, note) = batches.limited_to(rows.frames.len())?;
    (plan.batch, plan.buffers) = (limited.batch, limited.buffers);
    if let Some(note) = note {
        out.note(&note);
    }
    let (size, bands) = (plan.train.model_size, plan.data.mel.bands);
    let (table, meta) = (prepared.front_end.table(), prepared.cache.meta());
    let steps = plan.train.max_steps.unwrap_or(u64::MAX);
    let on_host = placement.mode == Mode::Cpu;
    let model = ModelPlan {
        config: VoiceConfig::of(size, table.len(), meta.languages.len(), bands),
        snapshots: plan.train.checkpoint_every.min(plan.train.validate_every) < steps,
        limits: placement.limits,
        card: placement.model.memory.filter(|_| !on_host),
        on_host,
    };
    let memory = MemoryPlan {
        rows: &rows,
        feed: plan.train_feed(),
        buffers: plan.buffers,
        bands,
        model: Some(model),
    };
    Ok(memory.check(free_host_memory())?)
}

/// The same for a command that only plans or loads batches.
pub fn fit_batches(
    batches: BatchSettings,
    prepared: &Prepared,
    feed: FeedSettings,
    out: &mut Printer,
) -> Result<BatchSettings> {
    let rows = Rows::of(prepared, feed.split);
    let (limited, note) = batches.limited_to(rows.frames.len())?;
    if let Some(note) = note {
        out.note(&note);
    }
    let feed = FeedSettings { batch: limited.batch.clone(), ..feed };
    let bands = prepared.settings.mel.bands;
    let memory = MemoryPlan { rows: &rows, feed, buffers: limited.buffers, bands, model: None };
    memory.check(free_host_memory())?;
    Ok(limited)
}
