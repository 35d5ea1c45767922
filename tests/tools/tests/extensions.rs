//! The example extensions do what they say, whatever their host answers.

use std::sync::LazyLock;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tools_tests::{Extension, Host, NOW_UNIX_MS, RESPONSE_MAX_BYTES, Reply, extension_file};
use toolshelf_guest::extension::{RESERVED_CODES, ReturnCode};

const EXTENSIONS: [(&str, &str); 4] = [
    ("ext-echo", "echo"),
    ("ext-limits", "ext-limits"),
    ("note-summary", "note-summary"),
    ("every-import", "every-import"),
];

fn summary() -> &'static Extension {
    static SUMMARY: LazyLock<Extension> =
        LazyLock::new(|| Extension::example("note-summary/note-summary.wasm"));
    &SUMMARY
}

fn every_import() -> &'static Extension {
    static EVERY: LazyLock<Extension> =
        LazyLock::new(|| Extension::example("every-import/every-import.wasm"));
    &EVERY
}

fn all_args() -> Value {
    json!({ "entity": "notes::1", "key": "text", "value": "new", "prefix": "notes::", "secret": "known" })
}

#[test]
fn every_manifest_pins_its_module() {
    for (folder, module) in EXTENSIONS {
        let manifest: Value =
            serde_json::from_slice(&extension_file(&format!("{folder}/manifest.json"))).unwrap();
        let file = manifest["wasm_module_path"].as_str().unwrap();
        assert_eq!(file, format!("{module}.wasm"));
        let digest = Sha256::digest(extension_file(&format!("{folder}/{file}")));
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(manifest["wasm_module_sha256"], digest, "{folder}: run `cargo xtask build-wasm`");
        assert_eq!(manifest["schema"], "crux.integration.v1");
        assert!(!manifest["tools"].as_array().unwrap().is_empty());
    }
}

#[test]
fn the_extension_written_as_text_is_its_text_and_needs_no_sdk() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/guests/ext-echo/echo.wat");
    assert!(wat::parse_file(path).unwrap() == extension_file("ext-echo/echo.wasm"));

    let echo = Extension::example("ext-echo/echo.wasm");
    assert_eq!(echo.imports(), ["crux.log"]);
    let called = echo.call(Host::default(), &json!({ "any": ["thing", 1] }));
    assert_eq!(called.result()["args"], json!({ "any": ["thing", 1] }));
    assert_eq!(called.result()["calling_passport_id"], "p_alice");
    assert_eq!(called.log(), "info: echoed");
}

#[test]
fn the_echo_keeps_to_its_buffer_and_to_its_layout() {
    let echo = Extension::example("ext-echo/echo.wasm");
    let request = vec![b' '; 100];
    let fits = echo.call_raw(Host::default(), &request, 111);
    assert_eq!((fits.returned, fits.response.len()), (Ok(111), 111));
    let called = echo.call_raw(Host::default(), &request, 110);
    assert_eq!((called.returned, called.log()), (Ok(-1), String::new()));
    // The longest request that a host sends, and one behind which the texts would lie.
    let called = echo.call_raw(Host::default(), &vec![b' '; 262_144], RESPONSE_MAX_BYTES);
    assert_eq!(called.returned, Ok(-1));
    let called = echo.call_raw(Host::default(), &vec![b' '; 400_000], RESPONSE_MAX_BYTES);
    assert_eq!(called.returned, Err(wasmtime::Trap::UnreachableCodeReached));
}

#[test]
fn a_module_imports_only_what_it_uses() {
    assert_eq!(summary().imports(), ["crux.log", "crux.read_fact", "crux.store_fact"]);
    let every = [
        "current_passport_json",
        "emit_receipt",
        "get_secret_decrypted",
        "log",
        "now_unix_ms",
        "query_facts",
        "read_fact",
        "store_fact",
    ];
    assert_eq!(every_import().imports(), every.map(|name| format!("crux.{name}")));
}

const NOTE: &str = "The harbour opens at six. Boats that want fuel wait outside. In the harbour fuel is sold by the \
    harbour office! Who is late waits: the office closes at noon.\n\nA cat lives there.";

#[test]
fn a_note_is_summarised_from_a_fact_into_a_fact() {
    let host = || Host::with_fact("notes::1", "text", NOTE);
    let called = summary().call(host(), &json!({ "entity": "notes::1" }));
    let expected = "The harbour opens at six. In the harbour fuel is sold by the harbour office!";
    assert_eq!(called.result(), json!({ "summary": expected, "sentences": 2, "of": 5 }));
    assert_eq!(called.log(), "info: notes::1: 2 of 5 sentences");
    let stored = &called.host.facts[&("notes::1".to_owned(), "summary".to_owned())];
    assert_eq!(stored, expected);

    let again = summary().call(host(), &json!({ "entity": "notes::1" }));
    assert_eq!((again.response, again.fuel), (called.response, called.fuel));
    let all = summary().call(host(), &json!({ "entity": "notes::1", "sentences": 10 }));
    assert_eq!(all.result()["summary"], NOTE.replace("\n\n", " "));
}

#[test]
fn hard_notes_are_summarised_too() {
    for (note, sentences, first) in [
        ("", 0, ""),
        (" \n\n\t ", 0, ""),
        ("...", 1, "..."),
        ("no end", 1, "no end"),
        ("One. Two", 2, "One. Two"),
        ("3.14 is no end. ÄÖÜ! Ünïcödé", 2, "ÄÖÜ! Ünïcödé"),
        ("\u{1F600}? \u{0}. x", 2, "\u{1F600}? \u{0}."),
    ] {
        let called = summary().call(Host::with_fact("e", "text", note), &json!({ "entity": "e" }));
        let result = called.result();
        assert_eq!(
            (&result["sentences"], &result["summary"]),
            (&json!(sentences), &json!(first)),
            "{note:?}"
        );
    }
}

#[test]
fn a_page_of_text_is_summarised_on_the_usual_fuel() {
    let page = NOTE.repeat(20);
    let called = summary().call(Host::with_fact("e", "text", &page), &json!({ "entity": "e" }));
    assert_eq!(called.result()["sentences"], 2, "{:?}", called.returned);
    assert!(page.len() > 3_000);
}

#[test]
fn what_a_call_lacks_is_told_in_its_result_and_in_the_log() {
    for (args, why) in [
        (json!({ "entity": "e" }), "e has no fact `text`"),
        (json!({ "entity": "e", "sentences": 0 }), "`sentences` is 1 to 10"),
        (json!({}), "the arguments are refused: missing field `entity`"),
        (json!({ "entity": 1 }), "the arguments are refused: invalid type: integer `1`, expected a string"),
        (json!(null), "the arguments are refused: invalid type: null, expected struct Args"),
    ] {
        let called = summary().call(Host::default(), &args);
        assert_eq!(called.result(), json!({ "error": why }));
        assert_eq!(called.log(), format!("error: {why}"));
        assert!(called.host.facts.is_empty());
    }
    for request in [&b""[..], b"{}", b"[", b"\xff", b"{\"tool\":1}"] {
        let called = summary().call_raw(Host::default(), request, RESPONSE_MAX_BYTES);
        let error = called.result()["error"].as_str().unwrap().to_owned();
        assert!(error.starts_with("the request cannot be read: "), "{error}");
    }
}

#[test]
fn every_import_answers() {
    let host = Host::with_fact("notes::1", "text", "old");
    let called = every_import().call(host, &all_args());
    let fact =
        |value: &str| json!({ "entity": "notes::1", "key": "text", "value": value, "confidence": 1.0 });
    let payload = json!({ "entity": "notes::1" }).to_string();
    assert_eq!(
        called.result(),
        json!({
            "now_unix_ms": NOW_UNIX_MS,
            "current_passport_json": { "ok": "p_alice" },
            "read_fact": { "ok": fact("old") },
            "store_fact": { "ok": fact("new") },
            "query_facts": { "ok": [fact("new")] },
            "get_secret_decrypted": { "ok": { "bytes": 6 } },
            "emit_receipt": { "ok": json!({ "action": "every-import", "payload": payload }).to_string() },
        })
    );
    assert_eq!(called.log(), "info: t for p_alice\ndone: req-1");
}

#[test]
fn confidence_and_the_bounds_of_a_query_reach_the_host() {
    let mut args = all_args();
    (args["confidence"], args["text"], args["top_k"]) = (json!(250), json!("needle"), json!(u32::MAX));
    let mut host = Host::with_fact("notes::2", "text", "a needle");
    host.facts.insert(("notes::3".to_owned(), "text".to_owned()), "hay".to_owned());
    let result = every_import().call(host, &args).result();
    assert_eq!(result["store_fact"]["ok"]["confidence"], 0.25);
    assert_eq!(result["query_facts"]["ok"].as_array().unwrap().len(), 1);
}

/// The functions that return a code, and how often one is called whose buffer is too small every time.
const ANSWERING: [(&str, usize); 6] = [
    ("current_passport_json", 6),
    ("read_fact", 6),
    ("store_fact", 1),
    ("query_facts", 6),
    ("get_secret_decrypted", 6),
    ("emit_receipt", 1),
];

fn times(host: &Host, function: &str) -> usize {
    host.calls.iter().filter(|(called, _)| *called == function).count()
}

#[test]
fn every_return_code_of_every_import_arrives_as_what_it_is() {
    let extension = every_import();
    let named = ReturnCode::ALL.iter().map(|code| code.as_i32());
    for number in named.chain(RESERVED_CODES).chain([-13, i32::MIN]) {
        for (function, most) in ANSWERING {
            let host = Host::default().replying(function, Reply::Returns(number));
            let called = extension.call(host, &all_args());
            let answer = &called.result()[function];
            let writes = most == 1;
            let too_small = if function == "current_passport_json" { -1 } else { -4 };
            let (expected, calls) = match number {
                // The write has happened.
                _ if number == too_small && writes => (json!({ "ok": null }), 1),
                _ if number == too_small => (json!({ "code": -4, "name": "BUFFER_TOO_SMALL" }), most),
                -1 if function == "read_fact" => (json!({ "ok": null }), 1),
                -1 if function == "get_secret_decrypted" => (json!({ "ok": { "bytes": null } }), 1),
                _ => (json!({ "code": number, "name": ReturnCode::of(number).name() }), 1),
            };
            assert_eq!(answer, &expected, "{function} {number}");
            assert_eq!(times(&called.host, function), calls, "{function} {number}");
        }
    }
}

#[test]
fn replies_that_are_none_are_the_hosts_failure_and_a_write_is_a_write() {
    let extension = every_import();
    for reply in [
        Reply::Returns(i32::MAX),
        Reply::Claims(b"{}".to_vec(), 4_194_305),
        Reply::Claims(b"\xff\xfe".to_vec(), 2),
        Reply::Writes(Vec::new()),
        Reply::Writes(b"{\"fact_id\":".to_vec()),
        Reply::Writes(b"null".to_vec()),
        Reply::Writes(b"[[[[]]]]".to_vec()),
        Reply::Writes(vec![b'['; 1_000]),
    ] {
        for function in ["current_passport_json", "read_fact", "store_fact", "query_facts"] {
            let called = extension.call(Host::default().replying(function, reply.clone()), &all_args());
            let expected = match function {
                "store_fact" => json!({ "ok": null }),
                _ => json!({ "code": -10, "name": "HOST_INTERNAL" }),
            };
            assert_eq!(called.result()[function], expected, "{function} {reply:?}");
            assert_eq!(times(&called.host, function), 1, "{function} {reply:?}");
        }
    }
}

#[test]
fn a_long_fact_is_read_with_a_larger_buffer() {
    let long = "word ".repeat(6_000);
    let extension = Extension::example("note-summary/note-summary.wasm").with_fuel(100_000_000);
    let called = extension.call(Host::with_fact("e", "text", &long), &json!({ "entity": "e" }));
    assert_eq!(called.result()["of"], 1);
    let rooms: Vec<_> = called.host.calls.iter().filter(|(name, _)| *name == "read_fact").collect();
    assert_eq!(rooms, [&("read_fact", 4_096), &("read_fact", 16_384), &("read_fact", 65_536)]);
    // The summary is as long as the note, and what the host gives back fits all the same.
    assert_eq!(times(&called.host, "store_fact"), 1);
}

#[test]
fn the_documentation_has_every_return_code_and_every_import() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/extensions-for-authors.md");
    let page = std::fs::read_to_string(path).unwrap();
    for code in ReturnCode::ALL {
        let row = format!("| {} | `{}` | {} |\n", code.as_i32(), code.name(), code.meaning());
        assert!(page.contains(&row), "{row}");
    }
    for import in every_import().imports() {
        let name = import.strip_prefix("crux.").unwrap();
        assert!(page.contains(&format!("| `{name}(")), "{name}");
    }
    // The example on the page is the one that `toolshelf ext new` writes.
    assert!(page.contains("toolshelf_guest::extension!(count);"));
}
