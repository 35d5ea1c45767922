//! One call: from a request to a response, in bytes.

use std::format;
use std::string::String;
use std::vec::Vec;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Failure, log};

/// What a call brings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Request<A> {
    /// The tool that is called.
    pub tool: String,
    /// Its arguments.
    pub args: A,
    /// On whose behalf.
    pub calling_passport_id: String,
    /// Names the call.
    pub request_id: String,
}

/// Checks that a function is of the type of a tool.
pub fn is_tool<A: DeserializeOwned, R: Serialize>(_tool: fn(Request<A>) -> Result<R, Failure>) {}

/// The response to a request, both as JSON: what the module's export answers, without a module and so for native tests.
///
/// ```
/// use toolshelf_guest::extension::{Failure, Request, answer};
///
/// fn twice(request: Request<i64>) -> Result<i64, Failure> {
///     Ok(request.args.checked_mul(2).ok_or("too large")?)
/// }
///
/// let ask = |args| format!(r#"{{"tool":"t","args":{args},"calling_passport_id":"p","request_id":"r"}}"#);
/// assert_eq!(answer(twice, ask("21").as_bytes()), br#"{"result":42}"#);
/// assert_eq!(answer(twice, ask("9e18").as_bytes()).first(), Some(&b'{'));
/// ```
// Never inlined: the tool's frame must not be part of the caller's. A large one would lie over the request before that
// is copied out.
#[inline(never)]
pub fn answer<A: DeserializeOwned, R: Serialize>(
    tool: fn(Request<A>) -> Result<R, Failure>,
    request: &[u8],
) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<T> {
        result: T,
    }
    #[derive(Serialize)]
    struct Error<'a> {
        error: &'a str,
    }
    let failure = match read(request).and_then(tool) {
        Ok(result) => match serde_json::to_vec(&Response { result }) {
            Ok(response) => return response,
            Err(error) => Failure::from(format_args!("the result cannot be written: {error}")),
        },
        Err(failure) => failure,
    };
    log::error(failure.why());
    serde_json::to_vec(&Response { result: Error { error: failure.why() } }).unwrap_or_default()
}

fn read<A: DeserializeOwned>(request: &[u8]) -> Result<Request<A>, Failure> {
    // The arguments are read apart, so that what is wrong with them is told as such.
    let Request { tool, args, calling_passport_id, request_id } =
        serde_json::from_slice::<Request<serde_json::Value>>(request)
            .map_err(|error| format!("the request cannot be read: {error}"))?;
    let args = A::deserialize(args).map_err(|error| format!("the arguments are refused: {error}"))?;
    Ok(Request { tool, args, calling_passport_id, request_id })
}
