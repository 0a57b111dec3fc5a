//! Errors of durations.
//!
//! In: durations of synthesized and recorded speech. Out: relative errors.

use super::MetricError;

/// Relative error of a duration: -0.1 is a tenth too short. Both have the same unit.
pub fn duration_error(found: f64, truth: f64) -> Result<f64, MetricError> {
    for (index, value) in [found, truth].into_iter().enumerate() {
        if !(value.is_finite() && value >= 0.0) {
            let expected = "a length from 0 up";
            return Err(MetricError::Value { what: "lengths", index, value, expected });
        }
    }
    if truth == 0.0 {
        return Err(MetricError::Empty { what: "sound" });
    }
    Ok((found - truth) / truth)
}

/// Mean absolute relative error over symbols, weighted by duration. Both have one duration for each
/// symbol.
pub fn symbol_duration_error(found: &[f64], truth: &[f64]) -> Result<f64, MetricError> {
    if found.len() != truth.len() {
        let (found, expected) = (found.len(), truth.len());
        return Err(MetricError::Size { what: "symbols", found, expected });
    }
    let off: f64 = found.iter().zip(truth).map(|(found, truth)| (found - truth).abs()).sum();
    let total: f64 = truth.iter().sum();
    if !(off.is_finite() && total > 0.0 && total.is_finite()) {
        return Err(MetricError::Empty { what: "sound" });
    }
    Ok(off / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_duration_is_negative() {
        assert_eq!(duration_error(90.0, 120.0), Ok(-0.25));
        assert_eq!(duration_error(150.0, 120.0), Ok(0.25));
        assert!(duration_error(1.0, 0.0).is_err());
        assert!(duration_error(f64::NAN, 1.0).is_err());
    }

    #[test]
    fn errors_of_symbols_do_not_cancel() {
        assert_eq!(symbol_duration_error(&[3.0, 5.0], &[4.0, 4.0]), Ok(0.25));
        assert!(symbol_duration_error(&[3.0], &[4.0, 4.0]).is_err());
        assert!(symbol_duration_error(&[3.0], &[0.0]).is_err());
    }
}
