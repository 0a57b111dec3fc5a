//! Losses and step times.

use crate::page::{Figure, Section, Table};
use crate::prose::{Piece, Prose};
use crate::view::RunView;
use crate::view::series::Series;
use tandem_plot::plot::{Curve, Histogram, Lines, Measure, Plot};
use tandem_telemetry::Report;
use tandem_telemetry::stats::Figures;
use tandem_units::Lang;

/// Values of a step that are not losses; each has its own plot.
const NOT_LOSSES: [&str; 4] = ["rate", "gradient", "loss_scale", "alignment_age"];
/// The loss that is the sum of the others.
const TOTAL: &str = "total";

/// Losses of training and of held-out rows.
pub(super) fn losses(view: &RunView, lang: Lang) -> Section {
    let section = Section::new("losses", lang.say("Losses", "زیان (loss)"));
    let trained: Vec<_> =
        view.losses.iter().filter(|(name, _)| !NOT_LOSSES.contains(&&**name)).collect();
    let Some(table) = loss_table(view, lang).some() else { return section };
    let mut curves: Vec<Curve> =
        trained.iter().map(|(name, series)| Curve::line(&**name, series.points())).collect();
    let held_out = view.held_out.iter().filter(|(name, _)| name == TOTAL);
    curves.extend(held_out.map(|(name, series)| {
        let suffix = lang.say("held out", "داده‌های کنارگذاشته");
        Curve::dotted(format!("{name} ({suffix})"), series.points())
    }));
    // After the first steps, losses that differ by little would all be one flat line.
    let lines = Lines { curves, x: Measure::Count, y: Measure::Logarithm };
    section.with(Figure {
        caption: lang.say("Loss by step", "زیان در هر گام").into(),
        plot: Plot::Lines(lines),
        table,
    })
}

fn loss_table(view: &RunView, lang: Lang) -> Table {
    let mut table = Table::new([
        lang.say("loss", "زیان"),
        lang.say("first", "نخستین"),
        lang.say("last", "آخرین"),
        lang.say("min", "کمینه"),
        lang.say("at step", "در گام"),
    ]);
    let mut add = |name: Prose, series: &Series| {
        let Some(extent) = series.extent else { return };
        let mut cells = vec![name];
        let values = [extent.first, extent.last, extent.least.0].map(|value| lang.short(value));
        cells.extend(values.map(Prose::from));
        cells.push(lang.count(extent.least.1 as u64).into());
        table.rows.push(cells);
    };
    for (name, series) in view.losses.iter().filter(|(name, _)| !NOT_LOSSES.contains(&&**name)) {
        add(Prose::code(&**name), series);
    }
    for (name, series) in &view.held_out {
        let suffix = format!(" ({})", lang.say("held out", "کنارگذاشته"));
        add(Prose(vec![Piece::Code(name.clone()), Piece::Words(suffix)]), series);
    }
    table
}

/// Learning rate, size of the gradient, and the scale of the losses where half floats need one.
pub(super) fn learning(view: &RunView, lang: Lang) -> Section {
    let section =
        Section::new("learning", lang.say("Learning rate and gradient", "نرخ یادگیری و گرادیان"));
    let shown = ["rate", "gradient", "loss_scale"];
    let others = view.losses.iter().filter(|(name, _)| shown.contains(&&**name));
    others.fold(section, |section, (name, series)| section.with_some(alone(name, series, lang)))
}

fn alone(name: &str, series: &Series, lang: Lang) -> Option<Figure> {
    let extent = series.extent?;
    let caption = match name {
        "rate" => lang.say("Learning rate by step", "نرخ یادگیری در هر گام"),
        "loss_scale" => lang.say("Scale of the losses by step", "ضریب زیان‌ها در هر گام"),
        _ => lang.say("Gradient norm by step", "نُرم گرادیان در هر گام"),
    };
    let table = Table::new([lang.say("figure", "مقدار"), ""])
        .row([lang.say("last", "آخرین").into(), lang.short(extent.last)])
        .row([lang.say("min", "کمینه").into(), lang.short(extent.least.0)])
        .row([lang.say("max", "بیشینه").into(), lang.short(extent.most.0)])
        .row([lang.say("NaN or infinite", "NaN یا بی‌نهایت").into(), lang.count(series.not_finite)]);
    let curves = vec![Curve::line(name, series.points())];
    let plot = Plot::Lines(Lines { curves, x: Measure::Count, y: Measure::Number });
    Some(Figure { caption: caption.into(), plot, table })
}

/// How long steps take, and how much that varies.
pub(super) fn step_times(view: &RunView, report: &Report, lang: Lang) -> Section {
    let section = Section::new("steps", lang.say("Step times", "زمان گام‌ها"));
    let Some(steps) = &report.steps else { return section };
    let times = steps.steady.as_ref().unwrap_or(&steps.all);
    let mut table = times_table(times, lang);
    table = table
        .row([lang.say("first step", "گام نخست").into(), lang.seconds(steps.first.seconds().0)]);
    if let Some(found) = &steps.variation {
        let words = lang.say("variation by shape", "نوسان در شکل یکسان");
        table = table.row([words.into(), lang.percent(found.by_shape)]);
    }
    if let Some(shapes) = steps.shapes {
        table =
            table.row([lang.say("distinct shapes", "شکل‌های متفاوت").into(), lang.count(shapes)]);
    }
    let Some(histogram) = Histogram::of(view.step_times.values(), Measure::Seconds) else {
        return section.with(table);
    };
    let caption = lang.say(
        "Distribution of step times, without the first step",
        "پراکندگی زمان گام‌ها، بدون گام نخست",
    );
    section.with(Figure { caption: caption.into(), plot: Plot::Histogram(histogram), table })
}

fn times_table(times: &Figures, lang: Lang) -> Table {
    Table::new([lang.say("step time", "زمان گام"), ""])
        .row([lang.say("steps", "تعداد گام").into(), lang.count(times.count)])
        .row([lang.say("mean", "میانگین").into(), lang.seconds(times.mean)])
        .row([lang.say("std", "انحراف معیار").into(), lang.seconds(times.std)])
        .row([lang.say("min", "کمینه").into(), lang.seconds(times.min)])
        .row([lang.say("median", "میانه").into(), lang.seconds(times.p50)])
        .row([lang.say("95th percentile", "صدک ۹۵").into(), lang.seconds(times.p95)])
        .row([lang.say("max", "بیشینه").into(), lang.seconds(times.max)])
        .row([lang.say("raw variation", "نوسان خام").into(), lang.percent(times.variation)])
}
