//! Files are read back record by record, checksums and all. That TensorBoard itself reads them was
//! checked with `xtask/tests/check_tensorboard.py`, which says with which versions.

use super::framing::masked;
use super::*;
use std::io::Write;
use std::sync::{Arc, Mutex};

/// All events of a file; panics where a length or a checksum is wrong.
fn events(mut bytes: &[u8]) -> Vec<Event> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let sum = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(sum(8), masked(&bytes[..8]), "checksum of a length");
        let payload = &bytes[12..12 + length];
        assert_eq!(sum(12 + length), masked(payload), "checksum of a record");
        found.push(Event::decode(payload).unwrap());
        bytes = &bytes[16 + length..];
    }
    found
}

fn values(bytes: &[u8]) -> Vec<(i64, Value)> {
    let summaries = events(bytes).into_iter().filter_map(|event| match event.what {
        Some(What::Summary(summary)) => Some((event.step, summary.value[0].clone())),
        _ => None,
    });
    summaries.collect()
}

#[test]
fn every_kind_comes_back_as_it_was_given() {
    let room = tempfile::tempdir().unwrap();
    let mut file = EventFile::create(room.path(), 1).unwrap();
    file.add(3, "loss/total", Shown::Scalar(0.5));
    file.add(4, "loss/total", Shown::Scalar(f32::NAN));
    file.add(4, "mel/en", Shown::Image { width: 2, height: 3, png: b"png".to_vec() });
    file.add(4, "voice/en", Shown::Audio(b"RIFF".to_vec()));
    file.add(4, "text/en", Shown::Text("سلام".into()));
    file.close().unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    assert_eq!(events(&bytes)[0].what, Some(What::FileVersion("brain.Event:2".into())));
    let values = values(&bytes);
    assert_eq!(values.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [3, 4, 4, 4, 4]);
    let contents: Vec<Content> =
        values.iter().map(|(_, value)| value.content.clone().unwrap()).collect();
    assert_eq!(contents[0], Content::SimpleValue(0.5));
    assert!(matches!(contents[1], Content::SimpleValue(value) if value.is_nan()));
    assert!(matches!(&contents[2], Content::Image(image)
        if (image.width, image.height, image.colorspace) == (2, 3, 3)
            && image.encoded_image_string == b"png"));
    let tensors = [3, 4].map(|index: usize| match &contents[index] {
        Content::Tensor(tensor) => tensor.clone(),
        other => panic!("{other:?}"),
    });
    assert!(tensors.iter().all(|tensor| tensor.dtype == DT_STRING));
    let shapes = tensors.each_ref().map(|tensor| {
        let dims = &tensor.tensor_shape.as_ref().unwrap().dim;
        dims.iter().map(|dim| dim.size).collect::<Vec<_>>()
    });
    assert_eq!(shapes, [vec![1, 2], vec![]]);
    assert_eq!(tensors[0].string_val, [&b"RIFF"[..], b""]);
    assert_eq!(tensors[1].string_val, ["سلام".as_bytes()]);
    let plugins = [3, 4].map(|index: usize| values[index].1.metadata.clone().unwrap());
    let [audio, text] = plugins.map(|metadata| metadata.plugin_data.unwrap());
    // Field 2, a variable-length number, WAV.
    assert_eq!((&*audio.plugin_name, &*audio.content), ("audio", &[0x10, 11][..]));
    assert_eq!((&*text.plugin_name, &*text.content), ("text", &[][..]));
}

#[test]
fn wall_time_is_now() {
    let room = tempfile::tempdir().unwrap();
    let file = EventFile::create(room.path(), 1).unwrap();
    let event = &events(&std::fs::read(file.path()).unwrap())[0];
    assert!((event.wall_time - now().as_secs_f64()).abs() < 60.0);
}

#[test]
fn a_second_run_creates_its_own_file() {
    let room = tempfile::tempdir().unwrap();
    let time = Duration::from_secs(1_790_000_000);
    let (first, mut file) = create_new(room.path(), time, "host").unwrap();
    assert_eq!(first.file_name().unwrap(), "events.out.tfevents.1790000000.host");
    file.write_all(b"old").unwrap();
    let (second, _) = create_new(room.path(), time, "host").unwrap();
    let (third, _) = create_new(room.path(), time, "host").unwrap();
    assert_eq!(second.file_name().unwrap(), "events.out.tfevents.1790000000.host.1");
    assert_eq!(third.file_name().unwrap(), "events.out.tfevents.1790000000.host.2");
    assert_eq!(std::fs::read(first).unwrap(), b"old");
}

#[test]
fn a_resumed_run_makes_later_points_of_the_one_before_void() {
    let room = tempfile::tempdir().unwrap();
    let fresh = EventFile::create(room.path(), 1).unwrap();
    let resumed = EventFile::create(room.path(), 101).unwrap();
    assert_ne!(fresh.path(), resumed.path());
    assert_eq!(events(&std::fs::read(fresh.path()).unwrap()).len(), 1);
    let event = &events(&std::fs::read(resumed.path()).unwrap())[1];
    assert_eq!(event.step, 101);
    assert_eq!(event.what, Some(What::SessionLog(SessionLog { status: SESSION_START })));
}

#[test]
fn a_missing_directory_is_named() {
    let room = tempfile::tempdir().unwrap();
    let error = EventFile::create(&room.path().join("none"), 1).err().unwrap();
    assert!(error.to_string().contains("none"), "{error}");
}

/// A disk with little space, until the test adds more.
#[derive(Clone, Default)]
struct SmallDisk(Arc<Mutex<(Vec<u8>, usize)>>);

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (written, room) = &mut *self.0.lock().unwrap();
        let take = bytes.len().min(*room);
        if take == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        *room -= take;
        written.extend_from_slice(&bytes[..take]);
        Ok(take)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecordFile for SmallDisk {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_tears_no_record_and_loses_only_what_finds_no_room() {
    let disk = SmallDisk::default();
    disk.0.lock().unwrap().1 = 100;
    let mut file = EventFile::on("events".into(), Box::new(disk.clone()), 1).unwrap();
    for step in 1..=10 {
        file.add(step, "loss", Shown::Scalar(step as f32));
    }
    let error = file.flush().unwrap_err();
    assert!(error.to_string().contains("events"), "{error}");
    assert_eq!(file.lost(), 0);
    let big = || Shown::Text("x".repeat(WAITING * 2 / 3));
    file.add(11, "text", big());
    file.add(12, "text", big());
    assert_eq!(file.lost(), 1, "the second large one found no room");
    disk.0.lock().unwrap().1 = usize::MAX;
    file.close().unwrap();
    let steps: Vec<i64> = values(&disk.0.lock().unwrap().0).iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, (1..=11).collect::<Vec<_>>());
}
