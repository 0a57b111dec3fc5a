use super::*;
use indicatif::TermLike;
use std::io;
use tandem_telemetry::event::{
    Checkpoint, Event, Health, Loss, RunHeader, Skipped, Stamped, Step, Validation, WarmUp, Warning,
};
use tandem_telemetry::record::{RecordOptions, Recording};
use tandem_telemetry::{MemoryFile, Nanos, Pending};
use tandem_units::{Bytes, Epoch, Ticket};

fn step(number: u64, took: u64, waited: u64) -> Event {
    let ticket = Ticket { epoch: Epoch((number / 100) as u32), seq: number - 1 };
    let losses = vec![
        Loss { name: "total".into(), value: Pending::known(1.0 / number as f32) },
        Loss { name: "flow".into(), value: Pending::known(f32::NAN) },
        Loss { name: "prior".into(), value: None.into() },
    ];
    let step = Step {
        step: number,
        ticket,
        took: Nanos::millis(took),
        waited: Nanos::millis(waited),
        items: 16,
        frames: 1,
        shape: None,
        losses,
        ..Step::default()
    };
    step.into()
}

fn hear(board: &mut Board, event: impl Into<Event>) -> Vec<Said> {
    board.hear(Update::Event(&Stamped { at: Nanos(0), event: event.into() }))
}

const PLAN: Plan = Plan { done: 0, last_step: Some(300), epochs: Some(4) };

#[test]
fn the_line_has_epoch_step_losses_speeds_utilisation_and_time_left() {
    let mut board = Board::new(PLAN);
    (1..=200).for_each(|n| assert_eq!(hear(&mut board, step(n, 100, 25)), []));
    assert_eq!(
        board.line(),
        "step 200/300, eta 10 s, loss 0.005, 10 steps/s, wait 25 %, flow NaN, prior ?, \
         160 samples/s; epoch 3 of 4"
    );
    let mut endless = Board::new(Plan { done: 500, last_step: None, epochs: None });
    assert_eq!(endless.step(), 500);
    hear(&mut endless, step(501, 100, 0));
    let line = endless.line();
    assert!(line.starts_with("step 501, loss 0.001996, 10 steps/s, wait 0 %"), "{line}");
    assert!(line.ends_with("160 samples/s; epoch 6"), "{line}");
}

/// Losses as a voice has them; every column that people look for ends before the 80th.
#[test]
fn eighty_columns_show_step_time_left_both_losses_speed_and_waiting() {
    let mut board = Board::new(Plan { done: 0, last_step: Some(100_000), epochs: None });
    let values = [("total", 1.6312), ("prior", 0.41), ("flow", 0.86)];
    let values = values.map(|(name, value)| (name.to_string(), value)).into();
    let validation = Validation { step: 40_000, took: Nanos::millis(900), best: true, values };
    let said = hear(&mut board, validation);
    let text = "held-out loss after step 40000: 1.631 (flow 0.86, prior 0.41); the best so far; in 900.00 ms";
    assert_eq!(said, [Said::Line(text.into())]);
    for number in 40_001..40_100 {
        let named = [
            ("total", 1.51882_f32),
            ("gradient", 11.9751),
            ("rate", 0.001),
            ("alignment_age", 0.0),
        ];
        let loss = |(name, value): (&'static str, f32)| Loss {
            name: name.into(),
            value: Pending::known(value),
        };
        let losses = named.map(loss).into();
        let event = step(number, 100, 20);
        let Event::Step(event) = event else { unreachable!() };
        hear(&mut board, Step { losses, ..event });
    }
    let line = board.line();
    let (first, rest) = line.split_at(80);
    for shown in [
        "step 40099/100000",
        "eta 1.7 h",
        "loss 1.519",
        "held out 1.631",
        "10 steps/s",
        "wait 20 %",
    ] {
        assert!(first.contains(shown), "{shown}: {first}|{rest}");
    }
    assert!(rest.contains("gradient 11.98, rate 0.001, alignment age 0"), "{rest}");
}

#[test]
fn a_warm_up_prints_its_progress_at_intervals() {
    let mut board = Board::new(PLAN);
    let mut warmed_up = |number: u32, second: u64| {
        let took = Nanos::millis(1500);
        let event = WarmUp { shape: [8, 60, 400], number, total: 4, took }.into();
        board.hear(Update::Event(&Stamped { at: Nanos::millis(1000 * second), event }))
    };
    let line = |number: u32| {
        let text = "(8 rows, 60 symbols, 400 frames) in 1.50 s";
        vec![Said::Line(format!("warm-up: shape {number} of 4 {text}"))]
    };
    assert_eq!(warmed_up(1, 3), line(1));
    assert_eq!(warmed_up(2, 4), []);
    assert_eq!(warmed_up(3, 6), line(3));
    assert_eq!(warmed_up(4, 7), line(4), "the last one always");
}

#[test]
fn speeds_follow_a_change_within_a_minute() {
    let mut board = Board::new(PLAN);
    (1..=100).for_each(|n| drop(hear(&mut board, step(n, 1000, 0))));
    (101..=700).for_each(|n| drop(hear(&mut board, step(n, 100, 0))));
    let figures = board.figures();
    let speed: f64 = figures
        .split(", ")
        .find_map(|part| part.strip_suffix(" steps/s"))
        .unwrap()
        .parse()
        .unwrap();
    assert!(speed > 6.0 && speed <= 10.0, "{figures}");
}

#[test]
fn events_other_than_steps_get_a_line() {
    let mut board = Board::new(PLAN);
    let checkpoint = Checkpoint {
        step: 50,
        path: "run/checkpoints/50".into(),
        bytes: Bytes::mib(12),
        took: Nanos::millis(150),
        why: "interval".into(),
    };
    let text = "checkpoint after step 50 (interval): run/checkpoints/50, 12.0 MiB in 150.00 ms";
    assert_eq!(hear(&mut board, checkpoint), [Said::Line(text.into())]);
    let skip = |id: &str| Skipped {
        ticket: None,
        id: Some(id.into()),
        stage: "load".into(),
        why: "broken".into(),
    };
    let said: Vec<Said> =
        ["a", "b", "c", "d"].iter().flat_map(|id| hear(&mut board, skip(id))).collect();
    assert_eq!(said.len(), 3, "the rest is only counted");
    assert_eq!(said[0], Said::Warning("skipped a at `load`: broken".into()));
    let full = || Health {
        write_errors: 1,
        first_error: Some("No space left on device".into()),
        ..Health::default()
    };
    assert_eq!(hear(&mut board, full()).len(), 1);
    assert_eq!(hear(&mut board, full()), [], "said once");
}

#[test]
fn a_warning_that_comes_again_is_one_short_line() {
    let mut board = Board::new(Plan::default());
    let warning = |share: u32, step: u32| Warning {
        code: "variation".into(),
        text: format!(
            "step times vary by {share} % around step {step}; `--cache-dataset` saves 9 %"
        ),
    };
    let first = warning(35, 100);
    assert_eq!(hear(&mut board, first.clone()), [Said::Warning(first.text)]);
    let again = "step times vary by 41 % around step 200 (2 times so far)";
    assert_eq!(hear(&mut board, warning(41, 200)), [Said::Warning(again.into())]);
    let other = Warning { code: "disk".into(), text: "the disk is slow".into() };
    assert_eq!(hear(&mut board, other), [Said::Warning("the disk is slow".into())]);
}

/// A terminal that records everything written to it.
#[derive(Clone, Debug, Default)]
struct Terminal(Arc<Mutex<String>>);

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        100
    }
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(&format!("{text}\n"))
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.lock().unwrap().push_str(text);
        Ok(())
    }
    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Collects the output on stderr.
#[derive(Clone, Default)]
struct Voice(Arc<Mutex<Vec<u8>>>);

impl Voice {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Voice {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_bar_shows_the_progress_and_lines_are_printed_above_it() {
    let (terminal, voice) = (Terminal::default(), Voice::default());
    let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
    let show = Show::Bar(bar(&PLAN, target));
    let progress = TrainProgress::on(PLAN, show, Box::new(voice.clone()));
    let options = RecordOptions { listener: Some(progress.listener()), ..RecordOptions::default() };
    let header = RunHeader::now("test", "0", serde_json::json!({}));
    let recording = Recording::start(Box::<MemoryFile>::default(), header, options).unwrap();
    // Unsteady steps: the line every hundred steps comes with a warning.
    (1..=150)
        .for_each(|n| recording.recorder().send(step(n, if n % 2 == 0 { 50 } else { 150 }, 0)));
    recording.finish();
    progress.done();
    let shown = terminal.0.lock().unwrap().clone();
    let last = shown.rfind("epoch").map(|place| &shown[place..]).unwrap();
    assert!(last.starts_with("epoch 2 of 4 █") && last.contains("step 150 of 300"), "{last}");
    assert!(
        last.contains("eta 15 s, loss 0.006667, 10.01 steps/s, wait 0 %, flow NaN, prior ?"),
        "{last}"
    );
    let said = voice.text();
    assert!(said.starts_with("step 100: mean 100.00 ms, std 50.00 ms"), "{said}");
    let plain = anstream::adapter::strip_str(&said).to_string();
    assert!(plain.contains("warning: step times vary by 50.2 % around step 100"), "{plain}");
}

#[test]
fn without_a_terminal_a_line_is_printed_at_intervals() {
    let voice = Voice::default();
    let progress =
        TrainProgress::on(PLAN, Show::Lines { due: None, said: 0 }, Box::new(voice.clone()));
    let start = Instant::now();
    for (number, second) in [(1, 0), (2, 1), (3, 9), (4, 10), (5, 11), (6, 25), (7, 26)] {
        let stamped = Stamped { at: Nanos(0), event: step(number, 100, 0) };
        let now = start + Duration::from_secs(second);
        progress.0.lock().unwrap().hear(Update::Event(&stamped), now);
    }
    progress.done();
    let text = voice.text();
    let steps: Vec<&str> = text.lines().filter_map(|line| line.split(',').next()).collect();
    // The last line is printed at the end.
    let wanted = [1, 4, 6, 7].map(|step| format!("step {step}/300"));
    assert_eq!(steps, wanted);
}
