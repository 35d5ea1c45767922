//! Other machines: those that the companion reaches, and those that it lets in.

use std::time::Duration;

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use toolshelf_browser::companion::remotes::{Offer, PairingInfo, RemoteInfo};
use toolshelf_browser::companion::{Connection, Remotes};
use toolshelf_browser::core::placement::Placement;
use toolshelf_browser::core::refusal::Refusal;

use super::{grants, row};
use crate::result::refusal::RefusalNote;
use crate::route::{self, Place};
use crate::state::State;
use crate::tasks::service;
use crate::ui::copy::CopyButton;
use crate::ui::dom;
use crate::ui::icon::Icon;

/// How often the remotes are looked at while they are shown.
const LOOK: Duration = Duration::from_secs(2);

/// What a person is asked about before it is done.
#[derive(Debug, Clone, PartialEq)]
enum Asked {
    /// To forget a remote: its key and label.
    Remove(String, String),
    /// To have the token of a remote revoked there.
    Revoke(String, String),
    /// To let somebody in no more: the pairing's id and name.
    LetGo(String, String),
}

/// What is shown.
#[derive(Clone, Copy)]
struct Shown {
    state: State,
    pairings: RwSignal<Vec<PairingInfo>>,
    offer: RwSignal<Option<Offer>>,
    refusal: RwSignal<Option<Refusal>>,
    asked: RwSignal<Option<Asked>>,
    busy: RwSignal<bool>,
}

/// The remotes, fetched when they are first shown.
#[wasm_split(remotes, wasm_split_path = leptos::wasm_split, fallible)]
pub(super) fn remotes_view(state: State) -> Result<AnyView, SplitLoaderError> {
    let shown = Shown {
        state,
        pairings: RwSignal::default(),
        offer: RwSignal::new(None),
        refusal: RwSignal::new(None),
        asked: RwSignal::new(None),
        busy: RwSignal::new(false),
    };
    // Read when the connection is open, and while it is.
    Effect::new(move |_| {
        if state.machine.connection.with(|now| *now == Connection::Connected) {
            shown.look();
        }
    });
    if let Ok(looking) = set_interval_with_handle(move || shown.look(), LOOK) {
        on_cleanup(move || looking.clear());
    }
    let count = move || state.machine.remotes.with(Vec::len);
    let connected = Memo::new(move |_| {
        state.machine.remotes.with(|all| all.iter().filter(|remote| remote.state == "connected").count())
    });
    let word = move || match (count(), connected.get()) {
        (0, _) => "None yet".to_owned(),
        (count, connected) => [&connected.to_string(), " of ", &count.to_string(), " connected"].concat(),
    };
    let kind = move || if connected.get() > 0 { "callable" } else { "idle" };
    let cards = move || {
        let remotes = state.machine.remotes.get();
        if remotes.is_empty() {
            return view! {
                <p>
                    "Another computer with a companion can do tasks for you. On it, "<code>"toolshelf pair"</code>
                    " prints a link; paste it here."
                </p>
            }
            .into_any();
        }
        remotes.into_iter().map(|remote| card(shown, remote)).collect_view().into_any()
    };
    let fault = move || shown.refusal.get().map(|refusal| view! { <RefusalNote refusal=refusal/> });
    let view = view! {
        <section class="env remotes" aria-labelledby="env-remote">
            <div class="env__head">
                <h2 id="env-remote" tabindex="-1">"Paired remote hosts"</h2>
                <span class="state" data-state=kind><span class="dot" aria-hidden="true"></span>{word}</span>
            </div>
            {cards}
            {fault}
            {add(shown)}
            {let_in(shown)}
            {dialog(shown)}
        </section>
    };
    Ok(view.into_any())
}

impl Shown {
    /// Does something with the companion, if it is there.
    fn with(self, act: impl AsyncFnOnce(Remotes) + 'static) {
        if let Some(host) = self.state.machine.host.get_value() {
            spawn_local(async move { act(host.remotes()).await });
        }
    }

    /// Reads what is shown again. What could not be read stays.
    fn look(self) {
        if self.state.machine.connection.with_untracked(|now| *now != Connection::Connected) {
            return;
        }
        self.with(async move |remotes| {
            if let Ok(all) = remotes.list().await
                && self.state.machine.remotes.with_untracked(|before| *before != all)
            {
                self.state.machine.remotes.set(all);
            }
            if let Ok(all) = remotes.pairings().await {
                let _gone = self.pairings.try_maybe_update(|before| {
                    let is_news = *before != all;
                    *before = all;
                    (is_news, ())
                });
            }
        });
    }

    /// Does what changes something; then all is read again.
    fn change(self, done: &'static str, act: impl AsyncFnOnce(Remotes) -> Result<(), Refusal> + 'static) {
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        self.refusal.set(None);
        self.with(async move |remotes| {
            let result = act(remotes).await;
            let _gone = self.busy.try_set(false);
            match result {
                Ok(()) => self.state.announce(done),
                Err(refusal) => {
                    self.state.announce(["Refused: ", &refusal.why].concat());
                    let _gone = self.refusal.try_set(Some(refusal));
                }
            }
            self.look();
        });
    }
}

fn card(shown: Shown, remote: RemoteInfo) -> AnyView {
    let RemoteInfo { key, label, address, name, state: standing, refusal, scopes, environment, .. } = remote;
    let (kind, word) = match &*standing {
        "connected" => ("callable", "Connected"),
        "unreachable" => ("idle", "Unreachable"),
        "revoked" => ("refused", "Revoked"),
        "refused" => ("refused", "Refused"),
        _ => ("running", "Connecting"),
    };
    let is_connected = standing == "connected";
    let bounds = environment.as_ref().map_or_else(|| Placement::Remote.bounds(), |known| known.bounds);
    let active = environment.as_ref().map_or(0, |known| known.active).to_string();
    let active = [&active, " of ", &bounds.max_active_tasks.to_string()].concat();
    let why = refusal.map(|refusal| view! { <RefusalNote refusal=refusal/> });
    let (use_key, again, remove, revoke) = (key.clone(), key.clone(), key.clone(), key.clone());
    let (remove_label, revoke_label) = (label.clone(), label.clone());
    let heading = ["remote-", &key].concat();
    let (labelled, marked, shown_key) = (heading.clone(), key.clone(), key.clone());
    let use_it = move |_| {
        service::aim(shown.state, Some(use_key.clone()));
        let _ = window().location().set_hash(&route::to_tasks(Place::Machine));
    };
    let try_again = move |_| {
        let key = again.clone();
        shown.change("Trying again", async move |remotes| remotes.act(&key, "retry").await);
    };
    let ask_remove = move |_| shown.asked.set(Some(Asked::Remove(remove.clone(), remove_label.clone())));
    let ask_revoke = move |_| shown.asked.set(Some(Asked::Revoke(revoke.clone(), revoke_label.clone())));
    let first = match is_connected {
        true => {
            view! { <button class="btn" type="button" on:click=use_it>"Use for tasks"</button> }.into_any()
        }
        false => {
            view! { <button class="btn" type="button" on:click=try_again>"Try again"</button> }.into_any()
        }
    };
    view! {
        <article class="remote" aria-labelledby=labelled data-remote=marked>
            <div class="env__head">
                <h3 id=heading>{label}</h3>
                <span class="state" data-state=kind><span class="dot" aria-hidden="true"></span>{word}</span>
            </div>
            <p class="env__key">
                <code>{shown_key}</code>
                <CopyButton text=key label="Copy the environment's key"/>
            </p>
            {why}
            <dl>
                {row("Address", address)}
                {grants(bounds)}
                {row("Active now", active)}
                {row("For", scopes.join(", "))}
                {row("Known there as", name)}
            </dl>
            <div class="row env__foot">
                {first}
                <button class="btn btn--quiet" type="button" disabled=!is_connected on:click=ask_revoke>"Revoke…"</button>
                <button class="btn btn--quiet" type="button" on:click=ask_remove>"Remove…"</button>
            </div>
        </article>
    }
    .into_any()
}

/// The field for a link.
fn add(shown: Shown) -> AnyView {
    let entered = RwSignal::new(String::new());
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let link = entered.get_untracked().trim().to_owned();
        if link.is_empty() {
            return;
        }
        shown.change("Paired", async move |remotes| {
            remotes.add(&link).await?;
            let _gone = entered.try_set(String::new());
            Ok(())
        });
    };
    view! {
        <form class="connect__form" on:submit=submit>
            <label for="pair-link">"Link that "<code>"toolshelf pair"</code>" prints there"</label>
            <div class="row">
                <input
                    class="field field--path grow"
                    id="pair-link"
                    spellcheck="false"
                    autocapitalize="off"
                    autocomplete="off"
                    placeholder="https://…/#pair=…"
                    prop:value=move || entered.get()
                    on:input=move |event| entered.set(event_target_value(&event))
                />
                <button
                    class="btn"
                    type="submit"
                    aria-busy=move || shown.busy.get().then_some("true")
                >
                    "Pair"
                </button>
            </div>
        </form>
    }
    .into_any()
}

/// A code for somebody else, and those who were let in.
fn let_in(shown: Shown) -> AnyView {
    let make = move |_| {
        shown.change("A code is shown", async move |remotes| {
            let offer = remotes.offer().await?;
            let _gone = shown.offer.try_set(Some(offer));
            Ok(())
        });
    };
    let offer = move || {
        let Offer { code, link } = shown.offer.get()?;
        Some(view! {
            <div class="sample" data-offer="">
                <div class="sample__head">
                    <code>{code}</code>
                    <CopyButton text=link words="Copy the link" class="btn btn--quiet copy"/>
                </div>
                <p class="muted">"It holds for ten minutes, and can be used once."</p>
            </div>
        })
    };
    let pairing = move |pairing: PairingInfo| {
        let PairingInfo { id, name, state: standing } = pairing;
        let (word, is_active) = (standing.clone(), standing == "active");
        let asked = Asked::LetGo(id, name.clone());
        let ask = move |_| shown.asked.set(Some(asked.clone()));
        let end = is_active.then(|| {
            view! { <button class="btn btn--quiet" type="button" on:click=ask>"Revoke…"</button> }
        });
        view! { <li><Icon name="#i-play"/><span><b>{name}</b><small>{word}</small></span>{end}</li> }
    };
    let pairings = move || shown.pairings.get().into_iter().map(pairing).collect_view();
    view! {
        <details class="raw connect">
            <summary><Icon name="#i-chevron"/>"Let another computer or page in here"</summary>
            <div class="connect__body">
                <p>"It gets a token of its own for tasks and the shelf, and sees none of your tasks."</p>
                <div class="row">
                    <button class="btn" type="button" on:click=make>"Make a code"</button>
                </div>
                {offer}
                <ul class="env__list" role="list">{pairings}</ul>
            </div>
        </details>
    }
    .into_any()
}

/// Asks before something is done that cannot be undone.
fn dialog(shown: Shown) -> AnyView {
    let dialog = NodeRef::<leptos::html::Dialog>::new();
    Effect::new(move || {
        let is_asked = shown.asked.with(Option::is_some);
        if let Some(dialog) = dialog.get().filter(|dialog| is_asked && !dialog.open()) {
            let _ = dialog.show_modal();
        }
    });
    let closed = move |_| {
        let Some(dialog) = dialog.get() else { return };
        let answer = dialog.return_value();
        dialog.set_return_value("");
        let asked = shown.asked.get_untracked();
        shown.asked.set(None);
        let Some(asked) = asked.filter(|_| answer == "yes") else { return };
        // The button that opened the dialog leaves with what it was for.
        dom::focus_soon("#env-remote".to_owned());
        match asked {
            Asked::Remove(key, _) => {
                stop_using(shown.state, &key);
                shown.change("Removed", async move |remotes| remotes.act(&key, "remove").await);
            }
            Asked::Revoke(key, _) => {
                stop_using(shown.state, &key);
                shown.change("Revoked there", async move |remotes| remotes.act(&key, "revoke").await);
            }
            Asked::LetGo(id, _) => {
                shown.change("Revoked", async move |remotes| remotes.revoke(&id).await);
            }
        }
    };
    let words = move || {
        Some(match shown.asked.get()? {
            Asked::Remove(_, label) => (
                ["Remove “", &label, "”?"].concat(),
                "Its token is forgotten here. There it holds until it is revoked; tasks go on to their end.",
                "Remove",
            ),
            Asked::Revoke(_, label) => (
                ["Revoke the token of “", &label, "”?"].concat(),
                "It lets this computer in no more, and is removed here. Tasks go on there to their end.",
                "Revoke",
            ),
            Asked::LetGo(_, name) => (
                ["Let “", &name, "” in no more?"].concat(),
                "Its connections end at once. Tasks that it has delegated go on to their end.",
                "Revoke",
            ),
        })
    };
    let heading = move || words().map(|words| words.0);
    let about = move || words().map(|words| words.1);
    let act = move || words().map(|words| words.2);
    view! {
        <dialog class="dialog" aria-labelledby="remote-asked" node_ref=dialog on:close=closed>
            <form method="dialog">
                <h2 id="remote-asked">{heading}</h2>
                <p>{about}</p>
                <div class="dialog__actions">
                    <button class="btn" value="no" autofocus>"Keep it"</button>
                    <button class="btn btn--danger" value="yes">{act}</button>
                </div>
            </form>
        </dialog>
    }
    .into_any()
}

/// Tasks of a remote that goes are not meant any more.
fn stop_using(state: State, key: &str) {
    if state.machine.aim.with_untracked(|aim| aim.as_deref() == Some(key)) {
        service::aim(state, None);
    }
}
