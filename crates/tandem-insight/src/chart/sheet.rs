//! A sheet of pixels that `plotters` can draw on, with letters of an 8 x 8 font.
//!
//! In: pixels and texts. Out: red, green and blue, row after row. What falls outside is not drawn.

use font8x8::UnicodeFonts;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};
use std::convert::Infallible;

pub(super) struct Sheet<'a> {
    pixels: &'a mut [u8],
    width: u32,
    height: u32,
}

type Done = Result<(), DrawingErrorKind<Infallible>>;

impl<'a> Sheet<'a> {
    /// Over pixels of that size.
    pub(super) fn over(pixels: &'a mut [u8], (width, height): (u32, u32)) -> Sheet<'a> {
        Sheet { pixels, width, height }
    }
}

/// How many times the font's eight pixels a size of letters is.
fn scale(size: f64) -> i32 {
    if size >= 20.0 { 2 } else { 1 }
}

fn extent(text: &str, size: f64) -> (i32, i32) {
    (text.chars().count() as i32 * 8 * scale(size), 8 * scale(size))
}

impl DrawingBackend for Sheet<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    fn ensure_prepared(&mut self) -> Done {
        Ok(())
    }

    fn present(&mut self) -> Done {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Done {
        let inside = x >= 0 && y >= 0 && (x as u32) < self.width && (y as u32) < self.height;
        if !inside {
            return Ok(());
        }
        let place = (y as usize * self.width as usize + x as usize) * 3;
        let (red, green, blue) = colour.rgb;
        for (pixel, new) in self.pixels[place..place + 3].iter_mut().zip([red, green, blue]) {
            let mixed = f64::from(*pixel) * (1.0 - colour.alpha) + f64::from(new) * colour.alpha;
            *pixel = mixed.round() as u8;
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let (width, height) = extent(text, style.size());
        Ok((width as u32, height as u32))
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Done {
        let colour = style.color();
        if colour.alpha == 0.0 {
            return Ok(());
        }
        let (width, height) = extent(text, style.size());
        let anchor = style.anchor();
        let left = match anchor.h_pos {
            HPos::Left => 0,
            HPos::Center => -width / 2,
            HPos::Right => -width,
        };
        let top = match anchor.v_pos {
            VPos::Top => 0,
            VPos::Center => -height / 2,
            VPos::Bottom => -height,
        };
        let turn = style.transform();
        let scale = scale(style.size());
        for (place, letter) in text.chars().enumerate() {
            let glyph = font8x8::BASIC_FONTS.get(letter).or_else(|| font8x8::BASIC_FONTS.get('?'));
            for (row, bits) in glyph.unwrap_or_default().into_iter().enumerate() {
                for column in (0..8).filter(|column| bits >> column & 1 == 1) {
                    let x = left + (place as i32 * 8 + column) * scale;
                    let y = top + row as i32 * scale;
                    for (dx, dy) in (0..scale * scale).map(|dot| (dot % scale, dot / scale)) {
                        let (x, y) = turned(&turn, x + dx, y + dy);
                        self.draw_pixel((at.0 + x, at.1 + y), colour)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn turned(turn: &FontTransform, x: i32, y: i32) -> (i32, i32) {
    match turn {
        FontTransform::None => (x, y),
        FontTransform::Rotate90 => (-y, x),
        FontTransform::Rotate180 => (-x, -y),
        FontTransform::Rotate270 => (y, -x),
    }
}
