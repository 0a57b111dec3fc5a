//! A PNG of an SVG drawing.
//!
//! In: an SVG and what is behind it. Out: [`Picture`]. Letters come from Vazirmatn (`font/`), whose licence lies beside it:
//! no font of the system is looked for.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg;
use std::sync::{Arc, OnceLock};
use tandem_units::Hint;

/// An RGB image as PNG.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub png: Vec<u8>,
}

/// Values that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    #[error("there is nothing to draw: {what}")]
    Empty { what: &'static str },
    #[error("{found} values cannot be divided into rows of {row}")]
    Shape { found: usize, row: usize },
    #[error("cannot draw the picture")]
    Draw(#[source] usvg::Error),
    #[error("cannot encode the picture")]
    Encode(#[source] png::EncodingError),
}

impl Hint for PictureError {}

/// Pixels, row after row from the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Pixels {
    pub width: u32,
    pub height: u32,
    pub rgb: Vec<[u8; 3]>,
}

impl Pixels {
    pub fn white(width: u32, height: u32) -> Pixels {
        Pixels { width, height, rgb: vec![[255; 3]; width as usize * height as usize] }
    }

    /// Draws an SVG of the same size over the pixels.
    pub fn draw(mut self, svg: &str) -> Result<Pixels, PictureError> {
        let tree = usvg::Tree::from_str(svg, options()).map_err(PictureError::Draw)?;
        let too_large = PictureError::Draw(usvg::Error::InvalidSize);
        let mut drawing = Pixmap::new(self.width, self.height).ok_or(too_large)?;
        resvg::render(&tree, Transform::identity(), &mut drawing.as_mut());
        for (pixel, over) in self.rgb.iter_mut().zip(drawing.pixels()) {
            // The colours of the drawing are multiplied by its alpha already.
            let rest = 255 - u32::from(over.alpha());
            let mix = |under: u8, over: u8| over + (u32::from(under) * rest / 255) as u8;
            *pixel = [
                mix(pixel[0], over.red()),
                mix(pixel[1], over.green()),
                mix(pixel[2], over.blue()),
            ];
        }
        Ok(self)
    }

    pub fn picture(&self) -> Result<Picture, PictureError> {
        let png = self.encode().map_err(PictureError::Encode)?;
        Ok(Picture { width: self.width, height: self.height, png })
    }

    fn encode(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut contents = Vec::new();
        let mut encoder = png::Encoder::new(&mut contents, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.rgb.as_flattened())?;
        writer.finish()?;
        Ok(contents)
    }
}

/// The name of the font, for the SVG.
pub(crate) const FONT: &str = "Vazirmatn";

fn options() -> &'static usvg::Options<'static> {
    static OPTIONS: OnceLock<usvg::Options> = OnceLock::new();
    OPTIONS.get_or_init(|| {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(include_bytes!("../font/vazirmatn.ttf").to_vec());
        usvg::Options {
            font_family: FONT.into(),
            fontdb: Arc::new(fonts),
            ..usvg::Options::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> usize {
        let svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="200" height="40" font-size="16"><text x="10" y="25">{text}</text></svg>"#
        );
        let pixels = Pixels::white(200, 40).draw(&svg).unwrap();
        pixels.rgb.iter().filter(|pixel| **pixel != [255; 3]).count()
    }

    #[test]
    fn latin_and_persian_letters_are_drawn_and_joined() {
        assert_eq!(drawn(""), 0);
        assert!(drawn("step 123") > 100, "{}", drawn("step 123"));
        assert!(drawn("گام ۱۲۳") > 100, "{}", drawn("گام ۱۲۳"));
        // Joined letters have other forms than the same letters apart.
        assert_ne!(drawn("سلام"), drawn("س ل ا م"));
    }

    #[test]
    fn what_is_behind_a_drawing_shows_where_nothing_is_drawn() {
        let behind = Pixels { rgb: vec![[10, 20, 30]; 4], ..Pixels::white(2, 2) };
        let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="2" height="2"><rect width="1" height="2" fill="rgb(200,100,50)"/></svg>"#;
        let rgb = behind.draw(svg).unwrap().rgb;
        assert_eq!(rgb, [[200, 100, 50], [10, 20, 30], [200, 100, 50], [10, 20, 30]]);
    }

    #[test]
    fn a_broken_drawing_is_an_error() {
        assert!(matches!(Pixels::white(2, 2).draw("<svg"), Err(PictureError::Draw(_))));
    }
}
