//! Charts of measured points, as SVG and as PNG.
//!
//! In: [`Panel`]s, one above the other. Out: the bytes of a file. The same drawing goes through
//! `plotters` to either form; letters of the PNG come from an 8 x 8 font ([`sheet`]), so that it needs
//! no font of the system. Writes no file.

mod sheet;

use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, Circle, DrawingArea, DrawingBackend, IntoDrawingArea, LineSeries, PathElement,
    RGBColor, SVGBackend, Text, WHITE,
};
use plotters::style::Color;
use sheet::Sheet;
use tandem_units::Hint;

/// Points of one measure over another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    pub title: String,
    /// What is measured, with its unit.
    pub measure: String,
    /// What it is measured over.
    pub over: String,
    /// The points, from left to right.
    pub points: Vec<Point>,
    /// A marked x value and its label.
    pub mark: Option<(f64, String)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// From where to where it may really be.
    pub range: Option<(f64, f64)>,
}

/// A chart that could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    #[error("there is nothing to draw")]
    Empty,
    #[error("cannot draw the chart: {0}")]
    Draw(String),
    /// The PNG could not be made.
    #[error("cannot encode the chart")]
    Encode(#[source] png::EncodingError),
}

impl Hint for ChartError {}

/// Pixels across, and down for each panel.
const SIZE: (u32, u32) = (840, 360);
const INK: RGBColor = RGBColor(40, 40, 40);
const LINE: RGBColor = RGBColor(33, 105, 180);
const MARK: RGBColor = RGBColor(196, 78, 20);

pub fn svg(panels: &[Panel]) -> Result<String, ChartError> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, size_of(panels)).into_drawing_area();
    draw(&area, panels)?;
    drop(area);
    Ok(text)
}

pub fn png(panels: &[Panel]) -> Result<Vec<u8>, ChartError> {
    let (width, height) = size_of(panels);
    let mut pixels = vec![255; width as usize * height as usize * 3];
    let area = Sheet::over(&mut pixels, (width, height)).into_drawing_area();
    draw(&area, panels)?;
    drop(area);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&pixels)?;
        writer.finish()
    });
    written.map_err(ChartError::Encode)?;
    Ok(bytes)
}

fn size_of(panels: &[Panel]) -> (u32, u32) {
    (SIZE.0, SIZE.1 * panels.len().max(1) as u32)
}

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    panels: &[Panel],
) -> Result<(), ChartError> {
    let failed = |error: &dyn std::fmt::Display| ChartError::Draw(error.to_string());
    if panels.is_empty() || panels.iter().any(|panel| panel.points.is_empty()) {
        return Err(ChartError::Empty);
    }
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    for (part, panel) in area.split_evenly((panels.len(), 1)).iter().zip(panels) {
        draw_panel(part, panel).map_err(|error| failed(&error))?;
    }
    area.present().map_err(|error| failed(&error))
}

type Drawn<B> =
    Result<(), plotters::drawing::DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn draw_panel<B: DrawingBackend>(area: &DrawingArea<B, Shift>, panel: &Panel) -> Drawn<B> {
    let xs = panel.points.iter().map(|point| point.x);
    let (left, right) = (xs.clone().fold(f64::INFINITY, f64::min), xs.fold(0.0, f64::max));
    let ys = panel.points.iter().map(|point| point.range.map_or(point.y, |(_, high)| high));
    let top = ys.fold(f64::MIN_POSITIVE, f64::max) * 1.15;
    let room = ((right - left) * 0.06).max(1.0);
    let font = ("sans-serif", 16);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(48)
        .y_label_area_size(90)
        .build_cartesian_2d((left - room).max(0.0)..right + room, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc(&panel.over)
        .y_desc(&panel.measure)
        .label_style(font)
        .axis_desc_style(font)
        .axis_style(INK)
        .light_line_style(WHITE)
        .x_label_formatter(&whole)
        .y_label_formatter(&|y| tidy(*y, top))
        .draw()?;
    let line = panel.points.iter().map(|point| (point.x, point.y));
    chart.draw_series(LineSeries::new(line.clone(), LINE.stroke_width(2)))?;
    chart.draw_series(line.map(|place| Circle::new(place, 4, LINE.filled())))?;
    let ranges = panel.points.iter().filter_map(|point| Some((point.x, point.range?)));
    chart.draw_series(
        ranges.map(|(x, (low, high))| PathElement::new([(x, low), (x, high)], LINE)),
    )?;
    if let Some((x, said)) = &panel.mark {
        chart.draw_series([PathElement::new([(*x, 0.0), (*x, top)], MARK)])?;
        let words = Text::new(said.clone(), (*x + room * 0.15, top * 0.08), font);
        chart.draw_series([words])?;
    }
    Ok(())
}

/// Between two whole numbers there is nothing to call.
fn whole(value: &f64) -> String {
    if (value - value.round()).abs() < 1e-6 { format!("{value:.0}") } else { String::new() }
}

/// As many digits as the scale needs.
fn tidy(value: f64, top: f64) -> String {
    match top {
        t if t >= 20.0 => format!("{value:.0}"),
        t if t >= 2.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panels() -> Vec<Panel> {
        let point = |(x, y): (f64, f64)| Point { x, y, range: Some((y * 0.9, y * 1.1)) };
        let points = [(4.0, 10.0), (8.0, 17.0), (16.0, 21.0)].map(point).to_vec();
        let (title, over) = ("Throughput".to_string(), "batch size".to_string());
        let mark = Some((8.0, "knee: 8".to_string()));
        vec![Panel { title, measure: "samples/s".into(), over, points, mark }]
    }

    #[test]
    fn the_svg_holds_its_words_as_words() {
        let text = svg(&panels()).unwrap();
        for word in ["<svg", "Throughput", "samples/s", "batch size", "knee: 8", "circle"] {
            assert!(text.contains(word), "{word} in {text}");
        }
    }

    #[test]
    fn the_png_has_a_line_a_mark_and_letters() {
        let bytes = png(&panels()).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), SIZE);
        let count = |wanted: [u8; 3]| pixels.chunks(3).filter(|pixel| *pixel == wanted).count();
        assert!(count([33, 105, 180]) > 400, "the line");
        assert!(count([196, 78, 20]) > 200, "the mark");
        assert!(count([0, 0, 0]) > 1000, "the letters: {}", count([0, 0, 0]));
    }

    #[test]
    fn nothing_is_refused() {
        assert!(matches!(svg(&[]), Err(ChartError::Empty)));
        assert!(matches!(png(&[Panel::default()]), Err(ChartError::Empty)));
    }

    #[test]
    fn a_single_point_and_zeros_can_be_drawn() {
        let points = vec![Point::default()];
        assert!(svg(&[Panel { points, ..Panel::default() }]).is_ok());
    }
}
