//! Imports that are called with any numbers: each answers a code of the contract, or a count that its buffer holds.

use std::sync::Arc;

use serde_json::json;
use toolshelf_core::extension::rc::ReturnCode;
use toolshelf_sandbox::crux::{Call, Limits, Ports};

use crate::cases::{TEXTS, caller};
use crate::world::{Facts, Log, Manner, Still, Vault, extensions, grant, identity, prepare};

/// Calls of each import.
const CALLS: usize = 600;
/// What lies at [`TEXTS`]: an entity, a key, the id of a secret, and what is no text.
const WORDS: &[u8] = b"notes::sum::atextapi-key\xff\xfe";
const AT: i32 = TEXTS as i32;
const BUFFER: i32 = 240_000;

/// The imports, each with arguments that are right.
const IMPORTS: &[(&str, &[i32])] = &[
    ("read_fact", &[AT, 13, AT + 13, 4, BUFFER, 500]),
    ("store_fact", &[AT, 13, AT + 13, 4, AT, 13, 500, BUFFER, 500]),
    ("query_facts", &[AT, 7, AT + 13, 4, 10, BUFFER, 500]),
    ("get_secret_decrypted", &[AT + 17, 7, BUFFER, 64]),
    ("emit_receipt", &[AT, 13, AT + 13, 4, BUFFER, 500]),
    ("current_passport_json", &[BUFFER, 64]),
];

/// Numbers that mean something, numbers at an edge, and any others. Each run has the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    fn argument(&mut self) -> i32 {
        const MEMORY: i32 = 4 * 65_536;
        let known = [
            0,
            1,
            -1,
            i32::MIN,
            i32::MAX,
            7,
            13,
            4,
            500,
            MEMORY - 1,
            MEMORY,
            MEMORY + 1,
            -MEMORY,
            AT,
            AT + 13,
            AT + 17,
            AT + 24,
            240_000,
        ];
        match self.next() % 4 {
            0 => self.next().cast_signed(),
            1 => (self.next() % 300_000).cast_signed(),
            _ => known[self.next() as usize % known.len()],
        }
    }
}

pub(crate) fn numbers() {
    let extensions = extensions(None);
    let mut numbers = Numbers(0x5eed_0fac_7500_0001);
    for (import, good) in IMPORTS {
        let count = good.len();
        let args: String = (0..count).map(|number| format!("(call $arg (i32.const {number}))")).collect();
        let extension = prepare(&extensions, &caller(import, count, &args, WORDS, false)).unwrap();
        let ports = Ports {
            facts: Some(Facts::new(Manner::Good, &[("notes::sum::a", "text", "Alpha", 1.0)])),
            secrets: Some(Arc::new(Vault { fails: false })),
            receipts: Some(Arc::new(Log { fault: None, count: 0.into() })),
            clock: Arc::new(Still),
        };
        let mut done = 0;
        for _ in 0..CALLS {
            // From none to all of what is right is replaced.
            let replaced = numbers.next() % 5;
            let other =
                |number: &i32| if numbers.next() % 4 < replaced { numbers.argument() } else { *number };
            let given: Vec<i32> = good.iter().map(other).collect();
            let digits: String = given.iter().map(|number| format!("{number:08x}")).collect();
            let call = Call {
                identity: identity("p_alice", "req-1"),
                args: json!(digits),
                grant: Some(grant()),
                ports: ports.clone(),
                limits: Limits { wall_ms: 60_000, ..Limits::DEFAULT },
            };
            let outcome = extensions
                .call(&extension, call)
                .unwrap_or_else(|failed| panic!("{import}{given:?}: {failed}"));
            let rc = i32::try_from(outcome.result["rc"].as_i64().unwrap()).unwrap();
            // The capacity is always the last.
            let right = if rc < 0 { ReturnCode::from_i32(rc).is_some() } else { rc <= given[count - 1] };
            assert!(right, "{import}{given:?} answered {rc}");
            done += usize::from(rc > 0);
        }
        // Some of them did what the import is for, so that more than the checks was tried.
        assert!(done > 0, "{import} never did its work");
    }
}
