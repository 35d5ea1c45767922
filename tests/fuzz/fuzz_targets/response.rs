//! Any bytes as a response, and any number as its length: nothing is believed that the buffer does not hold, and what an
//! answer proposes to write is accepted only where the grant covers it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolshelf_core::extension::ExtensionError;
use toolshelf_core::extension::envelope::{RESPONSE_MAX_BYTES, ToolResponse};
use toolshelf_core::extension::external::{EXTERNAL_WRITES_MAX, filter_writes};
use toolshelf_core::extension::layout::{CallLayout, guest_range};
use toolshelf_core::grant::Grant;
use toolshelf_core::refusal::Refusal;

fuzz_target!(|bytes: &[u8]| {
    let (head, body) = bytes.split_at(bytes.len().min(16));
    let word = |at: usize| {
        let mut word = [0; 4];
        let there = head.get(at..).unwrap_or_default();
        let count = there.len().min(4);
        word[..count].copy_from_slice(&there[..count]);
        u32::from_le_bytes(word)
    };
    lengths(word(0), word(4), word(8), word(12).cast_signed());
    answer(body);
    answer(bytes);
});

fn lengths(request: u32, memory: u32, ceiling: u32, returned: i32) {
    let size = memory as usize;
    if let Some(range) = guest_range(request.cast_signed(), returned, size) {
        assert!(range.start <= range.end && range.end <= size);
        assert_eq!(range.len(), usize::try_from(returned).expect("no length is negative"));
    }
    let Ok(layout) = CallLayout::of(request as usize, memory.into(), ceiling.into()) else { return };
    assert!(u64::from(layout.response_ptr) + u64::from(layout.response_cap) <= layout.memory_bytes);
    assert!(layout.response_ptr >= layout.request_len && layout.response_cap <= RESPONSE_MAX_BYTES);
    assert!(layout.memory_bytes <= u64::from(ceiling.max(memory)));
    match layout.returned(returned) {
        Ok(length) => assert!(length <= layout.response_cap && i64::from(length) == i64::from(returned)),
        Err(fault) => assert!(ExtensionError::from(fault).kind().status() == 502),
    }
}

fn answer(bytes: &[u8]) {
    let response = match ToolResponse::read(bytes) {
        Ok(response) => response,
        Err(fault) => {
            let refusal = Refusal::from(ExtensionError::from(fault));
            assert!(!refusal.why.is_empty());
            return;
        }
    };
    let proposed = response.fact_writes.len();
    let grant = Grant { allowed_prefixes_write: vec!["notes::".into(), "a".into()], ..Grant::default() };
    let writes = filter_writes(response.fact_writes, &grant);
    assert!(writes.accepted.iter().all(|write| grant.may_write(&write.entity)));
    assert!(writes.accepted.len() <= EXTERNAL_WRITES_MAX);
    assert!(writes.accepted.len() + writes.drop_reasons.len() <= proposed.max(1));
    let none = filter_writes(writes.accepted, &Grant::default());
    assert!(none.accepted.is_empty(), "a grant without prefixes lets nothing be written");
}
