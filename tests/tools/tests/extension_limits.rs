//! Where request, response, stack and data meet, and what a panic leaves behind.

use std::sync::LazyLock;

use serde_json::{Value, json};
use tools_tests::{Extension, Host, RESPONSE_MAX_BYTES, Reply, request};
use wasmtime::Trap;

/// Longest request of the companion, in bytes.
const REQUEST_MAX_BYTES: usize = 262_144;
/// The stack of the toolchain's layout, from address 0.
const STACK_BYTES: usize = 1_048_576;
/// How much of it the guest crate keeps for itself.
const STACK_IN_USE_BYTES: usize = 65_536;

fn limits() -> &'static Extension {
    static LIMITS: LazyLock<Extension> =
        LazyLock::new(|| Extension::example("ext-limits/ext-limits.wasm").with_fuel(100_000_000));
    &LIMITS
}

/// A request of exactly so many bytes, and the text that fills it.
fn filled(bytes: usize, args: impl Fn(&str) -> Value) -> (Vec<u8>, String) {
    let frame = request(&args("")).len();
    // Not all the same, so that a part that is moved or overwritten shows.
    let text: String = (0..bytes - frame).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    let request = request(&args(&text));
    assert_eq!(request.len(), bytes);
    (request, text)
}

fn deep(kib: usize) -> impl Fn(&str) -> Value {
    move |text| json!({ "stack": { "kib": kib, "request": text } })
}

#[test]
fn a_deep_stack_over_the_largest_request_harms_neither_request_nor_response() {
    // The stack goes down to where the request was, and what is answered repeats the request: 64 KiB each.
    let (request, text) = filled(65_536, deep(980));
    let called = limits().call_raw(Host::default(), &request, RESPONSE_MAX_BYTES);
    assert_eq!(called.result(), json!({ "deep": 980, "request": text }));
    assert!(called.response.len() > 65_000);
}

#[test]
fn a_large_frame_is_not_laid_over_the_request() {
    let (request, text) = filled(65_536, |text| json!({ "frame": { "request": text } }));
    let called = limits().call_raw(Host::default(), &request, RESPONSE_MAX_BYTES);
    assert_eq!(called.result(), json!({ "sum": 7_000_000, "request": text }));
}

#[test]
fn the_largest_request_and_the_largest_response_fit_together() {
    // The request ends where the response's room begins, and all of that is filled.
    for padding in [REQUEST_MAX_BYTES, STACK_BYTES - STACK_IN_USE_BYTES - RESPONSE_MAX_BYTES - 8] {
        let args = json!({ "answer": RESPONSE_MAX_BYTES - 13 });
        let mut request = request(&args);
        request.resize(padding, b' ');
        let called = limits().call_raw(Host::default(), &request, RESPONSE_MAX_BYTES);
        assert_eq!(called.response.len(), RESPONSE_MAX_BYTES, "{padding}: {}", called.log());
        assert_eq!(called.result().as_str().map(str::len), Some(RESPONSE_MAX_BYTES - 13));
    }
}

#[test]
fn a_request_that_reaches_the_modules_own_things_is_a_trap_that_says_so() {
    let most = STACK_BYTES - STACK_IN_USE_BYTES - RESPONSE_MAX_BYTES;
    for bytes in [most + 1, STACK_BYTES - RESPONSE_MAX_BYTES - 64, STACK_BYTES - 16] {
        let mut request = request(&json!({ "answer": 1 }));
        request.resize(bytes, b' ');
        let called = limits().call_raw(Host::default(), &request, RESPONSE_MAX_BYTES);
        assert_eq!(called.returned, Err(Trap::UnreachableCodeReached), "{bytes}");
        assert!(
            called.log().contains("lie where the module's own stack, data or heap is"),
            "{}",
            called.log()
        );
    }
}

#[test]
fn a_response_that_does_not_fit_is_announced() {
    let answer =
        |bytes: usize, room| limits().call_raw(Host::default(), &request(&json!({ "answer": bytes })), room);
    // `{"result":""}` and the text.
    let called = answer(100, 113);
    assert_eq!((called.returned, called.log()), (Ok(113), String::new()));
    for (bytes, room) in [(100, 112), (100, 0), (RESPONSE_MAX_BYTES, RESPONSE_MAX_BYTES)] {
        let called = answer(bytes, room);
        assert_eq!(called.returned, Ok(-1), "{bytes} {room}");
        assert_eq!(
            called.log(),
            format!("error: the response is {} bytes, its buffer has {room}", bytes + 13)
        );
    }
}

#[test]
fn a_panic_is_a_trap_and_a_line_that_says_where() {
    let called = limits().call(Host::default(), &json!({ "panic": "the sky fell" }));
    assert_eq!(called.returned, Err(Trap::UnreachableCodeReached));
    let log = called.log();
    assert!(log.starts_with("error: panicked at ") && log.ends_with(":\nthe sky fell"), "{log}");
    assert!(log.contains("src/lib.rs:"), "{log}");
}

#[test]
fn endless_recursion_is_a_trap_and_overwrites_nothing_first() {
    let called = limits().call(Host::default(), &json!("recurse"));
    // Below the stack there is nothing but the end of memory.
    assert_eq!(called.returned, Err(Trap::MemoryOutOfBounds));
}

#[test]
fn a_result_that_is_no_json_is_told() {
    let called = limits().call(Host::default(), &json!("no-json"));
    assert_eq!(called.result(), json!({ "error": "key must be a string" }));
}

#[test]
fn what_the_host_gives_back_of_a_write_fits_whatever_json_makes_of_it() {
    let called = limits().call(Host::default(), &json!({ "store": 20_000 }));
    assert_eq!(called.result(), json!(20_000));
    assert_eq!(called.host.calls.len(), 1);
    let refused = Host::default().replying("store_fact", Reply::Returns(-3));
    let called = limits().call(refused, &json!({ "store": 1 }));
    let error = called.result()["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("SCOPE_VIOLATION (-3)"), "{error}");
    assert!(called.host.facts.is_empty());
}
