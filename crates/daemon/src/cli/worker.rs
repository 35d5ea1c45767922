//! `toolshelf worker` runs a cluster's tasks; `toolshelf workers` lists who does.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};

use super::companion;
use super::outcome::Outcome;
use super::serve::{Ends, data_folder, failed, say};
use crate::cluster::config::ClusterConfig;
use crate::cluster::worker::{Worker, WorkerOptions};
use crate::config::Config;
use crate::log::{self, LogFormat};

/// The folder that agents work in, in the data folder.
const WORK_FOLDER: &str = "cluster-work";

/// A worker.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The cluster: servers of NATS with commas, instead of those of toolshelf.toml
    #[arg(long, value_name = "SERVERS")]
    pub(crate) cluster: Option<String>,
    /// Tasks that it runs at a time, 8 at most
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) slots: u8,
    /// What people call it; by default the name of this computer
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The folder of what it keeps, instead of the one in the settings
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The folder that agents work in
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// The form of the log on the standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log_format: LogFormat,
}

/// The cluster that the command line or `toolshelf.toml` names; the former's servers win.
///
/// # Errors
/// [`Code::ConfigInvalid`].
pub(super) fn cluster(
    servers: Option<String>,
    config: Option<ClusterConfig>,
) -> Result<Option<ClusterConfig>, Refusal> {
    let Some(servers) = servers else { return Ok(config) };
    let cluster = ClusterConfig { servers, ..config.unwrap_or_default() };
    cluster.check().map_err(|why| Refusal::new(Code::ConfigInvalid, format!("--cluster: {why}")))?;
    Ok(Some(cluster))
}

pub(super) async fn run(worker: WorkerArgs, as_json: bool) -> Result<Outcome, Refusal> {
    let WorkerArgs { cluster: servers, slots, name, data, root, log_format } = worker;
    let config = Config::load()?;
    let nothing = || Refusal::new(Code::ConfigInvalid, "name the cluster's servers with --cluster");
    let cluster = cluster(servers, config.cluster)?.ok_or_else(nothing)?;
    let data_dir = data_folder(data)?;
    log::start(log_format, &[]);
    let mut ends = Ends::new().map_err(|err| failed("signals cannot be heard", &err))?;
    let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let options = WorkerOptions {
        name: name.unwrap_or_else(host),
        root: root.unwrap_or_else(|| data_dir.join(WORK_FOLDER)),
        data_dir,
        agents: config.agents,
        slots: usize::from(slots).clamp(1, Placement::Remote.bounds().max_active_tasks),
    };
    let (shown, slots, name) = (cluster.shown(), options.slots, options.name.clone());
    let worker = Worker::open(&cluster, options).await?;
    if as_json {
        let pid = std::process::id();
        say(&json!({ "ok": true, "worker": worker.id(), "name": name, "slots": slots, "pid": pid })
            .to_string());
    } else {
        say(&format!(
            "{name} runs up to {slots} tasks at a time for the cluster at {shown}. Ctrl-C ends it."
        ));
    }
    tracing::info!(worker = worker.id(), name, slots, cluster = shown, "working");
    worker.run(ends.wait()).await;
    Ok(Outcome::done(json!({ "ok": true, "stopped": true }), "stopped\n".to_owned()))
}

/// Lists the workers of the cluster that the running companion admits tasks to.
pub(super) async fn list(shelf: Option<PathBuf>) -> Result<Outcome, Refusal> {
    let answer = companion::ask(shelf, "cluster", &json!({})).await?;
    let text = shown(&answer["cluster"]);
    Ok(Outcome::done(answer, text))
}

fn shown(cluster: &Value) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{:<24} {:>7} {:>9} {:>9}  agents", "worker", "running", "places", "done");
    for worker in cluster["workers"].as_array().into_iter().flatten() {
        let agents = worker["agents"].as_array().into_iter().flatten();
        let agents: Vec<&str> = agents.filter_map(|agent| agent["name"].as_str()).collect();
        let _ = writeln!(
            text,
            "{:<24} {:>7} {:>9} {:>9}  {}",
            worker["name"].as_str().unwrap_or_default(),
            worker["tasks"].as_array().map_or(0, Vec::len),
            worker["slots"],
            worker["done"],
            agents.join(" ")
        );
    }
    let _ = writeln!(
        text,
        "{} waiting, {} with workers; at most {} wait and {} run",
        cluster["waiting"], cluster["running"], cluster["queue"], cluster["capacity"]
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_names_servers_and_the_file_the_rest() {
        let file = ClusterConfig { servers: "nats://a".into(), replicas: 3, ..ClusterConfig::default() };
        assert_eq!(cluster(None, None).unwrap(), None);
        assert_eq!(cluster(None, Some(file.clone())).unwrap(), Some(file.clone()));
        let both = cluster(Some("nats://b".into()), Some(file)).unwrap().unwrap();
        assert_eq!((&*both.servers, both.replicas), ("nats://b", 3));
        assert_eq!(cluster(Some("b".into()), None).unwrap_err().code, Code::ConfigInvalid);
    }

    #[test]
    fn workers_are_listed_with_their_load() {
        let cluster = json!({"workers": [{"name": "one", "tasks": ["k"], "slots": 4, "done": 7, "agents": [{"name": "a"}]}],
            "waiting": 2, "running": 1, "queue": 10, "capacity": 5});
        let text = shown(&cluster);
        assert!(text.contains("one") && text.contains("2 waiting, 1 with workers"), "{text}");
    }
}
