//! The program as a parent process sees it: frames on its standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// `toolshelf stdio`, on its own data folder.
pub(crate) struct Frames {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Frames {
    /// Starts the program over the folder `root`, with keys and settings in `data`.
    pub(crate) fn start(data: &Path, root: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolshelf"))
            .args(["stdio", "--root"])
            .arg(root)
            .env("TOOLSHELF_DATA_DIR", data)
            .env("TOOLSHELF_CACHE_DIR", data.join("cache"))
            .env("TOOLSHELF_CONFIG", data.join("toolshelf.toml"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, last_id: 0 }
    }

    /// Sends a line as it is.
    pub(crate) fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        // The program may have been killed meanwhile.
        let _ = input.write_all(line).and_then(|()| input.flush());
    }

    /// Sends a request, and gives its id.
    pub(crate) fn send(&mut self, command: &str, args: &Value) -> u64 {
        self.last_id += 1;
        let line = format!("{}\n", json!({ "id": self.last_id, "command": command, "args": args }));
        self.send_line(line.as_bytes());
        self.last_id
    }

    /// The next frame; `None` when there will be none any more.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).ok()?;
        // A killed program may leave half a line.
        (read > 0 && line.ends_with('\n')).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&mut self, command: &str, args: &Value) -> Value {
        let id = self.send(command, args);
        loop {
            let frame = self.next().unwrap();
            if frame["id"] == id && frame.get("event").is_none() {
                return frame;
            }
        }
    }

    /// Closes the standard input and waits for the end.
    pub(crate) fn close(mut self) -> std::process::ExitStatus {
        self.input = None;
        while self.next().is_some() {}
        self.child.wait().unwrap()
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
