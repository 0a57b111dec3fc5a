//! Broken and hostile recordings cause no panic and use no more memory than the limits allow. Good ones
//! allocate nothing once the buffers have grown.

use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use tandem_audio::{AudioConfig, AudioError, Decoder, FileReader};
use tandem_units::{SampleRate, Seconds};

/// Counts the allocated bytes of the current thread, their peak, and the number of allocations.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count(change: isize) {
    HELD.set(HELD.get() + change);
    PEAK.set(PEAK.get().max(HELD.get()));
    CALLS.set(CALLS.get() + usize::from(change > 0));
}

// SAFETY: every call is passed on unchanged to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory of one recording beyond its own bytes, with a limit of two seconds: a growing buffer
/// for two seconds at the highest rate, and the tables of the resampler.
const MOST: isize = 64 << 20;

const FIXTURES: [&[u8]; 7] = [
    include_bytes!("audio/tone_22k_16.flac"),
    include_bytes!("audio/tone_48k_24_stereo.flac"),
    include_bytes!("audio/tone_44k.mp3"),
    include_bytes!("audio/tone_44k_untagged.mp3"),
    include_bytes!("audio/tone_44k.ogg"),
    include_bytes!("audio/tone_8k_mulaw.wav"),
    include_bytes!("audio/hours_of_silence.flac"),
];

fn decoder() -> Decoder {
    let limits = AudioConfig { max_length: Seconds(2.0), ..AudioConfig::default() };
    Decoder::new(SampleRate(22_050), limits)
}

/// Decodes within the memory limit; a panic would be a separate error.
#[track_caller]
fn survives(bytes: &[u8], hint: Option<&str>) {
    let mut decoder = decoder();
    HELD.set(0);
    PEAK.set(0);
    let outcome = decoder.decode(bytes, hint).map(|sound| sound.len());
    let peak = PEAK.get();
    assert!(peak < MOST, "{peak} bytes for a file of {}: {outcome:?}", bytes.len());
    if let Ok(length) = outcome {
        assert!(decoder.rate().seconds(length) <= Seconds(2.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_cause_no_panic(
        head in prop::sample::select(vec![
            &b""[..], b"fLaC", b"OggS", b"RIFF\xFF\xFF\0\0WAVEfmt ", b"\xFF\xFB\x90\x64", b"ID3\x04\0\0",
        ]),
        body in prop::collection::vec(any::<u8>(), 0..4096),
    ) {
        survives(&[head, &body].concat(), Some("mp3"));
    }

    #[test]
    fn truncated_files_cause_no_panic(which in 0..FIXTURES.len(), share in 0.0..1.0f64) {
        let bytes = FIXTURES[which];
        survives(&bytes[..(bytes.len() as f64 * share) as usize], None);
    }

    #[test]
    fn files_with_flipped_bits_cause_no_panic(
        which in 0..FIXTURES.len(),
        flips in prop::collection::vec((0.0..1.0f64, 0..8u32, any::<bool>()), 1..12),
    ) {
        let mut bytes = FIXTURES[which].to_vec();
        for (place, bit, early) in flips {
            // Headers are where sizes are: half of the flips go there.
            let reach = if early { bytes.len().min(200) } else { bytes.len() };
            bytes[(place * reach as f64) as usize] ^= 1 << bit;
        }
        survives(&bytes, None);
    }
}

/// Bits in Vorbis's order, lowest first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: usize,
}

impl Bits {
    fn put(&mut self, value: u64, width: usize) {
        for bit in 0..width {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.len() - 1;
            self.bytes[last] |= ((value >> bit & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
    }
}

/// One Ogg page around whole packets, with a correct checksum (RFC 3533).
fn page(kind: u8, sequence: u32, packets: &[&[u8]]) -> Vec<u8> {
    let mut lacing = Vec::new();
    for packet in packets {
        lacing.extend(vec![255; packet.len() / 255]);
        lacing.push((packet.len() % 255) as u8);
    }
    let mut bytes = [&b"OggS\0"[..], &[kind], &[0; 8], &7u32.to_le_bytes()].concat();
    bytes.extend(sequence.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.push(lacing.len() as u8);
    bytes.extend(lacing);
    packets.iter().for_each(|packet| bytes.extend_from_slice(packet));
    let sum = bytes.iter().fold(0u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte) << 24, |sum, _| {
            if sum >> 31 == 1 { sum << 1 ^ 0x04C1_1DB7 } else { sum << 1 }
        })
    });
    bytes[22..26].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// An Ogg file whose codebooks have two to the power of `bits` vectors each, in 24 bytes.
fn codebook_bomb(books: u64, bits: usize, dimensions: u64) -> Vec<u8> {
    let mut setup = Bits { bytes: b"\x05vorbis".to_vec(), used: 56 };
    setup.put(books - 1, 8);
    for _ in 0..books {
        setup.put(0x56_4342, 24);
        setup.put(dimensions, 16);
        setup.put(1 << bits, 24);
        setup.put(1, 1); // in order of length
        setup.put(bits as u64 - 1, 5); // all of them of this length
        setup.put(1 << bits, bits + 1);
        setup.put(1, 4); // vectors built from a list of one number
        setup.put(0, 64);
        setup.put(0, 4 + 1 + 1);
    }
    setup.put(0, 8 * 64);
    let ident = b"\x01vorbis\0\0\0\0\x01\x22\x56\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xB8\x01";
    let comment = b"\x03vorbis\0\0\0\0\0\0\0\0\x01";
    let pages = [
        page(2, 0, &[&ident[..]]),
        page(0, 1, &[&comment[..], &setup.bytes]),
        page(4, 2, &[&[0; 40][..]]),
    ];
    pages.concat()
}

#[test]
fn a_vorbis_header_that_expands_to_gigabytes_is_refused() {
    for file in [codebook_bomb(256, 17, 24), codebook_bomb(256, 17, 18), codebook_bomb(4, 15, 24)] {
        survives(&file, None);
        let error = decoder().decode(&file, None).unwrap_err().to_string();
        assert_eq!(error, "broken file: its Vorbis codebooks would fill the memory");
    }
    // The largest accepted header.
    survives(&codebook_bomb(5, 13, 24), None);
    survives(&codebook_bomb(1, 15, 24), None);
}

#[test]
fn a_decoder_that_panics_costs_one_recording() {
    // Two to the power of 32 overflows in symphonia 0.6.1. Should a later version refuse such a
    // file properly, this test needs another one that causes a panic.
    let mut decoder = decoder();
    let error = decoder.decode(&codebook_bomb(1, 10, 32), None).unwrap_err();
    assert!(matches!(error, AudioError::Panicked { .. }), "{error}");
    assert_eq!(decoder.decode(&wav(22_050, 5_000), None).unwrap().len().0, 5_000);
}

/// A plain 16-bit mono file.
fn wav(rate: u32, samples: usize) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
    for i in 0..samples {
        writer.write_sample(((i * 37) % 2000) as i16).unwrap();
    }
    writer.finalize().unwrap();
    bytes.into_inner()
}

#[test]
fn a_common_clip_is_read_and_decoded_without_allocation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.wav");
    std::fs::write(&path, wav(22_050, 40_000)).unwrap();
    let (mut reader, mut decoder) = (FileReader::default(), decoder());
    let limits = *decoder.config();
    let mut round = || {
        let bytes = reader.read(&path, &limits).unwrap();
        assert_eq!(decoder.decode(bytes, None).unwrap().len().0, 40_000);
    };
    round();
    let before = CALLS.get();
    (0..10).for_each(|_| round());
    assert_eq!(CALLS.get() - before, 0);
}

#[test]
fn other_rates_and_depths_allocate_only_while_buffers_grow() {
    let bytes = wav(44_100, 40_000);
    let mut decoder = decoder();
    decoder.decode(&bytes, None).unwrap();
    let before = CALLS.get();
    for _ in 0..10 {
        decoder.decode(&bytes, None).unwrap();
    }
    assert_eq!(CALLS.get() - before, 0);
}

#[test]
fn after_a_refused_recording_the_decoder_works() {
    let mut decoder = decoder();
    for bytes in FIXTURES {
        let cut = decoder.decode(&bytes[..bytes.len() / 2], None);
        assert!(!matches!(cut, Err(AudioError::Panicked { .. })), "{cut:?}");
        let good = wav(22_050, 5_000);
        assert_eq!(decoder.decode(&good, None).unwrap().len().0, 5_000);
    }
}
