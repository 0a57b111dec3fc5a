//! Stages, slots, devices and queues.

use crate::page::{Block, Figure, Section, Table};
use crate::prose::Prose;
use crate::view::RunView;
use crate::view::tracks::DeviceTrack;
use tandem_plot::plot::{Curve, Lane, Lanes, Lines, Measure, Plot, Strip, Strips};
use tandem_telemetry::Report;
use tandem_telemetry::event::{DeviceRole, SlotState};
use tandem_telemetry::report::DeviceReport;
use tandem_units::Bytes;
use tandem_units::Lang;

/// How each stage spent its time.
pub(super) fn stages(view: &RunView, report: &Report, lang: Lang) -> Section {
    let section = Section::new("stages", lang.say("Stages", "مرحله‌های خط لوله"));
    let mut table = Table::new([
        lang.say("stage", "مرحله"),
        lang.say("workers", "کارگر"),
        lang.say("per step", "در هر گام"),
        lang.say("busy", "مشغول"),
        lang.say("starved", "منتظر ورودی"),
        lang.say("blocked", "منتظر خروجی"),
    ]);
    for load in &report.stages {
        let mut cells = vec![Prose::code(&*load.stage), lang.count(load.workers.into()).into()];
        cells.push(lang.seconds(load.per_step).into());
        cells.extend(
            [load.busy, load.starved, load.blocked].map(|share| lang.percent(share).into()),
        );
        table.rows.push(cells);
    }
    let rows: Vec<Strip> = view
        .stages
        .iter()
        .map(|track| Strip {
            name: track.stage.to_string(),
            columns: track.columns.iter().map(|one| (one.begin, one.end, one.shares())).collect(),
        })
        .collect();
    if rows.is_empty() {
        return section.with_some(table.some());
    }
    let parts = vec![
        lang.say("busy", "مشغول").to_string(),
        lang.say("starved: waits for input", "منتظر ورودی").to_string(),
        lang.say("blocked: waits for space in the output queue", "منتظر فضای خالی در صف خروجی")
            .to_string(),
    ];
    let strips = Strips { parts, rows, span: (0.0, view.slots.now) };
    let caption = lang.say("Time use of each stage", "زمان صرف‌شده در هر مرحله");
    section.with(Figure { caption: caption.into(), plot: Plot::Strips(strips), table })
}

/// What the batch slots did.
pub(super) fn slots(view: &RunView, lang: Lang) -> Section {
    let section = Section::new("slots", lang.say("Batch slots", "خانه‌های بافر (slot)"));
    let tracks = &view.slots;
    if tracks.slots.is_empty() {
        return section;
    }
    let states = [SlotState::Preparing, SlotState::Ready, SlotState::Training];
    let mut table = Table::new([
        lang.say("slot", "خانه"),
        lang.say("now", "اکنون"),
        "PREPARING",
        "READY",
        "TRAINING",
    ]);
    let number = |slot: usize| lang.count(slot as u64);
    for (slot, track) in tracks.slots.iter().enumerate() {
        let now = track.present.map(|(state, _)| Prose::code(state_name(state)));
        let shares = tracks.shares(slot).unwrap_or_default();
        let mut cells = vec![number(slot).into(), now.unwrap_or_else(|| "-".into())];
        cells.extend(shares.map(|share| Prose::from(lang.percent(share))));
        table.rows.push(cells);
    }
    let from = tracks.newest.front().map_or(0.0, |span| span.1);
    let mut rows: Vec<Lane> =
        (0..tracks.slots.len()).map(|slot| Lane { name: number(slot), spans: vec![] }).collect();
    for (slot, begin, end, state) in &tracks.newest {
        rows[*slot].spans.push((*begin, *end, *state as usize));
    }
    for (slot, track) in tracks.slots.iter().enumerate() {
        let Some((state, since)) = track.present else { continue };
        rows[slot].spans.push((since.max(from), tracks.now, state as usize));
    }
    let states = states.map(state_name).map(String::from).into();
    let lanes = Lanes { states, rows, span: (from, tracks.now) };
    let caption = lang.say("Latest states of each slot", "تازه‌ترین وضعیت‌های هر خانه");
    section.with(Figure { caption: caption.into(), plot: Plot::Lanes(lanes), table })
}

/// As the record writes it.
pub(crate) fn state_name(state: SlotState) -> &'static str {
    match state {
        SlotState::Preparing => "PREPARING",
        SlotState::Ready => "READY",
        SlotState::Training => "TRAINING",
    }
}

/// How busy devices were, and how full.
pub(super) fn devices(view: &RunView, report: &Report, lang: Lang) -> Section {
    let section = Section::new("devices", lang.say("Devices", "دستگاه‌ها"));
    if report.devices.is_empty() {
        let text = lang.say(
            "No device was sampled during this run.",
            "در این اجرا هیچ دستگاهی پایش نشده است.",
        );
        return section.with(Block::Text(text.into()));
    }
    section.with_some(utilisation(view, report, lang)).with_some(memory(view, report, lang))
}

fn utilisation(view: &RunView, report: &Report, lang: Lang) -> Option<Figure> {
    let mut table = Table::new([
        lang.say("device", "دستگاه"),
        lang.say("used for", "کاربرد"),
        lang.say("mean", "میانگین"),
        lang.say("max", "بیشینه"),
        lang.say("other", "سایر"),
    ]);
    for device in &report.devices {
        let figures = device.utilisation.as_ref();
        let share =
            |value: Option<f64>| value.map_or_else(|| unmeasured(lang), |v| lang.percent(v));
        table.rows.push(vec![
            Prose::code(&*device.device),
            role(device.role, lang).into(),
            share(figures.map(|figures| figures.mean)).into(),
            share(figures.map(|figures| figures.max)).into(),
            optional_figures(device, lang).into(),
        ]);
    }
    let curves = device_curves(view, |track| track.utilisation.points());
    let plot = Plot::Lines(Lines { curves, x: Measure::Seconds, y: Measure::Share });
    let caption = lang.say("Share of time each device was busy", "درصد مشغول‌بودن هر دستگاه");
    table.some().map(|table| Figure { caption: caption.into(), plot, table })
}

fn memory(view: &RunView, report: &Report, lang: Lang) -> Option<Figure> {
    let mut table = Table::new([
        lang.say("device", "دستگاه"),
        lang.say("mean", "میانگین"),
        lang.say("peak", "اوج"),
        lang.say("total", "ظرفیت"),
    ]);
    for device in &report.devices {
        let Some(figures) = &device.memory else { continue };
        let total = device.memory_total.map_or_else(|| "-".into(), |total| lang.bytes(total));
        table.rows.push(vec![
            Prose::code(&*device.device),
            lang.bytes(Bytes(figures.mean as u64)).into(),
            lang.bytes(Bytes(figures.max as u64)).into(),
            total.into(),
        ]);
    }
    let curves = device_curves(view, |track| track.memory.points());
    let plot = Plot::Lines(Lines { curves, x: Measure::Seconds, y: Measure::Bytes });
    let caption = lang.say("Memory in use", "حافظهٔ در حال استفاده");
    table.some().map(|table| Figure { caption: caption.into(), plot, table })
}

fn device_curves(view: &RunView, points: fn(&DeviceTrack) -> Vec<(f64, f64)>) -> Vec<Curve> {
    let curves = view.devices.iter().map(|track| Curve::line(&*track.device, points(track)));
    curves.filter(|curve| !curve.points.is_empty()).collect()
}

/// Figures that only some devices report.
fn optional_figures(device: &DeviceReport, lang: Lang) -> String {
    let active = device
        .activity
        .map(|share| format!("{} {}", lang.percent(share.mean), lang.say("active", "فعال")));
    let power = device
        .power
        .map(|watts| format!("{} {}", lang.number(watts.mean, 0), lang.say("W", "وات")));
    let heat = device
        .temperature
        .map(|degrees| format!("{} {}", lang.number(degrees.max, 0), lang.say("°C", "درجه")));
    let said: Vec<String> = [active, power, heat].into_iter().flatten().collect();
    said.join(lang.say(", ", "، "))
}

fn role(role: DeviceRole, lang: Lang) -> &'static str {
    match role {
        DeviceRole::Data => lang.say("data", "داده"),
        DeviceRole::Model => lang.say("model", "مدل"),
        DeviceRole::Host => lang.say("host", "میزبان"),
    }
}

fn unmeasured(lang: Lang) -> String {
    lang.say("not measured", "اندازه‌گیری نشده").into()
}

/// How full queues were.
pub(super) fn queues(report: &Report, lang: Lang) -> Section {
    let mut table = Table::new([
        lang.say("queue before stage", "صفِ پیش از مرحلهٔ"),
        lang.say("mean", "میانگین"),
        lang.say("peak", "اوج"),
        lang.say("limit", "سقف"),
    ]);
    for queue in &report.queues {
        let mut cells = vec![Prose::code(&*queue.queue)];
        cells.extend([queue.mean, queue.peak, queue.limit].map(|size| lang.bytes(size).into()));
        table.rows.push(cells);
    }
    Section::new("queues", lang.say("Queues", "صف‌ها")).with_some(table.some())
}
