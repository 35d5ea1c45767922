//! Views that a chunk of the program draws, which the browser fetches when it is first needed.
//!
//! A function with the attribute [`wasm_split`](leptos::wasm_split::wasm_split) is left out of what every visitor
//! loads, together with all that only it reaches.

use leptos::prelude::*;
use leptos::task::spawn_local_scoped;
use leptos::wasm_split::SplitLoaderError;

use crate::ui::icon::Icon;

/// How far a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// It is on its way; it takes too little time for a sign of waiting.
    Awaited,
    /// What it draws is there to be shown.
    Here,
    /// It could not be fetched.
    Failed,
}

/// What `draw` draws, once its chunk is there. Contexts are those of the place where this stands.
pub(crate) fn arriving<F>(draw: impl Fn() -> F + 'static) -> AnyView
where
    F: Future<Output = Result<AnyView, SplitLoaderError>> + 'static,
{
    // A click knows no owner, and what is drawn looks for its contexts there. It is kept weakly: it holds this itself.
    let owner = Owner::current().unwrap_or_default().downgrade();
    let drawn = StoredValue::new_local(None::<AnyView>);
    let arrival = RwSignal::new(Arrival::Awaited);
    let fetch = StoredValue::new_local(move || {
        let Some(owner) = owner.upgrade() else { return };
        arrival.set(Arrival::Awaited);
        let view = draw();
        owner.with(|| {
            spawn_local_scoped(async move {
                let end = match view.await {
                    Ok(view) => {
                        let _gone = drawn.try_set_value(Some(view));
                        Arrival::Here
                    }
                    Err(_) => Arrival::Failed,
                };
                // Whoever left meanwhile does not want it any more.
                let _gone = arrival.try_set(end);
            });
        });
    });
    let start = move || fetch.with_value(|fetch| fetch());
    start();
    let shown = move || {
        match arrival.get() {
        Arrival::Awaited => ().into_any(),
        Arrival::Here => drawn.try_update_value(Option::take).flatten().into_any(),
        Arrival::Failed => view! {
            <div class="note note--bad" data-missing-part="">
                <Icon name="#i-alert"/>
                <h4>"This part of the page could not be loaded"</h4>
                <p>
                    "It is fetched when it is first needed. The connection may be down, or the site has changed since \
                    you opened it."
                </p>
                <button class="btn" type="button" on:click=move |_| start()>"Try again"</button>
            </div>
        }
        .into_any(),
    }
    };
    shown.into_any()
}
