//! Definitions, for the person who admits them: listing, comparing, approving.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use similar::TextDiff;
use std::time::{SystemTime, UNIX_EPOCH};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::catalogue::{Row, State};
use super::lock::{By, Pin};
use crate::service::Service;

/// Lines of what has not changed that are shown around a change.
const CONTEXT_LINES: usize = 3;

/// Which definitions are approved.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Approve {
    names: BTreeSet<String>,
    /// The hashes of what was looked at, by name. One that is another now is not approved.
    #[serde(default)]
    sha256: Map<String, Value>,
}

impl Service {
    /// Every tool with how it stands: `{ok, definitions}`.
    ///
    /// # Errors
    /// When the shelves or the lock cannot be read.
    pub(crate) async fn definitions(&self) -> Result<Value, Refusal> {
        let catalogue = self.catalogue().await?;
        let rows = catalogue.rows.values().map(|row| {
            let mut shown = row.shown();
            shown["diff"] = diff(row).into();
            shown
        });
        Ok(json!({ "ok": true, "definitions": rows.collect::<Vec<_>>() }))
    }

    /// Admits what is there now: `{ok, approved}`.
    ///
    /// # Errors
    /// For a name that nothing has, a definition that hides something or that is not the one that was looked at; then
    /// nothing is approved.
    pub(crate) async fn approve_definitions(&self, args: &Map<String, Value>) -> Result<Value, Refusal> {
        let Approve { names, sha256 } = serde_json::from_value(Value::Object(args.clone()))
            .map_err(|err| Refusal::new(Code::InvalidArgument, cut(&err.to_string(), 120)))?;
        let catalogue = self.catalogue().await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let at_unix_ms = u64::try_from(now).unwrap_or(u64::MAX);
        let mut approved = Vec::new();
        for name in &names {
            let row = catalogue.find(name);
            let (row, found) = row.and_then(|row| Some((row, row.found.clone()?))).ok_or_else(|| {
                Refusal::new(Code::UnknownTool, format!("no tool {:?} is there", cut(name, 80)))
            })?;
            if let State::Refused(refusal) = &row.state {
                return Err(refusal.clone());
            }
            let hash = found.hash();
            if sha256.get(name).is_some_and(|seen| *seen != json!(hash)) {
                let why = format!("{name:?} has changed since it was looked at; look again");
                return Err(Refusal::new(Code::DefinitionChanged, why));
            }
            approved.push((
                row.key.clone(),
                Pin { sha256: hash, by: By::Approval, at_unix_ms, definition: found },
            ));
        }
        let listed: Vec<_> = approved
            .iter()
            .map(|(key, pin)| json!({ "name": pin.definition.name, "key": key, "sha256": pin.sha256 }))
            .collect();
        self.desk().lock.change(|pins| pins.extend(approved))?;
        self.desk().forget();
        self.tell_agents().await;
        Ok(json!({ "ok": true, "approved": listed }))
    }
}

/// What a person compares: the lines that differ between what was admitted and what is there. Empty where nothing does.
fn diff(row: &Row) -> String {
    let shown = |definition: Option<&super::definition::Definition>| {
        definition.map(|it| it.shown()).unwrap_or_default()
    };
    let pinned = shown(row.pinned.as_ref().map(|pin| &pin.definition));
    let found = shown(row.found.as_ref());
    if row.state == State::Gone || pinned == found {
        return String::new();
    }
    let diff = TextDiff::from_lines(&pinned, &found);
    let text = diff.unified_diff().context_radius(CONTEXT_LINES).header("admitted", "found").to_string();
    // What is hidden must be seen here of all places.
    text.chars()
        .map(|c| {
            if toolshelf_core::hidden::hidden_character(c.encode_utf8(&mut [0; 4])).is_some() {
                format!("<U+{:04X}>", u32::from(c))
            } else {
                c.to_string()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::definition::tests::definition;
    use super::*;

    #[test]
    fn a_change_is_shown_in_lines_and_hidden_characters_by_number() {
        let before = definition("hash", "Hashes");
        let pin = Pin { sha256: before.hash(), by: By::Shelf, at_unix_ms: 1, definition: before };
        let row = |description: &str, state| Row {
            key: "shelf:hash".into(),
            source: None,
            state,
            pinned: Some(pin.clone()),
            found: Some(definition("hash", description)),
        };
        let shown = diff(&row("Sends\u{202e}", State::Changed));
        assert!(shown.contains("-  \"description\": \"Hashes\""), "{shown}");
        assert!(shown.contains("+  \"description\": \"Sends<U+202E>\""), "{shown}");
        assert_eq!(diff(&row("Hashes", State::Pinned)), "");
    }
}
