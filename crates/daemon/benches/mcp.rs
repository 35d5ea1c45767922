//! What agents wait for: `cargo xtask bench mcp`.
//!
//! `toolshelf mcp` beside a bare server of the protocol's library, whose tool is a native function in the same process, and
//! beside hyper-mcp where it is installed (`HYPER_MCP` names the program, `HYPER_MCP_CONFIG` its configuration with a
//! plugin whose tool `hash` takes `input`). All over standard input and output, in one run and in turns.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that measures and prints")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::io::stdio_pipes;
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Starts of each server.
const STARTS: usize = 40;
/// Calls of each server.
const CALLS: usize = 2_000;
/// The first of both are not counted: they fill the caches.
const WARM: usize = 5;
/// By this argument the program becomes the bare server.
const BARE: &str = "--bare-server";
/// Time between two calls, as between those of an agent. Workers that stand ready are there again.
const PAUSE: Duration = Duration::from_millis(5);

fn main() {
    if std::env::args().nth(1).is_some_and(|argument| argument == BARE) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(bare());
    }
    let data = tempfile::tempdir().unwrap();
    let mut servers = vec![
        Kind { name: "toolshelf mcp", command: ours(data.path()) },
        Kind { name: "bare rmcp, native", command: bare_command() },
    ];
    servers.extend(peer().map(|command| Kind { name: "hyper-mcp", command }));
    starts(&mut servers);
    calls(&mut servers);
}

struct Kind {
    name: &'static str,
    command: Command,
}

fn ours(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolshelf"));
    command.arg("mcp").env("TOOLSHELF_DATA_DIR", data).env("TOOLSHELF_CACHE_DIR", data.join("cache"));
    command.env("TOOLSHELF_CONFIG", data.join("none.toml")).env_remove("TOOLSHELF_SHELF_DIR");
    command
}

fn bare_command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(BARE);
    command
}

fn peer() -> Option<Command> {
    let program = std::env::var_os("HYPER_MCP").map(PathBuf::from)?;
    let mut command = Command::new(program);
    command.arg("--config-file").arg(std::env::var_os("HYPER_MCP_CONFIG")?);
    Some(command)
}

fn starts(servers: &mut [Kind]) {
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); servers.len()];
    for round in 0..STARTS + WARM {
        for (server, times) in servers.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            let mut session = Session::start(&mut server.command);
            session.ask("tools/list", &json!({}));
            if round >= WARM {
                times.push(begun.elapsed());
            }
        }
    }
    println!("from start to the first list of tools, {STARTS} starts:");
    for (server, times) in servers.iter().zip(&mut times) {
        print(server.name, times);
    }
}

fn calls(servers: &mut [Kind]) {
    let mut sessions: Vec<Session> =
        servers.iter_mut().map(|server| Session::start(&mut server.command)).collect();
    let tools: Vec<String> = sessions.iter_mut().map(Session::hash_tool).collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); servers.len()];
    for round in 0..CALLS + WARM {
        for ((session, tool), times) in sessions.iter_mut().zip(&tools).zip(&mut times) {
            std::thread::sleep(PAUSE);
            let call = json!({ "name": tool, "arguments": { "input": "abc" } });
            let begun = Instant::now();
            let answer = session.ask("tools/call", &call);
            let took = begun.elapsed();
            assert!(answer.to_string().contains("ba7816bf8f01cfea"), "{answer}");
            if round >= WARM {
                times.push(took);
            }
        }
    }
    println!("tools/call of hash, {CALLS} calls:");
    for (server, times) in servers.iter().zip(&mut times) {
        print(server.name, times);
    }
    let difference = at(&times[0], 0.5).saturating_sub(at(&times[1], 0.5));
    println!("  toolshelf takes {:.3} ms more than the bare server at the median", ms(difference));
}

fn print(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    println!("  {name:<18} median {:>8.3} ms   p99 {:>8.3} ms", ms(at(times, 0.5)), ms(at(times, 0.99)));
}

/// The time that this part of all took at most; they are sorted.
fn at(times: &[Duration], part: f64) -> Duration {
    times[((times.len() as f64 * part) as usize).min(times.len() - 1)]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// A client's session, without anything that would take time of its own.
struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Session {
    fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut session = Self { child, input, output, last_id: 0 };
        session.ask("initialize", &json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        }));
        session.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        session
    }

    fn say(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.last_id {
                return message;
            }
        }
    }

    /// The name of the tool that hashes.
    fn hash_tool(&mut self) -> String {
        let listed = self.ask("tools/list", &json!({}));
        let names =
            listed["result"]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str());
        names.into_iter().find(|name| name.ends_with("hash")).unwrap().to_owned()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server of the protocol's library, and nothing else.
struct Bare;

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "input": { "type": "string" } }, "required": ["input"] });
        let tool = Tool::new("hash", "SHA-256", schema.as_object().cloned().unwrap());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = request.arguments.as_ref().and_then(|args| args["input"].as_str()).unwrap_or_default();
        let hash: String = Sha256::digest(input).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(CallToolResult::success(vec![ContentBlock::text(hash)]).into())
    }
}

async fn bare() {
    Bare.serve(stdio_pipes()).await.unwrap().waiting().await.unwrap();
}
