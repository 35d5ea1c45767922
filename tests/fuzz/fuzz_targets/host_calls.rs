//! Imports called with any numbers over any memory, several in one call of a real module in the real sandbox.
//!
//! The input is a program: records of ten words (the first says what is done, the others are its arguments), which the
//! module reads from its request. Each import answers a code of the contract or a count that its buffer holds, nothing is
//! stored or revealed that the grant does not cover, and no secret is in the log.

#![no_main]

#[path = "../src/module.rs"]
mod module;
#[path = "../src/world.rs"]
mod world;

use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::json;
use toolshelf_core::extension::rc::ReturnCode;
use toolshelf_sandbox::WorkerProgram;
use toolshelf_sandbox::crux::engine::EPOCH_TICK_MS;
use toolshelf_sandbox::crux::{Call, CallFault, CallIdentity, Extension, Extensions, Limits, ModuleBytes};
use toolshelf_sandbox::process::WORKER_COMMAND;

use self::module::{RECORD_WORDS, RECORDS_MAX};
use self::world::{SECRET, World};

/// The sandbox and the module, which is compiled once.
static SANDBOX: LazyLock<(Extensions, Extension)> = LazyLock::new(|| {
    let program = WorkerProgram::this().expect("this program can be started again");
    let extensions = Extensions::start(program, None, Duration::from_millis(EPOCH_TICK_MS));
    let extensions = extensions.expect("the engine starts");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bytes = ModuleBytes::hash(module::bytes());
    let extension = runtime.block_on(extensions.prepare(&bytes)).expect("the module is compiled");
    (extensions, extension)
});

fuzz_target!(init: worker_or_fuzzer(), |bytes: &[u8]| -> Corpus {
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    let records: Vec<&[u32]> = words.chunks_exact(RECORD_WORDS).take(RECORDS_MAX).collect();
    if records.is_empty() {
        return Corpus::Reject;
    }
    run(&records);
    Corpus::Keep
});

/// What compiles modules is this very program, started again.
fn worker_or_fuzzer() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == WORKER_COMMAND) {
        let end = toolshelf_sandbox::worker_main(arguments);
        std::process::exit(i32::from(end != std::process::ExitCode::SUCCESS));
    }
}

fn run(records: &[&[u32]]) {
    let world = World::new();
    let program: String = records.iter().copied().flatten().map(|word| format!("{word:08x}")).collect();
    let [extension, tool, passport, request_id] = ["ext.fuzz", "t", "p_a", "r"].map(str::to_owned);
    let call = Call {
        identity: CallIdentity { extension, tool, passport, request_id },
        args: json!(program),
        grant: Some(world::grant()),
        ports: world.ports(),
        limits: Limits { fuel: 50_000_000, wall_ms: 20_000, ..Limits::DEFAULT },
    };
    let (extensions, extension) = &*SANDBOX;
    let end = extensions.call(extension, call);
    match end {
        // What an import has written into the program or the answer is the program's own affair.
        Ok(outcome) if records.iter().any(|record| module::overwrites(record)) => {
            assert!(!outcome.log.iter().any(|line| line.message.contains(SECRET)), "{:?}", outcome.log);
        }
        Ok(outcome) => {
            let codes = outcome.result.as_str().expect("the module answers a text").as_bytes();
            assert_eq!(codes.len(), records.len() * 8);
            for (record, code) in records.iter().zip(codes.chunks(8)) {
                let code = std::str::from_utf8(code).ok().and_then(|code| u32::from_str_radix(code, 16).ok());
                check(record, code.expect("eight digits").cast_signed());
            }
            for line in &outcome.log {
                assert!(!line.message.contains(SECRET) && !line.level.contains(SECRET), "{line:?}");
            }
        }
        // The fuel or the time may run out, and what was written over the answer may be none.
        Err(failed) => {
            assert!(!failed.log.iter().any(|line| line.message.contains(SECRET)), "{:?}", failed.log);
            assert!(!matches!(failed.fault, CallFault::Busy), "{failed}");
        }
    }
    world.check();
}

/// The answer of one import.
fn check(record: &[u32], code: i32) {
    let Some(cap) = module::capacity(record) else { return };
    let right = if code < 0 { ReturnCode::from_i32(code).is_some() } else { code <= cap };
    assert!(right, "{record:x?} answered {code}");
}
