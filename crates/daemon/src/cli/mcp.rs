//! `toolshelf mcp`: the shelf for agents, on standard input and output; tokens for those that come over HTTP.

use std::path::PathBuf;

use rmcp::transport::io::stdio_pipes;
use serde_json::json;
use tokio::task::spawn_local;
use toolshelf_core::refusal::{Code, Refusal};

use super::args_mcp::{Mcp, McpToken};
use super::outcome::Outcome;
use super::show::{Style, printable, table};
use super::{mcp_install, serve};
use crate::http::handle::Handle;
use crate::mcp::backend::Backend;
use crate::mcp::socket;
use crate::mcp::tokens::Tokens;
use crate::service::{Service, ServiceOptions};
use crate::{settings, watch};

pub(super) async fn run(
    shelf: Option<PathBuf>,
    roots: Vec<PathBuf>,
    command: Option<Mcp>,
    style: Style,
) -> Result<Outcome, Refusal> {
    match command {
        None => serve(shelf, roots).await,
        Some(Mcp::Install { client, print, remove, file }) => {
            mcp_install::run(shelf, client, file, print, remove)
        }
        Some(Mcp::Token(command)) => token(command, style),
    }
}

/// Serves one client. The handshake waits for nothing: the companion is opened beside it.
async fn serve(shelf: Option<PathBuf>, roots: Vec<PathBuf>) -> Result<Outcome, Refusal> {
    let data = data_dir()?;
    let (reader, writer) = stdio_pipes();
    // Another shelf, or other folders, than the running companion's may be meant.
    if shelf.is_none()
        && roots.is_empty()
        && let Some(running) = socket::connect(&data).await
    {
        socket::bridge(running, reader, writer).await?;
        return Ok(Outcome::silent());
    }
    let (opening, backend) = Backend::opening();
    let opened = spawn_local(async move {
        let opened = open(shelf, roots, data).await;
        let handle = opened.as_ref().map(|service| Handle::of(service.clone())).map_err(Clone::clone);
        // The session may be over already.
        let _ = opening.send(Some(handle));
        if let Ok(service) = &opened {
            // The client hears of what changes; that goes on until it ends.
            spawn_local(watch::watch(service.clone()));
        }
        opened.ok()
    });
    let ended = socket::session(backend, reader, writer).await;
    if let Ok(Some(service)) = opened.await {
        service.shut_down().await;
    }
    ended?;
    // The output is the protocol's alone.
    Ok(Outcome::silent())
}

async fn open(shelf: Option<PathBuf>, roots: Vec<PathBuf>, data: PathBuf) -> Result<Service, Refusal> {
    let roots = serve::roots(roots, &data)?;
    Service::open(ServiceOptions { shelf, data_dir: Some(data), roots, cluster: None }).await
}

fn data_dir() -> Result<PathBuf, Refusal> {
    settings::data_dir().ok_or_else(|| {
        Refusal::new(Code::StorageUnavailable, "there is no home folder for keys; set TOOLSHELF_DATA_DIR")
    })
}

fn token(command: McpToken, style: Style) -> Result<Outcome, Refusal> {
    let tokens = Tokens::in_folder(&data_dir()?);
    match command {
        McpToken::Add { name, tools } => {
            let tools = tools.map(|tools| tools.into_iter().map(|tool| tool.trim().to_owned()).collect());
            let token = tokens.add(&name, tools)?;
            let text = format!(
                "{}\n{}\n",
                *token,
                style.dim(
                    "This is the only time that it is shown. Send it as `authorization: Bearer …` to /mcp."
                )
            );
            Ok(Outcome::done(json!({ "ok": true, "name": name, "token": *token }), text))
        }
        McpToken::List => {
            let all = tokens.all()?;
            let mut rows = vec![["NAME", "TOOLS"].map(str::to_owned).to_vec()];
            rows.extend(all.iter().map(|(name, kept)| {
                let tools = kept.tools.as_ref();
                let tools =
                    tools.map_or("all".to_owned(), |tools| Vec::from_iter(tools.iter().cloned()).join(", "));
                vec![printable(name), printable(&tools)]
            }));
            let text = if all.is_empty() { "no tokens\n".to_owned() } else { table(&rows, style) };
            let listed: Vec<_> = all
                .iter()
                .map(|(name, kept)| json!({ "name": name, "tools": kept.tools, "made_at_unix_ms": kept.made_at_unix_ms }))
                .collect();
            Ok(Outcome::done(json!({ "ok": true, "tokens": listed }), text))
        }
        McpToken::Remove { name } => {
            tokens.remove(&name)?;
            Ok(Outcome::done(json!({ "ok": true }), "removed\n".to_owned()))
        }
    }
}
