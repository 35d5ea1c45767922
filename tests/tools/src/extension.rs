//! An extension in an engine of this process, called the way the companion does, by a host whose every answer the test
//! decides.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use serde_json::{Value, json};
use wasmtime::{Caller, Config, Engine, Linker, Memory, Module, OptLevel, Store, Trap};

/// Longest response, in bytes.
pub const RESPONSE_MAX_BYTES: usize = 65_536;
/// Fuel of a call where nothing else is set.
pub const FUEL: u64 = 1_000_000;
/// The host's clock: it stands still.
pub const NOW_UNIX_MS: u64 = 1_753_440_000_000;

const PAGE: usize = 65_536;
const BUFFER_TOO_SMALL: i32 = -4;

/// A file of an example extension.
///
/// # Panics
///
/// When it cannot be read.
#[must_use]
pub fn extension_file(path: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tools/guests").join(path);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What a host function does instead of what it usually does.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Returns a number and writes nothing.
    Returns(i32),
    /// Writes bytes, or says that they do not fit.
    Writes(Vec<u8>),
    /// Writes bytes that fit, and claims more or less.
    Claims(Vec<u8>, i32),
}

/// The host's side of a call.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Values by entity and key.
    pub facts: BTreeMap<(String, String), String>,
    /// What functions do, by name, where it is not the usual.
    pub replies: HashMap<&'static str, Reply>,
    /// Lines of the log: level and message.
    pub log: Vec<(String, String)>,
    /// Which functions were called, in order, with the room that each had for its reply.
    pub calls: Vec<(&'static str, usize)>,
}

impl Host {
    /// A host with one fact.
    #[must_use]
    pub fn with_fact(entity: &str, key: &str, value: &str) -> Self {
        let facts = [((entity.to_owned(), key.to_owned()), value.to_owned())].into();
        Self { facts, ..Self::default() }
    }

    /// The same host, with another reply of one function.
    #[must_use]
    pub fn replying(mut self, function: &'static str, reply: Reply) -> Self {
        self.replies.insert(function, reply);
        self
    }

    fn fact(&self, entity: &str, key: &str) -> Option<Value> {
        let value = self.facts.get(&(entity.to_owned(), key.to_owned()))?;
        Some(json!({
            "fact_id": "f1", "entity": entity, "key": key, "value": value,
            "confidence": 1.0, "stored_at_unix_ms": NOW_UNIX_MS,
        }))
    }
}

/// How a call ended.
#[derive(Debug)]
pub struct Called {
    /// What the export returned, or the trap.
    pub returned: Result<i32, Trap>,
    /// The response, where the length that was returned is one.
    pub response: Vec<u8>,
    /// The host, afterwards.
    pub host: Host,
    /// Fuel that was used.
    pub fuel: u64,
}

impl Called {
    /// The result of a call that went well.
    ///
    /// # Panics
    ///
    /// When it did not.
    #[must_use]
    pub fn result(&self) -> Value {
        let response: Value = serde_json::from_slice(&self.response)
            .unwrap_or_else(|e| panic!("{e}: {:?}, log {:?}", self.returned, self.host.log));
        response["result"].clone()
    }

    /// The messages of the log, one a line.
    #[must_use]
    pub fn log(&self) -> String {
        let lines: Vec<_> =
            self.host.log.iter().map(|(level, message)| format!("{level}: {message}")).collect();
        lines.join("\n")
    }
}

/// A compiled extension. Every call runs in an instance of its own.
#[derive(Debug)]
pub struct Extension {
    module: Module,
    linker: Linker<Host>,
    fuel: u64,
}

impl Extension {
    /// Compiles the module of an example, by its path in `tools/guests/`.
    ///
    /// # Panics
    ///
    /// When it is missing or no valid module.
    #[must_use]
    pub fn example(path: &str) -> Self {
        // Compiled fast rather than well: an unoptimised compiler does it.
        let config = &mut Config::new();
        config.consume_fuel(true).cranelift_opt_level(OptLevel::None);
        let engine = Engine::new(config).expect("an engine");
        let module = Module::new(&engine, extension_file(path)).expect("a valid module");
        let linker = crux(&engine).expect("names that differ");
        Self { module, linker, fuel: FUEL }
    }

    /// The same extension, with other fuel for a call.
    #[must_use]
    pub fn with_fuel(self, fuel: u64) -> Self {
        Self { fuel, ..self }
    }

    /// What the module imports, as `module.name`, sorted.
    #[must_use]
    pub fn imports(&self) -> Vec<String> {
        let mut names: Vec<_> =
            self.module.imports().map(|import| format!("{}.{}", import.module(), import.name())).collect();
        names.sort();
        names
    }

    /// One call with arguments.
    #[must_use]
    pub fn call(&self, host: Host, args: &Value) -> Called {
        self.call_raw(host, &request(args), RESPONSE_MAX_BYTES)
    }

    /// One call with those bytes as the request, and at most so much room for the response.
    ///
    /// # Panics
    ///
    /// When the module lacks what an extension has.
    #[must_use]
    pub fn call_raw(&self, host: Host, request: &[u8], most: usize) -> Called {
        let mut store = Store::new(self.module.engine(), host);
        store.set_fuel(self.fuel).expect("an engine with fuel");
        let instance = self.linker.instantiate(&mut store, &self.module).expect("the imports of `crux`");
        let memory = instance.get_memory(&mut store, "memory").expect("an exported memory");
        let pages = request.len() / PAGE + 1;
        let missing = (pages as u64).saturating_sub(memory.size(&store));
        memory.grow(&mut store, missing).expect("memory for the request");
        let at = (request.len() + 15) & !7;
        let cap = most.min(memory.data_size(&store).saturating_sub(at));
        memory.write(&mut store, 0, request).expect("room for the request");
        let call = instance
            .get_typed_func::<(i32, i32, i32, i32), i32>(&mut store, "extension_call")
            .expect("the export `extension_call`");
        let returned = call.call(&mut store, (0, int(request.len()), int(at), int(cap)));
        let returned =
            returned.map_err(|error| error.downcast::<Trap>().expect("only the module ends a call"));
        let len = returned.as_ref().ok().and_then(|&len| usize::try_from(len).ok()).filter(|len| *len <= cap);
        let response = len.map_or(Vec::new(), |len| memory.data(&store)[at..at + len].to_vec());
        let fuel = self.fuel - store.get_fuel().expect("an engine with fuel");
        Called { returned, response, fuel, host: store.into_data() }
    }
}

/// The request of a call with arguments.
#[must_use]
pub fn request(args: &Value) -> Vec<u8> {
    let args = args.to_string();
    format!(r#"{{"tool":"t","args":{args},"calling_passport_id":"p_alice","request_id":"req-1"}}"#)
        .into_bytes()
}

fn int(number: usize) -> i32 {
    i32::try_from(number).expect("a number of an i32")
}

fn memory(caller: &mut Caller<'_, Host>) -> Memory {
    caller.get_export("memory").and_then(wasmtime::Extern::into_memory).expect("an exported memory")
}

fn text(caller: &mut Caller<'_, Host>, (ptr, len): (i32, i32)) -> String {
    let memory = memory(caller);
    let range = usize::try_from(ptr).expect("a pointer")..usize::try_from(ptr + len).expect("an end");
    let bytes = memory.data(&caller)[range].to_vec();
    String::from_utf8(bytes).expect("guests send UTF-8")
}

/// Ends a host function: writes what it has to say, unless the test wants something else.
fn reply(
    caller: &mut Caller<'_, Host>,
    function: &'static str,
    (ptr, cap): (i32, i32),
    usual: Result<String, i32>,
) -> i32 {
    let cap = usize::try_from(cap).expect("a capacity");
    let host = caller.data_mut();
    host.calls.push((function, cap));
    let usual = || usual.map_or_else(Reply::Returns, |text| Reply::Writes(text.into_bytes()));
    let reply = host.replies.get(function).cloned().unwrap_or_else(usual);
    let too_small = if function == "current_passport_json" { -1 } else { BUFFER_TOO_SMALL };
    let (bytes, returned) = match reply {
        Reply::Returns(code) => return code,
        Reply::Writes(bytes) if bytes.len() > cap => return too_small,
        Reply::Writes(bytes) => (bytes.clone(), int(bytes.len())),
        Reply::Claims(bytes, returned) => (bytes, returned),
    };
    let at = usize::try_from(ptr).expect("a pointer");
    memory(caller).write(caller, at, &bytes).expect("a buffer in memory");
    returned
}

/// The eight imports, as the documentation has them.
fn crux(engine: &Engine) -> wasmtime::Result<Linker<Host>> {
    const MODULE: &str = "crux";
    let mut linker = Linker::new(engine);
    linker.func_wrap(MODULE, "now_unix_ms", |mut caller: Caller<'_, Host>| {
        caller.data_mut().calls.push(("now_unix_ms", 0));
        NOW_UNIX_MS
    })?;
    linker.func_wrap(
        MODULE,
        "log",
        |mut caller: Caller<'_, Host>, level: i32, level_len: i32, message: i32, message_len: i32| {
            let line = (text(&mut caller, (level, level_len)), text(&mut caller, (message, message_len)));
            caller.data_mut().log.push(line);
        },
    )?;
    linker.func_wrap(
        MODULE,
        "current_passport_json",
        |mut caller: Caller<'_, Host>, ptr: i32, cap: i32| {
            let passport = json!({ "calling_passport_id": "p_alice" }).to_string();
            reply(&mut caller, "current_passport_json", (ptr, cap), Ok(passport))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "read_fact",
        |mut caller: Caller<'_, Host>,
         entity: i32,
         entity_len: i32,
         key: i32,
         key_len: i32,
         ptr: i32,
         cap: i32| {
            let (entity, key) = (text(&mut caller, (entity, entity_len)), text(&mut caller, (key, key_len)));
            let fact = caller.data().fact(&entity, &key).map(|fact| fact.to_string()).ok_or(-1);
            reply(&mut caller, "read_fact", (ptr, cap), fact)
        },
    )?;
    linker.func_wrap(MODULE, "store_fact", store_fact)?;
    linker.func_wrap(MODULE, "query_facts", query_facts)?;
    linker.func_wrap(
        MODULE,
        "get_secret_decrypted",
        |mut caller: Caller<'_, Host>, id: i32, id_len: i32, ptr: i32, cap: i32| {
            let secret =
                if text(&mut caller, (id, id_len)) == "known" { Ok("s3cret".to_owned()) } else { Err(-1) };
            reply(&mut caller, "get_secret_decrypted", (ptr, cap), secret)
        },
    )?;
    linker.func_wrap(
        MODULE,
        "emit_receipt",
        |mut caller: Caller<'_, Host>,
         action: i32,
         action_len: i32,
         payload: i32,
         payload_len: i32,
         ptr: i32,
         cap: i32| {
            let action = text(&mut caller, (action, action_len));
            let payload = text(&mut caller, (payload, payload_len));
            let receipt = json!({ "action": action, "payload": payload }).to_string();
            reply(&mut caller, "emit_receipt", (ptr, cap), Ok(receipt))
        },
    )?;
    Ok(linker)
}

#[expect(clippy::too_many_arguments, reason = "the ABI has so many")]
fn store_fact(
    mut caller: Caller<'_, Host>,
    entity: i32,
    entity_len: i32,
    key: i32,
    key_len: i32,
    value: i32,
    value_len: i32,
    thousandths: i32,
    ptr: i32,
    cap: i32,
) -> i32 {
    let (entity, key) = (text(&mut caller, (entity, entity_len)), text(&mut caller, (key, key_len)));
    let value = text(&mut caller, (value, value_len));
    let refused = matches!(caller.data().replies.get("store_fact"), Some(Reply::Returns(code)) if *code != BUFFER_TOO_SMALL);
    if !refused {
        caller.data_mut().facts.insert((entity.clone(), key.clone()), value);
    }
    let stored = caller.data().fact(&entity, &key).map(|mut fact| {
        fact["confidence"] = json!(f64::from(thousandths.clamp(0, 1_000)) / 1_000.0);
        fact.to_string()
    });
    reply(&mut caller, "store_fact", (ptr, cap), stored.ok_or(-10))
}

#[expect(clippy::too_many_arguments, reason = "the ABI has so many")]
fn query_facts(
    mut caller: Caller<'_, Host>,
    prefix: i32,
    prefix_len: i32,
    query: i32,
    query_len: i32,
    top_k: i32,
    ptr: i32,
    cap: i32,
) -> i32 {
    let prefix = text(&mut caller, (prefix, prefix_len));
    let query = text(&mut caller, (query, query_len));
    let host = caller.data();
    let facts: Vec<Value> = host
        .facts
        .iter()
        .filter(|((entity, _), value)| entity.starts_with(&prefix) && value.contains(&query))
        .filter_map(|((entity, key), _)| host.fact(entity, key))
        .take(usize::try_from(top_k.clamp(1, 256)).expect("a count"))
        .collect();
    let facts = Value::from(facts).to_string();
    reply(&mut caller, "query_facts", (ptr, cap), Ok(facts))
}
