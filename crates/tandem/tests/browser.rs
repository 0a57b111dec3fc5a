//! Pages in a real browser: loaded, updated, heard, and still there after a restart.
//!
//! Needs Chromium, so every test here is ignored unless it is asked for: `scripts/browser_tests.sh`
//! installs it and runs them. Without Chromium they fail; they never pass unrun.

mod browser_kit;
mod kit;

use browser_kit::Browser;
use kit::Place;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Child;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example-run.jsonl");

fn example() -> Vec<String> {
    let text = fs::read_to_string(EXAMPLE).expect("the example");
    text.lines().map(|line| format!("{line}\n")).collect()
}

/// A run that has come half-way, with a sample that can be heard.
fn half_a_run(place: &Place) {
    fs::create_dir_all(place.inside("run/samples")).expect("created");
    fs::write(place.inside("run/run.jsonl"), example()[..20].concat()).expect("written");
    sample(place, 20, 2.0);
}

fn sample(place: &Place, step: u64, seconds: f64) {
    let samples = place.inside("run/samples");
    let sound = kit::wav(kit::Kind::Int(16), 22_050, 1, seconds);
    fs::write(samples.join(format!("step-{step:06}-en.wav")), sound).expect("written");
    fs::write(samples.join(format!("step-{step:06}-en-alignment.png")), PICTURE).expect("written");
}

/// One white pixel.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xff\xff\xff\x7f\0\t\xfb\x03\xfd\x05CE\xca\0\0\0\0IEND\xaeB`\x82";

fn watch(place: &Place, port: &str) -> (Child, String) {
    let mut child =
        place.tandem(&["watch", "run", "--port", port]).spawn().expect("the program runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    (child, line.trim().to_string())
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("open");
    file.write_all(text.as_bytes()).expect("appended");
}

/// The last step as the page says it.
const LAST_STEP: &str = "document.querySelector('.facts div:nth-child(2) dd').textContent";

#[test]
#[ignore = "needs Chromium: scripts/browser_tests.sh"]
fn the_live_page_loads_updates_plays_and_survives_a_restart() {
    let place = Place::new();
    half_a_run(&place);
    let (mut child, url) = watch(&place, "0");
    let mut browser = Browser::start(&place.inside("browser"));
    browser.open(&url);
    browser.wait_for("document.documentElement.dataset.updates >= 1");
    let before = browser.text(LAST_STEP);
    assert_eq!(browser.number("document.querySelectorAll('#losses polyline').length"), 1.0);

    // Updates.
    append(&place.inside("run/run.jsonl"), &example()[20..].concat());
    browser.wait_for(&format!("{LAST_STEP} === '40'"));
    assert_ne!(before, "40");
    assert_eq!(browser.text("document.getElementById('state').textContent"), "done");

    // Plays, and goes on playing while its section is replaced.
    browser.wait_for("document.querySelector('#samples img').complete");
    assert_eq!(browser.number("document.querySelector('#samples img').naturalWidth"), 1.0);
    let play = "(async () => { const a = document.querySelector('audio'); a.muted = true; \
                await a.play(); return a.duration; })()";
    assert!((browser.number(play) - 2.0).abs() < 0.1);
    browser.wait_for("document.querySelector('audio').currentTime > 0.2");
    browser.evaluate("window.heard = document.querySelector('audio')");
    sample(&place, 40, 1.0);
    browser.wait_for(
        "window.heard.ended && document.querySelector('#samples h3').textContent.includes('40')",
    );
    browser.wait_for("!window.heard.isConnected");

    // The run is taken up again.
    let lines = example();
    let header = lines[0].replace("1794700800000", "1794700900000");
    let more = lines[2].replace("\"step\":1,", "\"step\":41,");
    append(&place.inside("run/run-from-00000040.jsonl"), &(header + &more));
    browser.wait_for(&format!("{LAST_STEP} === '41'"));
    assert_eq!(browser.text("document.getElementById('state').textContent"), "running");

    // The page is closed and opened again at the same port: the browser comes back by itself.
    child.kill().expect("ours");
    child.wait().expect("gone");
    browser.wait_for("document.getElementById('state').className.includes('bad')");
    let port = url.trim_end_matches('/').rsplit(':').next().expect("a port").to_string();
    let (mut again, _) = watch(&place, &port);
    browser.wait_for("document.getElementById('state').className.includes('good')");

    // Another run in the same place.
    fs::remove_file(place.inside("run/run-from-00000040.jsonl")).expect("removed");
    fs::remove_file(place.inside("run/run.jsonl")).expect("removed");
    append(&place.inside("run/run.jsonl"), &(lines[0].replace("17947008", "17947999") + &lines[2]));
    browser.wait_for(&format!("{LAST_STEP} === '1'"));
    browser.has_no_complaints(&[
        "net::ERR_CONNECTION_REFUSED",
        "net::ERR_INCOMPLETE_CHUNKED_ENCODING",
        "net::ERR_EMPTY_RESPONSE",
        "net::ERR_CONNECTION_RESET",
    ]);
    again.kill().expect("ours");
    again.wait().expect("gone");
}

#[test]
#[ignore = "needs Chromium: scripts/browser_tests.sh"]
fn pages_fit_a_phone_in_both_languages_and_ask_nobody() {
    let place = Place::new();
    fs::create_dir_all(place.inside("run")).expect("created");
    fs::copy(EXAMPLE, place.inside("run/run.jsonl")).expect("copied");
    let mut browser = Browser::start(&place.inside("browser"));
    for lang in ["en", "fa"] {
        let page = place.inside(&format!("{lang}.html"));
        let said = place.run(&["report", "run", "--html", &page.to_string_lossy(), "--lang", lang]);
        assert_eq!(said.code, Some(0), "{said:?}");
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
        assert!(browser.paper().len() > 10_000, "nothing on paper");
        let direction = browser.text("getComputedStyle(document.querySelector('pre')).direction");
        assert_eq!(direction, "ltr");
    }
    let asked = browser.requests();
    assert!(
        asked.iter().all(|url| url.starts_with("file://") || url.starts_with("data:")),
        "{asked:?}"
    );
    browser.has_no_complaints(&[]);
}

#[test]
#[ignore = "needs Chromium: scripts/browser_tests.sh"]
fn a_page_of_another_origin_learns_nothing() {
    let place = Place::new();
    half_a_run(&place);
    let (mut child, url) = watch(&place, "0");
    let evil = place.inside("evil.html");
    fs::write(&evil, "<p>evil</p>").expect("written");
    let mut browser = Browser::start(&place.inside("browser"));
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
