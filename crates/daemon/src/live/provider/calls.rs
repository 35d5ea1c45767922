//! Calls of a model: through the same gate as every other call, a bounded number at a time, each of them once.

use std::collections::HashMap;
use std::time::Instant;

use futures::StreamExt as _;
use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::FuturesUnordered;
use serde_json::{Map, Value, json};
use toolshelf_core::declare::command_declarations;
use toolshelf_core::live::{CallNotice, CallOrigin, ServerFrame};
use toolshelf_core::refusal::{Code, Refusal};

use super::wire::ModelCall;
use crate::http::handle::Handle;
use crate::service::{OWNER, Service, Session};

/// Calls of one answer; a model that goes on calling is told that this is enough.
const CALLS_MAX: usize = 64;
/// Calls at a time.
const AT_A_TIME: usize = 8;
/// So much of a result goes to the model, in bytes of JSON.
const RESULT_MAX_BYTES: usize = 32 * 1024;

/// A call that is over.
pub(super) struct Answered {
    pub(super) call: ModelCall,
    pub(super) result: Value,
    /// What the person is told, where not everybody has been told already.
    pub(super) frame: Option<ServerFrame>,
    /// Whether it was given up.
    pub(super) dropped: bool,
}

/// The calls that run.
pub(super) struct Calls {
    handle: Handle,
    session: u64,
    running: FuturesUnordered<BoxFuture<'static, Answered>>,
    ends: HashMap<String, AbortHandle>,
    /// Calls of the answer that is being given.
    count: usize,
}

impl Calls {
    pub(super) fn new(handle: Handle, session: u64) -> Self {
        Self { handle, session, running: FuturesUnordered::new(), ends: HashMap::new(), count: 0 }
    }

    /// A new answer begins.
    pub(super) fn begin(&mut self) {
        self.count = 0;
    }

    pub(super) fn start(&mut self, call: ModelCall) {
        self.count += 1;
        let enough = self.count > CALLS_MAX || self.running.len() >= AT_A_TIME;
        let (handle, session) = (self.handle.clone(), self.session);
        let asked = call.clone();
        let work = async move {
            match asked.args {
                Err(why) => refused(&asked.name, &Refusal::new(Code::InvalidArgument, why)),
                Ok(_) if enough => {
                    let why = format!("more than {AT_A_TIME} calls at a time, or {CALLS_MAX} in one answer");
                    refused(&asked.name, &Refusal::new(Code::OverBudget, why))
                }
                Ok(args) => called(handle, session, asked.id, asked.name, args).await,
            }
        };
        let (work, end) = abortable(work);
        self.ends.insert(call.id.clone(), end);
        self.running.push(Box::pin(async move {
            match work.await {
                Ok((result, frame)) => Answered { call, result: bounded(result), frame, dropped: false },
                Err(_) => {
                    let result =
                        json!({ "ok": false, "refused": "cancelled", "why": "the person interrupted" });
                    Answered { call, result, frame: None, dropped: true }
                }
            }
        }));
    }

    /// Whether none runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// The next call that is over; never comes when none runs.
    pub(super) async fn next(&mut self) -> Answered {
        match self.running.next().await {
            Some(answered) => {
                self.ends.remove(&answered.call.id);
                answered
            }
            None => std::future::pending().await,
        }
    }

    /// Gives up that call. Its worker ends.
    pub(super) fn drop_one(&mut self, id: &str) {
        if let Some(end) = self.ends.get(id) {
            end.abort();
        }
    }

    /// Gives up all calls, and tells which.
    pub(super) async fn drop_all(&mut self) -> Vec<Answered> {
        self.ends.values().for_each(AbortHandle::abort);
        let mut all = Vec::new();
        while let Some(answered) = self.running.next().await {
            all.push(answered);
        }
        self.ends.clear();
        all
    }
}

/// A call, and what the model and the person are told of it. A tool's call is told to everybody by the companion itself.
async fn called(
    handle: Handle,
    session: u64,
    id: String,
    name: String,
    mut args: Map<String, Value>,
) -> (Value, Option<ServerFrame>) {
    if !command_declarations().iter().any(|command| command["name"] == *name) {
        let tool = name.clone();
        let call = async move |service: Service| {
            service.call_tool_in(&tool, &args, CallOrigin::Live, Some(session)).await
        };
        return match handle.ask(call).await.and_then(|result| result) {
            Ok(answer) => (json!(answer), None),
            Err(refusal) => (json!(refusal), None),
        };
    }
    if name == "delegate_task" {
        // The same call of the same session is the same task, however often the provider repeats it.
        let call_id: String =
            id.chars().filter(|char| char.is_ascii_alphanumeric() || *char == '_').take(80).collect();
        args.insert("callId".to_owned(), json!(format!("live-{session}-{call_id}")));
    }
    let start = Instant::now();
    let caller = Session { owner: OWNER.to_owned(), from: CallOrigin::Live };
    let result = handle.command(name.clone(), args, caller).await;
    let refusal = result.as_ref().err();
    let notice = CallNotice {
        name,
        ok: refusal.is_none(),
        output: result.as_ref().map(Value::to_string).unwrap_or_default(),
        duration_ms: start.elapsed().as_secs_f64() * 1_000.0,
        from: CallOrigin::Live,
        digest: None,
        refused: refusal.map(|refusal| refusal.code.as_str().to_owned()),
        why: refusal.map(|refusal| refusal.why.clone()),
        session: Some(session),
    };
    let frame = ServerFrame::Tool { calls: vec![notice.bounded()] };
    (result.unwrap_or_else(|refusal| json!(refusal)), Some(frame))
}

/// A call that was not made, as the model and the person are told.
fn refused(name: &str, refusal: &Refusal) -> (Value, Option<ServerFrame>) {
    let notice = CallNotice::of(name, &Err(refusal.clone()), Vec::new(), 0.0, CallOrigin::Live);
    (json!(refusal), Some(ServerFrame::Tool { calls: vec![notice] }))
}

/// The result as the model gets it: what is too long is its beginning, as a text.
fn bounded(result: Value) -> Value {
    let mut text = result.to_string();
    if text.len() <= RESULT_MAX_BYTES {
        return result;
    }
    text.truncate(text.floor_char_boundary(RESULT_MAX_BYTES));
    json!({ "ok": result["ok"], "beginning": text, "cut": true })
}
