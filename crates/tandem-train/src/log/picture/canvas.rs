//! A pixel buffer with a built-in 8 x 8 font, so that no system font is needed.
//!
//! In: rectangles and text. Out: the bytes of a PNG. Pixels outside the canvas are not drawn.

use font8x8::UnicodeFonts;

pub(super) type Colour = [u8; 3];

const BACKGROUND: Colour = [255; 3];
/// Colour of text, ticks and frames.
pub(super) const INK: Colour = [40; 3];
/// Width and height of a letter: the font at twice its size.
pub(super) const LETTER: usize = 16;

pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<Colour>,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![BACKGROUND; width * height] }
    }

    pub(super) fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut contents = Vec::new();
        let mut encoder = png::Encoder::new(&mut contents, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        writer.finish()?;
        Ok(contents)
    }

    pub(super) fn set(&mut self, x: usize, y: usize, colour: Colour) {
        if x < self.width && y < self.height {
            self.pixels[y * self.width + x] = colour;
        }
    }

    pub(super) fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Colour) {
        for (dx, dy) in (0..width).flat_map(|dx| (0..height).map(move |dy| (dx, dy))) {
            self.set(x + dx, y + dy, colour);
        }
    }

    pub(super) fn frame(&mut self, x: usize, y: usize, width: usize, height: usize) {
        self.fill(x - 1, y - 1, width + 2, 1, INK);
        self.fill(x - 1, y + height, width + 2, 1, INK);
        self.fill(x - 1, y - 1, 1, height + 2, INK);
        self.fill(x + width, y - 1, 1, height + 2, INK);
    }

    pub(super) fn text(&mut self, x: usize, y: usize, text: &str) {
        self.letters(x, y, text, LETTER / 8);
    }

    pub(super) fn small_text(&mut self, x: usize, y: usize, text: &str) {
        self.letters(x, y, text, 1);
    }

    /// Characters that the font does not have become question marks.
    fn letters(&mut self, x: usize, y: usize, text: &str, size: usize) {
        for (position, letter) in text.chars().enumerate() {
            let glyph = font8x8::BASIC_FONTS.get(letter).or_else(|| font8x8::BASIC_FONTS.get('?'));
            for (row, bits) in glyph.unwrap_or_default().into_iter().enumerate() {
                for column in (0..8).filter(|column| bits >> column & 1 == 1) {
                    let left = x + (position * 8 + column) * size;
                    self.fill(left, y + row * size, size, size, INK);
                }
            }
        }
    }
}
