//! A new project is what it should be: it builds, and its module is an extension that answers.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use wasmtime::{Caller, Engine, Extern, Linker, Module, Store};

use super::*;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn refused(name: &str, dir: &Path) -> String {
    let refusal = run(name, Some(dir.to_owned())).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidArgument);
    refusal.why
}

#[test]
fn the_library_comes_along_whole() {
    fn sources(folder: &Path, below: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = format!("{below}/{}", entry.file_name().to_str().unwrap());
            match entry.path().is_dir() {
                true => sources(&entry.path(), &path, found),
                false => assert!(found.insert(path)),
            }
        }
    }
    let mut there = BTreeSet::new();
    sources(&repository("crates/guest/src"), "toolshelf-guest/src", &mut there);
    let taken = FILES.iter().map(|(path, _)| (*path).to_owned());
    let taken: BTreeSet<_> = taken.filter(|path| path.starts_with("toolshelf-guest/src/")).collect();
    assert_eq!(taken, there);
}

#[test]
fn the_library_depends_on_what_it_depends_on_here() {
    let dependencies = |manifest: &str| {
        let (_, behind) = manifest.split_once("[features]").unwrap();
        let (features, _) = behind.split_once("[lints").unwrap();
        let lines = features.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let ours = fs::read_to_string(repository("crates/guest/Cargo.toml")).unwrap();
    let (_, theirs) = FILES.iter().find(|(path, _)| *path == "toolshelf-guest/Cargo.toml").unwrap();
    assert_eq!(dependencies(theirs), dependencies(&ours));
}

#[test]
fn the_name_is_filled_in_everywhere() {
    let files = files("acme.notes");
    for (path, contents) in &files {
        let is_ours = path.starts_with("toolshelf-guest/src/");
        assert!(is_ours || !contents.contains("{{"), "{path}: {contents}");
    }
    let file = |wanted: &str| &files.iter().find(|(path, _)| *path == wanted).unwrap().1;
    let manifest: Value = serde_json::from_str(file("manifest.json")).unwrap();
    assert_eq!(manifest["id"], "acme.notes");
    assert_eq!(manifest["tools"][0]["name"], "acme.notes.count");
    assert!(file("Cargo.toml").contains("name = \"ext-acme-notes\""));
    assert!(file("Cargo.lock").contains("name = \"ext-acme-notes\""));
}

#[test]
fn a_name_that_is_no_id_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("new");
    let long = "x".repeat(129);
    for (name, why) in [
        ("", "it is empty"),
        ("a b", "only letters"),
        ("a/b", "only letters"),
        ("ä", "only letters"),
        ("a\u{0}", "only letters"),
        ("..", "has to begin with a letter or a digit"),
        ("../x", "only letters"),
        ("-x", "has to begin"),
        ("Notes", "capitals"),
        (&long, "129 bytes"),
    ] {
        assert!(refused(name, &dir).contains(why), "{name}");
        assert!(!dir.exists());
    }
}

#[test]
fn what_is_there_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Cargo.toml");
    fs::write(&file, "mine").unwrap();
    assert!(refused("notes", folder.path()).ends_with("is there already, and is not overwritten"));
    assert!(refused("notes", &file).ends_with("is there already, and is not overwritten"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    let below_a_file = run("notes", Some(file.join("below"))).unwrap_err();
    assert!(matches!(below_a_file.code, Code::FileUnavailable | Code::InvalidArgument));
    // An empty folder is as good as none.
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let outcome = run("notes", Some(empty.clone())).unwrap();
    assert_eq!(outcome.json["files"].as_array().unwrap().len(), FILES.len());
    assert!(empty.join("src/lib.rs").is_file());
}

#[test]
fn a_new_project_builds_and_its_module_answers() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("project");
    run("acme.notes-2", Some(dir.clone())).unwrap();

    // As its README says, but for the folder of what is built, which other builds share.
    let target = repository("target/guests/target");
    let built = Command::new(env!("CARGO"))
        .current_dir(&dir)
        .args(["build", "--quiet", "--locked", "--target", "wasm32-unknown-unknown", "--release"])
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    assert!(said.is_empty(), "a new project has no warnings: {said}");

    let manifest: Value = serde_json::from_slice(&fs::read(dir.join("manifest.json")).unwrap()).unwrap();
    let module = manifest["wasm_module_path"].as_str().unwrap().strip_prefix("target/").unwrap();
    assert_eq!(counted(&fs::read(target.join(module)).unwrap()), r#"{"result":{"words":3}}"#);
}

/// The response of the module to one call, by a host that has one fact.
fn counted(module: &[u8]) -> String {
    const FACT: &str = r#"{"fact_id":"f","entity":"n","key":"text","value":"one two three","confidence":1.0,"stored_at_unix_ms":1}"#;
    const REQUEST: &str = r#"{"tool":"t","args":{"entity":"n"},"calling_passport_id":"p","request_id":"r"}"#;
    const RESPONSE_AT: usize = 128;

    let fact = |mut caller: Caller<'_, ()>, ptr: i32| {
        let memory = caller.get_export("memory").and_then(Extern::into_memory).unwrap();
        memory.write(&mut caller, usize::try_from(ptr).unwrap(), FACT.as_bytes()).unwrap();
        i32::try_from(FACT.len()).unwrap()
    };
    let engine = Engine::default();
    let module = Module::new(&engine, module).unwrap();
    let mut linker = Linker::new(&engine);
    linker
        .func_wrap(
            "crux",
            "read_fact",
            move |caller: Caller<'_, ()>, _: i32, _: i32, _: i32, _: i32, ptr: i32, _: i32| fact(caller, ptr),
        )
        .unwrap()
        .func_wrap(
            "crux",
            "store_fact",
            move |caller: Caller<'_, ()>,
                  _: i32,
                  _: i32,
                  _: i32,
                  _: i32,
                  _: i32,
                  _: i32,
                  _: i32,
                  ptr: i32,
                  _: i32| fact(caller, ptr),
        )
        .unwrap()
        .func_wrap("crux", "log", |_: i32, _: i32, _: i32, _: i32| ())
        .unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let memory = instance.get_memory(&mut store, "memory").unwrap();
    memory.write(&mut store, 0, REQUEST.as_bytes()).unwrap();
    let call = instance.get_typed_func::<(i32, i32, i32, i32), i32>(&mut store, "extension_call").unwrap();
    let asked = (0, REQUEST.len() as i32, RESPONSE_AT as i32, 65_536);
    let len = usize::try_from(call.call(&mut store, asked).unwrap()).unwrap();
    String::from_utf8(memory.data(&store)[RESPONSE_AT..RESPONSE_AT + len].to_vec()).unwrap()
}
