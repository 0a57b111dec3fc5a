//! The page of a real record, in both languages.

use super::*;
use crate::page::{Block, Page};
use crate::render;
use std::path::PathBuf;
use tandem_telemetry::Nanos;
use tandem_telemetry::event::{
    CacheState, Data, EmptyStep, Event, RankInterval, Skipped, Stamped, Step,
};
use tandem_units::Ticket;

fn example() -> RunView {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/example-run.jsonl");
    RunView::read(&path).expect("the example of the documents")
}

/// A run of two ranks, of which the second is slower.
pub(crate) fn two_ranks() -> RunView {
    let times = |first: u64, second: u64| vec![Nanos::millis(first), Nanos::millis(second)];
    let interval = RankInterval {
        step: 1,
        steps: 1,
        took: Nanos::millis(1000),
        busy: times(500, 900),
        starved: times(100, 0),
        slowest: Nanos::millis(900),
        reduce: Nanos::millis(50),
        reduces: times(50, 60),
        slowest_in: vec![0, 1],
    };
    let hosts = serde_json::json!({"ranks": {"hosts": ["node-a", "node-b"]}});
    let step = Step { step: 1, took: Nanos::millis(1000), items: 4, ..Step::default() };
    let mut view = RunView::default();
    let mut add = |event: Event| view.add(&Stamped { at: Nanos::millis(1000), event });
    add(Event::Run(Box::new(RunHeader::now("tandem", "1", hosts))));
    add(step.into());
    add(interval.into());
    view
}

/// A page as text: headings, sentences, tables; of plots what they are.
fn outline(page: &Page) -> String {
    let mut lines = vec![page.title.clone(), page.subtitle.plain()];
    for section in &page.sections {
        lines.push(format!("\n== {}: {}", section.id, section.title));
        for block in &section.blocks {
            match block {
                Block::Verdict(verdict) => {
                    lines.push(format!("{:?}: {}", verdict.tone, verdict.sentence.plain()));
                }
                Block::Facts(facts) => lines.extend(
                    facts.iter().map(|f| format!("{}: {} ({:?})", f.label, f.value, f.tone)),
                ),
                Block::Text(text) => lines.push(text.plain()),
                Block::Table(table) | Block::Fold(_, table) => rows(table, &mut lines),
                Block::Figure(figure) => {
                    lines.push(format!("[{}]", figure.caption));
                    rows(&figure.table, &mut lines);
                }
                Block::Bars(bars) => lines.extend(bars.iter().map(|bar| bar.value.clone())),
                Block::Commands(commands) => lines.extend(commands.iter().cloned()),
                Block::Samples(samples) => lines.push(format!("{samples:?}")),
                Block::Review(review) => lines.push(format!("{review:?}")),
            }
        }
    }
    lines.join("\n")
}

fn rows(table: &crate::page::Table, lines: &mut Vec<String>) {
    lines.push(table.header.join(" | "));
    let row = |row: &Vec<Prose>| row.iter().map(Prose::plain).collect::<Vec<_>>().join(" | ");
    lines.extend(table.rows.iter().map(row));
}

#[test]
fn a_run_in_english() {
    insta::assert_snapshot!(outline(&run_page(&example(), "docs/example-run.jsonl", Lang::En)));
}

#[test]
fn a_run_in_persian() {
    insta::assert_snapshot!(outline(&run_page(&example(), "docs/example-run.jsonl", Lang::Fa)));
}

#[test]
fn the_same_record_gives_the_same_page() {
    let draw = || render::html(&run_page(&example(), "x", Lang::Fa));
    assert_eq!(draw(), draw());
}

#[test]
fn the_corpus_the_skipped_rows_and_the_empty_steps_are_on_the_page() {
    let ticket = Ticket::default();
    let skipped = |row: u32| Skipped {
        ticket: Some(ticket),
        id: Some(format!("row-{row:02}")),
        stage: "load".into(),
        why: "cut off".into(),
    };
    let data = Data {
        usable: 1200,
        rejected: 3,
        eval: 32,
        list: Some("run/rejected.csv".into()),
        cache: CacheState::Updated,
        rebuilt: 7,
        seconds: 1.5,
        workers: 2,
    };
    let mut view = RunView::default();
    let mut add = |event: Event| view.add(&Stamped { at: Nanos(1), event });
    add(data.into());
    (0..2).for_each(|_| (0..21).for_each(|row| add(skipped(row).into())));
    add(EmptyStep { step: 4, ticket }.into());

    let english = outline(&run_page(&view, "x", Lang::En));
    let line = "\nData: 1,200 usable rows, 32 held out, 3 rejected (list: run/rejected.csv); \
                cache updated, 7 rebuilt in 1.50 s, workers: 2.\n";
    assert!(english.contains(line), "{english}");
    assert!(english.contains("\nrow-00 | load | 2 | cut off\n"), "{english}");
    assert!(english.contains("\nand 2 more |") && !english.contains("row-20"), "{english}");
    assert!(english.contains("\nOptimizer steps without a usable batch: 1."), "{english}");

    let persian = outline(&run_page(&view, "x", Lang::Fa));
    assert!(persian.contains("داده: ۱٬۲۰۰ ردیف قابل‌استفاده"), "{persian}");
    assert!(persian.contains("\nrow-00 | load | ۲ | cut off\n"), "{persian}");
    assert!(persian.contains("بدون دستهٔ قابل‌استفاده: ۱."), "{persian}");
}

#[test]
fn the_ranks_of_a_run_are_side_by_side() {
    let english = outline(&run_page(&two_ranks(), "x", Lang::En));
    assert!(english.contains("== ranks: Ranks"), "{english}");
    let second = "1 | node-b | 900.00 ms | 0 s | 60.00 ms | 100.0 %";
    assert!(english.contains(second), "{english}");
    assert!(english.contains("Gradients are summed 5.0 % of the time"), "{english}");
    assert!(english.contains("Rank 1 on host node-b is the bottleneck"), "{english}");
    let persian = outline(&run_page(&two_ranks(), "x", Lang::Fa));
    assert!(persian.contains("۱ | node-b | ۹۰۰٫۰۰ میلی‌ثانیه"), "{persian}");
    let mut view = two_ranks();
    assert!(!english.contains("slowest stage"), "no record of rank 1 was read");
    view.summary.other_ranks.insert(1, two_ranks().summary);
    let with_records = outline(&run_page(&view, "x", Lang::En));
    assert!(
        with_records.contains("slowest stage | device busy | skipped | warnings"),
        "{with_records}"
    );
    assert!(with_records.contains("| 0 | 0"), "{with_records}");
    let alone = outline(&run_page(&example(), "x", Lang::En));
    assert!(!alone.contains("== ranks"), "a run of one process");
}

#[test]
fn an_empty_run_has_a_page_too() {
    let page = run_page(&RunView::default(), "x", Lang::En);
    assert!(outline(&page).contains("No step was finished"));
    assert!(render::html(&page).contains("No device was sampled"));
}

#[test]
fn moments_are_written_as_dates() {
    assert_eq!(utc(0), "1970-01-01 00:00 UTC");
    assert_eq!(utc(951_782_400_000), "2000-02-29 00:00 UTC");
    assert_eq!(utc(1_794_796_767_000), "2026-11-16 02:39 UTC");
    assert_eq!(utc(4_102_444_799_999), "2099-12-31 23:59 UTC");
}
