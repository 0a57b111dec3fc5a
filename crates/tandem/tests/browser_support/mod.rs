//! Controls headless Chromium with the DevTools protocol over a pipe: JSON messages, each followed by a zero byte.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// One browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    next: u64,
    events: Vec<Value>,
}

/// Longer than any working step takes on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Browser {
    /// Starts Chromium with a profile of its own.
    pub fn start(profile: &Path) -> Browser {
        let program = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
            let version = Command::new(name).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        });
        let program = program.expect("no Chromium: xtask/tests/browser_tests.sh installs it");
        // The browser reads commands from file descriptor 3 and writes answers to 4.
        let line = format!(
            "exec {program} --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
             --no-first-run --mute-audio --autoplay-policy=no-user-gesture-required \
             --user-data-dir='{}' --remote-debugging-pipe about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1",
            profile.display()
        );
        let mut child = Command::new("sh")
            .args(["-c", &line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take().expect("piped");
        let from = BufReader::new(child.stdout.take().expect("piped"));
        let mut browser = Browser { child, to, from, session: None, next: 0, events: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", target);
        browser.session = session["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    pub fn open(&mut self, url: &str) {
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        self.wait_for("document.readyState === 'complete'");
    }

    /// The value of an expression; promises are awaited.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let request =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", request);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    #[track_caller]
    pub fn text(&mut self, expression: &str) -> String {
        let value = self.evaluate(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}")).to_string()
    }

    #[track_caller]
    pub fn number(&mut self, expression: &str) -> f64 {
        let value = self.evaluate(expression);
        value.as_f64().unwrap_or_else(|| panic!("{expression} is {value}"))
    }

    /// Waits until the expression is true.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let began = Instant::now();
        let guarded =
            format!("(() => {{ try {{ return !!({expression}); }} catch {{ return false; }} }})()");
        while self.evaluate(&guarded) != true {
            if began.elapsed() > TIMEOUT {
                let page = self.evaluate("document.body.innerText");
                panic!("still false: {expression}\n{page}\n{:?}", self.errors());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn size(&mut self, width: u32, height: u32) {
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 2, "mobile": true });
        self.call("Emulation.setDeviceMetricsOverride", screen);
    }

    /// `light` or `dark`.
    pub fn scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// The page as PDF, in base 64.
    pub fn pdf(&mut self) -> String {
        let answer = self.call("Page.printToPDF", json!({ "printBackground": true }));
        answer["data"].as_str().unwrap_or_default().to_string()
    }

    /// Every URL that was requested.
    pub fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|e| e["method"] == "Network.requestWillBeSent");
        sent.filter_map(|e| Some(e["params"]["request"]["url"].as_str()?.to_string())).collect()
    }

    /// Fails on script, loading and content-policy errors, except those that contain an expected text.
    #[track_caller]
    pub fn assert_no_errors(&self, expected: &[&str]) {
        let mut errors = self.errors();
        errors.retain(|one| !expected.iter().any(|words| one.contains(words)));
        assert!(errors.is_empty(), "{errors:#?}");
    }

    fn errors(&self) -> Vec<String> {
        let bad = |event: &&Value| {
            event["method"] == "Runtime.exceptionThrown"
                || (event["method"] == "Log.entryAdded"
                    && event["params"]["entry"]["level"] == "error")
        };
        self.events.iter().filter(bad).map(Value::to_string).collect()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser runs");
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).expect("the browser runs");
            assert_eq!(bytes.pop(), Some(0), "the browser exited during {method}");
            let answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
