//! Mel frames as a file that NumPy reads.

use crate::failure::{Advised, Result};
use npyz::{DType, NpyFile, Order, WriterBuilder};

/// The bytes of an `.npy` file. Shape: `[frames, bands]`, single precision.
pub fn npy_of(mel: &[f32], bands: usize) -> Result<Vec<u8>> {
    let mut contents = Vec::new();
    let shape = [(mel.len() / bands) as u64, bands as u64];
    let options = npyz::WriteOptions::new().default_dtype().shape(&shape);
    let mut writer = options.writer(&mut contents).begin_nd()?;
    writer.extend(mel)?;
    writer.finish()?;
    Ok(contents)
}

/// The values of an `.npy` file with mel frames of so many bands: `[frames, bands]`.
pub fn mel_of_npy(contents: &[u8], bands: usize) -> Result<Vec<f32>, Advised> {
    const HOW: &str = "write float32 of shape [frames, bands], for example with `tandem features` or `numpy.save`";
    let unreadable =
        |error: std::io::Error| Advised::new(format!("it is not a NumPy file: {error}"), HOW);
    let file = NpyFile::new(contents).map_err(unreadable)?;
    let shape = file.shape().to_vec();
    if shape.len() != 2 || shape[1] != bands as u64 {
        let fact = format!("its shape is {shape:?}, expected [frames, {bands}]");
        let turned = shape.len() == 2 && shape[0] == bands as u64;
        let advice = if turned { "transpose it: `mel.T`" } else { HOW };
        return Err(Advised::new(fact, advice));
    }
    if file.order() != Order::C {
        let fact = "its values are in Fortran order";
        return Err(Advised::new(fact, "save `numpy.ascontiguousarray(mel)`"));
    }
    let kind = match file.dtype() {
        DType::Plain(kind) => kind.to_string(),
        other => other.descr(),
    };
    match kind.trim_start_matches(['<', '>', '|', '=']) {
        "f4" => file.into_vec::<f32>().map_err(unreadable),
        "f8" => {
            let values = file.into_vec::<f64>().map_err(unreadable)?;
            Ok(values.into_iter().map(|value| value as f32).collect())
        }
        other => {
            let fact = format!("its values are of type {other}, expected f4 or f8");
            Err(Advised::new(fact, "save `mel.astype(numpy.float32)`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_shape_survive_a_round_trip() {
        let mel: Vec<f32> = (0..960).map(|value| value as f32 * 0.5).collect();
        let contents = npy_of(&mel, 80).unwrap();
        let read = npyz::NpyFile::new(&contents[..]).unwrap();
        assert_eq!((read.shape(), read.order()), (&[12, 80][..], npyz::Order::C));
        assert_eq!(read.into_vec::<f32>().unwrap(), mel);
    }
    #[track_caller]
    fn refused(contents: &[u8], fact: &str) {
        let error = mel_of_npy(contents, 80).unwrap_err().to_string();
        assert!(error.contains(fact), "{error}");
    }

    #[test]
    fn only_frames_of_the_right_shape_and_type_are_read() {
        let mel: Vec<f32> = (0..160).map(|value| value as f32 * 0.5).collect();
        assert_eq!(mel_of_npy(&npy_of(&mel, 80).unwrap(), 80).unwrap(), mel);
        refused(&npy_of(&mel, 40).unwrap(), "shape is [4, 40]");
        refused(&npy_of(&mel, 2).unwrap(), "shape is [80, 2]");
        refused(b"RIFF", "not a NumPy file");
        let good = npy_of(&mel, 80).unwrap();
        refused(&good[..good.len() - 10], "not a NumPy file");
        let mut wide = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(&[2, 80]);
        let mut writer = options.writer(&mut wide).begin_nd().unwrap();
        writer.extend(mel.iter().map(|&value| f64::from(value))).unwrap();
        writer.finish().unwrap();
        assert_eq!(mel_of_npy(&wide, 80).unwrap(), mel);
        let mut whole = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(&[2, 80]);
        let mut writer = options.writer(&mut whole).begin_nd().unwrap();
        writer.extend(0..160i32).unwrap();
        writer.finish().unwrap();
        refused(&whole, "type i4");
    }
}
