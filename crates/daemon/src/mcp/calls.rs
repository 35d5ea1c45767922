//! A call, from its name to what came of it.

#![expect(deprecated, reason = "clients of the revisions before 2026-07-28 hear what is logged")]

use rmcp::model::{ContentBlock, LoggingLevel};
use serde_json::{Map, Value, json};
use toolshelf_core::digest::to_hex;
use toolshelf_core::extension::envelope::HostLogEntry;
use toolshelf_core::live::CallOrigin;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_sandbox::private;

use super::catalogue::Row;
use super::fixed::{self, CALL_EXTENSION, CANCEL_TASK, DELEGATE_TASK, LIST_EXTENSIONS, TASK_STATUS};
use super::names::Source;
use super::who::Who;
use crate::extensions::dispatch::{Invocation, Outcome};
use crate::service::Service;

/// Longest name that is looked for.
const NAME_MAX_CHARS: usize = 64;

/// What came of a call.
#[derive(Debug)]
pub(super) struct Called {
    /// The answer.
    pub(super) value: Value,
    /// The answer as blocks, where the tool has given some.
    pub(super) content: Option<Vec<ContentBlock>>,
    /// What the tool has logged.
    pub(super) log: Vec<HostLogEntry>,
}

impl From<Value> for Called {
    fn from(value: Value) -> Self {
        Self { value, content: None, log: Vec::new() }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// No tool of that name is this client's.
    #[error("unknown tool: {0}")]
    Unknown(String),
    /// The call was refused, or failed.
    #[error("{refusal}")]
    Refused {
        /// Why.
        refusal: Refusal,
        /// What the tool has logged until then.
        log: Vec<HostLogEntry>,
    },
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { refusal, log: Vec::new() }
    }
}

/// Calls that run to their end although nobody waits any more: what was asked for must not stop half way through being
/// written down.
pub(super) fn to_the_end(name: &str) -> bool {
    [DELEGATE_TASK, CANCEL_TASK].contains(&name)
}

/// Whether a call hands over a task.
pub(super) fn delegates(name: &str) -> bool {
    name == DELEGATE_TASK
}

/// How loud a line is that a tool has logged.
pub(super) fn level(entry: &HostLogEntry) -> LoggingLevel {
    match &*entry.level {
        "trace" | "debug" => LoggingLevel::Debug,
        "warn" | "warning" => LoggingLevel::Warning,
        "error" => LoggingLevel::Error,
        _ => LoggingLevel::Info,
    }
}

impl Service {
    /// What `command` (`task_status` or `cancel_task`) says of the task at `address`.
    pub(super) async fn agent_task_command(
        &self,
        who: &Who,
        command: &str,
        address: String,
    ) -> Result<Value, Fault> {
        let args = Map::from_iter([("address".to_owned(), address.into())]);
        Ok(self.agent_call(who, command, args).await?.value)
    }

    /// Calls the tool that `who` knows by `name`.
    pub(super) async fn agent_call(
        &self,
        who: &Who,
        name: &str,
        args: Map<String, Value>,
    ) -> Result<Called, Fault> {
        if !who.may(name) {
            return Err(unknown(name));
        }
        if !fixed::is_fixed(name) {
            return self.agent_tool(who, name, args).await;
        }
        self.check_arguments(&Value::Object(fixed::input(name)), &args)?;
        match name {
            LIST_EXTENSIONS => Ok(self.agent_inventory(who).await?.into()),
            CALL_EXTENSION => {
                let tool = args.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                let args = args.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
                match self.agent_tool(who, &tool, args).await {
                    // The name is an argument here, so it is no fault of the protocol.
                    Err(Fault::Unknown(tool)) => {
                        Err(Refusal::new(Code::UnknownTool, format!("no tool {tool:?} can be called")).into())
                    }
                    result => result,
                }
            }
            DELEGATE_TASK => Ok(self.agent_task(who, args).await?.into()),
            TASK_STATUS | CANCEL_TASK => Ok(self.command(name, &args, &who.session()).await?.into()),
            _ => Err(unknown(name)),
        }
    }

    async fn agent_tool(&self, who: &Who, name: &str, args: Map<String, Value>) -> Result<Called, Fault> {
        let catalogue = self.catalogue().await?;
        let row = catalogue.find(name).filter(|_| who.may(name)).ok_or_else(|| unknown(name))?;
        row.check()?;
        if let Some(definition) = row.offered() {
            self.check_arguments(&Value::Object(definition.input_schema.clone()), &args)?;
        }
        match &row.source {
            Some(Source::Shelf { id }) => Ok(json!(self.call_tool(id, &args, CallOrigin::Mcp).await?).into()),
            Some(Source::Extension { extension, tool }) => self.agent_extension(extension, tool, args).await,
            None => Err(unknown(name)),
        }
    }

    async fn agent_extension(
        &self,
        extension: &str,
        tool: &str,
        args: Map<String, Value>,
    ) -> Result<Called, Fault> {
        let host = self.extensions().map_err(Refusal::from)?;
        let call = Invocation {
            extension: extension.to_owned(),
            tool: tool.to_owned(),
            args: Value::Object(args),
            passport: Some(self.desk().passport.clone()),
            request_id: None,
        };
        match host.invoke(call).await {
            Ok(Outcome::Wasm(outcome)) => Ok(answered(outcome.result, outcome.log)),
            Ok(Outcome::External(outcome)) => Ok(answered(outcome.result, Vec::new())),
            Err(err) => Err(Fault::Refused { refusal: (*err.error).into(), log: err.log }),
        }
    }

    /// Hands over a task. A tool of the shelf is called in the end, so it must be as it was admitted, and this client's.
    async fn agent_task(&self, who: &Who, mut args: Map<String, Value>) -> Result<Value, Refusal> {
        let agent = args.get("agent").and_then(Value::as_str).unwrap_or_default();
        if let Some(row) = self.catalogue().await?.of_shelf(agent) {
            row.check()?;
            if !who.may(row.name()) {
                let why = format!("the tool {:?} is not one of this client's", cut(agent, NAME_MAX_CHARS));
                return Err(Refusal::new(Code::UnknownTool, why));
            }
        }
        if !args.contains_key("callId") {
            args.insert("callId".to_owned(), call_id()?.into());
        }
        self.command(DELEGATE_TASK, &args, &who.session()).await
    }

    /// What there is for this client: the inventory, and under which names agents call what.
    pub(super) async fn agent_inventory(&self, who: &Who) -> Result<Value, Refusal> {
        let catalogue = self.catalogue().await?;
        let mut inventory = self.inventory().await?;
        let theirs = |row: &&Row| who.may(row.name());
        if let Some(extensions) = inventory["extensions"].as_array_mut() {
            extensions.retain(|extension| {
                let id = extension["tools"][0].as_str().unwrap_or_default();
                catalogue.of_shelf(id).as_ref().is_some_and(theirs)
            });
            inventory["catalogueCount"] = inventory["extensions"].as_array().map_or(0, Vec::len).into();
        }
        if !who.may_all() {
            inventory["failedLoads"] = json!([]);
        }
        let rows = catalogue.rows.values().filter(theirs).filter_map(|row| {
            let definition = row.offered()?;
            Some(json!({
                "name": definition.name,
                "from": row.key,
                "state": row.state.as_str(),
                "description": definition.description,
                "inputSchema": definition.input_schema,
                "digest": definition.digest,
            }))
        });
        inventory["tools"] = rows.collect();
        Ok(inventory)
    }

    fn check_arguments(&self, schema: &Value, args: &Map<String, Value>) -> Result<(), Refusal> {
        let args = Value::Object(args.clone());
        self.desk().schemas.check(schema, &args).map_err(|why| Refusal::new(Code::InvalidArgument, why))
    }
}

fn unknown(name: &str) -> Fault {
    Fault::Unknown(cut(name, NAME_MAX_CHARS))
}

/// What an extension answers. One that answers `{"content": […]}` with blocks of the protocol gives just these.
fn answered(result: Value, log: Vec<HostLogEntry>) -> Called {
    let blocks =
        result.as_object().filter(|result| result.len() == 1).and_then(|result| result.get("content"));
    let content = blocks.filter(|blocks| blocks.as_array().is_some_and(|blocks| !blocks.is_empty()));
    let content = content.and_then(|blocks| serde_json::from_value(blocks.clone()).ok());
    let value = if result.is_object() { result } else { json!({ "result": result }) };
    Called { value, content, log }
}

/// A name for a delegation whose caller has none.
fn call_id() -> Result<String, Refusal> {
    let mut bytes = [0; 12];
    private::fill_random(&mut bytes).map_err(|err| {
        Refusal::new(Code::TaskAdmissionFailed, format!("this computer gives no randomness: {err}"))
    })?;
    Ok(format!("mcp-{}", to_hex(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_may_answer_with_blocks() {
        let image = json!({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]});
        assert_eq!(answered(image, Vec::new()).content.unwrap().len(), 1);
        for other in [
            json!({"content": []}),
            json!({"content": [{"type": "unknown"}]}),
            json!({"content": [{"type": "text", "text": "x"}], "more": 1}),
            json!({"content": "x"}),
            json!("x"),
        ] {
            assert!(answered(other, Vec::new()).content.is_none());
        }
        assert_eq!(answered(json!([1]), Vec::new()).value, json!({"result": [1]}));
    }
}
