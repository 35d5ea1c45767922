//! What is committed on the shelf is what its sources say.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tools_tests::{Tool, module_bytes};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn manifest() -> serde_json::Value {
    let text = std::fs::read_to_string(repository("www/shelf/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("a manifest in JSON")
}

fn ids() -> Vec<String> {
    let manifest = manifest();
    let tools = manifest["tools"].as_array().expect("a list of tools");
    tools.iter().map(|tool| tool["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn every_module_written_as_text_is_its_text() {
    for id in ["hash", "diff"] {
        let text = repository("tools/guests").join(id).join(id).with_extension("wat");
        let compiled = wat::parse_file(text).unwrap();
        assert!(compiled == module_bytes(id), "{id}: run `cargo xtask build-wasm`");
    }
}

#[test]
fn the_manifest_pins_every_module_by_its_digest() {
    assert_eq!(ids(), ["hash", "diff", "diff-loose"]);
    for tool in manifest()["tools"].as_array().unwrap() {
        let id = tool["id"].as_str().unwrap();
        assert_eq!(tool["wasm"], format!("{id}.wasm"));
        let digest = Sha256::digest(module_bytes(id));
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(tool["digest"], digest, "{id}");
        let abi = if id == "hash" { "buffer-abi/1" } else { "buffer-abi/diff" };
        assert_eq!(tool["abi"], abi);
        assert!(!tool["description"].as_str().unwrap().is_empty());
        assert!(!tool["capability"].as_str().unwrap().is_empty());
    }
}

#[test]
fn no_module_imports_anything_or_grows_without_bound() {
    for id in ids() {
        let tool = Tool::shipped(&id);
        assert_eq!(tool.imports(), 0, "{id}");
        let (pages, most) = tool.pages();
        assert!(
            most.is_some_and(|most| pages <= most && most <= 1024),
            "{id}: {pages} pages, at most {most:?}"
        );
    }
    assert_eq!(Tool::shipped("hash").pages(), (2, Some(2)));
}
