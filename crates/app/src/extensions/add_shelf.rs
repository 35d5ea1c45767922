//! Adding a shelf from a folder or from files.

use leptos::prelude::*;
use toolshelf_browser::pick;

use crate::actions;
use crate::state::use_state;
use crate::ui::icon::Icon;

/// The ways to add a shelf.
#[component]
pub(super) fn AddShelf() -> impl IntoView {
    let state = use_state();
    view! {
        <section class="adder" aria-labelledby="add-h">
            <h2 id="add-h">"Add a shelf"</h2>
            <p>
                <span class="fine-only">"Drop a folder with a manifest.json anywhere on this page, or pick one."</span>
                <span class="coarse-only">"Pick the folder with a manifest.json, or its files."</span>
            </p>
            <div class="row">
                <PickFolder words="Pick a folder"/>
                <Picker words="Pick files" icon="#i-file" class="btn btn--quiet" folder=false/>
            </div>
            <Show when=move || !state.persistent.get()>
                <p>"This browser keeps nothing for this page: what you add is gone when the tab closes."</p>
            </Show>
        </section>
    }
}

/// A button that asks for a folder.
#[component]
pub(super) fn PickFolder(
    /// What it says.
    words: &'static str,
) -> impl IntoView {
    view! { <Picker words=words icon="#i-folder" class="btn" folder=true/> }
}

/// A button that asks for files or for a folder.
#[component]
fn Picker(
    /// What it says.
    words: &'static str,
    /// Its icon.
    icon: &'static str,
    /// Its class.
    class: &'static str,
    /// Whether it asks for a folder.
    folder: bool,
) -> impl IntoView {
    let state = use_state();
    let chooser = NodeRef::<leptos::html::Input>::new();
    let choose = move |_| {
        if let Some(chooser) = chooser.get().filter(|_| !state.adding.get_untracked()) {
            chooser.click();
        }
    };
    let chosen = move |_| {
        let Some(chooser) = chooser.get() else { return };
        actions::add(state, pick::from_input(&chooser));
        // The same folder can be picked again.
        chooser.set_value("");
    };
    view! {
        <button class=class type="button" aria-busy=move || state.adding.get().then_some("true") on:click=choose>
            <Icon name=icon/>{words}
        </button>
        <input
            class="vh"
            type="file"
            tabindex="-1"
            aria-hidden="true"
            multiple
            prop:webkitdirectory=folder
            node_ref=chooser
            on:change=chosen
        />
    }
}
