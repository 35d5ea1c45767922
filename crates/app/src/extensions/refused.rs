//! A tool that was not admitted, and what to do about it.

use leptos::prelude::*;
use toolshelf_browser::core::refusal::{Code, Refusal};

use super::add_shelf::PickFolder;
use super::shelf_list::Restore;
use super::tool_detail::{PinnedDigest, shelf_name};
use crate::result::refusal::RefusalNote;
use crate::route::Place;
use crate::state::Selected;
use crate::text::hex_after;
use crate::ui::pin::Pin;
use crate::ui::rich::{fact, short};

/// The refusal, both digests where they differ, and the way to mend it.
#[component]
pub(super) fn Refused(
    /// The tool and its shelf.
    selected: Selected,
    /// Why it was refused.
    refusal: Refusal,
) -> impl IntoView {
    let builtin = selected.is_builtin();
    let found = hex_after(&refusal.why, "hashes ").filter(|_| refusal.code == Code::DigestMismatch);
    let pinned = selected.tool.digest.clone().unwrap_or_default();
    let pair = found.zip(Some(pinned.clone())).map(|(found, pinned)| {
        view! {
            <dl class="pair">
                <div>
                    <dt>"Found"</dt>
                    <Pin digits=found.to_owned() class="pin pin--small pin--bad"/>
                    <dd><code>{short(found)}</code></dd>
                </div>
                <div>
                    <dt>"Pinned"</dt>
                    <Pin digits=pinned.clone() class="pin pin--small"/>
                    <dd><code>{short(&pinned)}</code></dd>
                </div>
            </dl>
        }
    });
    let is_digest = pinned.len() == 64 && pinned.bytes().all(|byte| byte.is_ascii_hexdigit());
    view! {
        <div>
            <RefusalNote refusal=refusal>{pair}</RefusalNote>
            <div class="row detail__ways">
                {match (selected.place, builtin) {
                    (Place::Browser, true) => view! { <Restore/> }.into_any(),
                    (Place::Browser, false) => view! { <PickFolder words="Add the folder again"/> }.into_any(),
                    (Place::Machine, _) => view! {
                        <p class="muted">"Mend the folder on that machine; the list here follows by itself."</p>
                    }
                    .into_any(),
                }}
            </div>
        </div>
        <div>
            <h3 class="vh">"Facts"</h3>
            <dl class="facts">
                {is_digest.then(|| view! { <PinnedDigest digits=pinned/> })}
                {fact("File", selected.tool.wasm_path.clone())}
                {fact("Shelf", shelf_name(&selected))}
            </dl>
        </div>
    }
}
