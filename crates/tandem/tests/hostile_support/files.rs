//! Corpora, recordings, configurations, voices and run records that are wrong in as many ways.

use super::Case;
use crate::support::runs::newest;
use crate::support::voice::dir_with_voice;
use crate::support::{Kind, TestDir, tone_wav, wav};
use std::fs;
use std::path::Path;
use std::process::Command;

const RECORD: &str = include_str!("../../../../docs/example-run.jsonl");

/// Manifests by name.
fn manifests() -> Vec<(&'static str, Vec<u8>)> {
    let long = format!("a|{}\n", "word ".repeat(200_000));
    let utf16: Vec<u8> = "a|one\nb|two\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
        ("empty", vec![]),
        ("newlines", b"\n".repeat(100_000)),
        ("zeros", vec![0; 10_000]),
        ("noise", (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()),
        ("utf16", [&[0xff, 0xfe][..], &utf16].concat()),
        ("bom", "\u{feff}a|one\nb|two\n".into()),
        ("carriage", b"a|one\rb|two\r".to_vec()),
        ("quoted", b"\"a\"|\"one\"\n\"b\"|\"two\"\n".to_vec()),
        ("tabs", b"a\tone\nb\ttwo\n".to_vec()),
        ("commas", b"a,one\nb,two\n".to_vec()),
        ("one-column", b"a\nb\n".to_vec()),
        ("many-columns", "a|one|x|y|z|q|r|s\n".repeat(9).into()),
        ("separators", "||||\n".repeat(50).into()),
        ("header", b"id|text\n".to_vec()),
        ("twice", b"a|one\na|one\na|two\n".to_vec()),
        ("outside", b"../../../etc/passwd|one\n/etc/passwd|two\n".to_vec()),
        ("missing", b"x|one\ny|two\n".to_vec()),
        ("long", long.into()),
        ("latin", b"a|caf\xe9\nb|na\xefve\n".to_vec()),
        ("arabic", b"a|\xd3\xe1\xc7\xe3\nb|\xcd\xc7\xe1\n".to_vec()),
        ("speaker", b"id|text|speaker\na|one|\xd8\xa7/../x\nb|two|\n".to_vec()),
        ("numbers", format!("a|{}\nb|two\n", "555-1234 ".repeat(20)).into()),
        ("unknown", "a|one \u{2603} two\nb|\u{16a0}\u{16a2}\n".into()),
        ("commonvoice", b"client_id\tpath\tsentence\nx\ta.wav\tHello there\n".to_vec()),
    ]
}

/// Recordings by name.
fn recordings() -> Vec<(&'static str, Vec<u8>)> {
    let good = tone_wav();
    let patched = |at: usize, bytes: &[u8]| {
        let mut wav = good.clone();
        wav[at..at + bytes.len()].copy_from_slice(bytes);
        wav
    };
    let float = wav(Kind::Float, 22_050, 1, 0.3);
    let mut not_finite = float.clone();
    let end = not_finite.len();
    for at in (end - 4000..end).step_by(4) {
        not_finite[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    }
    let flac = [b"fLaC\x80\xff\xff\xff".as_slice(), &[0xff; 600]].concat();
    vec![
        ("empty.wav", vec![]),
        ("head.wav", good[..20].to_vec()),
        ("half.wav", good[..good.len() / 2].to_vec()),
        ("no-channels.wav", patched(22, &[0, 0])),
        ("channels.wav", patched(22, &[0xff, 0xff])),
        ("no-rate.wav", patched(24, &[0; 4])),
        ("rate.wav", patched(24, &[0xff; 4])),
        ("bits.wav", patched(34, &[77, 0])),
        ("format.wav", patched(20, &[0x99, 0x99])),
        ("size.wav", patched(40, &[0xff; 4])),
        ("riff.wav", patched(4, &[0; 4])),
        ("silence.wav", [&good[..44], &vec![0; good.len() - 44]].concat()),
        ("nan.wav", not_finite),
        ("short.wav", wav(Kind::Int(16), 22_050, 1, 0.001)),
        ("slow.wav", wav(Kind::Int(16), 10, 1, 20.0)),
        ("fast.wav", wav(Kind::Int(16), 900_000, 1, 0.3)),
        ("wide.wav", wav(Kind::Int(24), 22_050, 200, 0.05)),
        ("junk.flac", flac),
        ("wav.flac", good.clone()),
        ("flac.wav", b"fLaC junk".to_vec()),
        (
            "junk.mp3",
            [b"ID3\x04\0\0\x7f\x7f\x7f\x7f".as_slice(), &[0xff, 0xfb, 0x90, 0x64].repeat(400)]
                .concat(),
        ),
        ("junk.ogg", [b"OggS\0\x02".as_slice(), &[0xff; 900]].concat()),
        ("text.wav", b"this is no recording".to_vec()),
    ]
}

/// Configurations by name.
fn configurations() -> Vec<(&'static str, Vec<u8>)> {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
        d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
        g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
    vec![
        ("empty.toml", vec![]),
        ("latin.toml", b"[corpus]\nseparator = \"\xe9\"\n".to_vec()),
        ("zeros.toml", vec![0; 500]),
        ("deep.toml", format!("a = {}{}\n", "[".repeat(5000), "]".repeat(5000)).into()),
        ("deep.yaml", "- ".repeat(5000).into()),
        ("bomb.yaml", bomb.into()),
        ("twice.toml", b"num_workers = 1\nnum_workers = 2\n".to_vec()),
        ("types.toml", b"num_workers = \"two\"\n".to_vec()),
        ("unknown.toml", b"num_workerz = 2\n".to_vec()),
        ("section.toml", b"batch = 3\n".to_vec()),
        ("huge.toml", b"num_workers = 99999999999999999999999\n".to_vec()),
        ("negative.toml", b"[batch]\nbatch_size = -5\n".to_vec()),
        ("nan.toml", b"[train.optimizer]\nlr = nan\n".to_vec()),
        ("mel.toml", b"[mel]\nn_fft = 1000000000\nhop = 1\n".to_vec()),
        ("hop.toml", b"[mel]\nhop = 0\n".to_vec()),
        ("rate.toml", b"[mel]\nrate = 1\nhigh = 99999.0\n".to_vec()),
        ("bands.toml", b"[mel]\nbands = 1000000000\n".to_vec()),
        ("half.toml", b"[corpus\n".to_vec()),
        ("half.yaml", b"a: [1, 2\nb: }".to_vec()),
        ("name.txt", b"num_workers = 1\n".to_vec()),
        ("json.json", b"{\"num_workers\": 1}".to_vec()),
        ("range.toml", b"[batch]\nmax_mel_frames = 0\nmax_text_length = 0\n".to_vec()),
    ]
}

type Damage = fn(&[u8]) -> Vec<u8>;

/// What happens to each file of a voice.
const DAMAGES: [(&str, Damage); 4] = [
    ("cut", |bytes| bytes[..bytes.len() / 2].to_vec()),
    ("emptied", |_| Vec::new()),
    ("text", |_| b"{\"version\": 99999999999999999999, \"step\": -1}".to_vec()),
    ("turned", |bytes| bytes.iter().map(|byte| !byte).collect()),
];
const OF_A_VOICE: [&str; 4] =
    ["manifest.json", "voice.json", "ema.safetensors", "speakers.safetensors"];

/// Run records by name.
fn records() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty.jsonl", vec![]),
        ("half.jsonl", RECORD.as_bytes()[..RECORD.len() / 2].to_vec()),
        ("binary.jsonl", vec![0xff; 3000]),
        ("first.jsonl", RECORD.lines().next().unwrap_or_default().into()),
        ("headless.jsonl", RECORD.lines().skip(1).collect::<Vec<_>>().join("\n").into()),
        ("backwards.jsonl", RECORD.lines().rev().collect::<Vec<_>>().join("\n").into()),
        ("json.jsonl", "{}\n[]\nnull\n1e999\n".into()),
        ("deep.jsonl", format!("{}\n", "[".repeat(100_000)).into()),
        ("huge.jsonl", RECORD.replace(":1,", ":99999999999999999999,").into()),
        ("negative.jsonl", RECORD.replace(":1", ":-1").into()),
    ]
}

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (name, _) in manifests() {
        let corpus = format!("manifest-{name}");
        all.push(Case::of(&["prepare", &corpus]));
        all.push(Case::of(&["batches", &corpus, "--separator", "tab"]));
    }
    for (name, _) in recordings() {
        let (file, out) = (format!("recordings/{name}"), format!("{name}.npy"));
        all.push(Case::of(&["features", &file, "-o", &out]));
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        all.push(Case::of(&["prepare", &format!("corpus-of-{stem}"), "--cache-dataset"]));
    }
    for (name, _) in configurations() {
        let file = format!("configurations/{name}");
        all.push(Case::of(&["validate", "--config", &file]));
        all.push(Case::of(&["prepare", "good", "--config", &file]));
    }
    for file in OF_A_VOICE {
        for (what, _) in DAMAGES {
            let voice = format!("{what}-{file}");
            all.push(Case::of(&[
                "synth",
                "--checkpoint",
                &voice,
                "--text",
                "a",
                "--steps",
                "1",
                "-o",
                "x.wav",
            ]));
            all.push(Case::of(&[
                "export",
                "--checkpoint",
                &voice,
                "--format",
                "onnx",
                "-o",
                &format!("{voice}.onnx"),
            ]));
        }
    }
    for (name, _) in records() {
        let record = format!("records/{name}");
        all.push(Case::of(&["report", &record]));
        all.push(Case::of(&["compare", &record, "records/good.jsonl"]));
        all.push(Case::of(&["scaling", &record, "records/good.jsonl"]));
        all.push(Case::of(&["plan", &record]));
    }
    all
}

/// Everything that the cases name.
pub fn room() -> TestDir {
    let dir = dir_with_voice();
    let put = |name: &str, bytes: &[u8]| {
        let path = dir.path(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("created");
        fs::write(path, bytes).expect("written");
    };
    let clips = |corpus: &str| {
        for clip in ["a", "b", "c", "d"] {
            put(&format!("{corpus}/wavs/{clip}.wav"), &tone_wav());
        }
    };
    clips("good");
    put("good/metadata.csv", b"a|one\nb|two\nc|three\nd|four\n");
    put("good.toml", b"train_data = \"good\"\n");
    put(
        "noise.bin",
        &(0..5000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8).collect::<Vec<_>>(),
    );
    fs::create_dir(dir.path("empty")).expect("created");
    std::os::unix::fs::symlink("loop", dir.path("loop")).expect("a link to itself");
    assert!(
        Command::new("mkfifo").arg(dir.path("a-pipe")).status().is_ok_and(|made| made.success())
    );
    for (name, bytes) in manifests() {
        clips(&format!("manifest-{name}"));
        put(&format!("manifest-{name}/metadata.csv"), &bytes);
    }
    for (name, bytes) in recordings() {
        put(&format!("recordings/{name}"), &bytes);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        put(&format!("corpus-of-{stem}/wavs/{name}"), &bytes);
        put(&format!("corpus-of-{stem}/metadata.csv"), format!("{stem}|one two\n").as_bytes());
    }
    for (name, bytes) in configurations() {
        put(&format!("configurations/{name}"), &bytes);
    }
    for (name, bytes) in records() {
        put(&format!("records/{name}"), &bytes);
    }
    put("records/good.jsonl", RECORD.as_bytes());
    let step = newest(&dir.path("run")).expect("a checkpoint");
    let from = dir.path("run").join(format!("step-{step:08}"));
    for file in OF_A_VOICE {
        for (what, damage) in DAMAGES {
            damaged_voice(&from, &dir.path(&format!("{what}-{file}/step-{step:08}")), file, damage);
        }
    }
    dir
}

fn damaged_voice(from: &Path, to: &Path, file: &str, damage: fn(&[u8]) -> Vec<u8>) {
    fs::create_dir_all(to).expect("created");
    for entry in fs::read_dir(from).expect("a checkpoint") {
        let entry = entry.expect("an entry");
        let bytes = fs::read(entry.path()).expect("read");
        let bytes = if entry.file_name() == file { damage(&bytes) } else { bytes };
        fs::write(to.join(entry.file_name()), bytes).expect("written");
    }
}
