//! The cases, run against a host. Every host runs these same lines, so that two of them cannot be asked differently.
//!
//! After every case a good call must succeed at once: nothing that a module does may hurt the next call.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolshelf_core::refusal::Refusal;
use toolshelf_core::shelf::Tool;

use crate::{ModuleCase, calls, manifests, modules};

/// A shelf's files by their paths.
pub type Folder = BTreeMap<String, Vec<u8>>;

/// A host, as the cases see it.
pub trait Host {
    /// Shelves that can be called.
    type Shelf;

    /// Takes `folder` as the only shelf, and gives the verdict for each of its entries.
    fn take(&self, folder: Folder) -> impl Future<Output = Result<(Self::Shelf, Vec<Tool>), Refusal>>;

    /// The shipped tools.
    fn shipped(&self) -> impl Future<Output = Self::Shelf>;

    /// Calls a tool. Gives the answer or the refusal in its wire form.
    fn call(&self, shelf: &Self::Shelf, id: &str, args: &[(&str, &[u8])]) -> impl Future<Output = Value>;

    /// Hears of each answer.
    fn heard(&self, case: &str, answer: &Value) {
        let _ = (case, answer);
    }
}

/// Whether the module runs until it is ended. Such cases take the whole deadline.
#[must_use]
pub fn spins(case: &ModuleCase) -> bool {
    case.expect.refused.as_deref() == Some("time-exceeded")
}

/// Runs the cases of modules for which `part` holds. Gives a line for each answer that differs from the contract.
pub async fn modules_differ<H: Host>(host: &H, part: impl Fn(&ModuleCase) -> bool) -> Vec<String> {
    let good = host.shipped().await;
    let mut wrong = Vec::new();
    for case in modules().iter().filter(|case| part(case)) {
        let answer = answer_of(host, case).await;
        host.heard(&case.name, &answer);
        wrong
            .extend(case.expect.differs(&answer).map(|how| format!("{} ({}): {how}", case.name, case.about)));
        wrong.extend(good_call_differs(host, &good).await.map(|how| format!("after {}: {how}", case.name)));
    }
    wrong
}

/// What the host says of the module: the refusal at admission, or the answer of the call.
async fn answer_of<H: Host>(host: &H, case: &ModuleCase) -> Value {
    let (shelf, tools) = match host.take(case.folder()).await {
        Ok(taken) => taken,
        Err(refusal) => return json!(refusal),
    };
    match &tools[0].verdict {
        Ok(_) => host.call(&shelf, "case", &[("input", b"abc"), ("a", b"x\n"), ("b", b"y\n")]).await,
        Err(refusal) => json!(refusal),
    }
}

/// Runs the cases of folders. Gives a line for each verdict that differs from the contract.
pub async fn manifests_differ<H: Host>(host: &H) -> Vec<String> {
    let good = host.shipped().await;
    let mut wrong = Vec::new();
    for case in manifests() {
        let taken = host.take(case.folder()).await;
        match (&case.expect.refused, taken) {
            (Some(code), Err(refusal)) => {
                let evident = case.expect.why.iter().all(|evidence| refusal.why.contains(evidence.as_str()));
                if refusal.code.as_str() != code || !evident {
                    wrong.push(format!("{}: {refusal}", case.name));
                }
            }
            (None, Ok((_, tools))) => {
                for tool in &tools {
                    let verdict =
                        tool.verdict.as_ref().map_or_else(|refusal| refusal.code.as_str(), |_| "admitted");
                    let wanted = case.expect.tools.get(&tool.id).map(String::as_str);
                    if Some(verdict) != wanted {
                        wrong.push(format!("{}: {} is {verdict}, not {wanted:?}", case.name, tool.id));
                    }
                }
            }
            (wanted, got) => {
                let got = got.map(|(_, tools)| tools);
                wrong.push(format!("{}: expected the refusal {wanted:?}, got {got:?}", case.name));
            }
        }
        wrong.extend(good_call_differs(host, &good).await.map(|how| format!("after {}: {how}", case.name)));
    }
    wrong
}

/// Runs the calls of shipped tools. Gives a line for each answer that differs from the contract.
pub async fn calls_differ<H: Host>(host: &H) -> Vec<String> {
    let shelf = host.shipped().await;
    let mut wrong = Vec::new();
    for case in calls() {
        let args: Vec<_> = case.args.iter().map(|(name, source)| (name.as_str(), source.bytes())).collect();
        let args: Vec<_> = args.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
        let answer = host.call(&shelf, &case.tool, &args).await;
        host.heard(&case.name, &answer);
        wrong.extend(case.expect.differs(&answer).map(|how| format!("{}: {how}", case.name)));
    }
    wrong
}

/// How the known answer of `hash` differs from what it must be.
async fn good_call_differs<H: Host>(host: &H, shelf: &H::Shelf) -> Option<String> {
    let known = calls().into_iter().find(|case| case.name == "hash-abc")?;
    let answer = host.call(shelf, "hash", &[("input", b"abc")]).await;
    known.expect.differs(&answer)
}
