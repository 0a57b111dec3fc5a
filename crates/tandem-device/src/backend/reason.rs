//! What a device library says about a failure, as one line that names the error of the driver.
//!
//! In: the text of an error or of a panic, with its causes and backtraces on lines of their own. Out: one line. Opens
//! nothing.

use std::fmt::Write;

/// Codes of `cuda.h` that a user may meet: their names, and what they mean.
const CUDA: [(u32, &str); 8] = [
    (2, "CUDA_ERROR_OUT_OF_MEMORY"),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    (100, "CUDA_ERROR_NO_DEVICE"),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE: the memory of the card is damaged"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT"),
    (719, "CUDA_ERROR_LAUNCH_FAILED"),
    (999, "CUDA_ERROR_UNKNOWN: the card may be lost"),
];

/// The reason in one line.
pub(super) fn in_one_line(why: &str) -> String {
    // Some errors hold the text of another in quotes, with its line breaks escaped.
    let mut lines = why.replace("\\n", "\n");
    for noise in ["Caused by:", "No backtrace available", "Backtrace:", "Asked at:"] {
        lines = lines.replace(noise, "");
    }
    let mut text = String::new();
    let lines = lines.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("Backtrace")) {
        // A line without words closes what an earlier one opened.
        if !text.is_empty() && line.contains(char::is_alphanumeric) {
            text.push_str(": ");
        }
        text.push_str(line);
    }
    if let Some(name) = cuda_error(&text) {
        let _ = write!(text, " ({name})");
    }
    text
}

/// The name of the CUDA error in "cuLaunchKernel failed with status 719", unless the text has it.
fn cuda_error(text: &str) -> Option<&'static str> {
    let (before, after) = text.split_once(" failed with status ")?;
    let call = before.rsplit([' ', '"', '(']).next()?;
    let digits: &str = after.split(|letter: char| !letter.is_ascii_digit()).next()?;
    let code: u32 = digits.parse().ok()?;
    let (_, name) = CUDA.iter().find(|(known, _)| *known == code)?;
    call.starts_with("cu").then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_joined_and_the_error_of_the_driver_is_named() {
        let said = "called `Result::unwrap()` on an `Err` value: The device is poisoned\nCaused by:\n  \
                    cuStreamSynchronize failed with status 719\nBacktrace:\nNo backtrace available";
        assert_eq!(
            in_one_line(said),
            "called `Result::unwrap()` on an `Err` value: The device is poisoned: cuStreamSynchronize \
             failed with status 719 (CUDA_ERROR_LAUNCH_FAILED)"
        );
        let quoted = r#"Read("The device is poisoned\nCaused by:\n  cuEventRecord failed with status 999\nBacktrace:\nNo backtrace available")"#;
        assert!(in_one_line(quoted).ends_with("(CUDA_ERROR_UNKNOWN: the card may be lost)"));
        assert!(in_one_line(quoted).contains(r#"status 999") ("#), "{}", in_one_line(quoted));
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in
            ["lost device 1", "write failed with status 719", "cuInit failed with status 12345"]
        {
            assert_eq!(in_one_line(text), text);
        }
    }
}
