//! The live view for a terminal.
//!
//! In: a [`RunView`] and a frame of any size. Out: the frame drawn: verdict, pace, losses, ranks,
//! stages, slots, devices. Uses no colour, so it looks the same everywhere; in English, since few
//! terminals support right-to-left text. The program opens the terminal.

use crate::view::RunView;
use crate::view::series::Series;
use ratatui_core::layout::{Constraint, Layout, Rect};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::Line;
use ratatui_widgets::block::Block;
use ratatui_widgets::paragraph::{Paragraph, Wrap};
use tandem_telemetry::Report;
use tandem_telemetry::event::RunOutcome;
use tandem_telemetry::ranks::RankLoad;
use tandem_units::{Bytes, Seconds};

/// Draws the run called `name`.
pub fn draw(frame: &mut Frame<'_>, view: &RunView, name: &str) {
    let report = view.report();
    let losses = losses(view, usize::from(frame.area().width).saturating_sub(36));
    let ranks = ranks(&report, usize::from(frame.area().width).saturating_sub(50));
    let stages = stages(&report, usize::from(frame.area().width).saturating_sub(40));
    let devices = devices(view, usize::from(frame.area().width).saturating_sub(48));
    let tall = |lines: &[String]| Constraint::Length(lines.len() as u16 + 2);
    // A run of one process has no box of ranks.
    let tall_ranks = if ranks.is_empty() { Constraint::Length(0) } else { tall(&ranks) };
    let [top, verdict, first, among, second, third, _] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(4),
        tall(&losses),
        tall_ranks,
        tall(&stages),
        tall(&devices),
        Constraint::Min(0),
    ])
    .areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let heading = format!("tandem watch  {name}  {}  (q quits)", ending(&report));
    let heading = vec![Line::styled(heading, bold), Line::raw(pace(&report))];
    frame.render_widget(Paragraph::new(heading), top);
    let sentence = Paragraph::new(report.verdict.sentence.clone()).wrap(Wrap { trim: true });
    frame.render_widget(sentence.block(Block::bordered().title("verdict")), verdict);
    boxed(frame, first, "losses: last, min, history", losses);
    if let Some(found) = &report.ranks {
        let title = format!(
            "ranks: per step, sum of gradients, slowest in; sums {:.1} % of the time",
            100.0 * found.reduce
        );
        boxed(frame, among, &title, ranks);
    }
    boxed(frame, second, "stages: # busy  + starved  . blocked", stages);
    let slots = slots(view);
    let title =
        if slots.is_empty() { "devices".to_string() } else { format!("devices; slots {slots}") };
    boxed(frame, third, &title, devices);
}

fn boxed(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<String>) {
    let text: Vec<Line<'_>> = lines.into_iter().map(Line::raw).collect();
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title(title)), area);
}

fn ending(report: &Report) -> &'static str {
    match report.run.outcome {
        Some(RunOutcome::Done) => "done",
        Some(RunOutcome::Interrupted) => "interrupted",
        Some(RunOutcome::Failed) => "failed",
        None => "not finished",
    }
}

fn pace(report: &Report) -> String {
    let Some(steps) = &report.steps else { return "no step yet".into() };
    let median = Seconds(steps.steady.as_ref().unwrap_or(&steps.all).p50);
    format!(
        "step {}  {:.2} steps/s  {:.1} samples/s  median {median}  waits {:.1} %  after {}",
        steps.last,
        steps.steps_per_second,
        steps.samples_per_second,
        steps.stall * 100.0,
        report.run.lasted
    )
}

fn losses(view: &RunView, width: usize) -> Vec<String> {
    let row = |name: &str, series: &Series| {
        let extent = series.extent?;
        let history = sparkline(&series.points(), width.clamp(8, 80));
        Some(format!("{name:<14} {:>9.4} {:>9.4}  {history}", extent.last, extent.least.0))
    };
    let trained = view.losses.iter().filter(|(name, _)| *name != "alignment_age");
    let trained = trained.filter_map(|(name, series)| row(name, series));
    let held_out = view.held_out.iter().filter(|(name, _)| name == "total");
    let held_out = held_out.filter_map(|(_, series)| row("held out", series));
    let rows: Vec<String> = trained.chain(held_out).collect();
    if rows.is_empty() { vec!["none yet".into()] } else { rows }
}

/// A curve in one line of blocks of eight heights.
fn sparkline(points: &[(f64, f64)], width: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let values = || points.iter().map(|point| point.1);
    let (least, most) = values()
        .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    let width = width.min(points.len());
    let height = |place: usize| {
        let bin = &points[place * points.len() / width..(place + 1) * points.len() / width];
        let mean = bin.iter().map(|point| point.1).sum::<f64>() / bin.len() as f64;
        let share = if most > least { (mean - least) / (most - least) } else { 0.0 };
        HEIGHTS[((share * 7.0).round() as usize).min(7)]
    };
    (0..width).map(height).collect()
}

fn stages(report: &Report, width: usize) -> Vec<String> {
    let width = width.clamp(10, 60);
    let row = |load: &tandem_telemetry::verdict::StageLoad| {
        let parts = [('#', load.busy), ('+', load.starved), ('.', load.blocked)];
        let bar = parts.map(|(letter, share)| letter.to_string().repeat(cells(share, width)));
        let per_step = Seconds(load.per_step).to_string();
        format!(
            "{:<12} {:>2} x {per_step:>10}  {:>5.1} %  {}",
            load.stage,
            load.workers,
            load.busy * 100.0,
            bar.concat()
        )
    };
    let rows: Vec<String> = report.stages.iter().map(row).collect();
    if rows.is_empty() { vec!["none yet".into()] } else { rows }
}

/// One line for each rank; none for a run of one process.
fn ranks(report: &Report, width: usize) -> Vec<String> {
    let Some(found) = &report.ranks else { return Vec::new() };
    // The name of the slowest stage of a rank follows its bar.
    let has_records = found.ranks.iter().any(|load| load.record.is_some());
    let width = if has_records { width.saturating_sub(22) } else { width }.clamp(5, 40);
    let slowest = found.ranks.iter().map(RankLoad::per_step).fold(f64::MIN_POSITIVE, f64::max);
    let row = |(rank, load): (usize, &RankLoad)| {
        let per_step = Seconds(load.per_step()).to_string();
        let reduce = Seconds(load.reduce).to_string();
        let bar = "#".repeat(cells(load.per_step() / slowest, width));
        // Where its record is at hand: the stage that would limit it next.
        let stage = load.record.as_ref().and_then(|record| record.stage.as_ref());
        let stage = stage.map(|load| format!("  {} {}", load.stage, Seconds(load.per_step)));
        format!(
            "{rank:>3} {:<12.12} {per_step:>10} {reduce:>10} {:>6.1} %  {bar}{}",
            load.host,
            100.0 * load.slowest_in,
            stage.unwrap_or_default()
        )
    };
    found.ranks.iter().enumerate().map(row).collect()
}

fn devices(view: &RunView, width: usize) -> Vec<String> {
    let width = width.clamp(10, 40);
    let rows: Vec<String> = view
        .devices
        .iter()
        .map(|track| {
            let busy = track.utilisation.extent.map(|extent| extent.last);
            let memory = track.memory.extent.map(|extent| Bytes(extent.last as u64).to_string());
            let total = track.memory_total.map(|total| format!(" of {total}")).unwrap_or_default();
            let said = busy.map_or("      -".into(), |share| format!("{:>5.1} %", share * 100.0));
            let memory = memory.map(|used| used + &total).unwrap_or_else(|| "-".into());
            let bar = "#".repeat(cells(busy.unwrap_or(0.0), width));
            format!("{:<12} {said}  {memory:<22} {bar}", track.device)
        })
        .collect();
    if rows.is_empty() { vec!["none sampled".into()] } else { rows }
}

/// The state of each slot, by its first letter.
fn slots(view: &RunView) -> String {
    let letter = |slot: &crate::view::tracks::SlotTrack| match slot.present {
        Some((state, _)) => crate::run_page::state_name(state).chars().next().unwrap_or('?'),
        None => '-',
    };
    view.slots.slots.iter().map(letter).collect()
}

fn cells(share: f64, width: usize) -> usize {
    ((share.clamp(0.0, 1.0) * width as f64).round() as usize).min(width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;
    use std::path::Path;

    fn screen(view: &RunView, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view, "example")).unwrap();
        terminal.backend().to_string()
    }

    fn example() -> RunView {
        let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example-run.jsonl");
        RunView::read(Path::new(record)).unwrap()
    }

    #[test]
    fn a_run_on_a_usual_terminal() {
        insta::assert_snapshot!(screen(&example(), 90, 24));
    }

    #[test]
    fn ranks_are_side_by_side() {
        let found = screen(&crate::run_page::tests::two_ranks(), 100, 40);
        let line = found.lines().find(|line| line.contains("1 node-b")).expect("rank 1");
        for words in ["1 node-b", "900.00 ms", "60.00 ms", "100.0 %", "####"] {
            assert!(line.contains(words), "no {words} in {line}");
        }
        assert!(!screen(&example(), 100, 40).contains("ranks:"));
    }

    #[test]
    fn no_colour_is_needed_to_read_it() {
        let mut terminal = Terminal::new(TestBackend::new(90, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &example(), "example")).unwrap();
        let plain = |cell: &ratatui_core::buffer::Cell| {
            (cell.fg, cell.bg) == (Default::default(), Default::default())
        };
        assert!(terminal.backend().buffer().content().iter().all(plain));
    }

    #[test]
    fn any_size_and_any_run_can_be_drawn() {
        for (width, height) in [(1, 1), (20, 5), (80, 10), (300, 100)] {
            screen(&example(), width, height);
            screen(&RunView::default(), width, height);
        }
    }
}
