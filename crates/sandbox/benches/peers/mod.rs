//! Other libraries with the same work, in the same run: a program of `tools/peers`, which is asked in turns.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

/// What names the program; `cargo xtask bench extensions` builds it and sets this.
const PROGRAM: &str = "TOOLSHELF_BENCH_PEERS";

/// The program. It ends with its input.
pub(crate) struct Peers {
    child: Child,
    answers: BufReader<ChildStdout>,
    /// What is measured, in the order of the times.
    pub(crate) names: Vec<String>,
}

impl Peers {
    /// Starts the program, where there is one.
    pub(crate) fn start() -> Option<Self> {
        let program = std::env::var_os(PROGRAM)?;
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut peers = Self { child, answers, names: Vec::new() };
        peers.names = peers.line().split('\t').map(str::to_owned).collect();
        Some(peers)
    }

    /// What the extension is asked from now on.
    pub(crate) fn request(&mut self, request: &str) {
        self.say(request);
    }

    /// Microseconds of one of `calls` calls, of each way.
    pub(crate) fn round(&mut self, calls: u32) -> Vec<f64> {
        self.say(&calls.to_string());
        self.line().split('\t').map(|time| time.parse().unwrap()).collect()
    }

    fn say(&mut self, line: &str) {
        let mut input = self.child.stdin.as_ref().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
