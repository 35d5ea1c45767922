//! What is in the chosen folder: looking around, importing, downloading, deleting.

use leptos::ev::DragEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use toolshelf_browser::core::RootDescriptor;
use toolshelf_browser::core::refusal::Refusal;
use toolshelf_browser::tasks::{Access, Entry};
use toolshelf_browser::{PickedFile, pick};

use super::folders::chosen;
use crate::actions;
use crate::result::refusal::RefusalNote;
use crate::state::State;
use crate::tasks::{Desk, service, words};
use crate::text::counted;
use crate::ui::dom::{self, has_files};
use crate::ui::icon::Icon;

/// Entries that are shown at a time.
const SHOWN: usize = 200;

/// What is looked at.
#[derive(Clone, Copy)]
struct Files {
    state: State,
    desk: Desk,
    /// The path inside of the chosen folder.
    folder: RwSignal<String>,
    /// What is there, once it was read.
    entries: RwSignal<Option<Result<Vec<Entry>, Refusal>>>,
    /// How many are shown.
    shown: RwSignal<usize>,
    /// Whether files are dragged over the page.
    drag: RwSignal<bool>,
    /// What a person is asked about.
    asked: RwSignal<Option<Ask>, LocalStorage>,
}

/// What a person is asked about before it is done.
#[derive(Debug, Clone)]
enum Ask {
    Delete(Entry),
    /// Importing these files, some of which would take the place of others.
    Replace(Vec<PickedFile>, Vec<String>),
}

/// The files of the chosen folder.
pub(super) fn files(state: State, desk: Desk) -> AnyView {
    let files = Files {
        state,
        desk,
        folder: RwSignal::default(),
        entries: RwSignal::new(None),
        shown: RwSignal::new(SHOWN),
        drag: RwSignal::new(false),
        asked: RwSignal::new_local(None),
    };
    let root = Memo::new(move |_| chosen(desk).map(|folder| (folder.root, folder.access)));
    Effect::new(move |before: Option<Option<RootDescriptor>>| {
        desk.folders_changed.track();
        let now = root.get();
        let root = now.as_ref().map(|now| now.0.clone());
        // Another folder begins at its top.
        if before.is_some_and(|before| before != root) {
            files.go(String::new());
        } else if now.is_some_and(|now| now.1 == Access::Granted) {
            files.read();
        }
        root
    });
    let listeners = [
        window_event_listener(leptos::ev::dragover, move |event| {
            if has_files(&event) {
                event.prevent_default();
                files.drag.set(true);
            }
        }),
        window_event_listener(leptos::ev::dragleave, move |event| {
            // Only leaving the window has nowhere to go.
            if event.related_target().is_none() {
                files.drag.set(false);
            }
        }),
        window_event_listener(leptos::ev::drop, move |event| files.dropped(&event)),
    ];
    on_cleanup(move || listeners.into_iter().for_each(|listener| listener.remove()));

    let chooser = NodeRef::<leptos::html::Input>::new();
    let choose = move |_| {
        if let Some(chooser) = chooser.get() {
            chooser.click();
        }
    };
    let picked = move |_| {
        let Some(chooser) = chooser.get() else { return };
        files.import(pick::from_input(&chooser));
        // The same files can be picked again.
        chooser.set_value("");
    };
    // Its elements stay while it stays the same, and with them the focus.
    let label = Memo::new(move |_| chosen(desk).map(|folder| folder.label));
    let crumbs = move || label.get().map(|label| crumbs(files, label));
    let is_usable = move || root.get().is_some_and(|root| root.1 == Access::Granted);
    let content = move || match (is_usable(), files.entries.get()) {
        (false, _) => {
            let words = "What is in the chosen folder shows when it can be used again.";
            view! { <div class="files__none"><p>{words}</p></div> }.into_any()
        }
        (true, None) => {
            view! { <div class="files__none"><p role="status">"Reading the folder…"</p></div> }.into_any()
        }
        (true, Some(Err(refusal))) => view! { <RefusalNote refusal=refusal/> }.into_any(),
        (true, Some(Ok(entries))) => list(files, entries),
    };
    view! {
        <div class="part">
            <div class="files__bar">
                <nav class="crumbs" aria-label="Where in the folder"><ol role="list">{crumbs}</ol></nav>
                <button class="btn" type="button" disabled=move || !is_usable() on:click=choose>
                    <Icon name="#i-upload"/>"Import files"
                </button>
                <input
                    class="vh"
                    type="file"
                    tabindex="-1"
                    aria-hidden="true"
                    multiple
                    node_ref=chooser
                    on:change=picked
                />
            </div>
            <div class="files" data-drag=move || files.drag.get()>{content}</div>
            {dialog(files)}
        </div>
    }
    .into_any()
}

/// The way from the top of the folder to where one is.
fn crumbs(files: Files, label: String) -> AnyView {
    let folder = files.folder.get();
    let mut steps = vec![(label, String::new())];
    let mut path = String::new();
    for name in folder.split('/').filter(|name| !name.is_empty()) {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(name);
        steps.push((name.to_owned(), path.clone()));
    }
    let last = steps.len() - 1;
    let step = |(at, (name, path)): (usize, (String, String))| match at == last {
        true => {
            view! { <li><span id="files-at" tabindex="-1" aria-current="true">{name}</span></li> }.into_any()
        }
        false => {
            let go = move |_| {
                files.go(path.clone());
                dom::focus_soon("#files-at".to_owned());
            };
            view! { <li><button class="btn btn--quiet" type="button" on:click=go>{name}</button></li> }
                .into_any()
        }
    };
    steps.into_iter().enumerate().map(step).collect_view().into_any()
}

fn list(files: Files, entries: Vec<Entry>) -> AnyView {
    if entries.is_empty() {
        return view! {
            <div class="files__none">
                <p><b>"Nothing in here yet"</b></p>
                <p>
                    "Drop files on this page or import them, and a task can name one as its input. What tasks are told \
                    to write lands here as well."
                </p>
            </div>
        }
        .into_any();
    }
    let shown = files.shown.get();
    let more = entries.len().saturating_sub(shown);
    let more = (more > 0).then(|| {
        let words = ["Show ", &counted(more.min(SHOWN) as u64, "more", "more")].concat();
        let show = move |_| files.shown.update(|shown| *shown += SHOWN);
        view! {
            <div class="files__more"><button class="btn btn--quiet" type="button" on:click=show>{words}</button></div>
        }
    });
    let rows = entries.into_iter().take(shown).map(|entry| row(files, entry)).collect_view();
    view! { <ul class="files__list" role="list">{rows}</ul>{more} }.into_any()
}

fn row(files: Files, entry: Entry) -> AnyView {
    let Entry { name, path, size } = entry.clone();
    let delete = ["Delete ", &name].concat();
    let ask = move |_| files.asked.set(Some(Ask::Delete(entry.clone())));
    let (icon, head, way) = match size {
        None => {
            let go = move |_| {
                files.go(path.clone());
                dom::focus_soon("#files-at".to_owned());
            };
            let head = view! { <button class="entry__name" type="button" on:click=go>{name}</button> };
            ("#i-folder", head.into_any(), ().into_any())
        }
        Some(_) => {
            let (label, file) = (["Download ", &name].concat(), name.clone());
            let save = move |_| files.save(path.clone(), file.clone());
            let way = view! {
                <button
                    class="btn btn--quiet btn--icon"
                    type="button"
                    aria-label=label
                    title="Download"
                    on:click=save
                >
                    <Icon name="#i-download"/>
                </button>
            };
            ("#i-file", view! { <span class="entry__name">{name}</span> }.into_any(), way.into_any())
        }
    };
    view! {
        <li class="entry">
            <Icon name=icon/>
            {head}
            <span class="num">{size.map(words::size)}</span>
            <span class="row">
                {way}
                <button
                    class="btn btn--quiet btn--icon"
                    type="button"
                    aria-label=delete
                    title="Delete"
                    on:click=ask
                >
                    <Icon name="#i-trash"/>
                </button>
            </span>
        </li>
    }
    .into_any()
}

/// Asks before something is lost.
fn dialog(files: Files) -> AnyView {
    let dialog = NodeRef::<leptos::html::Dialog>::new();
    Effect::new(move || {
        if let Some(dialog) =
            dialog.get().filter(|dialog| files.asked.with(Option::is_some) && !dialog.open())
        {
            let _ = dialog.show_modal();
        }
    });
    let closed = move |_| {
        let Some(dialog) = dialog.get() else { return };
        let answer = dialog.return_value();
        dialog.set_return_value("");
        let asked = files.asked.get_untracked();
        files.asked.set(None);
        match asked.filter(|_| answer == "go") {
            Some(Ask::Delete(entry)) => files.delete(entry),
            Some(Ask::Replace(picked, _)) => files.write(picked),
            None => {}
        }
    };
    let words = move || {
        let label = untrack(|| chosen(files.desk)).map(|folder| folder.label).unwrap_or_default();
        let (title, words, go) = match files.asked.get()? {
            Ask::Delete(Entry { name, size: None, .. }) => (
                ["Delete the folder “", &name, "”?"].concat(),
                ["It is deleted from ", &label, " with everything in it. There is no undo."].concat(),
                "Delete",
            ),
            Ask::Delete(Entry { name, .. }) => (
                ["Delete “", &name, "”?"].concat(),
                ["It is deleted from ", &label, ". There is no undo."].concat(),
                "Delete",
            ),
            Ask::Replace(_, names) => (
                ["Replace ", &counted(names.len() as u64, "file", "files"), "?"].concat(),
                ["There already, and written over by what you import: ", &names.join(", ")].concat(),
                "Replace",
            ),
        };
        Some(view! {
            <h2 id="ask-h">{title}</h2>
            <p>{words}</p>
            <div class="dialog__actions">
                <button class="btn" value="keep" autofocus>"Keep it"</button>
                <button class="btn btn--danger" value="go">{go}</button>
            </div>
        })
    };
    view! {
        <dialog class="dialog" id="ask" aria-labelledby="ask-h" node_ref=dialog on:close=closed>
            <form method="dialog">{words}</form>
        </dialog>
    }
    .into_any()
}

impl Files {
    fn go(self, folder: String) {
        self.shown.set(SHOWN);
        self.folder.set(folder);
        self.entries.set(None);
        self.read();
    }

    /// The chosen folder's root, and where in it one is.
    fn place(self) -> Option<(RootDescriptor, String)> {
        Some((untrack(|| chosen(self.desk))?.root, self.folder.get_untracked()))
    }

    /// Reads what is there.
    fn read(self) {
        let Some((root, folder)) = self.place() else { return };
        service::with_tasks(self.state, async move |tasks| {
            let entries = tasks.folders().entries(&root, &folder).await;
            // The panel may have been left meanwhile, or another folder chosen.
            if self.folder.try_get_untracked() == Some(folder) {
                self.entries.set(Some(entries));
            }
        });
    }

    fn dropped(self, event: &DragEvent) {
        if !has_files(event) {
            return;
        }
        event.prevent_default();
        self.drag.set(false);
        let Some(transfer) = event.data_transfer() else { return };
        let picked = pick::from_drop(&transfer);
        spawn_local(async move { self.import(picked.await) });
    }

    /// Writes files here, and asks first where that would write over others.
    fn import(self, picked: Vec<PickedFile>) {
        let taken = self.entries.with_untracked(|entries| match entries {
            Some(Ok(entries)) => {
                let is_taken =
                    |path: &str| entries.iter().any(|entry| entry.size.is_some() && entry.name == path);
                picked.iter().map(|file| file.path.clone()).filter(|path| is_taken(path)).collect()
            }
            _ => Vec::new(),
        });
        match taken.is_empty() {
            true => self.write(picked),
            false => self.asked.set(Some(Ask::Replace(picked, taken))),
        }
    }

    fn write(self, picked: Vec<PickedFile>) {
        let state = self.state;
        let Some((root, folder)) = self.place().filter(|_| !picked.is_empty()) else { return };
        service::with_tasks(state, async move |tasks| {
            match tasks.folders().import(&root, &folder, picked).await {
                Ok(count) => actions::toast(state, "Imported", counted(count as u64, "file", "files"), None),
                Err(refusal) => actions::failed(state, &refusal),
            }
            self.read();
        });
    }

    fn delete(self, entry: Entry) {
        let state = self.state;
        let Some((root, _)) = self.place() else { return };
        service::with_tasks(state, async move |tasks| {
            match tasks.folders().delete(&root, &entry.path).await {
                Ok(()) => state.announce(["Deleted ", &entry.name].concat()),
                Err(refusal) => actions::failed(state, &refusal),
            }
            self.read();
            // The button that opened the dialog leaves with its file.
            dom::focus_soon("#files-at".to_owned());
        });
    }

    fn save(self, path: String, name: String) {
        let state = self.state;
        let Some((root, _)) = self.place() else { return };
        service::with_tasks(state, async move |tasks| match tasks.folders().file(&root, &path).await {
            Ok(file) => dom::save(&file, &name),
            Err(refusal) => actions::failed(state, &refusal),
        });
    }
}
