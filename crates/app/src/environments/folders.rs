//! The folders, and which one new tasks get.

use leptos::prelude::*;
use toolshelf_browser::core::RootDescriptor;
use toolshelf_browser::core::refusal::Refusal;
use toolshelf_browser::tasks::{Access, Folder, Stored};

use super::files;
use crate::actions;
use crate::result::refusal::RefusalNote;
use crate::state::State;
use crate::tasks::{Desk, service};
use crate::ui::icon::Icon;

/// The folders and the files of the chosen one.
pub(super) fn folders(state: State, desk: Desk) -> AnyView {
    let all = move || desk.folders.get().and_then(Result::ok).unwrap_or_default();
    // A folder whose state changes is drawn anew; one that is chosen keeps its elements, and with them the focus.
    let print = |folder: &Folder| (folder.root.clone(), folder.label.clone(), folder.access as u8);
    let refusal = move || {
        let refusal = desk.folders.get()?.err()?;
        Some(view! { <RefusalNote refusal=refusal/> })
    };
    let way_in = move || {
        state.environment.with(Option::is_some).then(|| {
            let can_pick = state
                .tasks
                .with_value(|tasks| tasks.as_ref().is_some_and(|tasks| tasks.folders().can_pick()));
            match can_pick {
                true => view! {
                    <div class="row">
                        <button class="btn" type="button" on:click=move |_| pick(state)>
                            <Icon name="#i-folder"/>"Pick a folder…"
                        </button>
                    </div>
                }
                .into_any(),
                false => view! {
                    <p class="muted">
                        "Here only the page's own folder can be used: picking folders of the disk needs a \
                        Chromium-based browser on a computer."
                    </p>
                }
                .into_any(),
            }
        })
    };
    view! {
        <section class="detail" aria-labelledby="folders-h">
            <header class="detail__head">
                <h2 id="folders-h" tabindex="-1">"Folders"</h2>
                <p>"A task reads and writes files in one folder and nowhere else. New tasks get the chosen one."</p>
            </header>
            <div class="part">
                {refusal}
                <ul class="folders" role="list" aria-label="Folder for new tasks">
                    <For each=all key=print let(folder)>{row(state, desk, folder)}</For>
                </ul>
                {way_in}
            </div>
            {files::files(state, desk)}
        </section>
    }
    .into_any()
}

/// The folder that new tasks get.
pub(super) fn chosen(desk: Desk) -> Option<Folder> {
    desk.folders
        .with(|folders| folders.as_ref()?.as_ref().ok()?.iter().find(|folder| folder.selected).cloned())
}

/// Where the files of a folder are, and what stands in the way of using it.
fn about(folder: &Folder) -> &'static str {
    match (folder.access, folder.stored) {
        (Access::Ask, _) => "on your disk; the browser wants to ask you again",
        (Access::Denied, _) => "on your disk; you did not allow it",
        (Access::Gone, _) => "it was moved or deleted: pick it where it is now, or forget it",
        (Access::Granted, Stored::Private) => "kept by this browser, for this page alone",
        (Access::Granted, Stored::Database) => {
            "kept in this browser's database: it gives this page no private file system"
        }
        (Access::Granted, Stored::Memory) => "in the memory of this tab, and gone when it closes",
        (Access::Granted, Stored::Disk) => "on your disk",
    }
}

fn row(state: State, desk: Desk, folder: Folder) -> AnyView {
    let about = about(&folder);
    let Folder { root, label, access, stored, .. } = folder;
    let id = ["folder-", &root.to_string().replace(' ', "_")].concat();
    let is_chosen = {
        let root = root.clone();
        move || chosen(desk).is_some_and(|chosen| chosen.root == root)
    };
    let choose = {
        let root = root.clone();
        move |_| {
            state.tasks.with_value(|tasks| {
                if let Some(tasks) = tasks {
                    tasks.folders().select(&root);
                }
            });
            service::read_folders(state);
        }
    };
    let allow = matches!(access, Access::Ask | Access::Denied).then(|| {
        let root = root.clone();
        let allow = move |_| allow(state, root.clone());
        view! { <button class="btn" type="button" on:click=allow>"Allow again"</button> }
    });
    let forget = (stored == Stored::Disk).then(|| {
        let name = ["Forget ", &label].concat();
        let forget = move |_| forget(state, root.clone());
        let title = "Forget this folder; its files stay on your disk";
        view! {
            <button class="btn btn--quiet btn--icon" type="button" aria-label=name title=title on:click=forget>
                <Icon name="#i-cross"/>
            </button>
        }
    });
    let gone = (access == Access::Gone).then(|| view! { <span class="chip chip--code">"gone"</span> });
    view! {
        <li class="folder">
            <input type="radio" name="folder" id=id.clone() prop:checked=is_chosen on:change=choose/>
            <Icon name="#i-folder"/>
            <label for=id>{label}<small>{about}</small></label>
            <div class="row">{gone}{allow}{forget}</div>
        </li>
    }
    .into_any()
}

/// Lets the person pick a folder of the disk, and gives it to new tasks.
fn pick(state: State) {
    service::with_tasks(state, async move |tasks| match tasks.folders().pick().await {
        Ok(Some(folder)) => {
            tasks.folders().select(&folder.root);
            state.announce([&folder.label, " was added, and new tasks get it"].concat());
            service::read_folders(state);
        }
        Ok(None) => {}
        Err(refusal) => actions::failed(state, &refusal),
    });
}

fn allow(state: State, root: RootDescriptor) {
    service::with_tasks(state, async move |tasks| {
        let words = match tasks.folders().allow(&root).await {
            Ok(Access::Granted) => "The folder can be used again",
            Ok(Access::Gone) => "The folder was moved or deleted",
            Ok(Access::Ask | Access::Denied) => "The folder was not allowed",
            Err(refusal) => return actions::failed(state, &refusal),
        };
        state.announce(words);
        service::read_folders(state);
    });
}

fn forget(state: State, root: RootDescriptor) {
    service::with_tasks(state, async move |tasks| {
        let forgotten: Result<(), Refusal> = tasks.folders().forget(&root).await;
        match forgotten {
            Ok(()) => state.announce("Forgotten; its files stay on your disk"),
            Err(refusal) => actions::failed(state, &refusal),
        }
        service::read_folders(state);
        crate::ui::dom::focus_soon("#folders-h".to_owned());
    });
}
