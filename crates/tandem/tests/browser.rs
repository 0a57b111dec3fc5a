//! The pages in a real browser: loading, updates, audio playback, and reconnection after a restart.
//!
//! Needs Chromium, so every test here is ignored by default: `xtask/tests/browser_tests.sh` installs it and
//! runs them. Without Chromium they fail.

mod browser_support;
mod support;

use browser_support::Browser;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Child;
use support::TestDir;
use support::http::Serving;
use support::voice::dir_with_voice;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example-run.jsonl");

fn example() -> Vec<String> {
    let text = fs::read_to_string(EXAMPLE).expect("the example");
    text.lines().map(|line| format!("{line}\n")).collect()
}

/// The first half of a run record, with an audio sample.
fn half_a_run(dir: &TestDir) {
    fs::create_dir_all(dir.path("run/samples")).expect("created");
    fs::write(dir.path("run/run.jsonl"), example()[..20].concat()).expect("written");
    sample(dir, 20, 2.0);
}

fn sample(dir: &TestDir, step: u64, seconds: f64) {
    let samples = dir.path("run/samples");
    let sound = support::wav(support::Kind::Int(16), 22_050, 1, seconds);
    fs::write(samples.join(format!("step-{step:06}-en.wav")), sound).expect("written");
    fs::write(samples.join(format!("step-{step:06}-en-alignment.png")), PICTURE).expect("written");
}

/// One white pixel.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xff\xff\xff\x7f\0\t\xfb\x03\xfd\x05CE\xca\0\0\0\0IEND\xaeB`\x82";

fn watch(dir: &TestDir, port: &str) -> (Child, String) {
    let mut child =
        dir.tandem(&["watch", "run", "--port", port]).spawn().expect("the program runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    (child, line.trim().to_string())
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("open");
    file.write_all(text.as_bytes()).expect("appended");
}

/// The last step that the page shows.
const LAST_STEP: &str = "document.querySelector('.facts div:nth-child(2) dd').textContent";

#[test]
#[ignore = "needs Chromium: xtask/tests/browser_tests.sh"]
fn the_live_page_loads_updates_plays_and_survives_a_restart() {
    let dir = TestDir::new();
    half_a_run(&dir);
    let (mut child, url) = watch(&dir, "0");
    let mut browser = Browser::start(&dir.path("browser"));
    browser.open(&url);
    browser.wait_for("document.documentElement.dataset.updates >= 1");
    let before = browser.text(LAST_STEP);
    assert_eq!(browser.number("document.querySelectorAll('#losses polyline').length"), 1.0);

    // Updates.
    append(&dir.path("run/run.jsonl"), &example()[20..].concat());
    browser.wait_for(&format!("{LAST_STEP} === '40'"));
    assert_ne!(before, "40");
    assert_eq!(browser.text("document.getElementById('state').textContent"), "done");

    // A playing sample continues while its section is replaced.
    browser.wait_for("document.querySelector('#samples img').complete");
    assert_eq!(browser.number("document.querySelector('#samples img').naturalWidth"), 1.0);
    let play = "(async () => { const a = document.querySelector('audio'); a.muted = true; \
                await a.play(); return a.duration; })()";
    assert!((browser.number(play) - 2.0).abs() < 0.1);
    browser.wait_for("document.querySelector('audio').currentTime > 0.2");
    browser.evaluate("window.playing = document.querySelector('audio')");
    sample(&dir, 40, 1.0);
    browser.wait_for(
        "window.playing.ended && document.querySelector('#samples h3').textContent.includes('40')",
    );
    browser.wait_for("!window.playing.isConnected");

    // The run is resumed.
    let lines = example();
    let header = lines[0].replace("1794700800000", "1794700900000");
    let step = lines.iter().find(|line| line.contains("\"event\":\"step\"")).expect("a step");
    let more = step.replace("\"step\":1,", "\"step\":41,");
    append(&dir.path("run/run-from-00000040.jsonl"), &(header + &more));
    browser.wait_for(&format!("{LAST_STEP} === '41'"));
    assert_eq!(browser.text("document.getElementById('state').textContent"), "running");

    // The server restarts at the same port: the page reconnects.
    child.kill().expect("ours");
    child.wait().expect("gone");
    browser.wait_for("document.getElementById('state').className.includes('bad')");
    let port = url.trim_end_matches('/').rsplit(':').next().expect("a port").to_string();
    let (mut again, _) = watch(&dir, &port);
    browser.wait_for("document.getElementById('state').className.includes('good')");

    // Another run in the same directory.
    fs::remove_file(dir.path("run/run-from-00000040.jsonl")).expect("removed");
    fs::remove_file(dir.path("run/run.jsonl")).expect("removed");
    append(&dir.path("run/run.jsonl"), &(lines[0].replace("17947008", "17947999") + step));
    browser.wait_for(&format!("{LAST_STEP} === '1'"));
    browser.assert_no_errors(&[
        "net::ERR_CONNECTION_REFUSED",
        "net::ERR_INCOMPLETE_CHUNKED_ENCODING",
        "net::ERR_EMPTY_RESPONSE",
        "net::ERR_CONNECTION_RESET",
    ]);
    again.kill().expect("ours");
    again.wait().expect("gone");
}

#[test]
#[ignore = "needs Chromium: xtask/tests/browser_tests.sh"]
fn pages_fit_a_phone_in_both_languages_and_load_nothing_from_the_network() {
    let dir = TestDir::new();
    fs::create_dir_all(dir.path("run")).expect("created");
    fs::copy(EXAMPLE, dir.path("run/run.jsonl")).expect("copied");
    let mut browser = Browser::start(&dir.path("browser"));
    for lang in ["en", "fa"] {
        let page = dir.path(&format!("{lang}.html"));
        let output = dir.run(&["report", "run", "--html", &page.to_string_lossy(), "--lang", lang]);
        assert_eq!(output.code, Some(0), "{output:?}");
        browser.size(390, 844);
        browser.open(&format!("file://{}", page.display()));
        browser.wait_for("document.querySelectorAll('svg').length > 3");
        let wide = browser.number("document.documentElement.scrollWidth");
        assert!(wide <= 390.0, "{lang}: {wide} wide");
        let small = browser.number(
            "Math.min(...[...document.querySelectorAll('td,p,dd,li,text')]\
             .map((one) => parseFloat(getComputedStyle(one).fontSize)))",
        );
        assert!(small >= 12.0, "{lang}: letters of {small} px");
        browser.scheme("light");
        let light = browser.text("getComputedStyle(document.body).backgroundColor");
        browser.scheme("dark");
        let dark = browser.text("getComputedStyle(document.body).backgroundColor");
        assert_ne!(light, dark);
        assert!(browser.pdf().len() > 10_000, "the PDF is empty");
        let direction = browser.text("getComputedStyle(document.querySelector('pre')).direction");
        assert_eq!(direction, "ltr");
    }
    let requested = browser.requests();
    assert!(
        requested.iter().all(|url| url.starts_with("file://") || url.starts_with("data:")),
        "{requested:?}"
    );
    browser.assert_no_errors(&[]);
}

#[test]
#[ignore = "needs Chromium: xtask/tests/browser_tests.sh"]
fn a_page_of_another_origin_cannot_read_the_run() {
    let dir = TestDir::new();
    half_a_run(&dir);
    let (mut child, url) = watch(&dir, "0");
    let evil = dir.path("evil.html");
    fs::write(&evil, "<p>evil</p>").expect("written");
    let mut browser = Browser::start(&dir.path("browser"));
    browser.open(&format!("file://{}", evil.display()));
    for mode in ["cors", "no-cors"] {
        let fetch = format!(
            "fetch('{url}metrics', {{ mode: '{mode}' }}).then((r) => r.text()).catch(() => '')"
        );
        assert_eq!(browser.text(&fetch), "");
    }
    let picture = "new Promise((done) => { const i = new Image(); i.onload = () => done('seen'); \
                   i.onerror = () => done('refused'); i.src = 'URLsamples/step-000020-en-alignment.png'; })";
    assert_eq!(browser.text(&picture.replace("URL", &url)), "refused");
    child.kill().expect("ours");
    child.wait().expect("gone");
}

/// `tandem serve` with a small untrained voice.
fn serve(dir: &TestDir) -> (Serving, String) {
    let args =
        ["serve", "--checkpoint", "run", "--port", "0", "--steps", "2", "--vocoder-rounds", "2"];
    let server = Serving::start(dir, &args);
    let url = format!("http://{}/", server.address);
    (server, url)
}

const STATE: &str = "document.documentElement.dataset.state";

#[test]
#[ignore = "needs Chromium: xtask/tests/browser_tests.sh"]
fn the_speech_page_speaks_in_both_languages() {
    let dir = dir_with_voice();
    let (_server, url) = serve(&dir);
    let mut browser = Browser::start(&dir.path("browser"));
    browser.size(390, 844);
    for (lang, direction, text) in
        [("en", "ltr", "Good morning. How are you?"), ("fa", "rtl", "سلام دنیا! حال شما چطور است؟")]
    {
        browser.open(&format!("{url}?lang={lang}"));
        browser.wait_for(&format!("{STATE} === 'ready'"));
        assert_eq!(browser.text("document.documentElement.dir"), direction);
        let names = "[...document.getElementById('voice').options].map((one) => one.value).join()";
        assert_eq!(browser.text(names), "default,emma");
        let wide = browser.number("document.documentElement.scrollWidth");
        assert!(wide <= 390.0, "{lang}: {wide} wide");
        browser.evaluate(&format!("document.getElementById('text').value = '{text}'"));
        browser.evaluate("document.getElementById('form').requestSubmit()");
        browser.wait_for(&format!("{STATE} === 'done'"));
        // The whole is a file with a length, which plays.
        browser.wait_for("document.getElementById('result').duration > 0.1");
        let play = "(async () => { const a = document.getElementById('result'); a.muted = true; \
                    await a.play(); return a.duration; })()";
        assert!(browser.number(play).is_finite());
        assert!(browser.text("document.getElementById('save').href").starts_with("blob:"));
    }
    // A text in another language is refused with the words of the server.
    browser.evaluate("document.getElementById('text').value = 'Привет.'");
    browser.evaluate("document.getElementById('form').requestSubmit()");
    browser.wait_for(&format!("{STATE} === 'failed'"));
    let status = browser.text("document.getElementById('status').textContent");
    assert!(status.contains("reads en, fa"), "{status}");
    // Stop ends a long text.
    browser.evaluate("document.getElementById('text').value = 'Good morning to you. '.repeat(100)");
    browser.evaluate("document.getElementById('form').requestSubmit()");
    browser.wait_for(&format!("{STATE} === 'waiting' || {STATE} === 'playing'"));
    browser.evaluate("document.getElementById('stop').click()");
    browser.wait_for(&format!("{STATE} === 'stopped'"));
    let requested = browser.requests();
    let ours = |address: &String| {
        address.starts_with(&url) || address.starts_with("blob:") || address.starts_with("data:")
    };
    assert!(requested.iter().all(ours), "{requested:?}");
    browser.assert_no_errors(&["status of 400"]);
}

#[test]
#[ignore = "needs Chromium: xtask/tests/browser_tests.sh"]
fn a_page_of_another_origin_cannot_make_the_server_speak() {
    let dir = dir_with_voice();
    let (server, url) = serve(&dir);
    let evil = dir.path("evil.html");
    fs::write(&evil, "<p>evil</p>").expect("written");
    let mut browser = Browser::start(&dir.path("browser"));
    browser.open(&format!("file://{}", evil.display()));
    let body = r#"{"model":"run","voice":"emma","input":"Evil."}"#;
    for (mode, kind) in [("cors", "application/json"), ("no-cors", "text/plain")] {
        let fetch = format!(
            "fetch('{url}v1/audio/speech', {{ method: 'POST', mode: '{mode}', body: '{body}', \
             headers: {{ 'content-type': '{kind}' }} }}).then((r) => r.text()).catch(() => '')"
        );
        assert_eq!(browser.text(&fetch), "");
    }
    let metrics = server.get("/metrics").text();
    assert!(!metrics.contains("tandem_serve_requests_total{"), "{metrics}");
    assert!(metrics.contains("tandem_serve_texts_total 0\n"), "{metrics}");
}
