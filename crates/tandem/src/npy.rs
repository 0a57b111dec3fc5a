//! Mel frames as a file that NumPy reads.

use crate::failure::Result;
use npyz::WriterBuilder;

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
}
