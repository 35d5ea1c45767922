//! What the fuzz targets begin with: the conformance cases of extensions, in the form that each target reads.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::sh;

/// Imports in the order of the operations of `tests/fuzz/src/module.rs`; behind them come `log`, and writing a word.
const IMPORTS: [&str; 7] = [
    "read_fact",
    "store_fact",
    "query_facts",
    "get_secret_decrypted",
    "emit_receipt",
    "current_passport_json",
    "log",
];
/// The operation that writes a word, at a place that is counted from the texts.
const WRITE: u32 = 7;
/// Where the texts of a call lie in the module's memory, and the buffer of its reply.
const TEXTS: u32 = 196_608;
const BUFFER: u32 = 240_000;
/// Words of a record.
const RECORD_WORDS: usize = 10;

/// Writes the seeds of a target into `folder`.
pub(super) fn write(target: &str, folder: &Path) -> Result<()> {
    let seeds = match target {
        "manifest" => manifests()?,
        "response" => responses()?,
        "host_calls" => calls()?,
        other => bail!("there are no seeds for {other}"),
    };
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("case-{number:03}")), seed).context("cannot write a seed")?;
    }
    Ok(())
}

fn cases(file: &str) -> Result<Value> {
    let path = sh::root().join("tests/conformance/cases").join(file);
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is no JSON", path.display()))
}

/// Every manifest of the cases, with what the case changes in it.
fn manifests() -> Result<Vec<Vec<u8>>> {
    let cases = cases("extensions.json")?;
    let mut seeds = Vec::new();
    for case in cases["manifests"].as_array().into_iter().flatten() {
        let mut manifest = cases["bases"][case["base"].as_str().unwrap_or("wasm")].clone();
        for (pointer, value) in case["set"].as_object().into_iter().flatten() {
            let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
            if let Some(Value::Object(parent)) = manifest.pointer_mut(parent) {
                parent.insert(field.to_owned(), value.clone());
            }
        }
        seeds.push(serde_json::to_vec(&manifest)?);
    }
    Ok(seeds)
}

/// What the modules of the cases answer, behind the numbers that a layout is made of.
fn responses() -> Result<Vec<Vec<u8>>> {
    let cases = cases("extensions/modules.json")?;
    let answers = cases.as_array().into_iter().flatten().filter_map(|case| case["says"].as_str());
    let mut seeds: Vec<Vec<u8>> = answers
        .map(|answer| {
            let numbers = [100_u32, 65_536, 16_000_000, u32::try_from(answer.len()).unwrap_or_default()];
            let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
            numbers.chain(answer.bytes()).collect()
        })
        .collect();
    let writes = r#"{"result":{"a":[1,2.5,null]},"fact_writes":[{"entity":"notes::a","key":"k","value":"v","confidence":0.5},{"entity":"b","key":"k","value":"v"}]}"#;
    seeds.push(writes.as_bytes().to_vec());
    Ok(seeds)
}

/// Every call of an import of the cases, as a program: its texts are written, then it is called.
fn calls() -> Result<Vec<Vec<u8>>> {
    let cases = cases("extensions/imports.json")?;
    cases.as_array().into_iter().flatten().map(program).filter_map(Result::transpose).collect()
}

fn program(case: &Value) -> Result<Option<Vec<u8>>> {
    let name = case["call"].as_str().context("a case without a call")?;
    let Some(operation) = IMPORTS.iter().position(|import| *import == name) else { return Ok(None) };
    let mut texts = Vec::new();
    let mut call = vec![u32::try_from(operation)?];
    for arg in case["args"].as_array().into_iter().flatten() {
        if let Some(cap) = arg["cap"].as_i64() {
            call.extend([BUFFER, word(cap)]);
        } else if let Some(number) = arg.as_i64() {
            call.push(word(number));
        } else {
            let text = match arg["hex"].as_str() {
                Some(hex) => bytes_of_hex(hex)?,
                None => arg.as_str().unwrap_or_default().as_bytes().to_vec(),
            };
            // What is longer than a program may write is left to the cases.
            let text = &text[..text.len().min(64)];
            call.extend([TEXTS + u32::try_from(texts.len())?, u32::try_from(text.len())?]);
            texts.extend_from_slice(text);
        }
    }
    texts.resize(texts.len().next_multiple_of(4), 0);
    let mut records: Vec<Vec<u32>> = Vec::new();
    for (number, bytes) in texts.chunks_exact(4).enumerate() {
        let value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        records.push(vec![WRITE, u32::try_from(number * 4)?, value]);
    }
    records.push(call);
    for record in &mut records {
        record.resize(RECORD_WORDS, 0);
    }
    Ok(Some(records.into_iter().flatten().flat_map(u32::to_le_bytes).collect()))
}

/// A number of a case as the word that a module has for it.
fn word(number: i64) -> u32 {
    number as u32
}

fn bytes_of_hex(hex: &str) -> Result<Vec<u8>> {
    let digits: String = hex.split_whitespace().collect();
    let bytes = (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16));
    bytes.collect::<Result<_, _>>().context("a case with digits that are none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_begins_with_the_cases() {
        assert!(manifests().unwrap().len() > 50);
        assert!(responses().unwrap().len() > 3);
        let calls = calls().unwrap();
        assert!(calls.len() > 50 && calls.iter().all(|call| call.len() % (4 * RECORD_WORDS) == 0));
    }
}
