//! `globalThis.toolshelf` for scripts. Its functions are fetched with the first call: most visitors call none.

use js_sys::Object;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::{Toolshelf, console};

/// Puts the interface there.
pub(crate) fn install(shelf: Toolshelf) {
    console::install(move || {
        let functions = functions(shelf.clone());
        Box::pin(async move {
            let failed =
                |_| Refusal::new(Code::ExecutorUnavailable, "this part of the page could not be loaded");
            functions.await.map_err(failed)
        })
    });
}

#[wasm_split(console, wasm_split_path = leptos::wasm_split, fallible)]
fn functions(shelf: Toolshelf) -> Result<Object, SplitLoaderError> {
    Ok(shelf.console_api())
}
