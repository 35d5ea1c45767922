//! What a companion says of its extensions, read by hand as the rest of what it says.

use serde_json::{Map, Value};
use toolshelf_core::extension::TrustTier;
use toolshelf_core::grant::Grant;

use super::installed::{CallLimits, Extension, Inspected, Listed, Manifest, Outcome, Receipt, Tool, Verdict};
use super::problem::log_entry;
use super::wire::{Read, field, flag, list, maybe_text, refusal, text, whole};

/// A field with a list of texts; none where it is not there.
fn texts(value: &Value, key: &'static str) -> Read<Vec<String>> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(_) => list(value, key, |text| text.as_str().map(str::to_owned).ok_or("a text")),
    }
}

fn is_set(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

pub(super) fn manifest(value: &Value) -> Read<Manifest> {
    let part = |name: &str| value.get(name).cloned().unwrap_or_default();
    let (network, data, safety) = (part("network"), part("data_access"), part("safety"));
    let tool = |tool: &Value| {
        Ok(Tool {
            name: text(tool, "name")?,
            description: text(tool, "description")?,
            input_schema: field(tool, "input_schema")?.clone(),
            secret: maybe_text(tool, "auth_shared_secret_id"),
        })
    };
    let tools = match value.get("tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(_) => list(value, "tools", tool)?,
    };
    Ok(Manifest {
        id: text(value, "id")?,
        name: text(value, "name")?,
        version: text(value, "version")?,
        publisher: text(value, "publisher_passport_fpr")?,
        summary: text(value, "summary")?,
        kind: text(field(value, "entry")?, "kind")?,
        capabilities: texts(value, "capabilities")?,
        hosts: texts(&network, "allowed_hosts")?,
        requires_user_token: is_set(&network, "requires_user_token"),
        content_preview: is_set(&data, "content_preview"),
        private_facts: is_set(&data, "private_facts"),
        max_runtime_ms: whole(&safety, "max_runtime_ms").unwrap_or_default(),
        max_output_bytes: whole(&safety, "max_output_bytes").unwrap_or_default(),
        signed_by: value.get("signature").and_then(|signature| maybe_text(signature, "passport_fpr")),
        endpoint: maybe_text(value, "external_tool_endpoint"),
        tools,
        module_path: maybe_text(value, "wasm_module_path"),
        module_url: maybe_text(value, "wasm_module_url"),
        module_sha256: maybe_text(value, "wasm_module_sha256"),
        whole: value.clone(),
    })
}

fn trust(value: &Value) -> Option<TrustTier> {
    Some(match value.get("trust_tier")?.as_str()? {
        "first_party" => TrustTier::FirstParty,
        "locally_signed" => TrustTier::LocallySigned,
        "community_reviewed" => TrustTier::CommunityReviewed,
        "unknown" => TrustTier::Unknown,
        _ => return None,
    })
}

pub(super) fn extension(value: &Value) -> Read<Extension> {
    let lifecycle = field(value, "lifecycle")?;
    Ok(Extension {
        manifest: manifest(field(value, "manifest")?)?,
        manifest_hash: text(value, "manifest_hash")?,
        trust: trust(value).ok_or("trust_tier")?,
        installed_at_ms: whole(value, "installed_at_unix_ms")?,
        is_quarantined: text(lifecycle, "state")? != "active",
        since_ms: whole(lifecycle, "since_unix_ms").unwrap_or_default(),
        reason: maybe_text(lifecycle, "reason"),
    })
}

pub(super) fn listed(value: &Value) -> Read<Listed> {
    Ok(Listed {
        extensions: list(value, "extensions", extension)?,
        allow_unsigned: flag(value, "allow_unsigned_dev")?,
    })
}

pub(super) fn inspected(value: &Value) -> Read<Inspected> {
    let given = |key: &str| value.get(key).filter(|value| !value.is_null());
    let limits = |value: &Value| {
        Ok(CallLimits {
            fuel: whole(value, "fuel")?,
            memory_bytes: whole(value, "memory_bytes")?,
            wall_ms: whole(value, "wall_ms")?,
        })
    };
    Ok(Inspected {
        manifest: given("manifest").map(manifest).transpose()?,
        trust: trust(value),
        allow_unsigned: flag(value, "allow_unsigned_dev")?,
        installed_version: maybe_text(value, "installed_version"),
        limits: given("limits").map(limits).transpose()?,
        refusal: given("refusal").map(|value| refusal(value).ok_or("refusal")).transpose()?,
    })
}

pub(super) fn grant(value: &Value) -> Read<Grant> {
    let rate = value.get("rate_limit_per_min").and_then(Value::as_u64);
    Ok(Grant {
        extension_id: text(value, "extension_id")?,
        passport_fpr: text(value, "passport_fpr")?,
        allowed_tool_names: texts(value, "allowed_tool_names")?,
        allowed_prefixes_read: texts(value, "allowed_prefixes_read")?,
        allowed_prefixes_write: texts(value, "allowed_prefixes_write")?,
        rate_limit_per_min: rate.and_then(|rate| u32::try_from(rate).ok()),
        granted_at_unix_ms: whole(value, "granted_at_unix_ms")?,
        granted_by_passport: maybe_text(value, "granted_by_passport"),
        expires_at_unix_ms: value.get("expires_at_unix_ms").and_then(Value::as_u64),
        allowed_secret_ids: texts(value, "allowed_secret_ids")?,
    })
}

/// The body that asks for a grant.
pub(super) fn grant_request(grant: &Grant) -> Value {
    let mut body = Map::new();
    body.insert("passport_fpr".to_owned(), grant.passport_fpr.clone().into());
    for (name, list) in [
        ("allowed_tool_names", &grant.allowed_tool_names),
        ("allowed_prefixes_read", &grant.allowed_prefixes_read),
        ("allowed_prefixes_write", &grant.allowed_prefixes_write),
        ("allowed_secret_ids", &grant.allowed_secret_ids),
    ] {
        body.insert(name.to_owned(), list.clone().into());
    }
    if let Some(rate) = grant.rate_limit_per_min {
        body.insert("rate_limit_per_min".to_owned(), rate.into());
    }
    if let Some(end) = grant.expires_at_unix_ms {
        body.insert("expires_at_unix_ms".to_owned(), end.into());
    }
    body.into()
}

pub(super) fn outcome(value: &Value) -> Read<Outcome> {
    Ok(Outcome {
        result: field(value, "result")?.clone(),
        elapsed_ms: whole(value, "elapsed_ms")?,
        fuel_consumed: value.get("fuel_consumed").and_then(Value::as_u64),
        log: match value.get("log") {
            None => Vec::new(),
            Some(_) => list(value, "log", log_entry)?,
        },
        request_id: text(value, "request_id")?,
        drop_reasons: texts(value, "drop_reasons")?,
    })
}

pub(super) fn receipt(value: &Value) -> Read<Receipt> {
    let body = field(value, "body")?;
    Ok(Receipt {
        seq: whole(body, "seq")?,
        at_ms: whole(body, "at_unix_ms")?,
        tool: text(body, "tool")?,
        passport: text(body, "passport_fpr")?,
        request_id: text(body, "request_id")?,
        action: text(body, "action")?,
        payload: text(body, "payload")?,
        whole: value.clone(),
    })
}

pub(super) fn verdict(value: &Value) -> Read<Verdict> {
    let whole = match flag(value, "verified")? {
        true => Ok((whole(value, "receipts")?, flag(value, "end_confirmed")?)),
        false => Err(value.get("refusal").and_then(refusal).ok_or("refusal")?),
    };
    Ok(Verdict { whole, public_key: text(value, "public_key")? })
}

#[cfg(test)]
#[path = "installed_wire_tests.rs"]
mod tests;
