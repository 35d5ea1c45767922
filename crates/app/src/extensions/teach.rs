//! What a shelf is, for whoever has none of their own.

use leptos::prelude::*;

use crate::ui::copy::CopyButton;

const MANIFEST: &str = r#"{
  "name": "my-shelf",
  "version": "1",
  "tools": [
    {
      "id": "sha",
      "wasm": "sha.wasm",
      "digest": "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476",
      "abi": "buffer-abi/1",
      "description": "SHA-256 of up to 8192 bytes"
    }
  ]
}
"#;
const PIN: &str = "sha256sum sha.wasm";

/// How to make a shelf.
#[component]
pub(super) fn Teach() -> impl IntoView {
    view! {
        <section class="teach" aria-labelledby="teach-h">
            <h2 id="teach-h">"A shelf is a folder with a manifest"</h2>
            <p>
                "Pick a tool from the list to run it, or bring your own: put your WebAssembly modules beside a "
                <code>"manifest.json"</code>
                " that pins the SHA-256 of each. A module whose bytes hash to something else is refused, when it is \
                added and again on every call."
            </p>
            <ol class="teach__steps">
                <li>
                    "Build a module with no imports that exports its memory and "<code>"sha256"</code>" or "
                    <code>"diff"</code>"."
                </li>
                <li>"Write its SHA-256 into the manifest; "<code>{PIN}</code>" prints it."</li>
                <li>"Drop the folder on this page."</li>
            </ol>
            <Sample name="manifest.json" text=MANIFEST label="A minimal manifest.json"/>
            <Sample name="How to pin" text=PIN label="The command that prints the digest"/>
        </section>
    }
}

/// A text to copy.
#[component]
fn Sample(
    /// What stands above it.
    name: &'static str,
    /// The text.
    text: &'static str,
    /// What it is called.
    label: &'static str,
) -> impl IntoView {
    view! {
        <div class="sample">
            <div class="sample__head">
                <span>{name}</span>
                <CopyButton text=text.to_owned() words="Copy" class="btn btn--quiet copy"/>
            </div>
            <pre tabindex="0" role="region" aria-label=label><code>{text.trim_end()}</code></pre>
        </div>
    }
}
