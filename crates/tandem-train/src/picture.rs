//! Mel features as a picture: seconds to the right, low bands at the bottom, bright is loud.
//!
//! In: [`Mel`]. Out: the bytes of a PNG. Draws its few letters from an 8 x 8 font, so that it needs
//! no font of the system.

use anyhow::Context;
use font8x8::UnicodeFonts;
use std::path::Path;
use tandem_data::audio::mel::{Mel, MelConfig, hz_of_mel, mel_of_hz};
use tandem_units::{Samples, Seconds};

type Colour = [u8; 3];

const PAPER: Colour = [255; 3];
const INK: Colour = [40; 3];
/// Room around the plot: left, top, right, bottom.
const MARGIN: [usize; 4] = [88, 56, 96, 56];
const NARROWEST: usize = 640;
const WIDEST: usize = 4000;
const TALLEST_BAND: usize = 480;
/// Width and height of a letter: the font at twice its size.
const LETTER: usize = 16;
/// Dark to bright in even steps to the eye: five points of the viridis map (van der Walt, Smith).
const MAP: [Colour; 5] = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/// The picture of a recording's features, as PNG.
pub(super) fn png(mel: &Mel, audio: &Path, settings: &MelConfig) -> anyhow::Result<Vec<u8>> {
    let canvas = draw(mel, audio, settings);
    let mut contents = Vec::new();
    let mut encoder = png::Encoder::new(&mut contents, canvas.width as u32, canvas.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().context("cannot encode the picture")?;
    writer.write_image_data(canvas.pixels.as_flattened()).context("cannot encode the picture")?;
    writer.finish().context("cannot encode the picture")?;
    Ok(contents)
}

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

fn draw(mel: &Mel, audio: &Path, settings: &MelConfig) -> Canvas {
    let [left, top, right, bottom] = MARGIN;
    let (frames, bands) = (mel.frames().0, mel.bands());
    // Long recordings share columns; short ones get wide ones.
    let width = if frames >= NARROWEST { frames.min(WIDEST) } else { NARROWEST };
    let height = (TALLEST_BAND / bands).max(1) * bands;
    let mut canvas = Canvas::new(left + width + right, top + height + bottom);
    let range = Range::of(mel);
    let rows: Vec<&[f32]> = mel.rows().collect();
    for x in 0..width {
        let (from, to) = (x * frames / width, ((x + 1) * frames).div_ceil(width).min(frames));
        let part = &rows[from..to];
        for y in 0..height {
            let band = (height - 1 - y) * bands / height;
            let mean = part.iter().map(|row| row[band]).sum::<f32>() / part.len() as f32;
            canvas.set(left + x, top + y, colour(range.share(mean)));
        }
    }
    canvas.frame(left, top, width, height);
    draw_axes(&mut canvas, [width, height], frames, settings);
    draw_scale(&mut canvas, [width, height], &range);
    let name = audio.file_name().unwrap_or_default().to_string_lossy();
    canvas.text(left, 8, &name);
    canvas.text(left, 8 + LETTER + 4, &facts(settings));
    canvas
}

fn facts(settings: &MelConfig) -> String {
    format!(
        "{} Hz, n_fft {}, hop {}, {} bands",
        settings.rate.0, settings.n_fft, settings.hop.0, settings.bands
    )
}

/// Seconds below, band numbers with their frequency at the left.
fn draw_axes(canvas: &mut Canvas, [width, height]: [usize; 2], frames: usize, settings: &MelConfig) {
    let [left, top, ..] = MARGIN;
    let Seconds(total) = settings.rate.seconds(Samples(frames * settings.hop.0));
    let step = tidy_step(total / 6.0);
    let ticks = (0..).map(|i| f64::from(i) * step).take_while(|second| *second <= total);
    for second in ticks {
        let x = left + (second / total * width as f64) as usize;
        canvas.fill(x, top + height, 1, 6, INK);
        let label = if step < 1.0 { format!("{second:.1}") } else { format!("{second:.0}") };
        canvas.text(x.saturating_sub(label.len() * LETTER / 2), top + height + 8, &label);
    }
    canvas.text(left + width / 2 - 7 * LETTER / 2, top + height + 8 + LETTER + 4, "seconds");
    let (low, high) = (mel_of_hz(settings.low.into()), mel_of_hz(settings.high.into()));
    for band in (0..settings.bands).step_by((settings.bands / 4).max(1)) {
        let y = top + height - 1 - (2 * band + 1) * height / (2 * settings.bands);
        canvas.fill(left - 6, y, 6, 1, INK);
        let label = format!("{band}");
        canvas.text(left - 10 - label.len() * LETTER, y.saturating_sub(LETTER / 2), &label);
        let centre = low + (high - low) * (band + 1) as f64 / (settings.bands + 1) as f64;
        let hertz = format!("{:.0}Hz", hz_of_mel(centre));
        canvas.small_text(left - 10 - hertz.len() * LETTER / 2, y - LETTER / 2 - 11, &hertz);
    }
    canvas.small_text(4, top - 14, "mel band");
}

/// What the colours mean, at the right.
fn draw_scale(canvas: &mut Canvas, [width, height]: [usize; 2], range: &Range) {
    let x = MARGIN[0] + width + 16;
    let top = MARGIN[1];
    for y in 0..height {
        let share = 1.0 - y as f32 / height as f32;
        canvas.fill(x, top + y, 14, 1, colour(share));
    }
    canvas.frame(x, top, 14, height);
    for (y, value) in [(top, range.highest), (top + height - LETTER / 2, range.lowest)] {
        canvas.small_text(x + 20, y, &format!("{value:.1}"));
    }
    canvas.small_text(x + 20, top + height / 2, "ln");
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn tidy_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(0.1).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|s| *s >= least).unwrap_or(power)
}

struct Range {
    lowest: f32,
    highest: f32,
}

impl Range {
    fn of(mel: &Mel) -> Range {
        let values = mel.values().iter().copied();
        let lowest = values.clone().fold(f32::INFINITY, f32::min);
        Range { lowest, highest: values.fold(f32::NEG_INFINITY, f32::max) }
    }

    /// From 0 for the lowest value to 1 for the highest; silence is dark.
    fn share(&self, value: f32) -> f32 {
        let width = self.highest - self.lowest;
        if width > 0.0 { (value - self.lowest) / width } else { 0.0 }
    }
}

fn colour(share: f32) -> Colour {
    let place = share.clamp(0.0, 1.0) * (MAP.len() - 1) as f32;
    let index = (place as usize).min(MAP.len() - 2);
    let part = place - index as f32;
    let (from, to) = (MAP[index], MAP[index + 1]);
    [0, 1, 2].map(|c| (f32::from(from[c]) * (1.0 - part) + f32::from(to[c]) * part).round() as u8)
}

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![PAPER; width * height] }
    }

    /// A dot; what falls outside is not drawn.
    fn set(&mut self, x: usize, y: usize, colour: Colour) {
        if x < self.width && y < self.height {
            self.pixels[y * self.width + x] = colour;
        }
    }

    fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Colour) {
        for (dx, dy) in (0..width).flat_map(|dx| (0..height).map(move |dy| (dx, dy))) {
            self.set(x + dx, y + dy, colour);
        }
    }

    fn frame(&mut self, x: usize, y: usize, width: usize, height: usize) {
        self.fill(x - 1, y - 1, width + 2, 1, INK);
        self.fill(x - 1, y + height, width + 2, 1, INK);
        self.fill(x - 1, y - 1, 1, height + 2, INK);
        self.fill(x + width, y - 1, 1, height + 2, INK);
    }

    fn text(&mut self, x: usize, y: usize, text: &str) {
        self.letters(x, y, text, LETTER / 8);
    }

    fn small_text(&mut self, x: usize, y: usize, text: &str) {
        self.letters(x, y, text, 1);
    }

    /// Letters the font does not have become question marks.
    fn letters(&mut self, x: usize, y: usize, text: &str, size: usize) {
        for (place, letter) in text.chars().enumerate() {
            let glyph = font8x8::BASIC_FONTS.get(letter).or_else(|| font8x8::BASIC_FONTS.get('?'));
            for (row, bits) in glyph.unwrap_or_default().into_iter().enumerate() {
                for column in (0..8).filter(|column| bits >> column & 1 == 1) {
                    let left = x + (place * 8 + column) * size;
                    self.fill(left, y + row * size, size, size, INK);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_data::audio::Sound;
    use tandem_data::audio::mel::MelExtractor;

    fn features(signal: &[f32]) -> Mel {
        MelExtractor::new(MelConfig::SPEECH_22K).unwrap().extract(Sound::F32(signal)).unwrap()
    }

    fn brightness(canvas: &Canvas, y: usize) -> u32 {
        let pixel = canvas.pixels[y * canvas.width + MARGIN[0] + NARROWEST / 2];
        pixel.into_iter().map(u32::from).sum()
    }

    #[test]
    fn a_low_tone_is_bright_at_the_bottom() {
        let tone: Vec<f32> = (0..22050).map(|i| (i as f32 * 0.05).sin()).collect();
        let canvas = draw(&features(&tone), Path::new("tone.wav"), &MelConfig::SPEECH_22K);
        let bottom = canvas.height - MARGIN[3];
        let lowest_tenth = (bottom - 48..bottom).map(|y| brightness(&canvas, y)).max();
        let rest = (MARGIN[1]..bottom - 96).map(|y| brightness(&canvas, y)).max();
        assert!(lowest_tenth > rest, "{lowest_tenth:?} {rest:?}");
    }

    #[test]
    fn any_length_gives_a_png() {
        for length in [1, 300, 22050, 22050 * 70] {
            let bytes = png(&features(&vec![0.1; length]), Path::new("نام.wav"), &MelConfig::SPEECH_22K);
            let decoder = png::Decoder::new(std::io::Cursor::new(bytes.unwrap()));
            let reader = decoder.read_info().unwrap();
            assert!(reader.info().width as usize <= WIDEST + MARGIN[0] + MARGIN[2]);
        }
    }

    #[test]
    fn ticks_are_at_tidy_seconds() {
        for (least, step) in [(0.02, 0.1), (0.3, 0.5), (0.7, 1.0), (1.4, 2.0), (30.0, 50.0)] {
            assert!((tidy_step(least) - step).abs() < 1e-9, "{least}: {}", tidy_step(least));
        }
    }
}
