//! Scratch: learns on the demo corpus in one thread and prints held-out error.
use burn::module::Module;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tandem_data::batch::BatchConfig;
use tandem_data::corpus::Split;
use tandem_model::Device;
use tandem_model::alignment::Aligner;
use tandem_model::lesson::HostLesson;
use tandem_model::optimizer::*;
use tandem_model::size::*;
use tandem_model::synthesis::*;
use tandem_model::voice::*;
use tandem_pipeline::{CancelToken, Stage};
use tandem_telemetry::Recorder;
use tandem_train::align::*;
use tandem_train::examine::Features;
use tandem_train::feed::*;
use tandem_train::mel_scale::measure_mel_scale;
use tandem_train::snapshots::Snapshots;
use tandem_train::train_settings::*;
use tandem_train::*;
use tandem_units::*;
#[global_allocator]
static A: mimalloc::MiMalloc = mimalloc::MiMalloc;
struct Un;
impl Watcher for Un { fn waiting_for(&mut self, _: &str) {} fn progress(&mut self, _: usize, _: usize) {} }
fn arg(name: &str, default: f64) -> f64 { std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default) }
impl Watcher for Un {
    fn progress(&mut self, _: tandem_train::prepare::Progress) {}
}
fn arg(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}
fn cepstra(mel: &[f32]) -> Vec<[f32; 13]> {
    mel.chunks(80)
        .map(|f| {
            let mut c = [0.0; 13];
            for k in 1..=13 {
                c[k - 1] = (2.0f32 / 80.0).sqrt()
                    * f.iter()
                        .enumerate()
                        .map(|(n, v)| {
                            v * (std::f32::consts::PI / 80.0 * (n as f32 + 0.5) * k as f32).cos()
                        })
                        .sum::<f32>();
            }
            c
        })
        .collect()
}
fn mcd(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (cepstra(a), cepstra(b));
    let d = |x: &[f32; 13], y: &[f32; 13]| {
        (10.0 / 10f32.ln())
            * (2.0 * x.iter().zip(y).map(|(p, q)| (p - q) * (p - q)).sum::<f32>()).sqrt()
    };
    let mut q = vec![vec![(f32::MAX, 0u32); b.len() + 1]; a.len() + 1];
    q[0][0] = (0.0, 0);
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let m = [q[i - 1][j - 1], q[i - 1][j], q[i][j - 1]]
                .into_iter()
                .min_by(|x, y| x.0.total_cmp(&y.0))
                .unwrap();
            q[i][j] = (m.0 + d(&a[i - 1], &b[j - 1]), m.1 + 1);
        }
    }
    let (s, n) = q[a.len()][b.len()];
    s / n as f32
}
fn main() {
    let steps = arg("STEPS", 400.0) as u64;
    let lr = arg("LR", 1e-3);
    let bs = arg("BS", 8.0) as usize;
    let every = arg("EVAL", 100.0) as u64;
    let shuffle = arg("SHUFFLE", 0.0) > 0.0;
    let k = arg("K", 10.0) as u64;
    let lag = arg("LAG", 10.0) as u64;
    let phon = arg("PHON", 0.0) > 0.0;
    let mut ds = DataSettings::default();
    if phon {
        ds.text.symbols = tandem_data::text::SymbolMode::Phonemes;
    }
    let opts = PrepareOptions { workers: 2, features: Features::Cached, ..Default::default() };
    let cancel = CancelToken::new();
    let dir =
        std::path::PathBuf::from(std::env::var("CORPUS").unwrap_or("/tmp/demo-corpus".into()));
    let prepared = Arc::new(prepare(&dir, &ds, &opts, &mut Un, &cancel).unwrap());
    let mut fs = FeedSettings::new(BatchConfig { batch_size: bs, seed: Seed(1), ..Default::default() }); fs.reference_frames = 128; fs.depth = 4;
    let scale = measure_mel_scale(&prepared, &fs, &cancel).unwrap(); println!("{scale:?}");
    let nsym = prepared.front_end.table().len();
    let mut fs =
        FeedSettings::new(BatchConfig { batch_size: bs, seed: Seed(1), ..Default::default() });
    fs.reference_frames = 128;
    fs.depth = 4;
    let scale = MelScale::measure(&prepared, &fs, &cancel).unwrap();
    println!("{scale:?}");
    let nsym = prepared.front_end.symbols().len();
    let mut config = VoiceConfig::of(ModelSize::Tiny, nsym, 32, 80);
    config.text_width = arg("TW", config.text_width as f64) as usize;
    config.decoder_width = arg("DW", config.decoder_width as f64) as usize;
    config.text_blocks = arg("TB", config.text_blocks as f64) as usize;
    config.decoder_blocks = arg("DB", config.decoder_blocks as f64) as usize;
    config.patch = arg("PATCH", 2.0) as usize;
    let device = Device::flex();
    let auto = device.clone().autodiff();
    let mut voice = Voice::new(&config, Seed(7), &auto);
    println!("{} parameters, {} symbols", voice.num_params(), nsym);
    let mut opt = Optimizer::new(&voice);
    let snaps = Snapshots::new(
        AlignmentSettings { every: k, lag },
        BTreeMap::from([(0, Arc::new(voice.reader.valid()))]),
    );
    let mut align = Align {
        snapshots: snaps.clone(),
        device: device.clone(),
        scale,
        patch: config.patch,
        grad_accum: 1,
        seed: Seed(3),
        cancel: cancel.clone(),
        recorder: Recorder::off(),
        aligner: Aligner::default(),
    };
    let mut feedr = feed(&prepared, &fs, &Recorder::off(), &cancel).unwrap();
    // held out
    let ev = Rows::of(&prepared, Split::Eval);
    let tr = Rows::of(&prepared, Split::Train);
    let mel_of = |n: u32| {
        let r = prepared.cache.row(n as usize).unwrap();
        let m = prepared.cache.mel(n as usize, r.record).unwrap();
        let mut o = vec![0.0; m.len()];
        scale.normalise(m, &mut o);
        o
    };
    let mut mean = vec![0f64; 80];
    let mut cnt = 0f64;
    for &n in &tr.cache_row {
        for f in mel_of(n).chunks(80) {
            cnt += 1.0;
            for (m, v) in mean.iter_mut().zip(f) {
                *m += *v as f64;
            }
        }
    }
    let mean: Vec<f32> = mean.iter().map(|m| (m / cnt) as f32).collect();
    let truth: Vec<Vec<f32>> = ev
        .cache_row
        .iter()
        .map(|&n| {
            let mut m = mel_of(n);
            scale.restore(&mut m);
            m
        })
        .collect();
    let mut mr = mean.clone();
    scale.restore(&mut mr);
    let base: f32 = truth.iter().map(|t| mcd(&mr, t)).sum::<f32>() / truth.len() as f32;
    println!("{} train {} eval, mean-mel MCD {base:.2}", tr.cache_row.len(), ev.cache_row.len());
    let t0 = Instant::now();
    let (mut tf, mut tb, mut to, mut ta) = (0.0, 0.0, 0.0, 0.0);
    let mut acc = [0f32; 3];
    for step in 0..steps {
        let Some(mut ready) = feedr.next().unwrap() else { break };
        let a0 = Instant::now();
        if shuffle {
            /* rows' texts rotated within the batch */
            shuffle_texts(&mut ready);
        }
        let mut out = Vec::new();
        align.step(ready, &mut out).unwrap();
        let lesson: HostLesson = out.pop().unwrap().lesson;
        ta += a0.elapsed().as_secs_f64();
        let a1 = Instant::now();
        let l = lesson.to_device(&device);
        let losses = voice.losses(&l);
        let n = l.utterances;
        for (a, t) in acc.iter_mut().zip([&losses.prior, &losses.duration, &losses.flow]) {
            *a += t.clone().into_scalar::<f32>() / n as f32;
        }
        tf += a1.elapsed().as_secs_f64();
        let a2 = Instant::now();
        let grads = losses.total().backward();
        let mut g = GradientSum::default();
        g.add(&voice, grads, n);
        tb += a2.elapsed().as_secs_f64();
        let a3 = Instant::now();
        let warm = arg("WARM", 50.0);
        let rate = lr
            * ((step + 1) as f64 / warm).min(1.0)
            * (0.05
                + 0.95 * 0.5 * (1.0 + (std::f64::consts::PI * step as f64 / steps as f64).cos()));
        let ema = 0.995f64.min((1.0 + step as f64) / (10.0 + step as f64));
        let (v, _moved) = opt.step(voice, g, &StepSettings { rate, weight_decay: arg("WD", 0.01), beta1: 0.9, beta2: 0.98, epsilon: 1e-8, clip: 1.0, ema, step: step + 1, loss_scale: 1.0 });
        voice = v; to += a3.elapsed().as_secs_f64();
        if snaps.wants(step + 1) { snaps.publish(step + 1, voice.reader.valid()); }
        if (step + 1) % 20 == 0 { println!("step {} {:.0} s: prior {:.3} dur {:.3} flow {:.3}  | align {:.0} fwd {:.0} bwd {:.0} opt {:.0} ms", step + 1, t0.elapsed().as_secs_f64(), acc[0]/20.0, acc[1]/20.0, acc[2]/20.0, ta*50.0, tf*50.0, tb*50.0, to*50.0); acc = [0.0; 3]; (ta, tf, tb, to) = (0.0, 0.0, 0.0, 0.0); }
        let (v, _moved) = opt.step(
            voice,
            g,
            &StepSettings {
                rate,
                weight_decay: arg("WD", 0.01),
                beta1: 0.9,
                beta2: 0.98,
                epsilon: 1e-8,
                clip: 1.0,
                ema,
                step: step + 1,
            },
        );
        voice = v;
        to += a3.elapsed().as_secs_f64();
        if snaps.wants(step + 1) {
            snaps.publish(step + 1, voice.reader.valid());
        }
        if (step + 1) % 20 == 0 {
            println!(
                "step {} {:.0} s: prior {:.3} dur {:.3} flow {:.3}  | align {:.0} fwd {:.0} bwd {:.0} opt {:.0} ms",
                step + 1,
                t0.elapsed().as_secs_f64(),
                acc[0] / 20.0,
                acc[1] / 20.0,
                acc[2] / 20.0,
                ta * 50.0,
                tf * 50.0,
                tb * 50.0,
                to * 50.0
            );
            acc = [0.0; 3];
            (ta, tf, tb, to) = (0.0, 0.0, 0.0, 0.0);
        }
        if (step + 1) % every == 0 || step + 1 == steps {
            for (what, v) in [("now", voice.valid()), ("ema", opt.averaged(&voice))] {
                let sp = Speaker { voice: &v, config: &config, device: &device };
                for temp in [0.0, 0.5] {
                    let mut sum = 0.0;
                    let mut len = 0.0;
                    for (i, &n) in ev.cache_row.iter().enumerate() {
                        let row = prepared.cache.row(n as usize).unwrap();
                        let text = prepared.cache.text(row.record).unwrap();
                        let sy: Vec<i32> = text.symbols().map(i32::from).collect();
                        let same = tr.by_speaker.get(&row.record.speaker);
                        let rf =
                            same.map(|s| mel_of(tr.cache_row[s[0] as usize])).unwrap_or_default();
                        let mut said = sp.speak(
                            &sy,
                            row.record.language as i32,
                            &Reference { mel: rf },
                            None,
                            &Manner { temperature: temp, ..Default::default() },
                        );
                        scale.restore(&mut said.mel);
                        sum += mcd(&said.mel, &truth[i]);
                        len += (said.mel.len() as f32 / truth[i].len() as f32 - 1.0).abs();
                    }
                    let m = sum / truth.len() as f32;
                    println!(
                        "  {what} temp {temp}: MCD {m:.2} = {:.1} % below mean-mel; length error {:.1} %",
                        100.0 * (1.0 - m / base),
                        100.0 * len / truth.len() as f32
                    );
                }
            }
        }
    }
}
fn shuffle_texts(_r: &mut tandem_train::preprocess::Ready) {}
