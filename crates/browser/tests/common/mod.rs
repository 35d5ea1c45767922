//! What the browser tests share.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and says where it cannot go on"
)]

use std::collections::BTreeMap;

use js_sys::{Array, Uint8Array};
use serde_json::{Value, json};
use toolshelf_browser::storage::Storage;
use toolshelf_browser::{PickedFile, Toolshelf, builtin};
use web_sys::File;

/// A folder as if a person had picked it.
pub(crate) fn files(folder: &BTreeMap<String, Vec<u8>>) -> Vec<PickedFile> {
    let file = |(path, bytes): (&String, &Vec<u8>)| {
        let parts = Array::of1(&Uint8Array::from(&bytes[..]));
        let file = File::new_with_u8_array_sequence(&parts, path).unwrap();
        PickedFile { path: format!("picked/{path}"), file }
    };
    folder.iter().map(file).collect()
}

/// A shelf in memory that holds the built-in tools.
pub(crate) async fn shelf_with_builtin() -> Toolshelf {
    let storage = Storage::in_memory();
    storage.put(&builtin::record()).await.unwrap();
    Toolshelf::over(storage)
}

/// A call's answer or refusal in its wire form.
pub(crate) async fn call(shelf: &Toolshelf, id: &str, args: &[(&str, &[u8])]) -> Value {
    let args = args.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    shelf.call(id, args).await.map_or_else(|refusal| json!(refusal), |answer| json!(answer))
}

/// The known answer of `hash`.
pub(crate) async fn hash_abc_works(shelf: &Toolshelf) {
    let answer = call(shelf, "hash", &[("input", b"abc")]).await;
    assert_eq!(
        answer["output"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "{answer}"
    );
}

/// The first characters of a value.
pub(crate) fn text(value: &Value, chars: usize) -> String {
    value.to_string().chars().take(chars).collect()
}
