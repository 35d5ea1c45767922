//! Executors and roots that are JavaScript values, or functions that answer them.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use js_sys::{Function, JSON, JsString};
use serde::Serialize;
use serde_json::Value;
use toolshelf_core::RootDescriptor;
use toolshelf_core::placement::BoundsFault;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_host::TaskExecutor;
use toolshelf_host::task_host::report::Reporter;
use toolshelf_host::task_host::signal::CancelSignal;
use toolshelf_host::task_ports::{Check, Roots, RunFault, SelectedRoot, TaskRun, Terms};
use wasm_bindgen::prelude::*;
use web_sys::AbortController;

use super::platform::run_executor;
use crate::js;

/// Longest text of an executor that goes into a refusal, in characters.
const SAID_MAX_CHARS: usize = 200;
/// So much of a report is looked at, in UTF-16 units; the host keeps less.
const REPORT_MAX_UNITS: u32 = 262_144;
/// Whole numbers beyond this are not what they seem.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// An executor `{check, run}`, or a function that answers one or `null`. It is asked for once for each delegation.
#[derive(Debug, Clone)]
pub struct JsExecutor {
    source: JsValue,
    chosen: OnceCell<JsValue>,
}

impl JsExecutor {
    /// The executor that `source` is or answers.
    #[must_use]
    pub fn new(source: JsValue) -> Self {
        Self { source, chosen: OnceCell::new() }
    }

    fn choose(&self) -> Result<&JsValue, Refusal> {
        let unavailable = |why: String| Refusal::new(Code::ExecutorUnavailable, why);
        let executor = answer_of(&self.source).map_err(|thrown| unavailable(said(&thrown)))?;
        if executor.is_null() || executor.is_undefined() {
            return Err(unavailable("nothing is there that could execute tasks".to_owned()));
        }
        if !(js::get(&executor, "check").is_function() && js::get(&executor, "run").is_function()) {
            return Err(unbounded("the executor has no functions `check` and `run`"));
        }
        Ok(self.chosen.get_or_init(|| executor))
    }
}

impl TaskExecutor for JsExecutor {
    fn check(&self, check: Check<'_>) -> Result<Terms, Refusal> {
        let executor = self.choose()?;
        let asked = js::object(&[
            ("input", plain(check.input)),
            ("root", plain(check.root)),
            ("environment", check.environment.into()),
            ("placement", check.placement.as_str().into()),
        ]);
        match js::call(executor, "check", &[asked.into()]) {
            Ok(answer) => terms(&answer),
            Err(thrown) => Err(refusal_of(&thrown, said(&thrown), Code::TaskAdmissionFailed)),
        }
    }

    async fn run(&self, run: TaskRun) -> Result<String, RunFault> {
        // The host runs what it has checked.
        let Some(executor) = self.chosen.get() else { return Err(RunFault::Failed) };
        let runs = Rc::new(Cell::new(true));
        let task = js::object(&[
            ("input", plain(&run.input)),
            ("bounds", plain(&run.bounds)),
            ("root", plain(&run.root)),
            ("signal", signal(&run.signal, Rc::clone(&runs))),
            ("report", reports(&run.report, Reporter::note)),
            ("partial", reports(&run.report, Reporter::partial)),
        ]);
        let settled = run_executor(executor, &task).await;
        runs.set(false);
        let answer = match settled {
            Ok(answer) => answer,
            Err(thrown) => return Err(fault(&thrown, &run.report)),
        };
        let answer = answer.dyn_ref::<JsString>().ok_or(RunFault::InvalidResult)?;
        // No text has fewer bytes than units, so a far too long one is not even copied.
        if answer.length() > run.bounds.max_output_bytes {
            return Err(RunFault::Refused(Code::TaskOutputOverBudget));
        }
        Ok(answer.into())
    }
}

/// A root, or a function that answers one or `null`.
#[derive(Debug, Clone)]
pub struct JsRoots(pub JsValue);

impl Roots for JsRoots {
    fn selected(&self) -> Option<SelectedRoot> {
        let root = answer_of(&self.0).ok()?;
        let json = String::from(JSON::stringify(&root).ok()?);
        let descriptor = RootDescriptor::read(&super::value(&json)).ok()?;
        Some(SelectedRoot { descriptor, identity: None })
    }
}

/// What the value is, or what it answers when it is called. A function with a method `check` is an executor itself.
fn answer_of(source: &JsValue) -> Result<JsValue, JsValue> {
    match source.dyn_ref::<Function>() {
        Some(ask) if !js::get(source, "check").is_function() => ask.call0(&JsValue::UNDEFINED),
        _ => Ok(source.clone()),
    }
}

/// Reads what `check` answered.
fn terms(answer: &JsValue) -> Result<Terms, Refusal> {
    if js::get(answer, "then").is_function() {
        return Err(unbounded("the executor's `check` answers later, which promises nothing now"));
    }
    if js::get(answer, "ok") != JsValue::TRUE {
        let why = js::get(answer, "why").as_string().filter(|why| !why.is_empty());
        let why = why.map_or_else(
            || "the executor does not take the task".to_owned(),
            |why| cut(&why, SAID_MAX_CHARS),
        );
        return Err(refusal_of(answer, why, Code::UnboundedExecutor));
    }
    let bounds = js::get(answer, "bounds");
    let number = |key: &str| whole_number(&js::get(&bounds, key)).ok_or(BoundsFault::Malformed);
    Ok(Terms {
        deadline_ms: number("deadlineMs")?,
        max_output_bytes: number("maxOutputBytes")?,
        // Without one the host refuses, after it has looked at the bounds.
        mechanism: js::get(answer, "mechanism").as_string().unwrap_or_default(),
    })
}

/// How a run that threw has ended.
fn fault(thrown: &JsValue, report: &Reporter) -> RunFault {
    let refused = js::get(thrown, "refused").as_string();
    let code = refused.as_deref().and_then(Code::parse);
    if code == Some(Code::TaskCancelled) || (code.is_none() && js::error_name(thrown) == "AbortError") {
        return RunFault::Cancelled;
    }
    if let Some(code) = code {
        return RunFault::Refused(code);
    }
    // A record has no place for a reason outside the set; its last note is where a person is told to look.
    let said = said(thrown);
    report.note(&refused.map_or_else(|| said.clone(), |refused| [&refused, ": ", &said].concat()));
    RunFault::Failed
}

/// A refusal with the code that `value` names. A name outside the set goes into the sentence.
fn refusal_of(value: &JsValue, why: String, default: Code) -> Refusal {
    match js::get(value, "refused").as_string() {
        Some(name) => match Code::parse(&name) {
            Some(code) => Refusal::new(code, why),
            None => Refusal::new(default, [&cut(&name, 80), ": ", &*why].concat()),
        },
        None => Refusal::new(default, why),
    }
}

/// A signal of the platform that follows the host's while the executor `runs`: what has settled is not aborted.
fn signal(signal: &CancelSignal, runs: Rc<Cell<bool>>) -> JsValue {
    let Ok(controller) = AbortController::new() else { return JsValue::UNDEFINED };
    let followed = controller.signal().into();
    signal.on_abort(move || {
        if runs.get() {
            controller.abort();
        }
    });
    followed
}

/// A function that passes on texts, and nothing else. It may be called at any time; the host hears what it wants.
fn reports(report: &Reporter, pass: fn(&Reporter, &str)) -> JsValue {
    let report = report.clone();
    let closure = Closure::<dyn Fn(JsValue)>::new(move |said: JsValue| {
        if let Some(said) = said.dyn_ref::<JsString>() {
            pass(&report, &String::from(said.slice(0, REPORT_MAX_UNITS)));
        }
    });
    closure.into_js_value()
}

fn whole_number(value: &JsValue) -> Option<u64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
    (0.0..=MAX_SAFE_INTEGER).contains(&number).then_some(number as u64)
}

fn unbounded(why: &str) -> Refusal {
    Refusal::new(Code::UnboundedExecutor, why)
}

fn said(thrown: &JsValue) -> String {
    cut(&js::message(thrown), SAID_MAX_CHARS)
}

/// The wire form, through JSON so that a missing value is missing.
fn plain(value: &impl Serialize) -> JsValue {
    js::plain(&serde_json::to_value(value).unwrap_or(Value::Null))
}
