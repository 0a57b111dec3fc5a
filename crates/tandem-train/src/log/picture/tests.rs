use super::*;
use tandem_audio::Sound;
use tandem_audio::mel::MelExtractor;
use tandem_plot::heat_map::{MARGIN, NARROWEST, WIDEST};

const SETTINGS: MelConfig = MelConfig::SPEECH_22K;

fn features(signal: &[f32]) -> Vec<f32> {
    MelExtractor::new(SETTINGS).unwrap().extract(Sound::F32(signal)).unwrap().into_values()
}

/// Brightness of a point of the plot. Coordinates from 0 to 1, from the left and from the bottom.
fn brightness(pixels: &Pixels, across: f64, up: f64) -> u32 {
    let [left, top, right, bottom] = MARGIN;
    let (width, height) =
        (pixels.width as usize - left - right, pixels.height as usize - top - bottom);
    let x = left + ((width - 1) as f64 * across).round() as usize;
    let y = top + ((height - 1) as f64 * (1.0 - up)).round() as usize;
    pixels.rgb[y * pixels.width as usize + x].into_iter().map(u32::from).sum()
}

#[test]
fn a_low_tone_is_bright_at_the_bottom() {
    let tone: Vec<f32> = (0..22050).map(|i| (i as f32 * 0.05).sin()).collect();
    let pixels = draw_mel("tone.wav", &features(&tone), &SETTINGS).unwrap();
    let brightest = |range: std::ops::Range<u32>| {
        range.map(|y| brightness(&pixels, 0.5, f64::from(y) / 100.0)).max()
    };
    assert!(brightest(0..10) > brightest(20..100));
}

#[test]
fn any_length_gives_a_png() {
    for length in [1, 300, 22050, 22050 * 70] {
        let picture = mel("نام.wav", &features(&vec![0.1; length]), &SETTINGS).unwrap();
        let decoder = png::Decoder::new(std::io::Cursor::new(picture.png));
        let reader = decoder.read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (picture.width, picture.height));
        assert!(picture.width as usize <= WIDEST + MARGIN[0] + MARGIN[2]);
    }
}

#[test]
fn a_path_climbs_from_the_lower_left_to_the_upper_right() {
    // Four symbols of 10, 30, 0 and 40 frames.
    let path = Alignment::Path(vec![10, 30, 0, 40]);
    let pixels = draw_alignment("en", &path, &SETTINGS).unwrap();
    let bright = |across, up| brightness(&pixels, across, up) > 400;
    assert!(bright(0.06, 0.1) && !bright(0.06, 0.4), "the first eighth is the first symbol's");
    assert!(bright(0.3, 0.4) && !bright(0.3, 0.1), "then comes the second");
    assert!((0..100).all(|x| !bright(f64::from(x) / 100.0, 0.6)), "the third has no frame");
    assert!(bright(0.75, 0.9) && !bright(0.75, 0.4), "the second half is the last symbol's");
}

#[test]
fn a_soft_alignment_with_hard_weights_looks_like_its_path() {
    let path = Alignment::Path(vec![2, 3]);
    let weights = vec![1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
    let soft = Alignment::Soft { symbols: 2, weights };
    let [path, soft] =
        [path, soft].map(|alignment| draw_alignment("x", &alignment, &SETTINGS).unwrap());
    assert_eq!(path.width as usize, NARROWEST + MARGIN[0] + MARGIN[2]);
    // Only the word in the title differs.
    let below = MARGIN[1] * path.width as usize;
    assert!(path.rgb[below..] == soft.rgb[below..]);
}

#[test]
fn a_picture_is_as_high_as_its_symbols_need() {
    let many = alignment("x", &Alignment::Path(vec![1; 1000]), &SETTINGS).unwrap();
    assert_eq!(many.height as usize, 1000 + MARGIN[1] + MARGIN[3]);
}

#[test]
fn values_that_cannot_be_drawn_are_an_error() {
    assert!(matches!(mel("x", &[], &SETTINGS), Err(PictureError::Empty { .. })));
    let odd = mel("x", &[0.0; 81], &SETTINGS).unwrap_err();
    assert_eq!(odd.to_string(), "81 values cannot be divided into rows of 80");
    let soft = |symbols, count| Alignment::Soft { symbols, weights: vec![0.0; count] };
    let soft = [soft(0, 3), soft(3, 0), soft(3, 2), soft(3, 8)];
    for bad in soft.into_iter().chain([vec![], vec![0, 0]].map(Alignment::Path)) {
        assert!(alignment("x", &bad, &SETTINGS).is_err(), "{bad:?}");
    }
}

#[test]
fn non_finite_values_still_give_a_picture() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = vec![0.0; 160];
        values[3] = value;
        assert!(mel("x", &values, &SETTINGS).is_ok(), "{value}");
        assert!(mel("x", &[value; 80], &SETTINGS).is_ok(), "{value}");
        let soft = Alignment::Soft { symbols: 4, weights: vec![value; 16] };
        assert!(alignment("x", &soft, &SETTINGS).is_ok(), "{value}");
    }
}
