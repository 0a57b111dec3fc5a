//! No sentence contradicts its table: random records through verdict, advice, report and page, in both languages.
//!
//! 300 records in every run of the tests; 10,000 with
//! `cargo nextest run -p tandem-page --run-ignored only ten_thousand`.

use std::collections::BTreeSet;
use tandem_page::page::{Block, Page};
use tandem_page::prose::Prose;
use tandem_page::run_page::as_sentence;
use tandem_page::{Lang, RunView, run_page};
use tandem_telemetry::event::{
    DeviceRole, DeviceSample, Event, HostFacts, QueueLevel, RankInterval, RunHeader, StageInterval,
    Stamped, Step,
};
use tandem_telemetry::periodic::Window;
use tandem_telemetry::rules::{DEEPEST, LEAST_GAIN};
use tandem_telemetry::verdict::Cause;
use tandem_telemetry::{Nanos, Report, Rules};
use tandem_units::{Bytes, Seed, percent};

#[test]
fn no_sentence_contradicts_its_table() {
    check_records(0..300);
}

#[test]
#[ignore = "takes minutes: 10,000 records"]
fn no_sentence_of_ten_thousand_records_contradicts_its_table() {
    check_records(0..10_000);
}

fn check_records(seeds: std::ops::Range<u64>) {
    let mut causes = BTreeSet::new();
    let (mut crowded, mut advised) = (0, 0);
    for seed in seeds {
        let record = Record::random(seed);
        let report = record.view.report();
        let look = || format!("seed {seed}\n{report}\n{:?}", report.verdict);
        check_verdict(&report).unwrap_or_else(|why| panic!("{why}\n{}", look()));
        check_advice(&report, &record).unwrap_or_else(|why| panic!("{why}\n{}", look()));
        check_text(&report).unwrap_or_else(|why| panic!("{why}\n{}", look()));
        check_pages(&record.view, &report).unwrap_or_else(|why| panic!("{why}\n{}", look()));
        causes.insert(format!("{:?}", report.verdict.cause));
        crowded += u32::from(report.crowd.is_some());
        advised += u32::from(!report.advice.is_empty());
    }
    // The records reach every kind of verdict, or the checks above check nothing.
    assert_eq!(causes.len(), 8, "{causes:?}");
    assert!(crowded > 20 && advised > 50, "{crowded} crowded, {advised} advised");
}

/// A run, and what its machine has.
struct Record {
    view: RunView,
    workers: u64,
    cores: u64,
    depth: u64,
    gpus: u64,
}

/// Random numbers that depend on the seed alone.
struct Draw(Seed, u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.1 += 1;
        self.0.derive(self.1).0 % bound
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    fn share(&mut self) -> f64 {
        self.below(1001) as f64 / 1000.0
    }
}

impl Record {
    fn random(seed: u64) -> Record {
        let mut draw = Draw(Seed(seed), 0);
        let (cores, depth) = (1 + draw.below(16), 1 + draw.below(20));
        let workers = 1 + draw.below(8);
        let gpus = draw.below(4);
        let mode = if gpus == 0 { "cpu" } else { draw.one_of(&["single", "multi"]) };
        let settings = serde_json::json!({
            "command": draw.one_of(&["train", "train-vocoder"]),
            "config": {
                "cache_dataset": draw.below(2) == 0,
                "num_workers": workers,
                "train": {"grad_accum": 1 + draw.below(3)},
            },
            "placement": {"mode": mode, "gpus": gpus},
            "ranks": {"hosts": ["a", "b"]},
        });
        let mut header = RunHeader::now("tandem", "0", settings);
        header.host = HostFacts { threads: Some(cores as u32), ..HostFacts::default() };
        let mut events: Vec<Event> = vec![Event::Run(Box::new(header))];
        events.push(
            QueueLevel {
                queue: "train".into(),
                items: 1,
                bytes: Bytes(1),
                limit: Bytes(9),
                limit_items: Some(depth),
            }
            .into(),
        );
        events.extend(host(&mut draw));
        let count = draw.one_of(&[0, 1, 2, 40, 120, 120, 240]);
        let steps = steps(&mut draw, count);
        let whole: u64 = steps.iter().map(|step| step.took.0).sum();
        if draw.below(4) > 0 {
            let stages = stages(&mut draw, count, whole, workers);
            events.extend(stages.into_iter().map(Event::from));
        }
        if draw.below(5) == 0 && count > 0 {
            events.push(ranks(&mut draw, whole).into());
        }
        events.extend(steps.into_iter().map(Event::from));
        let (mut view, mut window) = (RunView::default(), Window::default());
        for (number, event) in events.into_iter().enumerate() {
            let stamped = Stamped { at: Nanos(number as u64), event };
            view.add(&stamped);
            // As the writer of a record does it: the warning of a line is an event after it.
            let line = window.add(&stamped, &view.summary, &Rules::default());
            if let Some(warning) = line.and_then(|line| line.warning) {
                view.add(&Stamped { at: Nanos(number as u64), event: warning.into() });
            }
        }
        Record { view, workers, cores, depth, gpus }
    }
}

fn host(draw: &mut Draw) -> Vec<Event> {
    let machine = draw.one_of(&[0.3, 0.95, 1.0]);
    let run = machine * draw.share();
    let sample = |device: &'static str, share: f64| {
        let sample = DeviceSample::new(device.into(), DeviceRole::Host);
        Event::from(DeviceSample { utilisation: Some(share as f32), ..sample })
    };
    vec![sample("process", run), sample("machine", machine)]
}

/// Steps with one of several disturbances.
fn steps(draw: &mut Draw, count: u64) -> Vec<Step> {
    let base = 5_000 + draw.below(400_000);
    let wait = draw.one_of(&[0.0, 0.01, 0.05, 0.3, 0.6, 0.9]);
    let uneven = draw.one_of(&["no", "waits", "stage", "step", "other programs", "own work"]);
    let shapes = 1 + draw.below(6);
    let step = |number: u64| {
        let hit = number.is_multiple_of(3);
        let jitter = 1.0 + 0.1 * draw.share();
        let itself = base as f64 * jitter * (1.0 - wait);
        let mut waited = base as f64 * jitter * wait;
        let mut work = vec![("load", base / 4)];
        let (mut own, mut cpu, mut preempted) = (itself, itself, 2);
        match uneven {
            "waits" if hit => waited += base as f64,
            "stage" if hit => {
                waited += base as f64;
                work[0].1 += base;
            }
            "step" if hit => own += base as f64,
            "other programs" if hit => (own, preempted) = (own + base as f64, 40),
            "own work" if hit => (own, cpu) = (own + base as f64, cpu + base as f64),
            _ => {}
        }
        let micros = |value: f64| Nanos(value as u64 * 1000);
        Step {
            step: number,
            took: micros(own + waited),
            waited: micros(waited),
            items: 16,
            shape: Some([16, 40, 100 * (1 + draw.below(shapes) as u32)]),
            work: work.into_iter().map(|(name, time)| (name.into(), Nanos(time * 1000))).collect(),
            cpu: Some(micros(cpu)),
            preempted: Some(preempted),
            ..Step::default()
        }
    };
    (1..=count).map(step).collect()
}

fn stages(draw: &mut Draw, count: u64, whole: u64, workers: u64) -> Vec<StageInterval> {
    let names = ["source", "load", "preprocess", "align", "transfer", "train"];
    let used = names.into_iter().filter(|_| draw.below(4) > 0).collect::<Vec<_>>();
    let stage = |stage: &'static str| {
        let workers = if stage == "load" || stage == "preprocess" { workers } else { 1 };
        let interval = Nanos(whole + draw.below(whole / 4 + 1));
        let busy = draw.one_of(&[0.02, 0.2, 0.5, 0.8, 0.97, 0.99, 1.0]) * draw.one_of(&[1.0, 0.98]);
        let room = interval.0 * workers;
        let busy = Nanos((room as f64 * busy) as u64);
        let starved = Nanos((room.saturating_sub(busy.0) as f64 * draw.share()) as u64);
        let blocked = Nanos(room.saturating_sub(busy.0 + starved.0));
        // It works ahead of the model, or counts utterances.
        let items = draw.one_of(&[count, count + 5, 16 * count]);
        StageInterval {
            stage: stage.into(),
            workers: workers as u32,
            interval,
            busy,
            starved,
            blocked,
            items,
        }
    };
    used.into_iter().map(stage).collect()
}

fn ranks(draw: &mut Draw, whole: u64) -> RankInterval {
    let part = |share: f64| Nanos((whole as f64 * share) as u64);
    let busy = vec![part(0.4), part(0.4 + 0.4 * draw.share())];
    let starved = vec![part(0.1 * draw.share()), part(0.1 * draw.share())];
    let reduce = part(draw.one_of(&[0.01, 0.3]));
    let slowest = part(0.9);
    let reduces = vec![reduce, reduce];
    let (step, steps) = (draw.below(2), draw.below(3));
    RankInterval {
        step,
        steps,
        took: Nanos(whole),
        busy,
        starved,
        slowest,
        reduce,
        reduces,
        slowest_in: vec![0, 1],
    }
}

type Checked = Result<(), String>;

fn ensure(holds: bool, why: impl Into<String>) -> Checked {
    if holds { Ok(()) } else { Err(why.into()) }
}

/// The figures of a sentence, as it writes them.
fn percentages(sentence: &str) -> BTreeSet<String> {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| pair[1].starts_with('%'));
    pairs.map(|pair| format!("{} %", pair[0].trim_start_matches('('))).collect()
}

/// Of a sentence in Persian, in Latin digits.
fn persian_percentages(sentence: &str) -> BTreeSet<String> {
    let latin: String = sentence
        .chars()
        .map(|letter| match letter {
            '۰'..='۹' => char::from(b'0' + (letter as u32 - '۰' as u32) as u8),
            '٫' => '.',
            other => other,
        })
        .collect();
    let number = |word: &str| {
        let end = word.find('٪')?;
        let start = word[..end].rfind(|c: char| !c.is_ascii_digit() && c != '.');
        let start = start.map_or(0, |at| at + word[at..].chars().next().map_or(1, char::len_utf8));
        Some(format!("{} %", &word[start..end]))
    };
    latin.split_whitespace().filter_map(number).collect()
}

fn check_verdict(report: &Report) -> Checked {
    let verdict = &report.verdict;
    let Some(steps) = &report.steps else {
        return ensure(verdict.cause == Cause::NoSteps, "no steps, and yet a verdict");
    };
    let step = steps.steady.as_ref().unwrap_or(&steps.all).mean;
    let feed = report.stages.split_last().map_or(&[][..], |(_, feed)| feed);
    let slowest = feed.iter().map(|load| load.per_step).fold(0.0, f64::max);
    let (stall, cost) = (steps.stall, verdict.cost);
    ensure(verdict.cause != Cause::NoSteps, "steps, and yet no verdict")?;
    // Every figure of the sentence is one of the tables'.
    let mut known: BTreeSet<String> = [stall, cost].into_iter().map(percent).collect();
    known.extend(report.ranks.iter().map(|ranks| percent(ranks.reduce)));
    for load in feed {
        let need = load.per_step / step.max(f64::MIN_POSITIVE);
        known.extend([percent(need.min(1.0)), percent((1.0 - need).max(0.0))]);
    }
    let said = percentages(&verdict.sentence);
    ensure(said.is_subset(&known), format!("{said:?} are not all of {known:?}"))?;
    let persian = persian_percentages(&verdict.words(Lang::Fa));
    ensure(persian.is_subset(&said), format!("{persian:?} in Persian, {said:?} in English"))?;
    let names_a_remedy = verdict.sentence.contains("--") || verdict.sentence.contains(" use ");
    ensure(!names_a_remedy, "the verdict names a remedy")?;
    let named = verdict.stage.as_deref();
    let is_slowest =
        |name: &str| feed.iter().any(|load| &*load.stage == name && load.per_step >= slowest);
    match verdict.cause {
        Cause::Feed => {
            ensure(named.is_some_and(is_slowest), "not the slowest stage of the table")?;
            ensure(stall > 0.02 && slowest > 0.8 * step, "the table shows no bottleneck")?;
            ensure(
                cost >= LEAST_GAIN && cost <= stall + 1e-9,
                "the cost is none, or above the waiting",
            )
        }
        Cause::Model => {
            ensure(stall <= 0.02 && cost == 0.0, "the model waits, or something else costs")
        }
        Cause::Balanced => ensure(cost == 0.0 && named.is_none(), "balanced, and yet a bottleneck"),
        Cause::Variation => {
            ensure(stall > 0.02 && slowest < step, "a stage is as slow as the step")?;
            ensure(named.is_some_and(is_slowest), "not the slowest stage of the table")
        }
        Cause::Unknown => ensure(feed.is_empty() && stall > 0.02, "stages are known"),
        Cause::Communication | Cause::Rank => {
            ensure(report.ranks.is_some() && cost > 0.1, "no ranks in the table")
        }
        Cause::NoSteps => Ok(()),
    }
}

fn check_advice(report: &Report, record: &Record) -> Checked {
    let stall = report.steps.as_ref().map_or(0.0, |steps| steps.stall);
    let variation = report.steps.as_ref().and_then(|steps| steps.variation.as_ref());
    let excess = variation.map_or(0.0, |found| found.excess);
    let most = stall.max(excess).max(report.verdict.cost);
    let gains: Vec<f64> = report.advice.iter().map(|one| one.gain).collect();
    ensure(gains.is_sorted_by(|one, next| one >= next), "the best is not first")?;
    let flags: BTreeSet<&str> = report.advice.iter().map(|one| one.flag.as_str()).collect();
    ensure(flags.len() == report.advice.len(), "the same remedy twice")?;
    for one in &report.advice {
        ensure(one.gain >= LEAST_GAIN && one.gain <= most + 1e-9, format!("gain of {}", one.flag))?;
        let number = one.flag.rsplit(' ').next().and_then(|text| text.parse::<u64>().ok());
        let possible = match one.flag.split(' ').next() {
            Some("--cache-dataset" | "--grad-accum" | "--validate-every") => true,
            Some("--num-workers") => {
                number.is_some_and(|number| number > record.workers && number <= record.cores)
            }
            Some("--prefetch-buffer-size") => {
                number.is_some_and(|number| number > record.depth && number <= DEEPEST)
            }
            Some("--data-gpu") => record.gpus >= 2,
            _ => false,
        };
        ensure(possible, format!("`{}` cannot be done here", one.flag))?;
    }
    // Each remedy is named once during the run, and none of them only measures.
    let warned = |flag: &str| {
        report.warnings.iter().filter(|warning| warning.text.contains(&format!("`{flag}"))).count()
    };
    for flag in ["--cache-dataset", "--num-workers", "--validate-every", "--grad-accum"] {
        ensure(warned(flag) <= 1, format!("{flag} is advised again and again"))?;
    }
    ensure(warned("tandem ") == 0, "a command that measures is called a remedy")
}

/// The text says the machine's load before the verdict, and what the structures say.
fn check_text(report: &Report) -> Checked {
    let text = report.to_string();
    let place = |line: &str| text.lines().position(|other| other == line);
    let verdict = place(&format!("verdict   {}", report.verdict.sentence));
    ensure(verdict.is_some(), "the verdict is not in the text")?;
    if let Some(crowd) = &report.crowd {
        let machine = place(&format!("machine   {}", crowd.words(Lang::En)));
        ensure(machine.is_some() && machine < verdict, "other programs are not said first")?;
    }
    for load in &report.stages {
        let whole = load.busy + load.starved + load.blocked;
        ensure(whole <= 1.001, format!("`{}` is {whole} of its time", load.stage))?;
    }
    let advised = text.lines().filter(|line| line.starts_with("advice")).count();
    ensure(advised == report.advice.len(), "advice of the text")
}

fn check_pages(view: &RunView, report: &Report) -> Checked {
    for lang in [Lang::En, Lang::Fa] {
        let said = sentences(&run_page(view, "x", lang));
        let verdict = Prose::of(&as_sentence(report.verdict.words(lang))).plain();
        ensure(said.contains(&verdict), format!("the page does not say `{verdict}`: {said:?}"))?;
        for one in &report.advice {
            let flag = Prose::of(&format!("`{}`", one.flag)).plain();
            let gain = lang.percent(one.gain);
            let found = said.iter().any(|text| text.contains(&flag) && text.contains(&gain));
            ensure(found, format!("the page does not advise {flag}, {gain}"))?;
        }
    }
    Ok(())
}

/// Verdicts and texts of a page.
fn sentences(page: &Page) -> Vec<String> {
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let texts = blocks.filter_map(|block| match block {
        Block::Verdict(verdict) => Some(verdict.sentence.plain()),
        Block::Text(text) => Some(text.plain()),
        _ => None,
    });
    texts.collect()
}
