//! Requests to the companion that serves the page, each with the token, a bound in time and one in bytes.

use std::pin::pin;
use std::rc::Rc;

use futures::FutureExt as _;
use futures::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use js_sys::Uint8Array;
use serde_json::Value;
use toolshelf_core::refusal::{Code, Refusal, cut};
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::AbortController;

use super::wire::{self, Read};
use crate::js;

/// How long a request may take, in milliseconds.
pub(super) const PATIENCE_MS: u32 = 10_000;
/// How long a tool call may take, in milliseconds: with a full queue in front of it, eight calls of five seconds and one.
pub(super) const CALL_PATIENCE_MS: u32 = 60_000;
/// Longest answer that is read, in bytes: a page of a hundred tasks whose answers are as long as they may be.
const ANSWER_MAX_BYTES: usize = 32 * 1024 * 1024;

/// Speaks to the companion at one origin. Clones share the token.
#[derive(Clone)]
pub struct Client {
    origin: Rc<str>,
    bearer: Rc<str>,
}

impl Client {
    /// A client for the companion at `origin`, such as `http://127.0.0.1:14800`.
    #[must_use]
    pub fn new(origin: &str, bearer: &str) -> Self {
        Self { origin: origin.into(), bearer: bearer.into() }
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn bearer(&self) -> &str {
        &self.bearer
    }

    /// Reads what is at `path`.
    ///
    /// # Errors
    /// What the companion refuses; [`Code::MachineUnreachable`] without an answer, and [`Code::InvalidFrame`] for one of
    /// another form.
    pub async fn get(&self, path: &str) -> Result<Value, Refusal> {
        let answered = self.exchange("GET", path, None, PATIENCE_MS).boxed_local().await?;
        read_answer(answered.0, &answered.1)
    }

    /// Sends `body` to `path`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        self.post_within(path, body, PATIENCE_MS).await
    }

    /// Gets a token for a one-time code.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn pair(&self, code: &str) -> Result<String, Refusal> {
        let body = serde_json::json!({ "code": code, "name": "a page" });
        known(wire::text(&self.post("/v1/pair", &body).await?, "bearer"))
    }

    /// The futures are boxed, so that they are in the page once.
    pub(super) async fn post_within(
        &self,
        path: &str,
        body: &Value,
        patience_ms: u32,
    ) -> Result<Value, Refusal> {
        let answered = self.exchange("POST", path, Some(body.to_string()), patience_ms).boxed_local().await?;
        read_answer(answered.0, &answered.1)
    }

    /// Sends a request by any method, and gives the status and the bytes of what is answered, whatever they say.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        patience_ms: u32,
    ) -> Result<(u16, Vec<u8>), Refusal> {
        self.exchange(method, path, body, patience_ms).boxed_local().await
    }

    /// Dropping the future gives the request up.
    async fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        patience_ms: u32,
    ) -> Result<(u16, Vec<u8>), Refusal> {
        let abort = Abort::new()?;
        let headers = js::object(&[
            ("authorization", ["Bearer ", &self.bearer].concat().into()),
            ("content-type", "application/json".into()),
        ]);
        let options = js::object(&[
            ("method", method.into()),
            ("headers", headers.into()),
            ("body", body.map_or(JsValue::UNDEFINED, JsValue::from)),
            ("cache", "no-store".into()),
            ("credentials", "omit".into()),
            ("redirect", "error".into()),
            ("signal", abort.0.signal().into()),
        ]);
        let url = [&*self.origin, path].concat();
        let exchange = async {
            let response = js::call_async(&js_sys::global(), "fetch", &[url.into(), options.into()]).await;
            let response = response.map_err(|thrown| unreachable(&js::message(&thrown)))?;
            let status = js::get(&response, "status").as_f64().unwrap_or_default() as u16;
            Ok((status, read_body(&js::get(&response, "body")).await?))
        };
        match select(pin!(exchange), TimeoutFuture::new(patience_ms)).await {
            Either::Left((answered, _)) => answered,
            Either::Right(_) => {
                Err(unreachable(&["there was no answer within ", &patience_ms.to_string(), " ms"].concat()))
            }
        }
    }
}

impl std::fmt::Debug for Client {
    // The token stays out of it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Gives a request up when it is dropped; one that has ended does not mind.
struct Abort(AbortController);

impl Abort {
    fn new() -> Result<Self, Refusal> {
        AbortController::new().map(Self).map_err(|thrown| unreachable(&js::message(&thrown)))
    }
}

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn read_body(body: &JsValue) -> Result<Vec<u8>, Refusal> {
    let lost = |thrown: JsValue| unreachable(&js::message(&thrown));
    let mut bytes = Vec::new();
    if !body.is_object() {
        return Ok(bytes);
    }
    let reader = js::call(body, "getReader", &[]).map_err(lost)?;
    loop {
        let piece = js::call_async(&reader, "read", &[]).await.map_err(lost)?;
        if js::get(&piece, "done").is_truthy() {
            return Ok(bytes);
        }
        if let Some(piece) = js::get(&piece, "value").dyn_ref::<Uint8Array>() {
            if bytes.len() + piece.length() as usize > ANSWER_MAX_BYTES {
                return Err(invalid(
                    &["it is longer than ", &ANSWER_MAX_BYTES.to_string(), " bytes"].concat(),
                ));
            }
            bytes.extend(piece.to_vec());
        }
    }
}

/// What an answer says: what was asked for, a refusal, or something that no companion says.
fn read_answer(status: u16, bytes: &[u8]) -> Result<Value, Refusal> {
    let value: Result<Value, _> = serde_json::from_slice(bytes);
    if (200..300).contains(&status) {
        return value.map_err(|err| invalid(&err.to_string()));
    }
    Err(value.ok().as_ref().and_then(wire::refusal).unwrap_or_else(|| {
        let status = status.to_string();
        unreachable(&["what serves this page is none: it answers with status ", &status].concat())
    }))
}

/// What was read of an answer, or the refusal that names the field.
pub(super) fn known<T>(read: Read<T>) -> Result<T, Refusal> {
    read.map_err(|field| invalid(&["`", field, "` is missing, or of another kind"].concat()))
}

/// There is no companion, or it does not answer.
pub(super) fn unreachable(why: &str) -> Refusal {
    let why = ["no companion answers where this page came from: ", &cut(why, 160)].concat();
    Refusal::new(Code::MachineUnreachable, why)
}

/// It answers with something that cannot be used.
pub(super) fn invalid(why: &str) -> Refusal {
    let why = ["the companion's answer cannot be read: ", &cut(why, 160)].concat();
    Refusal::new(Code::InvalidFrame, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, text: &str) -> Result<Value, Code> {
        read_answer(status, text.as_bytes()).map_err(|refusal| refusal.code)
    }

    #[test]
    fn a_field_that_cannot_be_read_is_named() {
        let refusal = known::<()>(Err("label")).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidFrame);
        assert!(refusal.why.contains("`label` is missing"), "{}", refusal.why);
    }

    #[test]
    fn an_answer_is_a_value_or_names_why_there_is_none() {
        assert_eq!(read(200, r#"{"ok":true}"#), Ok(serde_json::json!({"ok": true})));
        let refused = r#"{"ok":false,"refused":"bearer-refused","why":"no token"}"#;
        assert_eq!(read(401, refused), Err(Code::BearerRefused));
        assert_eq!(read(200, "<html>"), Err(Code::InvalidFrame));
        assert_eq!(read(404, "<html>"), Err(Code::MachineUnreachable));
        assert_eq!(read(500, ""), Err(Code::MachineUnreachable));
        assert_eq!(read(400, r#"{"refused":"made-up","why":""}"#), Err(Code::MachineUnreachable));
    }
}
