//! Advice before a run, from its settings and the machine. Never an error.

use crate::train_plan::TrainPlan;
use tandem_units::Bytes;

/// A batch of this size needs `LARGE_MEMORY`.
const LARGE_BATCH: usize = 32;
/// Memory of the model that a large batch needs.
const LARGE_MEMORY: Bytes = Bytes::mib(20_480);
/// Workers to use on a machine with at least as many cores.
const MANY_WORKERS: usize = 16;

/// Properties of the machine that advice depends on.
#[derive(Clone, Debug, Default)]
pub struct MachineFacts {
    /// Cores this process may use.
    pub cores: usize,
    /// Memory the model may use on its device; `None` if unknown.
    pub model_memory: Option<Bytes>,
    /// The link between the two GPUs, if two are used.
    pub link: Option<LinkFact>,
}

/// The link between the data's and the model's GPU.
#[derive(Clone, Debug)]
pub struct LinkFact {
    /// As the driver names it: PIX, PHB, NODE, SYS.
    pub name: String,
    /// Whether it crosses the CPU or two CPU sockets.
    pub slow: bool,
}

/// One sentence for each setting that should be changed.
pub fn advice(plan: &TrainPlan, machine: &MachineFacts) -> Vec<String> {
    let found = [
        large_batch(plan, machine),
        few_workers(plan, machine),
        few_places(plan),
        one_slot(plan),
        slow_link(machine),
        long_warmup(plan),
    ];
    found.into_iter().flatten().collect()
}

fn large_batch(plan: &TrainPlan, machine: &MachineFacts) -> Option<String> {
    let batch = plan.batch.batch_size;
    let memory = machine.model_memory.filter(|memory| *memory < LARGE_MEMORY)?;
    (batch >= LARGE_BATCH).then(|| {
        format!(
            "a batch of {batch} may not fit into {} MB for the model: use `--batch-size {} \
             --grad-accum {}`, which gives the same optimizer step, or raise `--model-gpu-memory` to {} MB",
            memory.0 >> 20,
            batch.div_ceil(2),
            plan.train.grad_accum * 2,
            LARGE_MEMORY.0 >> 20,
        )
    })
}

fn few_workers(plan: &TrainPlan, machine: &MachineFacts) -> Option<String> {
    let workers = plan.prepare.workers;
    (workers < MANY_WORKERS && machine.cores >= MANY_WORKERS).then(|| {
        format!(
            "{workers} workers on {} cores: `--num-workers {MANY_WORKERS}` loads data faster",
            machine.cores
        )
    })
}

fn few_places(plan: &TrainPlan) -> Option<String> {
    let (buffers, busy) = (&plan.buffers, plan.buffers.busy_workers());
    (busy < buffers.workers).then(|| {
        format!(
            "the host buffer holds {busy} of {} batches, one for each worker: `--buffer-size {}` or \
             more keeps all workers busy",
            buffers.workers,
            (buffers.workers + 1) * buffers.batch_size
        )
    })
}

fn one_slot(plan: &TrainPlan) -> Option<String> {
    (plan.buffers.depth == 1).then(|| {
        "one batch for the model: it waits while the next one is copied; \
         `--prefetch-buffer-size 3` overlaps them"
            .into()
    })
}

fn slow_link(machine: &MachineFacts) -> Option<String> {
    let link = machine.link.as_ref().filter(|link| link.slow)?;
    Some(format!(
        "the two GPUs are linked by {}, a slow path: choose a pair that `tandem devices` shows as \
         PIX, if there is one",
        link.name
    ))
}

fn long_warmup(plan: &TrainPlan) -> Option<String> {
    let warmup = plan.train.optimizer.warmup_steps;
    let steps = plan.train.max_steps.filter(|steps| *steps <= warmup)?;
    Some(format!(
        "{steps} steps end before the warm-up of {warmup}: the peak learning rate is never \
         reached; lower `--warmup-steps`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train_args::tests::plan;

    #[track_caller]
    fn check(flags: &[&str], machine: MachineFacts, words: &[&str]) {
        let said = advice(&plan(flags), &machine);
        assert_eq!(said.len(), words.len(), "{said:?}");
        for (said, word) in said.iter().zip(words) {
            assert!(said.contains(word), "{said}");
        }
    }

    fn memory(megabytes: u64) -> MachineFacts {
        MachineFacts { cores: 4, model_memory: Some(Bytes::mib(megabytes)), link: None }
    }

    #[test]
    fn a_large_batch_with_little_memory_gives_advice() {
        check(&["--batch-size", "32"], memory(20_479), &["--batch-size 16 --grad-accum 2"]);
        check(&["--batch-size", "32"], memory(20_480), &[]);
        check(&["--batch-size", "31"], memory(8_192), &[]);
        check(&["--batch-size", "64"], MachineFacts::default(), &[]);
    }

    #[test]
    fn idle_cores_are_pointed_out() {
        let machine = |cores| MachineFacts { cores, ..MachineFacts::default() };
        check(&["--num-workers", "15"], machine(16), &["--num-workers 16"]);
        check(&["--num-workers", "16"], machine(64), &[]);
        check(&["--num-workers", "4"], machine(15), &[]);
    }

    #[test]
    fn buffers_that_hold_work_back_are_pointed_out() {
        let none = MachineFacts::default;
        let four = ["--num-workers", "4", "--batch-size", "16"];
        let with = |flags: &[&'static str]| [&four[..], flags].concat();
        check(&with(&["--buffer-size", "40"]), none(), &["`--buffer-size 80` or more"]);
        check(&with(&["--buffer-size", "64"]), none(), &[]);
        check(&with(&["--prefetch-buffer-size", "1"]), none(), &["--prefetch-buffer-size 3"]);
        check(&with(&[]), none(), &[]);
    }

    #[test]
    fn a_slow_pair_is_named() {
        let machine = |name: &str, slow| {
            let link = Some(LinkFact { name: name.into(), slow });
            MachineFacts { link, ..MachineFacts::default() }
        };
        check(&[], machine("SYS", true), &["linked by SYS"]);
        check(&[], machine("PIX", false), &[]);
    }

    #[test]
    fn a_run_shorter_than_its_warm_up_is_pointed_out() {
        let none = MachineFacts::default;
        check(&["--max-steps", "100"], none(), &["warm-up of 100"]);
        check(&["--max-steps", "101"], none(), &[]);
        check(&["--max-steps", "50", "--warmup-steps", "10"], none(), &[]);
    }
}
