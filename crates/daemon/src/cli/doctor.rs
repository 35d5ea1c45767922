//! `toolshelf doctor`: what this computer can do for a call, and what is set.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolshelf_core::refusal::Refusal;
use toolshelf_host::{Clock as _, ShelfHost};
use toolshelf_sandbox::{HostClock, Isolation, ProcessExecutor, Shelves, WorkerProgram};

use super::outcome::{Exit, Outcome};
use super::show::{Style, printable};
use crate::extensions::config::Variables;
use crate::extensions::vault::Vault;
use crate::settings;
use crate::shelf::{cache, no_workers};

/// One line of the report.
struct Check {
    name: String,
    about: String,
    /// `None` for what is neither good nor bad.
    holds: Option<bool>,
}

pub(crate) async fn run(folder: Option<PathBuf>, style: Style) -> Result<Outcome, Refusal> {
    let executor = WorkerProgram::this().and_then(|program| ProcessExecutor::cold(program, None));
    let executor = executor.map_err(|err| no_workers(&err))?;
    let trial = ShelfHost::new(Shelves::builtin(), executor, HostClock::new());
    let clock = HostClock::new();
    let called = trial.call("hash", |_| Some(b"abc".to_vec())).await;
    let took = clock.now_ms();
    let isolation = trial.executor().isolation().unwrap_or_default();

    let mut checks = vec![match &called {
        Ok(_) => check("call", format!("a call in a process of its own answers ({took:.1} ms)"), true),
        Err(refusal) => check("call", refusal.to_string(), false),
    }];
    let shut_in = isolation.means();
    checks.extend(shut_in.map(|(name, about, holds)| check(name, about.to_owned(), holds)));
    checks.push(match cache() {
        Ok(cache) => check("cache", format!("compiled code is kept in {}", cache.folder().display()), true),
        Err(err) => check("cache", format!("nothing is kept, every start compiles again: {err}"), false),
    });
    checks.push(shelf_check(folder));
    checks.extend(vault_key_check().await);
    // A call that does not answer is what makes the program useless here; the rest is told.
    let exit = called.as_ref().map_or_else(|refusal| refusal.code.into(), |_| Exit::Done);
    Ok(Outcome { json: wire(&checks, isolation, exit), text: shown(&checks, style), exit })
}

fn check(name: &str, about: String, holds: bool) -> Check {
    Check { name: name.to_owned(), about, holds: Some(holds) }
}

fn shelf_check(named: Option<PathBuf>) -> Check {
    match settings::shelf_dir(named) {
        Some(dir) => {
            let there = dir.path.is_dir();
            let state = if there { "" } else { ", which is not there" };
            check("shelf", format!("{} ({}){state}", dir.path.display(), dir.from), there)
        }
        None => Check {
            name: "shelf".to_owned(),
            about: "no folder is set, the built-in tools are there".to_owned(),
            holds: None,
        },
    }
}

/// Where the key of the secrets is. The keyring may take a moment to answer, or not answer.
async fn vault_key_check() -> Option<Check> {
    let data = settings::data_dir()?;
    let report = move || Vault::of(&data, Variables::of_process().vault_key()).key_report();
    let (about, holds) = tokio::task::spawn_blocking(report).await.ok()?;
    Some(Check { name: "vault key".to_owned(), about, holds })
}

fn wire(checks: &[Check], isolation: Isolation, exit: Exit) -> Value {
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| json!({ "name": check.name, "about": check.about, "holds": check.holds }))
        .collect();
    let settings: Vec<Value> = settings::ALL
        .iter()
        .map(|setting| {
            let (from, value) = setting.shown().unzip();
            json!({ "name": setting.name, "about": setting.about, "from": from, "value": value })
        })
        .collect();
    json!({
        "ok": exit == Exit::Done,
        "version": env!("CARGO_PKG_VERSION"),
        "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        "wholeIsolation": isolation.whole(),
        "checks": checks,
        "settings": settings,
    })
}

fn shown(checks: &[Check], style: Style) -> String {
    let mut text = format!(
        "toolshelf {} on {} {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    for Check { name, about, holds } in checks {
        let mark = match holds {
            Some(true) => style.good("yes"),
            Some(false) => style.bad("no "),
            None => style.dim("-  "),
        };
        let _ = writeln!(text, "{mark} {name:<15} {}", printable(about));
    }
    for setting in settings::ALL {
        if let Some((from, value)) = setting.shown() {
            let _ = writeln!(text, "{} {from}={}", style.dim("set"), printable(&value));
        }
    }
    text
}
