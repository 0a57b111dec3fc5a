//! The distance of two speaker embeddings.
//!
//! In: two vectors. Out: their cosine distance.

use super::MetricError;

/// One minus the cosine similarity of two embeddings: 0 for the same direction, 1 for orthogonal vectors, 2
/// for opposite ones.
pub fn cosine_distance(a: &[f32], b: &[f32]) -> Result<f64, MetricError> {
    if a.len() != b.len() {
        return Err(MetricError::Size { what: "embeddings", found: a.len(), expected: b.len() });
    }
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let size = (dot(a, a) * dot(b, b)).sqrt();
    if !size.is_finite() {
        let index = a.iter().zip(b).position(|(a, b)| !(a * b).is_finite()).unwrap_or(0);
        let expected = "a finite number";
        return Err(MetricError::Value { what: "embedding", index, value: size, expected });
    }
    if size == 0.0 {
        return Err(MetricError::Empty { what: "embedding" });
    }
    // Rounding may give a cosine slightly above one.
    Ok((1.0 - dot(a, b) / size).clamp(0.0, 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &[f32], b: &[f32], expected: f64) {
        let found = cosine_distance(a, b).unwrap();
        assert!((found - expected).abs() < 1e-7, "{found} for {expected}");
    }

    #[test]
    fn only_the_direction_counts() {
        check(&[1.0, 2.0], &[2.0, 4.0], 0.0);
        check(&[1.0, 0.0], &[0.0, 3.0], 1.0);
        check(&[1.0, 1.0], &[-2.0, -2.0], 2.0);
        check(&[3.0, 4.0], &[4.0, 3.0], 1.0 - 24.0 / 25.0);
    }

    #[test]
    fn a_zero_vector_is_an_error() {
        assert!(cosine_distance(&[0.0, 0.0], &[1.0, 0.0]).is_err());
        assert!(cosine_distance(&[], &[]).is_err());
        assert!(cosine_distance(&[1.0], &[1.0, 0.0]).is_err());
        assert!(cosine_distance(&[f32::NAN], &[1.0]).is_err());
    }
}
