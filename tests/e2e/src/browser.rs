//! A headless Chromium and what tests ask of it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use thirtyfour::LoggingPrefsLogLevel;
use thirtyfour::prelude::*;
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::axe::{self, Finding};
use crate::chromedriver::Chromedriver;

/// How many browsers run at a time, however many threads the test runner has.
static SEATS: Semaphore = Semaphore::const_new(2);

/// How long a page may take to show what a test waits for. Machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a script may take.
const SCRIPT_PATIENCE: Duration = Duration::from_secs(60);

/// The same switches as in `webdriver.json`: nothing but the page itself may use the network or the screen.
const SWITCHES: [&str; 9] = [
    "--headless=new",
    "--disable-gpu",
    // Scroll bars that take room would make each width 15 pixels less than what it says.
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// The colour scheme that the visitor prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorScheme {
    /// Dark text on light ground.
    Light,
    /// Light text on dark ground.
    Dark,
}

/// What the browser noted so far. The driver forgets what it has told, so it is kept here.
#[derive(Debug, Default)]
struct Notes {
    console_errors: Vec<String>,
    requests: Vec<String>,
}

/// A headless Chromium with a fresh profile. Dropping it ends it, also when a test panics.
#[derive(Debug)]
pub struct Browser {
    // The order matters: the session ends before its driver is killed, and the seat is free after both.
    session: WebDriver,
    _driver: Chromedriver,
    _seat: SemaphorePermit<'static>,
    notes: Mutex<Notes>,
    /// The profile, where a test gave one.
    profile: Option<PathBuf>,
}

impl Browser {
    /// Starts a browser.
    pub async fn start() -> Result<Self> {
        Self::with_switches(&[]).await
    }

    /// Starts a browser with more command line switches, such as `--enable-features=WebMCP`.
    pub async fn with_switches(switches: &[&str]) -> Result<Self> {
        Self::launch(switches, None).await
    }

    /// Starts a browser whose profile is in a folder, where another one finds it after this one has ended.
    pub async fn with_profile(folder: &Path) -> Result<Self> {
        Self::launch(&[&format!("--user-data-dir={}", folder.display())], Some(folder.to_owned())).await
    }

    async fn launch(switches: &[&str], profile: Option<PathBuf>) -> Result<Self> {
        let seat = SEATS.acquire().await?;
        let driver = Chromedriver::start().await?;
        let mut wishes = DesiredCapabilities::chrome();
        for switch in SWITCHES.iter().chain(switches) {
            wishes.add_arg(switch)?;
        }
        if runs_as_root() {
            // Chromium refuses to start its sandbox as root.
            wishes.add_arg("--no-sandbox")?;
        }
        wishes.set_logging_prefs("browser", LoggingPrefsLogLevel::All)?;
        wishes.set_logging_prefs("performance", LoggingPrefsLogLevel::All)?;
        let session = WebDriver::new(driver.url(), wishes).await.context("Chromium does not start")?;
        let browser = Self { session, _driver: driver, _seat: seat, notes: Mutex::default(), profile };
        browser.session.set_script_timeout(SCRIPT_PATIENCE).await?;
        browser.set_viewport(1280, 900).await?;
        Ok(browser)
    }

    /// The session, for everything that has no helper here.
    #[must_use]
    pub fn session(&self) -> &WebDriver {
        &self.session
    }

    /// Goes to an address and waits until it is loaded.
    pub async fn goto(&self, url: &str) -> Result<()> {
        self.session.goto(url).await.with_context(|| format!("cannot open {url}"))
    }

    /// Waits until an element is there and visible.
    pub async fn wait_for(&self, selector: &str) -> Result<WebElement> {
        let found = self.session.query(By::Css(selector)).wait(PATIENCE, POLL).and_displayed().first().await;
        match found {
            Ok(element) => Ok(element),
            Err(_) => Err(self.disappointment(&format!("`{selector}` to appear")).await),
        }
    }

    /// Waits until the visible text of the first such element contains a text.
    pub async fn wait_for_text(&self, selector: &str, text: &str) -> Result<()> {
        let condition = "return document.querySelector(arguments[0])?.innerText.includes(arguments[1])";
        let what = format!("`{selector}` to say {text:?}");
        self.wait_until(&what, condition, vec![json!(selector), json!(text)]).await
    }

    /// Waits until a script returns something that is true; `what` names it when it never does.
    pub async fn wait_until(&self, what: &str, script: &str, arguments: Vec<Value>) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let value = self.run_js(script, arguments.clone()).await?;
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(self.disappointment(what).await);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn disappointment(&self, what: &str) -> anyhow::Error {
        let text = self.run_js("return document.body?.innerText", Vec::new()).await.unwrap_or_default();
        let errors = self.console_errors().await.unwrap_or_default();
        anyhow!("waited in vain for {what}\nthe page says: {text}\nits console errors: {errors:?}")
    }

    /// Runs the body of a function and returns what it returns. Scripts of tests are exempt from the page's policy.
    pub async fn run_js(&self, body: &str, arguments: Vec<Value>) -> Result<Value> {
        let result = self.session.execute(body, arguments).await.context("a script of the test failed")?;
        Ok(result.json().clone())
    }

    /// Runs the body of an async function, which may `await`, and returns what it returns.
    pub async fn run_async_js(&self, body: &str, arguments: Vec<Value>) -> Result<Value> {
        let script = format!(
            "const done = arguments[arguments.length - 1];
             (async function () {{ {body}\n }}).apply(null, Array.prototype.slice.call(arguments, 0, -1)).then(
                 value => done({{ value }}),
                 error => done({{ error: String(error?.stack ?? error) }}),
             );"
        );
        let result =
            self.session.execute_async(script, arguments).await.context("a script of the test failed")?;
        let mut result = result.json().clone();
        if let Some(error) = result["error"].as_str() {
            bail!("a script of the test threw: {error}");
        }
        Ok(result["value"].take())
    }

    /// Lets scripts run for longer than usual.
    pub async fn set_script_patience(&self, patience: Duration) -> Result<()> {
        Ok(self.session.set_script_timeout(patience).await?)
    }

    /// Everything that the page reported as an error since the browser was started: uncaught exceptions,
    /// `console.error`, failed requests, breaches of the content security policy.
    pub async fn console_errors(&self) -> Result<Vec<String>> {
        let entries = self.session.get_log("browser").await.context("cannot read the console")?;
        let severe = entries.into_iter().filter(|entry| entry.level == "SEVERE").map(|entry| entry.message);
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.console_errors.extend(severe);
        Ok(notes.console_errors.clone())
    }

    /// The addresses of everything that the page asked for since the browser was started.
    pub async fn requests(&self) -> Result<Vec<String>> {
        let entries = self.session.get_log("performance").await.context("cannot read the network log")?;
        let urls = entries.iter().filter_map(|entry| requested_url(&entry.message));
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.requests.extend(urls);
        Ok(notes.requests.clone())
    }

    /// What the accessibility rules of axe-core find serious or critical in the page as it is now.
    pub async fn axe(&self) -> Result<Vec<Finding>> {
        axe::run(self).await
    }

    /// Gives the page this much room, in CSS pixels. Window sizes will not do: windows have a least width.
    pub async fn set_viewport(&self, width: u32, height: u32) -> Result<()> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await.map(drop)
    }

    /// Makes the visitor prefer a colour scheme.
    pub async fn set_color_scheme(&self, scheme: ColorScheme) -> Result<()> {
        let value = match scheme {
            ColorScheme::Light => "light",
            ColorScheme::Dark => "dark",
        };
        self.set_media(&[("prefers-color-scheme", value)]).await
    }

    /// Sets media features, such as `prefers-reduced-motion`; those that are not named are as usual again.
    pub async fn set_media(&self, features: &[(&str, &str)]) -> Result<()> {
        let features: Vec<Value> =
            features.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await.map(drop)
    }

    /// Writes a picture of the whole page, also of what is below the viewport, as PNG.
    pub async fn screenshot(&self, path: &Path) -> Result<()> {
        let size = self.devtools("Page.getLayoutMetrics", json!({})).await?["cssContentSize"].take();
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1 });
        let wish = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let picture = self.devtools("Page.captureScreenshot", wish).await?;
        let png = BASE64_STANDARD.decode(picture["data"].as_str().unwrap_or_default())?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, png).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Sends a command of the DevTools protocol.
    pub async fn devtools(&self, method: &str, parameters: Value) -> Result<Value> {
        self.session.cdp().send_raw(method, parameters).await.with_context(|| format!("{method} failed"))
    }

    /// Kills the browser as a crash of the machine would: it is not asked, and writes nothing more. Only a browser with
    /// a profile of its own can be killed.
    pub async fn kill(self) -> Result<()> {
        let profile = self.profile.as_deref().context("only a browser with a profile can be killed")?;
        // A link to the name of the machine, and the id of the process that uses the profile.
        let lock = std::fs::read_link(profile.join("SingletonLock")).context("the profile is not in use")?;
        let lock = lock.to_string_lossy().into_owned();
        let process =
            lock.rsplit_once('-').map(|(_, id)| id).context("the profile's lock names no process")?;
        let killed = Command::new("kill").args(["-KILL", process]).status().await?;
        ensure!(killed.success(), "the browser cannot be killed");
        // A process that has ended and was not waited for has no command line.
        let line = format!("/proc/{process}/cmdline");
        while std::fs::read(&line).is_ok_and(|line| !line.is_empty()) {
            tokio::time::sleep(POLL).await;
        }
        // The driver notices, and has nothing to end.
        let _ = self.session.clone().quit().await;
        Ok(())
    }

    /// Ends the browser and waits for that. Dropping it does the same but blocks the thread.
    pub async fn quit(self) -> Result<()> {
        Ok(self.session.clone().quit().await?)
    }
}

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(50);

fn runs_as_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The address in an entry of the performance log, when the entry is about a request or a socket.
fn requested_url(entry: &str) -> Option<String> {
    let entry: Value = serde_json::from_str(entry).ok()?;
    let message = &entry["message"];
    let url = match message["method"].as_str()? {
        "Network.requestWillBeSent" => &message["params"]["request"]["url"],
        "Network.webSocketCreated" => &message["params"]["url"],
        _ => return None,
    };
    url.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_sockets_are_read_from_the_log() {
        let entry = |method: &str, params: Value| {
            requested_url(&json!({ "message": { "method": method, "params": params } }).to_string())
        };
        let request = json!({ "request": { "url": "http://a/" } });
        assert_eq!(entry("Network.requestWillBeSent", request).as_deref(), Some("http://a/"));
        assert_eq!(
            entry("Network.webSocketCreated", json!({ "url": "ws://a/" })).as_deref(),
            Some("ws://a/")
        );
        assert_eq!(entry("Page.loadEventFired", json!({})), None);
        assert_eq!(requested_url("no JSON"), None);
    }
}
