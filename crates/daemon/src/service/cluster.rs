//! What callers ask of the cluster that this companion admits tasks to, where there is one.

use serde_json::{Map, Value, json};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::listing::Filter;
use toolshelf_host::{Caller, Wish};

use super::commands::{LISTED, LISTED_MAX, read};
use super::{OWNER, Service, Session};
use crate::cluster::{CLUSTER, Cluster};

/// What a caller of `delegate_task` says beside the task itself.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Beside {
    call_id: Option<String>,
    deadline_ms: Option<u32>,
}

/// Which tasks to list.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListTasks {
    #[serde(default)]
    filter: Filter,
    before: Option<u64>,
    limit: Option<usize>,
}

impl Service {
    /// Does what is asked of the cluster; `None` for what is asked of somebody else. A command that begins something
    /// names the environment; one that goes on names an address.
    ///
    /// | command | answer |
    /// |---|---|
    /// | `cluster` | `{ok, cluster}`: workers, load, bounds |
    /// | `delegate_task {…, environment}` | `{ok, task, existing}` |
    /// | `list_tasks {…, environment}`, `task_detail {…, environment}` | as of this computer |
    /// | `task_status {address}`, `cancel_task {address}` | as of this computer |
    pub(super) async fn ask_cluster(
        &self,
        name: &str,
        args: &Map<String, Value>,
        session: &Session,
    ) -> Option<Result<Value, Refusal>> {
        if session.owner != OWNER {
            // A token of another machine is good for this one alone.
            return None;
        }
        let named = args.get("environment").and_then(Value::as_str);
        let Some(cluster) = &self.inner.cluster else {
            let meant = name == CLUSTER || named == Some(CLUSTER);
            return meant.then(|| {
                let why = "this companion admits tasks to no cluster; start it with --cluster";
                Err(Refusal::new(Code::PlacementUnavailable, why))
            });
        };
        let meant = match name {
            CLUSTER => true,
            "task_status" | "cancel_task" => {
                args.get("address").and_then(Value::as_str).is_some_and(|address| cluster.has(address))
            }
            "delegate_task" | "list_tasks" | "task_detail" => named.is_some_and(|key| cluster.is_meant(key)),
            _ => false,
        };
        if !meant {
            return None;
        }
        let mut args = args.clone();
        args.remove("environment");
        Some(answer(cluster, name, args, session).await)
    }
}

async fn answer(
    cluster: &Cluster,
    name: &str,
    mut args: Map<String, Value>,
    session: &Session,
) -> Result<Value, Refusal> {
    match name {
        CLUSTER => Ok(json!({ "ok": true, "cluster": cluster.view().await? })),
        "list_tasks" => {
            let ListTasks { filter, before, limit } = read(&args)?;
            let limit = limit.unwrap_or(LISTED).clamp(1, LISTED_MAX);
            let page = cluster.list(&session.owner, filter, before, limit).await?;
            Ok(json!({ "ok": true, "rows": page.rows, "next": page.next }))
        }
        "task_detail" => {
            let position = args.get("position").and_then(Value::as_u64);
            let needed = || Refusal::new(Code::InvalidArgument, "`position` is needed, a whole number");
            let detail = cluster.detail(&session.owner, position.ok_or_else(needed)?).await?;
            Ok(json!({ "ok": true, "detail": detail }))
        }
        _ => {
            let names = ["callId", "deadlineMs"];
            let beside =
                names.into_iter().filter_map(|name| Some((name.to_owned(), args.remove(name)?))).collect();
            let Beside { call_id, deadline_ms } = read(&beside)?;
            let wish = Wish { root: None, deadline_ms };
            let caller = Caller { owner: Some(session.owner.clone()), call_id, wish };
            Ok(json!(cluster.call(name, &Value::Object(args), &caller).await?))
        }
    }
}
