//! An extension that calls every function of the host, and tells what each answered.
//!
//! It is made to be read: there is no more to the host's side than this.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolshelf_guest::extension::{
    Failure, Request, ReturnCode, facts, log, now_unix_ms, passport, receipt, secret,
};

toolshelf_guest::extension!(every_import);

#[derive(Deserialize)]
struct Args {
    entity: String,
    key: String,
    value: String,
    /// In thousandths.
    #[serde(default = "certain")]
    confidence: i32,
    prefix: String,
    #[serde(default)]
    text: String,
    #[serde(default = "ten")]
    top_k: usize,
    secret: String,
}

fn certain() -> i32 {
    facts::CERTAIN
}

fn ten() -> usize {
    10
}

#[derive(Serialize)]
struct Answer {
    now_unix_ms: u64,
    current_passport_json: Value,
    read_fact: Value,
    store_fact: Value,
    query_facts: Value,
    get_secret_decrypted: Value,
    emit_receipt: Value,
}

fn every_import(request: Request<Args>) -> Result<Answer, Failure> {
    let Args { entity, key, value, confidence, prefix, text, top_k, secret: id } = request.args;
    log::info(format_args!("{} for {}", request.tool, request.calling_passport_id));
    let answer = Answer {
        now_unix_ms: now_unix_ms(),
        current_passport_json: answered(passport(), Value::from),
        read_fact: answered(facts::read(&entity, &key), |fact| told(fact.as_ref())),
        store_fact: answered(facts::store_with_confidence(&entity, &key, &value, confidence), |fact| {
            told(fact.as_ref())
        }),
        query_facts: answered(facts::query(&prefix, &text, top_k), |facts| {
            facts.iter().map(|fact| told(Some(fact))).collect()
        }),
        // Not the secret itself: what a call answers is not secret.
        get_secret_decrypted: answered(secret(&id), |secret| json!({ "bytes": secret.map(|text| text.len()) })),
        emit_receipt: answered(receipt("every-import", &json!({ "entity": entity })), Value::from),
    };
    log::line("done", request.request_id);
    Ok(answer)
}

/// `{"ok": …}`, or the host's code with its name.
fn answered<T>(answer: Result<T, ReturnCode>, told: impl FnOnce(T) -> Value) -> Value {
    match answer {
        Ok(value) => json!({ "ok": told(value) }),
        Err(code) => json!({ "code": code.as_i32(), "name": code.name() }),
    }
}

fn told(fact: Option<&facts::Fact>) -> Value {
    fact.map_or(Value::Null, |fact| {
        json!({ "entity": fact.entity, "key": fact.key, "value": fact.value, "confidence": fact.confidence })
    })
}
