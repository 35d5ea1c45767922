//! Everything of a person in one file, out of this browser and into another.

use leptos::prelude::*;
use toolshelf_browser::core::refusal::Refusal;
use toolshelf_browser::tasks::Imported;

use crate::actions;
use crate::result::refusal::RefusalNote;
use crate::state::State;
use crate::tasks::service;
use crate::text::{capitalised, counted, thousands};
use crate::ui::dom;
use crate::ui::icon::Icon;

/// Exporting and importing.
pub(super) fn data(state: State) -> AnyView {
    let told = RwSignal::new(None::<Result<Imported, Refusal>>);
    let is_busy = RwSignal::new(false);
    let export = move |_| {
        if is_busy.get_untracked() {
            return;
        }
        is_busy.set(true);
        service::with_tasks(state, async move |tasks| {
            let file = tasks.export().await;
            let _ = is_busy.try_set(false);
            match file {
                Ok(file) => {
                    let date = String::from(js_sys::Date::new_0().to_iso_string());
                    dom::save(&file, &["toolshelf-", &date[..10], ".json"].concat());
                    state.announce("Exported");
                }
                Err(refusal) => actions::failed(state, &refusal),
            }
        });
    };
    let chooser = NodeRef::<leptos::html::Input>::new();
    let choose = move |_| {
        if let Some(chooser) = chooser.get().filter(|_| !is_busy.get_untracked()) {
            chooser.click();
        }
    };
    let picked = move |_| {
        let Some(chooser) = chooser.get() else { return };
        let file = chooser.files().and_then(|files| files.item(0));
        // The same file can be picked again.
        chooser.set_value("");
        let Some(file) = file else { return };
        is_busy.set(true);
        told.set(None);
        service::with_tasks(state, async move |tasks| {
            let imported = tasks.import(file).await;
            let _ = is_busy.try_set(false);
            state.announce(match &imported {
                Ok(imported) => ["Imported: ", &summary(imported)].concat(),
                Err(refusal) => ["Not imported: ", &refusal.why].concat(),
            });
            let _ = told.try_set(Some(imported));
            actions::reload(state);
            service::read_folders(state);
        });
    };
    let told = move || {
        Some(match told.get()? {
            Ok(imported) => view! {
                <div class="note note--ok">
                    <Icon name="#i-check"/>
                    <h4>"Imported"</h4>
                    <p>{capitalised(&summary(&imported))}"."</p>
                </div>
            }
            .into_any(),
            Err(refusal) => view! { <RefusalNote refusal=refusal/> }.into_any(),
        })
    };
    let busy = move || is_busy.get().then_some("true");
    view! {
        <section class="detail" aria-labelledby="data-h">
            <header class="detail__head">
                <h2 id="data-h">"Your data"</h2>
                <p>
                    "One file with your shelves, tasks, settings and the page's own folder. The key that seals \
                    addresses is never in it, and folders of your disk stay where they are."
                </p>
            </header>
            <div class="data">
                <div class="row">
                    <button class="btn" type="button" aria-busy=busy on:click=export>
                        <Icon name="#i-download"/>"Export everything"
                    </button>
                    <button class="btn btn--quiet" type="button" aria-busy=busy on:click=choose>
                        <Icon name="#i-upload"/>"Import…"
                    </button>
                    <input
                        class="vh"
                        type="file"
                        tabindex="-1"
                        aria-hidden="true"
                        accept=".json,application/json"
                        node_ref=chooser
                        on:change=picked
                    />
                </div>
                {told}
            </div>
        </section>
    }
    .into_any()
}

/// `2 shelves, 14 tasks, 3 files; 5 things were there already and stay as they are`.
fn summary(imported: &Imported) -> String {
    let Imported { shelves, tasks, files, skipped } = *imported;
    let parts = [(shelves, "shelf", "shelves"), (tasks, "task", "tasks"), (files, "file", "files")];
    let new = parts.iter().filter(|part| part.0 > 0);
    let new: Vec<_> = new.map(|(count, one, many)| counted(*count as u64, one, many)).collect();
    let mut summary = if new.is_empty() { "nothing new".to_owned() } else { new.join(", ") };
    match skipped {
        0 => {}
        1 => summary.push_str("; 1 thing was there already and stays as it is"),
        more => {
            summary.extend(["; ", &thousands(more as u64), " things were there already and stay as they are"])
        }
    }
    summary
}
