//! The real program, as people and scripts use it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{ANSWERS, SPINS, one_tool_of_text, written};
use serde_json::{Value, json};
use tempfile::TempDir;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// A person's home: nothing is set up, and nothing of the real one is seen.
struct Home {
    dir: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolshelf"));
        command.args(args).env_clear().env("HOME", self.dir.path()).current_dir(self.dir.path());
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(args);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that has read enough closes its input.
        let _ = child.stdin.take().unwrap().write_all(input);
        Ran::of(child.wait_with_output().unwrap())
    }
}

#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The one JSON value on the output.
    fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

#[test]
fn a_call_works_with_nothing_set_up() {
    let home = Home::new();
    let ran = home.run(&["call", "hash", "--input", "abc"]);
    assert_eq!((ran.code, ran.out.trim(), ran.err.as_str()), (0, ABC, ""), "{ran:?}");
    let answer = home.run(&["--json", "call", "hash", "--input", "abc"]).json();
    assert_eq!(
        (&answer["ok"], &answer["output"], &answer["returned"]),
        (&json!(true), &json!(ABC), &json!(32))
    );
}

#[test]
fn the_input_is_a_text_a_file_or_what_is_piped_in() {
    let home = Home::new();
    home.write("abc.txt", "abc");
    for ran in [
        home.run(&["call", "hash", "--file", "abc.txt"]),
        home.run_with_input(&["call", "hash"], b"abc"),
        home.run_with_input(&["call", "hash", "--file", "-"], b"abc"),
    ] {
        assert_eq!((ran.code, ran.out.trim()), (0, ABC), "{ran:?}");
    }
}

#[test]
fn two_files_are_compared_and_shown_as_a_diff() {
    let home = Home::new();
    home.write("a", "same\nold\nsame\n");
    home.write("b", "same\nnew\nsame\nmore\x1b[31m\n");
    let ran = home.run(&["call", "diff", "--a", "a", "--b", "b"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, " same\n-old\n+new\n same\n+more\u{fffd}[31m\n"));
    assert_eq!(home.run_with_input(&["call", "diff", "--a", "-", "--b", "b"], b"same\n").code, 0);
    let blocks = home.run(&["call", "diff", "--a", "a", "--b", "b", "--json"]).json();
    assert_eq!(blocks["blocks"][0]["op"], "equal");
}

#[test]
fn scripts_can_tell_how_it_ended_by_the_exit_code() {
    let home = Home::new();
    let traps = one_tool_of_text(
        r#"(module (memory (export "memory") 2) (func (export "sha256") (param i32) (result i32) unreachable))"#,
    );
    let traps = traps.path().to_str().unwrap();
    home.write("long", vec![b'a'; 8_193]);
    for (code, name, args) in [
        (1, "unknown-tool", vec!["call", "nope", "--input", "x"]),
        (1, "over-budget", vec!["call", "hash", "--file", "long"]),
        (1, "invalid-argument", vec!["call", "diff", "--input", "x"]),
        (1, "invalid-argument", vec!["call", "hash", "--a", "long", "--b", "long"]),
        (3, "wasm-trapped", vec!["call", "case", "--input", "x", "--shelf", traps]),
        (4, "file-unavailable", vec!["call", "hash", "--file", "nowhere"]),
        (4, "shelf-unavailable", vec!["call", "hash", "--input", "x", "--shelf", "nowhere"]),
    ] {
        let ran = home.run(&args);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{args:?} {ran:?}");
        assert!(ran.err.starts_with(&format!("{name}: ")), "{ran:?}");
        let ran = home.run(&[&["--json"], &args[..]].concat());
        assert_eq!(ran.code, code);
        let refusal = ran.json();
        assert_eq!((&refusal["ok"], &refusal["refused"]), (&json!(false), &json!(name)));
        assert_eq!(ran.err, "");
    }
    for args in [
        &["jump"][..],
        &["call"],
        &["call", "hash", "--input", "x", "--file", "y"],
        &["call", "diff", "--a", "x"],
    ] {
        assert_eq!(home.run(args).code, 2, "{args:?}");
    }
}

#[test]
fn an_input_that_never_ends_is_refused_when_it_is_too_long() {
    let home = Home::new();
    let ran = Ran::of(
        home.command(&["call", "hash"]).stdin(fs::File::open("/dev/zero").unwrap()).output().unwrap(),
    );
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("over-budget"), "{ran:?}");
}

#[test]
fn a_module_that_never_ends_is_ended_and_named() {
    let home = Home::new();
    let dir = one_tool_of_text(SPINS);
    let ran = home.run(&["call", "case", "--input", "x", "--shelf", dir.path().to_str().unwrap()]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("time-exceeded") && ran.err.contains("bounded by the host"), "{ran:?}");
}

#[test]
fn the_shelf_is_where_the_settings_say() {
    let home = Home::new();
    let listed = |variables: &[(&str, &Path)]| {
        let mut command = home.command(&["--json", "list"]);
        command.envs(variables.iter().copied());
        let list = Ran::of(command.output().unwrap()).json();
        let ids =
            list["shelves"].as_array().unwrap().iter().flat_map(|shelf| shelf["tools"].as_array().unwrap());
        ids.map(|tool| tool["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let builtin = ["hash", "diff", "diff-loose"];
    assert_eq!(listed(&[]), builtin);
    let mine = one_tool_of_text(ANSWERS);
    let with_mine = ["case", "hash", "diff", "diff-loose"];
    assert_eq!(listed(&[("TOOLSHELF_SHELF_DIR", mine.path())]), with_mine);
    assert_eq!(listed(&[("VOICEBOX_WASM_SHELF_DIR", mine.path())]), with_mine);
    assert_eq!(
        listed(&[("TOOLSHELF_SHELF_DIR", Path::new("")), ("VOICEBOX_WASM_SHELF_DIR", mine.path())]),
        with_mine
    );

    // The place of another system is read when it is there, and the usual place before it.
    let module = wat::parse_str(ANSWERS).unwrap();
    let digest = toolshelf_core::Digest::of(&module).to_string();
    let manifest = |id: &str| json!([{ "id": id, "wasm": "m.wasm", "digest": digest }]).to_string();
    home.write(".isocan/modules/wasm-tools/manifest.json", manifest("hash"));
    home.write(".isocan/modules/wasm-tools/m.wasm", &module);
    assert_eq!(listed(&[]), ["hash", "diff", "diff-loose"]);
    let ran = home.run(&["--json", "call", "hash", "--input", "abc"]).json();
    assert_eq!(ran["digest"], digest.as_str(), "the folder's tool comes before the built-in one of its id");
    home.write("data/shelf/manifest.json", manifest("usual"));
    home.write("data/shelf/m.wasm", &module);
    assert_eq!(
        listed(&[("TOOLSHELF_DATA_DIR", &home.path("data"))]),
        ["usual", "hash", "diff", "diff-loose"]
    );
}

#[test]
fn a_tool_that_was_changed_is_refused_and_not_replaced_by_the_built_in_one() {
    let home = Home::new();
    home.write("s/manifest.json", include_bytes!("../../../www/shelf/manifest.json"));
    for (file, bytes) in [
        ("hash.wasm", &include_bytes!("../../../www/shelf/hash.wasm")[..]),
        ("diff.wasm", include_bytes!("../../../www/shelf/diff.wasm")),
        ("diff-loose.wasm", include_bytes!("../../../www/shelf/diff-loose.wasm")),
    ] {
        home.write(&format!("s/{file}"), bytes);
    }
    assert_eq!(home.run(&["--shelf", "s", "list"]).code, 0);
    let mut changed = fs::read(home.path("s/hash.wasm")).unwrap();
    changed[300] ^= 1;
    home.write("s/hash.wasm", changed);
    let ran = home.run(&["--shelf", "s", "call", "hash", "--input", "abc"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("digest-mismatch") && ran.err.contains("but the manifest pins"), "{ran:?}");
    let ran = home.run(&["--shelf", "s", "list"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("digest-mismatch") && ran.out.contains("admitted"), "{ran:?}");
    assert!(!ran.out.contains('\x1b'), "no colours where nobody looks");
}

#[test]
fn text_becomes_a_pinned_tool_in_two_steps() {
    let home = Home::new();
    home.write("mine/tool.wat", ANSWERS);
    let ran = home.run(&["build", "mine/tool.wat"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("buffer-abi/1"), "{ran:?}");
    let ran = home.run(&["pin", "mine"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = home.run(&["--shelf", "mine", "--json", "call", "tool", "--input", "x"]);
    assert_eq!(ran.json()["ok"], true, "{ran:?}");
    let again = home.run(&["--json", "pin", "mine"]).json();
    assert_eq!((&again["ok"], &again["written"]), (&json!(true), &json!(false)));
}

#[test]
fn pinning_keeps_the_manifest_as_its_author_wrote_it() {
    let home = Home::new();
    let entry =
        r#"{"wasm": "tool.wasm", "id": "tool", "digest": "old", "abi": "buffer-abi/1", "mine": [1.5, null]}"#;
    home.write(
        "s/manifest.json",
        format!(r#"{{"version": "7", "tools": [{entry}], "name": "n", "other": true}}"#),
    );
    home.write("s/tool.wasm", wat::parse_str(ANSWERS).unwrap());
    assert_eq!(home.run(&["pin", "s"]).code, 0);
    let text = fs::read_to_string(home.path("s/manifest.json")).unwrap();
    let places: Vec<_> = [
        "\"version\"",
        "\"tools\"",
        "\"wasm\"",
        "\"id\"",
        "\"digest\"",
        "\"abi\"",
        "\"mine\"",
        "\"name\"",
        "\"other\"",
    ]
    .iter()
    .map(|key| text.find(key).unwrap())
    .collect();
    assert!(places.is_sorted(), "{text}");
    assert!(!text.contains("old"));
    assert_eq!(home.run(&["--shelf", "s", "list"]).code, 0);
    let left: Vec<_> =
        fs::read_dir(home.path("s")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn what_would_be_refused_is_not_pinned_and_nothing_is_written() {
    let home = Home::new();
    let importing = r#"(module (import "env" "f" (func)) (memory (export "memory") 2)
        (func (export "sha256") (param i32) (result i32) i32.const 32))"#;
    home.write("s/good.wasm", wat::parse_str(ANSWERS).unwrap());
    home.write("s/bad.wasm", wat::parse_str(importing).unwrap());
    let manifest = r#"[{"id":"good","wasm":"good.wasm"},{"id":"bad","wasm":"bad.wasm"},{"id":"gone","wasm":"gone.wasm"},{"id":"out","wasm":"../x"}]"#;
    home.write("s/manifest.json", manifest);
    let ran = home.run(&["--json", "pin", "s"]);
    assert_eq!(ran.code, 1);
    let tools = ran.json()["tools"].clone();
    let refused: Vec<_> =
        (0..4).map(|index| tools[index]["refused"].as_str().unwrap_or("admitted")).collect();
    assert_eq!(refused, ["admitted", "import-undeclared", "wasm-unreadable", "outside-root"]);
    assert_eq!(fs::read_to_string(home.path("s/manifest.json")).unwrap(), manifest);
    assert_eq!(home.run(&["pin", "nowhere"]).code, 4);
    fs::create_dir(home.path("empty")).unwrap();
    assert_eq!(home.run(&["pin", "empty"]).code, 4);
}

#[test]
fn a_module_is_described_and_a_shelfs_verdict_foretold() {
    let home = Home::new();
    home.write("good.wasm", wat::parse_str(ANSWERS).unwrap());
    home.write("bad.wasm", b"\0asm\x01\0\0\0");
    home.write("none.wasm", b"MZ");
    let good = home.run(&["--json", "inspect", "good.wasm"]);
    assert_eq!((good.code, &good.json()["abis"]), (0, &json!(["buffer-abi/1"])));
    let bad = home.run(&["--json", "inspect", "bad.wasm"]);
    assert_eq!((bad.code, &bad.json()["refused"]), (1, &json!("unsupported-abi")));
    assert_eq!(bad.json()["digest"], "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476");
    assert_eq!(home.run(&["--json", "inspect", "none.wasm"]).json()["refused"], "wasm-invalid");
    // Sections are fine, a body is not: only compiling tells.
    let cases = toolshelf_conformance::modules();
    let case = cases.iter().find(|case| case.name == "bad-body").unwrap();
    home.write("body.wasm", case.module.bytes());
    assert_eq!(home.run(&["--json", "inspect", "body.wasm"]).json()["refused"], "wasm-invalid");
}

#[test]
fn doctor_says_how_calls_are_shut_in() {
    let home = Home::new();
    let ran = home.run(&["--json", "doctor"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let checks = ran.json()["checks"].clone();
    let holds = |name: &str| {
        checks.as_array().unwrap().iter().find(|check| check["name"] == name).unwrap()["holds"].clone()
    };
    for name in ["call", "environment", "limits", "cache"] {
        assert_eq!(holds(name), true, "{checks}");
    }
}

#[test]
fn compiled_code_is_kept_for_its_owner_and_code_that_was_changed_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let variables = [("TOOLSHELF_CACHE_DIR", home.path("cache")), ("TOOLSHELF_DATA_DIR", home.path("data"))];
    let call = || {
        let mut command = home.command(&["call", "hash", "--input", "abc"]);
        let ran = Ran::of(command.envs(variables.clone()).output().unwrap());
        assert_eq!((ran.code, ran.out.trim()), (0, ABC), "{ran:?}");
    };
    call();
    let code = home.path("cache/code");
    let file = fs::read_dir(&code).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&code), mode(&file), mode(&home.path("data/code.key"))), (0o700, 0o600, 0o600));

    let kept = fs::read(&file).unwrap();
    for at in [0, 40, kept.len() / 2, kept.len() - 1] {
        let mut changed = kept.clone();
        changed[at] ^= 1;
        fs::write(&file, &changed).unwrap();
        call();
        assert_eq!(fs::read(&file).unwrap(), kept, "what did not verify was compiled and written again");
    }
    // Code of another module under this one's name.
    let mut diff = home.command(&["call", "diff", "--a", "/dev/null", "--b", "/dev/null"]);
    assert!(diff.envs(variables.clone()).output().unwrap().status.success());
    let other = fs::read_dir(&code).unwrap().map(|entry| entry.unwrap().path()).find(|path| *path != file);
    fs::copy(other.unwrap(), &file).unwrap();
    call();
    // Another key: nothing that was kept is believed.
    fs::remove_file(home.path("data/code.key")).unwrap();
    call();
    assert_ne!(fs::read(&file).unwrap(), kept);
    // A folder that others can write is not used, and calls work without it.
    fs::set_permissions(&code, fs::Permissions::from_mode(0o777)).unwrap();
    fs::remove_file(&file).unwrap();
    call();
    assert!(!file.exists());
}

#[test]
fn completions_and_help_are_there() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = home.run(&["completions", shell]);
        assert!(ran.code == 0 && ran.out.contains("toolshelf"), "{shell}");
        let mut words = ran.out.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        assert!(words.all(|word| word != "__worker"), "the worker's command is nobody's to type");
    }
    let help = home.run(&["--help"]).out;
    for part in ["Examples:", "Exit codes:", "TOOLSHELF_SHELF_DIR", "VOICEBOX_WASM_SHELF_DIR", "NO_COLOR"] {
        assert!(help.contains(part), "{part} in {help}");
    }
    assert_eq!(home.run(&["--version"]).out.trim(), concat!("toolshelf ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_empty_folder_is_a_shelf_without_a_manifest() {
    let home = Home::new();
    let dir = written(&std::collections::BTreeMap::new());
    let list = home.run(&["--json", "--shelf", dir.path().to_str().unwrap(), "list"]);
    assert_eq!(list.code, 4);
    assert_eq!(list.json()["shelves"][0]["refused"], "shelf-unavailable");
    assert_eq!(list.json()["shelves"][1]["tools"], json!([]), "nothing stands in for what cannot be read");
}
