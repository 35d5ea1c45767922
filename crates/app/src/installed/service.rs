//! What the page does with extensions: reading, installing, granting, calling.

use std::sync::Arc;

use futures::future::abortable;
use leptos::prelude::*;
use leptos::task::spawn_local;
use toolshelf_browser::companion::installed::Candidate;
use toolshelf_browser::companion::{Installed, Problem};
use toolshelf_browser::core::digest::Digest;
use toolshelf_browser::core::extension::errors::WASM_MODULE_DOWNLOAD_LIMIT_BYTES;
use toolshelf_browser::core::extension::read::INTEGRATION_MAX_BYTES;
use toolshelf_browser::core::grant::Grant;
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::{PickedFile, pick};

use super::desk::{Desk, End, Module, Run, Seen, key};
use super::place::{self, Named};
use super::words;
use crate::actions;
use crate::route::Place;
use crate::state::{Call, State, Undo, tool_key};
use crate::text::thousands;
use crate::ui::dom;

/// So long a call of this page may take, in milliseconds, with all that waits before it.
const LONGEST_CALL_MS: f64 = 120_000.0;
/// So long after a call was answered the live session may still tell of it, in milliseconds.
const TOLD_WITHIN_MS: f64 = 2_000.0;

/// Does something with the companion's extensions, once there is one.
pub(super) fn with(state: State, act: impl AsyncFnOnce(Installed) + 'static) {
    if let Some(host) = state.machine.host.get_value() {
        spawn_local(async move { act(Installed::new(host.client())).await });
    }
}

/// Reads what is installed. What was known stays where nobody answers.
pub(super) fn reload(state: State, desk: Desk) {
    with(state, async move |installed| {
        let listed = installed.list().await;
        let is_away = listed.as_ref().is_err_and(|no| no.refusal.code == Code::MachineUnreachable);
        if !is_away || desk.listed.with_untracked(Option::is_none) {
            desk.listed.set(Some(listed));
        }
    });
}

/// Reads who may call an extension.
pub(super) fn read_grants(state: State, desk: Desk, id: String) {
    with(state, async move |installed| {
        let grants = installed.grants(&id).await;
        desk.grants.update(|all| drop(all.insert(id, grants)));
    });
}

/// Reads what an extension has put on record.
pub(super) fn read_receipts(state: State, desk: Desk, id: String) {
    with(state, async move |installed| {
        let receipts = installed.receipts(&id).await;
        desk.receipts.update(|all| drop(all.insert(id, receipts)));
    });
}

/// Has the log of receipts checked.
pub(super) fn verify(state: State, desk: Desk) {
    if desk.verifying.get_untracked() {
        return;
    }
    desk.verifying.set(true);
    with(state, async move |installed| {
        let verdict = installed.verify_receipts().await;
        desk.verifying.set(false);
        state.announce(match verdict.as_ref().map(|verdict| &verdict.whole) {
            Ok(Ok(_)) => "The receipts are as they were written",
            Ok(Err(_)) => "The log of receipts is damaged",
            Err(_) => "The receipts could not be checked",
        });
        desk.verdict.set(Some(verdict));
    });
}

/// Looks at the manifest among picked files, and takes the module that came with it.
pub(super) fn look_at_files(state: State, desk: Desk, files: Vec<PickedFile>) {
    if files.is_empty() {
        return;
    }
    spawn_local(async move {
        let seen = match read_files(files).await {
            Ok((name, manifest, module)) => match state.machine.host.get_value() {
                Some(host) => {
                    let candidate = Candidate::Manifest(manifest);
                    let about = Installed::new(host.client()).inspect(&candidate).await;
                    Seen { from: name, about, module, end: None }
                }
                None => return,
            },
            Err(refusal) => Seen {
                from: "what was picked".to_owned(),
                about: Err(refusal.into()),
                module: None,
                end: None,
            },
        };
        desk.seen.set(Some(seen));
    });
}

async fn read_files(files: Vec<PickedFile>) -> Result<(String, serde_json::Value, Option<Module>), Refusal> {
    let named = |end: &str| files.iter().find(|file| file.path.to_lowercase().ends_with(end));
    let manifest = named(".json").ok_or_else(|| {
        Refusal::new(
            Code::ExtensionInvalid,
            "there is no manifest among the files: its name ends with `.json`",
        )
    })?;
    let size = manifest.file.size();
    if size > INTEGRATION_MAX_BYTES as f64 {
        return Err(too_large("the manifest", size, INTEGRATION_MAX_BYTES as u64));
    }
    let bytes = pick::read(&manifest.file).await?;
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    let value = serde_json::from_slice(bytes).map_err(|err| {
        let name = words::name(&manifest.path).replace('`', "'");
        Refusal::new(Code::ExtensionInvalid, ["`", &name, "` is no JSON: ", &err.to_string()].concat())
    })?;
    let module = match named(".wasm") {
        Some(file) => Some(read_module(file).await?),
        None => None,
    };
    Ok((manifest.path.clone(), value, module))
}

async fn read_module(file: &PickedFile) -> Result<Module, Refusal> {
    let size = file.file.size();
    if size > WASM_MODULE_DOWNLOAD_LIMIT_BYTES as f64 {
        return Err(too_large("the module", size, WASM_MODULE_DOWNLOAD_LIMIT_BYTES));
    }
    let bytes = pick::read(&file.file).await?;
    let digits = Digest::of(&bytes).to_string();
    Ok(Module { name: file.path.clone(), bytes: bytes.into(), digits })
}

fn too_large(what: &str, size: f64, most: u64) -> Refusal {
    let why = [what, " has ", &thousands(size as u64), " bytes; at most ", &thousands(most), " are taken"];
    Refusal::new(Code::OverBudget, why.concat())
}

/// Takes the module for the manifest that is looked at.
pub(super) fn take_module(state: State, desk: Desk, files: Vec<PickedFile>) {
    let Some(file) = files.into_iter().next() else { return };
    spawn_local(async move {
        match read_module(&file).await {
            Ok(module) => desk.seen.update(|seen| {
                if let Some(seen) = seen {
                    (seen.module, seen.end) = (Some(module), None);
                }
            }),
            Err(refusal) => desk.seen.update(|seen| {
                if let Some(seen) = seen {
                    seen.end = Some(refusal.into());
                }
            }),
        }
        state.announce("The module was read");
        // What was pressed was drawn anew.
        dom::focus_soon("#install-h".to_owned());
    });
}

/// Has the companion fetch the manifest at an address.
pub(super) fn look_at_link(state: State, desk: Desk, link: String) {
    if link.is_empty() || desk.looking.with_untracked(Option::is_some) {
        return;
    }
    with(state, async move |installed| {
        let candidate = Candidate::Link(link.clone());
        let (looking, stop) = abortable(installed.inspect(&candidate));
        desk.looking.set(Some(stop));
        let about = looking.await;
        desk.looking.set(None);
        if let Ok(about) = about {
            desk.seen.set(Some(Seen { from: link, about, module: None, end: None }));
        }
    });
}

/// Installs the manifest that is looked at, as it was looked at.
pub(super) fn install(state: State, desk: Desk) {
    let Some(seen) = desk.seen.get_untracked().filter(|_| !desk.installing.get_untracked()) else { return };
    let Some(manifest) = seen.about.ok().and_then(|about| about.manifest) else { return };
    desk.installing.set(true);
    with(state, async move |installed| {
        // One that has an address is fetched by the companion.
        let module = seen.module.filter(|_| manifest.module_path.is_some());
        let end = installed.install(&manifest.whole, module.as_ref().map(|module| &*module.bytes)).await;
        desk.installing.set(false);
        match end {
            Ok(extension) => {
                desk.seen.set(None);
                let id = extension.manifest.id.clone();
                state.announce(["Installed ", &words::name(&extension.manifest.name)].concat());
                desk.listed.update(|listed| {
                    if let Some(Ok(listed)) = listed {
                        listed.extensions.retain(|one| one.manifest.id != id);
                        listed.extensions.push(extension);
                        listed.extensions.sort_by(|a, b| a.manifest.id.cmp(&b.manifest.id));
                    }
                });
                go(&Named::Extension(id));
                reload(state, desk);
            }
            Err(problem) => {
                state.announce(["Not installed: ", &words::shown(&problem.refusal.why, 300)].concat());
                desk.seen.update(|seen| {
                    if let Some(seen) = seen {
                        seen.end = Some(problem);
                    }
                });
                dom::focus_soon("#install-h".to_owned());
            }
        }
    });
}

/// Goes to an address.
pub(super) fn go(named: &Named) {
    let _ = window().location().set_hash(&place::address(named));
}

/// Takes an extension away.
pub(super) fn uninstall(state: State, desk: Desk, id: String, name: String) {
    with(state, async move |installed| match installed.uninstall(&id).await {
        Ok(()) => {
            desk.listed.update(|listed| {
                if let Some(Ok(listed)) = listed {
                    listed.extensions.retain(|one| one.manifest.id != id);
                }
            });
            desk.grants.update(|all| drop(all.remove(&id)));
            actions::toast(state, "Uninstalled", name, None);
            go(&Named::Nothing);
            reload(state, desk);
        }
        Err(problem) => failed(state, problem),
    });
}

/// Takes an extension out of use, or back into it.
pub(super) fn quarantine(state: State, desk: Desk, id: String, name: String, is_out: bool, reason: String) {
    with(state, async move |installed| match installed.quarantine(&id, is_out, &reason).await {
        Ok(()) => {
            actions::toast(state, if is_out { "Out of use:" } else { "In use again:" }, name, None);
            reload(state, desk);
        }
        Err(problem) => failed(state, problem),
    });
}

/// Takes a grant back; it can be given again from the message.
pub(super) fn revoke(state: State, desk: Desk, grant: Grant) {
    with(state, async move |installed| {
        let (id, passport) = (grant.extension_id.clone(), grant.passport_fpr.clone());
        match installed.revoke(&id, &passport).await {
            Ok(()) => {
                let again = grant.clone();
                let undo = Call(std::rc::Rc::new(move || give_again(state, desk, again.clone())));
                let name = ["the grant of ", &words::name(&passport)].concat();
                actions::toast(state, "Revoked", name, Some(Undo::Call(undo)));
            }
            Err(problem) => failed(state, problem),
        }
        read_grants(state, desk, id);
    });
}

fn give_again(state: State, desk: Desk, grant: Grant) {
    with(state, async move |installed| {
        match installed.grant(&grant).await {
            Ok(_) => state.announce("The grant was given again"),
            Err(problem) => failed(state, problem),
        }
        read_grants(state, desk, grant.extension_id);
    });
}

/// Says that something was not done.
pub(super) fn failed(state: State, problem: Problem) {
    let why = words::shown(&problem.refusal.why, 300);
    actions::failed(state, &Refusal::new(problem.refusal.code, why));
}

/// Calls a tool.
pub(super) fn invoke(
    state: State,
    desk: Desk,
    run: Run,
    (id, tool, passport): (String, String, String),
    args: serde_json::Value,
) {
    let called = key(&id, &tool);
    let key = tool_key(Place::Machine, &called);
    if state.is_running(&key) {
        return;
    }
    with(state, async move |installed| {
        let until = js_sys::Date::now() + LONGEST_CALL_MS;
        let own_calls = state.machine.own_calls;
        own_calls.update_value(|calls| calls.push((called.clone(), until)));
        let (call, stop) = abortable(installed.invoke(&id, &tool, &passport, &args));
        let since = actions::begin(state, &key, stop);
        let end = match call.await {
            Ok(Ok(outcome)) => End::Answered(outcome),
            Ok(Err(problem)) => End::Failed(problem),
            Err(_) => End::Stopped(js_sys::Date::now() - since),
        };
        actions::ended(state, &key);
        // The live session tells of the call about when its answer comes, a little earlier or later.
        let soon = js_sys::Date::now() + TOLD_WITHIN_MS;
        own_calls.update_value(|calls| {
            if let Some(own) = calls.iter_mut().find(|(name, wait)| *name == called && *wait == until) {
                own.1 = soon;
            }
        });
        state.announce(match &end {
            End::Answered(_) => [&tool, " has answered"].concat(),
            End::Failed(problem) => {
                [&tool, " has failed: ", &words::shown(&problem.refusal.why, 300)].concat()
            }
            End::Stopped(_) => [&tool, " was stopped"].concat(),
        });
        run.end.set(Some(Arc::new(end)));
        read_receipts(state, desk, id);
    });
}
