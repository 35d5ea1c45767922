//! What a companion says, read into the types of `core` by hand.
//!
//! The readers that serde derives for these types would be half of all that the page needs for a companion, and would
//! be fetched for it. The tests hold these to what `core` writes.

use serde_json::Value;
use toolshelf_core::RootDescriptor;
use toolshelf_core::abi::Abi;
use toolshelf_core::call::{Answer, Timing};
use toolshelf_core::digest::Digest;
use toolshelf_core::live::{AgentInfo, CallNotice, CallOrigin, MachineEnvironment, MachineRoot};
use toolshelf_core::placement::{Placement, PlacementBounds};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::script::{Block, Op};
use toolshelf_core::shelf::{Admitted, Shelf, Tool};
use toolshelf_core::task::view::StaleReason;
use toolshelf_core::task::{TaskBounds, TaskState, TaskView};
use toolshelf_host::Reading;

use super::remotes::{PairingInfo, RemoteInfo};
use crate::tasks::{Detail, Moment, Page, Row};

/// A value that was read, or the name of the field that is missing or of another kind.
pub(super) type Read<T> = Result<T, &'static str>;

/// A field.
pub(super) fn field<'a>(value: &'a Value, key: &'static str) -> Read<&'a Value> {
    value.get(key).ok_or(key)
}

/// A field with a text.
pub(super) fn text(value: &Value, key: &'static str) -> Read<String> {
    maybe_text(value, key).ok_or(key)
}

pub(super) fn maybe_text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// A field that is `true` or `false`.
pub(super) fn flag(value: &Value, key: &'static str) -> Read<bool> {
    field(value, key)?.as_bool().ok_or(key)
}

pub(super) fn whole(value: &Value, key: &'static str) -> Read<u64> {
    field(value, key)?.as_u64().ok_or(key)
}

fn small(value: &Value, key: &'static str) -> Read<u32> {
    u32::try_from(whole(value, key)?).map_err(|_| key)
}

pub(super) fn number(value: &Value, key: &'static str) -> Read<f64> {
    field(value, key)?.as_f64().ok_or(key)
}

/// A field with a list.
pub(super) fn list<T>(value: &Value, key: &'static str, read: fn(&Value) -> Read<T>) -> Read<Vec<T>> {
    field(value, key)?.as_array().ok_or(key)?.iter().map(read).collect()
}

fn placement(value: &Value) -> Option<Placement> {
    Placement::named(value.get("placement")?.as_str()?)
}

fn bounds(value: &Value) -> Read<PlacementBounds> {
    Ok(PlacementBounds {
        default_deadline_ms: small(value, "defaultDeadlineMs")?,
        max_deadline_ms: small(value, "maxDeadlineMs")?,
        max_output_bytes: small(value, "maxOutputBytes")?,
        max_active_tasks: small(value, "maxActiveTasks")? as usize,
    })
}

/// The roots of a companion are folders of its machine.
fn root(value: &Value) -> Read<RootDescriptor> {
    match value.get("kind").and_then(Value::as_str) {
        Some("machine") => Ok(RootDescriptor::Machine {
            path: text(value, "path")?,
            environment: maybe_text(value, "environment"),
        }),
        _ => Err("kind"),
    }
}

pub(super) fn environment(value: &Value) -> Read<MachineEnvironment> {
    let known = |value: &Value| {
        Ok(MachineRoot { root: root(field(value, "root")?)?, available: flag(value, "available")? })
    };
    let agent = |value: &Value| {
        Ok(AgentInfo {
            name: text(value, "name")?,
            description: text(value, "description")?,
            deadline_ms: small(value, "deadlineMs")?,
        })
    };
    Ok(MachineEnvironment {
        key: text(value, "key")?,
        placement: placement(value).ok_or("placement")?,
        label: text(value, "label")?,
        bounds: bounds(field(value, "bounds")?)?,
        active: small(value, "active")? as usize,
        roots: list(value, "roots", known)?,
        agents: list(value, "agents", agent)?,
        version: text(value, "version")?,
    })
}

/// A remote of the companion.
pub(super) fn remote(value: &Value) -> Read<RemoteInfo> {
    let scope = |value: &Value| value.as_str().map(str::to_owned).ok_or("scopes");
    let said = field(value, "environment")?;
    let tools = value.get("tools").and_then(Value::as_array).into_iter().flatten();
    Ok(RemoteInfo {
        key: text(value, "key")?,
        label: text(value, "label")?,
        address: text(value, "address")?,
        name: text(value, "name")?,
        state: text(value, "state")?,
        refusal: refusal(value),
        scopes: list(value, "scopes", scope)?,
        environment: if said.is_null() { None } else { Some(environment(said)?) },
        tools: tools.filter_map(|tool| maybe_text(tool, "name")).collect(),
    })
}

/// Somebody who was paired with the companion.
pub(super) fn pairing(value: &Value) -> Read<PairingInfo> {
    Ok(PairingInfo { id: text(value, "id")?, name: text(value, "name")?, state: text(value, "state")? })
}

/// A refusal; nothing where the code is none of this version.
pub(super) fn refusal(value: &Value) -> Option<Refusal> {
    let code = Code::parse(value.get("refused")?.as_str()?)?;
    Some(Refusal::new(code, maybe_text(value, "why").unwrap_or_default()))
}

/// One shelf: a shelf, or a refusal in its place.
pub(super) fn reading(value: &Value) -> Read<Reading> {
    let dir = text(value, "dir")?;
    let key = maybe_text(value, "key").unwrap_or_else(|| dir.clone());
    let shelf = if flag(value, "ok")? {
        let (name, version) = (text(value, "name")?, text(value, "version")?);
        Ok(Shelf { dir, name, version, tools: list(value, "tools", tool)? })
    } else {
        Err(refusal(value).ok_or("refused")?)
    };
    Ok(Reading { key, shelf })
}

fn tool(value: &Value) -> Read<Tool> {
    let digest = maybe_text(value, "digest");
    let verdict = if flag(value, "admitted")? {
        let abi = value.get("abi").and_then(|row| row.get("abi")?.as_str());
        Ok(Admitted {
            digest: digest.as_deref().and_then(Digest::parse).ok_or("digest")?,
            // One that is not known here cannot be called from here either.
            abi: abi.and_then(Abi::named),
            bytes: whole(value, "bytes")?,
            memory_pages: whole(value, "memoryPages")?,
            memory_max_pages: whole(value, "memoryMaxPages")?,
        })
    } else {
        Err(refusal(value).ok_or("refused")?)
    };
    Ok(Tool {
        id: text(value, "id")?,
        digest,
        wasm_path: text(value, "wasmPath")?,
        description: text(value, "description")?,
        capability: text(value, "capability")?,
        verdict,
    })
}

pub(super) fn answer(value: &Value) -> Read<Answer> {
    let timing = field(value, "timing")?;
    let blocks = value.get("blocks").map(|_| list(value, "blocks", block)).transpose()?;
    let returned = field(value, "returned")?.as_i64().and_then(|returned| i32::try_from(returned).ok());
    Ok(Answer {
        ok: true,
        action: "wasm",
        tool: text(value, "tool")?,
        returned: returned.ok_or("returned")?,
        output: text(value, "output")?,
        blocks,
        digest: Digest::parse(&text(value, "digest")?).ok_or("digest")?,
        input_bytes: small(value, "inputBytes")? as usize,
        duration_ms: number(value, "durationMs")?,
        timing: Timing {
            verify_ms: number(timing, "verifyMs")?,
            queue_ms: number(timing, "queueMs")?,
            worker_ms: number(timing, "workerMs")?,
            run_ms: number(timing, "runMs")?,
        },
    })
}

fn block(value: &Value) -> Read<Block> {
    let op = field(value, "op")?;
    let op = match (op.as_str(), op.as_u64().and_then(|op| u8::try_from(op).ok())) {
        (Some("equal"), _) => Op::Equal,
        (Some("delete"), _) => Op::Delete,
        (Some("insert"), _) => Op::Insert,
        (None, Some(op)) => Op::Unknown(op),
        _ => return Err("op"),
    };
    Ok(Block {
        op,
        a_line: small(value, "aLine")?,
        a_count: small(value, "aCount")?,
        b_line: small(value, "bLine")?,
        b_count: small(value, "bCount")?,
    })
}

pub(super) fn notice(value: &Value) -> Read<CallNotice> {
    let from = match value.get("from").and_then(Value::as_str) {
        Some("live") => CallOrigin::Live,
        Some("http") => CallOrigin::Http,
        Some("cli") => CallOrigin::Cli,
        Some("task") => CallOrigin::Task,
        Some("mcp") => CallOrigin::Mcp,
        Some("agent") => CallOrigin::Agent,
        _ => return Err("from"),
    };
    Ok(CallNotice {
        name: text(value, "name")?,
        ok: flag(value, "ok")?,
        output: text(value, "output")?,
        duration_ms: number(value, "durationMs")?,
        from,
        digest: maybe_text(value, "digest"),
        refused: maybe_text(value, "refused"),
        why: maybe_text(value, "why"),
        session: value.get("session").and_then(Value::as_u64),
    })
}

pub(super) fn state(value: &Value) -> Read<TaskState> {
    let name = value.get("state").and_then(Value::as_str);
    TaskState::ALL.into_iter().find(|state| Some(state.as_str()) == name).ok_or("state")
}

pub(super) fn view(value: &Value) -> Read<TaskView> {
    let state = state(value)?;
    let stale = value.get("stale").and_then(Value::as_bool).unwrap_or_default();
    Ok(TaskView {
        address: text(value, "address")?,
        environment: text(value, "environment")?,
        placement: placement(value),
        root: root(field(value, "root")?)?,
        state,
        agent: text(value, "agent")?,
        created_at: text(value, "createdAt")?,
        updated_at: text(value, "updatedAt")?,
        reason: maybe_text(value, "reason"),
        answer: maybe_text(value, "answer"),
        progress: maybe_text(value, "progress"),
        partial: maybe_text(value, "partial"),
        // A state has one outcome and no other.
        outcome: value.get("outcome").and_then(|_| state.outcome()),
        stale,
        // There is one reason and no other.
        stale_reason: value.get("staleReason").map(|_| StaleReason::GenerationUnconfirmed),
    })
}

fn row(value: &Value) -> Read<Row> {
    let bounds = field(value, "bounds")?;
    Ok(Row {
        position: whole(value, "position")?,
        view: view(field(value, "view")?)?,
        title: text(value, "title")?,
        bounds: TaskBounds {
            deadline_ms: small(bounds, "deadlineMs")?,
            max_output_bytes: small(bounds, "maxOutputBytes")?,
        },
        ends_at_ms: value.get("endsAtMs").and_then(Value::as_f64),
        here: flag(value, "here")?,
    })
}

pub(super) fn page(value: &Value) -> Read<Page> {
    Ok(Page { rows: list(value, "rows", row)?, next: value.get("next").and_then(Value::as_u64) })
}

pub(super) fn detail(value: &Value) -> Read<Detail> {
    let moment = |value: &Value| {
        Ok(Moment { at: text(value, "at")?, state: state(value)?, reason: maybe_text(value, "reason") })
    };
    Ok(Detail {
        row: row(field(value, "row")?)?,
        task: text(value, "task")?,
        mechanism: text(value, "mechanism")?,
        call_id: text(value, "callId")?,
        moments: list(value, "moments", moment)?,
    })
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
