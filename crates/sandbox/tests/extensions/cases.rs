//! The cases that are kept as data, and how one is run.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolshelf_core::extension::envelope::{HostLogEntry, WasmDispatchOutcome};
use toolshelf_core::grant::Grant;
use toolshelf_sandbox::crux::ports::{PortFault, Ports};
use toolshelf_sandbox::crux::{Call, Extensions, FailedCall, Limits};

use crate::world::{Facts, Log, Manner, Still, Vault, extensions, grant, identity, prepare};

const MODULES: &str = include_str!("../../../../tests/conformance/cases/extensions/modules.json");
const IMPORTS: &str = include_str!("../../../../tests/conformance/cases/extensions/imports.json");

/// What a call has besides its module.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Setting {
    grant: String,
    facts: String,
    secrets: String,
    receipts: String,
    passport: String,
}

impl Default for Setting {
    fn default() -> Self {
        let [grant, facts, passport] = ["full", "good", "p_alice"].map(str::to_owned);
        Self { grant, facts, secrets: "good".to_owned(), receipts: "good".to_owned(), passport }
    }
}

impl Setting {
    /// The parts of a case that are its setting.
    fn of(case: &Value) -> Self {
        let fields = ["grant", "facts", "secrets", "receipts", "passport"];
        let given = fields.iter().filter_map(|field| Some((*field, case.get(*field)?.clone())));
        serde_json::from_value(Value::Object(given.map(|(field, value)| (field.to_owned(), value)).collect()))
            .unwrap()
    }

    fn grant(&self) -> Option<Grant> {
        match self.grant.as_str() {
            "full" => Some(grant()),
            "none" => None,
            "empty" => Some(Grant { allowed_prefixes_read: Vec::new(), ..grant() }),
            "broad" => Some(Grant { allowed_prefixes_read: vec!["__".into(), String::new()], ..grant() }),
            other => panic!("no grant is called {other}"),
        }
    }

    fn ports(&self) -> (Ports, Arc<Facts>) {
        let manner = match self.facts.as_str() {
            "good" | "none" => Manner::Good,
            "failing" => Manner::Failing,
            "refusing" => Manner::Refusing,
            "forbidding" => Manner::Forbidding,
            "loose" => Manner::Loose,
            "slow" => Manner::Slow,
            "conflicting" => Manner::Conflicting,
            other => panic!("no store is called {other}"),
        };
        let facts = Facts::new(
            manner,
            &[
                ("notes::a", "title", "Alpha", 1.0),
                ("notes::b", "title", "\"Beta\"\n\\", 0.5),
                ("notes::c", "title", "Gamma", 0.25),
                ("plans::x", "k", "hidden", 1.0),
            ],
        );
        let vault = |fails| Some(Arc::new(Vault { fails }) as _);
        let log = |fault| Some(Arc::new(Log { fault, count: 0.into() }) as _);
        let ports = Ports {
            facts: if self.facts == "none" { None } else { Some(facts.clone()) },
            secrets: match self.secrets.as_str() {
                "none" => None,
                manner => vault(manner == "failing"),
            },
            receipts: match self.receipts.as_str() {
                "none" => None,
                "failing" => log(Some(PortFault::Failed("no space".to_owned()))),
                "refusing" => log(Some(PortFault::Refused("no JSON".to_owned()))),
                _ => log(None),
            },
            clock: Arc::new(Still),
        };
        (ports, facts)
    }
}

/// Runs a module. What is wrong with its bytes is told like what is wrong with its call.
fn run(
    extensions: &Extensions,
    module: &[u8],
    setting: &Setting,
    args: Value,
    limits: Limits,
) -> (Result<WasmDispatchOutcome, FailedCall>, Arc<Facts>) {
    let (ports, facts) = setting.ports();
    let identity = identity(&setting.passport, "req-7");
    let ended = match prepare(extensions, module) {
        Ok(extension) => {
            extensions.call(&extension, Call { identity, args, grant: setting.grant(), ports, limits })
        }
        Err(fault) => Err(FailedCall::before_it_began(fault, identity.request_id)),
    };
    (ended, facts)
}

/// Runs every case and says which ended in another way than they should.
fn all(cases: &str, run: impl Fn(&Extensions, &Value) -> Result<(), String>) {
    let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
    let extensions = extensions(None);
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(why) = run(&extensions, case) {
            wrong.push(format!("{}: {why}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

pub(crate) fn modules() {
    all(MODULES, |extensions, case| {
        let module = module_of(case);
        let args = match case["args_bytes"].as_u64() {
            Some(bytes) => json!("a".repeat(bytes as usize)),
            None => case.get("args").cloned().unwrap_or_else(|| json!({})),
        };
        for _ in 0..case["calls"].as_u64().unwrap_or(1) {
            let setting = Setting::of(case);
            let (ended, facts) = run(extensions, &module, &setting, args.clone(), limits_of(case));
            compare(&case["expect"], &ended)?;
            stored(&case["expect"], &facts)?;
        }
        Ok(())
    });
}

fn limits_of(case: &Value) -> Limits {
    let mut limits = Limits::DEFAULT;
    let given = &case["limits"];
    limits.fuel = given["fuel"].as_u64().unwrap_or(limits.fuel);
    limits.wall_ms = given["wall_ms"].as_u64().unwrap_or(limits.wall_ms);
    limits.memory_bytes = given["memory_bytes"].as_u64().map_or(limits.memory_bytes, |bytes| bytes as usize);
    limits
}

/// The module of a case: bytes, a text, or the parts of one.
fn module_of(case: &Value) -> Vec<u8> {
    if let Some(hex) = case["hex"].as_str() {
        return bytes_of_hex(hex);
    }
    if let Some(text) = case["wat"].as_str() {
        return wat::parse_str(text).unwrap_or_else(|err| panic!("{}: {err}", case["name"]));
    }
    let text = |field: &str| case[field].as_str().unwrap_or_default();
    let memory = case["memory"].as_str().unwrap_or(r#"(memory (export "memory") 1)"#);
    let (mut body, mut data) = (text("body").to_owned(), String::new());
    if let Some(says) = case["says"].as_str() {
        data = format!("(data (i32.const 40000) \"{}\")", escaped(says.as_bytes()));
        body = answer(says.len());
    } else if body.contains("(pong)") {
        let pong = r#"{"result":"pong"}"#;
        data = format!("(data (i32.const 40000) \"{}\")", escaped(pong.as_bytes()));
        body = body.replace("(pong)", &answer(pong.len()));
    }
    if let Some(repeat) = case["repeat"].as_array() {
        body = repeat[1].as_str().unwrap().repeat(repeat[0].as_u64().unwrap() as usize) + &body;
    }
    let module = format!(
        r#"(module {} {memory} {data} {}
          (func (export "extension_call") (param $req i32) (param $len i32) (param $out i32) (param $cap i32)
            (result i32) {body}))"#,
        text("imports"),
        text("fields"),
    );
    wat::parse_str(&module).unwrap_or_else(|err| panic!("{}: {err}", case["name"]))
}

fn answer(bytes: usize) -> String {
    format!("(memory.copy (local.get $out) (i32.const 40000) (i32.const {bytes})) (i32.const {bytes})")
}

/// Every field that the case expects something of.
fn compare(expect: &Value, ended: &Result<WasmDispatchOutcome, FailedCall>) -> Result<(), String> {
    let (error, fuel, log, request) = match ended {
        Ok(outcome) => {
            if expect.get("result") != Some(&outcome.result) {
                return Err(format!("its result is {}", outcome.result));
            }
            (String::new(), outcome.fuel_consumed, &outcome.log, &outcome.request_id)
        }
        Err(failed) => (failed.to_string(), failed.fuel_consumed, &failed.log, &failed.request_id),
    };
    let text = |field: &str| expect[field].as_str();
    let right = text("error").is_none_or(|whole| error == whole)
        && text("error_starts").is_none_or(|start| error.starts_with(start) && !start.is_empty())
        && text("error_has").is_none_or(|part| error.contains(part));
    let named = text("error").is_some() || text("error_starts").is_some();
    if !right || named == error.is_empty() {
        return Err(format!("its error is {error:?}"));
    }
    if expect["fuel_below"].as_u64().is_some_and(|most| fuel >= most || fuel == 0) {
        return Err(format!("it used {fuel} units of fuel"));
    }
    if expect["fuel_used"].as_u64().is_some_and(|all| fuel != all) {
        return Err(format!("it used {fuel} units of fuel"));
    }
    if expect.get("log").is_some_and(|lines| *lines != shown(log)) {
        return Err(format!("it logged {}", shown(log)));
    }
    if expect["log_lines"].as_u64().is_some_and(|lines| log.len() as u64 != lines) {
        return Err(format!("it logged {} lines", log.len()));
    }
    if request != "req-7" {
        return Err(format!("its request is {request}"));
    }
    Ok(())
}

fn shown(log: &[HostLogEntry]) -> Value {
    log.iter().map(|line| format!("{}: {}", line.level, line.message)).collect()
}

/// What `notes::sum::a`, the only entity that cases write, holds afterwards.
fn stored(expect: &Value, facts: &Facts) -> Result<(), String> {
    let value = facts.value("notes::sum::a", "text");
    match expect.get("stored") {
        Some(wanted) if *wanted != json!(value) => Err(format!("what is stored is {value:?}")),
        _ => Ok(()),
    }
}

pub(crate) fn imports() {
    all(IMPORTS, |extensions, case| {
        let module = calling(case);
        let setting = Setting::of(case);
        let (ended, facts) = run(extensions, &module, &setting, json!({}), Limits::DEFAULT);
        let outcome = ended.map_err(|failed| format!("its error is {failed}"))?;
        let (rc, reply) = (&outcome.result["rc"], outcome.result["reply"].as_str().unwrap());
        let expect = &case["expect"];
        stored(expect, &facts)?;
        if expect.get("log").is_some_and(|lines| *lines != shown(&outcome.log)) {
            return Err(format!("it logged {}", shown(&outcome.log)));
        }
        if expect.get("top_k").is_some_and(|top_k| *top_k != json!(*facts.asked.lock().unwrap())) {
            return Err(format!("the store was asked for {:?}", facts.asked));
        }
        if let Some(code) = expect.get("rc") {
            return if rc == code && reply.is_empty() { Ok(()) } else { Err(format!("its code is {rc}")) };
        }
        let text = String::from_utf8(bytes_of_hex(reply)).unwrap();
        if *rc != json!(text.len()) {
            return Err(format!("its code is {rc}, its reply {text}"));
        }
        let parsed = || serde_json::from_str::<Value>(&text).unwrap();
        let right = match (expect.get("text"), expect.get("reply"), expect.get("entities")) {
            (Some(wanted), ..) => *wanted == text,
            // The order of keys is a part of the contract.
            (_, Some(wanted), _) => *wanted == parsed(),
            (.., Some(wanted)) => {
                let entities =
                    parsed().as_array().unwrap().iter().map(|fact| fact["entity"].clone()).collect();
                *wanted == Value::Array(entities)
            }
            _ => false,
        };
        if right { Ok(()) } else { Err(format!("its reply is {text}")) }
    });
}

/// Where the texts of a call lie, and its buffer behind them.
pub(crate) const TEXTS: usize = 3 * 65_536;
const BUFFER: usize = TEXTS + 32_768;

/// A module of four pages that makes the one call of a case.
fn calling(case: &Value) -> Vec<u8> {
    let (mut texts, mut args) = (Vec::new(), String::new());
    let mut count = 0;
    let mut push = |number: i64| {
        write!(args, " (i32.const {number})").unwrap();
        count += 1;
    };
    for arg in case["args"].as_array().unwrap() {
        let text = match (arg.as_str(), arg["hex"].as_str()) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (_, Some(hex)) => bytes_of_hex(hex),
            _ => {
                if let Some(cap) = arg["cap"].as_i64() {
                    push(BUFFER as i64);
                    push(cap);
                } else {
                    push(arg.as_i64().unwrap());
                }
                continue;
            }
        };
        push((TEXTS + texts.len()) as i64);
        push(text.len() as i64);
        texts.extend(text);
    }
    caller(case["call"].as_str().unwrap(), count, &args, &texts, true)
}

/// A module that calls an import with `count` arguments, and answers `{"result":{"rc":NUMBER,"reply":"HEX"}}`. The
/// reply stays empty where it is not shown.
pub(crate) fn caller(import: &str, count: usize, args: &str, texts: &[u8], shows: bool) -> Vec<u8> {
    let (params, texts) = (" i32".repeat(count), escaped(texts));
    let shown = if shows { "(local.get $rc)" } else { "(i32.const 0)" };
    // Where the argument of that number is written in the request, as eight digits.
    let at = r#"{"tool":"ext.test.run","args":""#.len();
    let module = format!(
        r#"(module
          (import "crux" "{import}" (func $call (param{params}) (result i32)))
          (memory (export "memory") 4)
          (data (i32.const {TEXTS}) "{texts}")
          (data (i32.const 150000) "{{\"result\":{{\"rc\":")
          (data (i32.const 150100) ",\"reply\":\"")
          (data (i32.const 150200) "\"}}}}")
          (data (i32.const 150300) "0123456789abcdef")
          (global $at (mut i32) (i32.const 0))
          (func $put (param i32)
            (i32.store8 (global.get $at) (local.get 0))
            (global.set $at (i32.add (global.get $at) (i32.const 1))))
          (func $copy (param $from i32) (param $len i32)
            (memory.copy (global.get $at) (local.get $from) (local.get $len))
            (global.set $at (i32.add (global.get $at) (local.get $len))))
          (func $number (param i32)
            (if (i32.lt_s (local.get 0) (i32.const 0)) (then
              (call $put (i32.const 45))
              (local.set 0 (i32.sub (i32.const 0) (local.get 0)))))
            (if (i32.ge_u (local.get 0) (i32.const 10)) (then
              (call $number (i32.div_u (local.get 0) (i32.const 10)))))
            (call $put (i32.add (i32.const 48) (i32.rem_u (local.get 0) (i32.const 10)))))
          (func $digit (param i32) (call $put (i32.load8_u (i32.add (i32.const 150300) (local.get 0)))))
          (func $hex (param $from i32) (param $len i32)
            (block $done (loop $next
              (br_if $done (i32.le_s (local.get $len) (i32.const 0)))
              (call $digit (i32.shr_u (i32.load8_u (local.get $from)) (i32.const 4)))
              (call $digit (i32.and (i32.load8_u (local.get $from)) (i32.const 15)))
              (local.set $from (i32.add (local.get $from) (i32.const 1)))
              (local.set $len (i32.sub (local.get $len) (i32.const 1)))
              (br $next))))
          (func $arg (param $number i32) (result i32) (local $value i32) (local $digit i32) (local $end i32)
            (local.set $number (i32.add (i32.const {at}) (i32.shl (local.get $number) (i32.const 3))))
            (local.set $end (i32.add (local.get $number) (i32.const 8)))
            (loop $next
              (local.set $digit (i32.sub (i32.load8_u (local.get $number)) (i32.const 48)))
              (if (i32.gt_u (local.get $digit) (i32.const 9)) (then
                (local.set $digit (i32.sub (local.get $digit) (i32.const 39)))))
              (local.set $value (i32.or (i32.shl (local.get $value) (i32.const 4)) (local.get $digit)))
              (local.set $number (i32.add (local.get $number) (i32.const 1)))
              (br_if $next (i32.lt_u (local.get $number) (local.get $end))))
            (local.get $value))
          (func (export "extension_call") (param $req i32) (param $len i32) (param $out i32) (param $cap i32)
            (result i32) (local $rc i32)
            (local.set $rc (call $call{args}))
            (global.set $at (local.get $out))
            (call $copy (i32.const 150000) (i32.const 16))
            (call $number (local.get $rc))
            (call $copy (i32.const 150100) (i32.const 10))
            (call $hex (i32.const {BUFFER}) {shown})
            (call $copy (i32.const 150200) (i32.const 3))
            (i32.sub (global.get $at) (local.get $out))))"#
    );
    wat::parse_str(&module).unwrap_or_else(|err| panic!("{import}: {err}"))
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:02x}")).collect()
}

fn bytes_of_hex(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
