//! Rice codes of two frames at once.
//!
//! In: bits. Out: numbers. A code begins where the one before it ends, so that a processor mostly waits for the length of the
//! last one. Frames do not depend on each other: while the code of one is waited for, the other's is read.

use super::bits::{Bits, IN_WORD, whole_word};
use std::hint::black_box;

/// A run of codes with one parameter, at most 30. What is read are not the numbers yet; see [`unfold`].
pub struct Run<'r, 'b> {
    pub bits: &'r mut Bits<'b>,
    pub parameter: u32,
    pub out: &'r mut [i32],
}

/// Reads a run. False if it has a number that does not fit, or ends too early.
#[inline(always)]
pub fn read_run(run: Run<'_, '_>) -> bool {
    let Run { bits, parameter, out } = run;
    let (groups, rest) = out.as_chunks_mut::<4>();
    let mut whole = true;
    for group in groups {
        match whole_word(bits.bytes, bits.at).filter(|_| parameter <= 10) {
            Some(word) => match read_group(word, parameter, parameter + 1, group) {
                used if used <= IN_WORD => bits.at += used as usize,
                _ => whole &= read_long(bits, parameter, group),
            },
            None => whole &= read_long(bits, parameter, group),
        }
    }
    whole & read_long(bits, parameter, rest)
}

/// Reads two runs of one length and of one stream. Returns how many of the first could be read: if the first has a number that
/// does not fit, or ends too early, none.
#[inline(always)]
pub fn read_two_runs([mut a, mut b]: [Run<'_, '_>; 2]) -> usize {
    let whole = match a.parameter.max(b.parameter) {
        // Four codes of usual length fit a word.
        0..=10 => read_groups::<4>(&mut a, &mut b),
        11..=24 => read_groups::<2>(&mut a, &mut b),
        _ => [read_long(a.bits, a.parameter, a.out), read_long(b.bits, b.parameter, b.out)],
    };
    match whole {
        [true, true] => 2,
        [first, _] => first.into(),
    }
}

/// Turns codes that were read with this parameter into numbers: removes the one bit after the zeros, then maps
/// 0, 1, 2, 3, 4 to 0, -1, 1, -2, 2. Works on several codes at a time.
#[inline(always)]
pub fn unfold(parameter: u32, codes: &mut [i32]) {
    let offset = 1u32 << parameter;
    for code in codes {
        let number = (*code as u32).wrapping_sub(offset);
        *code = (number >> 1) as i32 ^ -((number & 1) as i32);
    }
}

/// Reads so many codes from each word.
#[inline(always)]
fn read_groups<const CODES: usize>(first: &mut Run<'_, '_>, second: &mut Run<'_, '_>) -> [bool; 2] {
    let (first_groups, first_rest) = first.out.as_chunks_mut::<CODES>();
    let (second_groups, second_rest) = second.out.as_chunks_mut::<CODES>();
    let bytes = first.bits.bytes;
    // Hidden from the optimizer: it would rewrite the sum and compute it three times for each code.
    let (after_zeros, also) = (black_box(first.parameter + 1), black_box(second.parameter + 1));
    // Copies that are not passed on, so that the compiler keeps them in registers.
    let (mut a, mut b) = (first.bits.at, second.bits.at);
    let mut whole = [true; 2];
    for (first_group, second_group) in first_groups.iter_mut().zip(second_groups) {
        if let (Some(word), Some(other)) = (whole_word(bytes, a), whole_word(bytes, b)) {
            let used = read_group(word, first.parameter, after_zeros, first_group);
            let also_used = read_group(other, second.parameter, also, second_group);
            if used <= IN_WORD && also_used <= IN_WORD {
                (a, b) = (a + used as usize, b + also_used as usize);
                continue;
            }
        }
        (first.bits.at, second.bits.at) = (a, b);
        whole[0] &= read_long(first.bits, first.parameter, first_group);
        whole[1] &= read_long(second.bits, second.parameter, second_group);
        (a, b) = (first.bits.at, second.bits.at);
    }
    (first.bits.at, second.bits.at) = (a, b);
    whole[0] &= read_long(first.bits, first.parameter, first_rest);
    whole[1] &= read_long(second.bits, second.parameter, second_rest);
    whole
}

/// Reads codes from the top of a word. Returns how many bits they have; more than [`IN_WORD`] if not all of them are there.
#[inline(always)]
fn read_group<const CODES: usize>(
    mut word: u64,
    parameter: u32,
    after_zeros: u32,
    out: &mut [i32; CODES],
) -> u32 {
    let mut used = 0;
    for value in out {
        let zeros = word.leading_zeros();
        let length = zeros.wrapping_add(after_zeros);
        // Includes the one bit after the zeros; `unfold` subtracts it.
        let low = word.wrapping_shr(length.wrapping_neg()) as u32;
        *value = zeros.wrapping_shl(parameter).wrapping_add(low) as i32;
        word = word.wrapping_shl(length);
        used = length.wrapping_add(used);
    }
    used
}

/// Reads codes of any length. False for a number that does not fit, and at the end; nothing can be read afterwards.
#[inline(never)]
fn read_long(bits: &mut Bits<'_>, parameter: u32, out: &mut [i32]) -> bool {
    for value in out {
        if parameter <= 24
            && let Some(word) = whole_word(bits.bytes, bits.at)
            && let used = word.leading_zeros() + parameter + 1
            && used <= IN_WORD
        {
            let low = (word >> (64 - used)) as u32;
            *value = ((word.leading_zeros() << parameter) + low) as i32;
            bits.at += used as usize;
            continue;
        }
        let (zeros, low) = (bits.unary(), bits.read(parameter));
        let Some(zeros) = zeros.filter(|zeros| *zeros <= u32::MAX >> parameter) else {
            bits.at = (bits.bytes.len() + 8) * 8;
            return false;
        };
        *value = ((zeros << parameter) | low).wrapping_add(1 << parameter) as i32;
    }
    true
}
