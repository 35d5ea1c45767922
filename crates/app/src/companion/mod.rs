//! The companion, when one serves the page: a connection, and what is shown of it. Without a token there is none.
//!
//! | module | idea |
//! |---|---|
//! | `token` | the token in an address, and what a person enters for it |
//! | `session` | the connection, and what is heard over it |
//! | `card` | the machine among the environments |
//! | `shelves` | the companion's tools in the Extensions panel |
//!
//! What this module holds itself is in the part of the program that every visitor loads; the others are fetched once
//! there is a token.

mod card;
mod session;
mod shelves;
pub(crate) mod token;

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use toolshelf_browser::Reading;
use toolshelf_browser::companion::remotes::RemoteInfo;
use toolshelf_browser::companion::{Client, Connection, Remotes};
use toolshelf_browser::core::call::Answer;
use toolshelf_browser::core::live::MachineEnvironment;
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::core::task::TaskView;

use crate::state::State;
use crate::tasks::TaskSource;
use crate::ui::preference;

/// What the page asks of a companion. An object, so that the part of the program that can do it is fetched with it.
pub(crate) trait Machine: TaskSource {
    /// Calls a tool there.
    fn call<'a>(
        &'a self,
        id: &'a str,
        arguments: Vec<(String, Vec<u8>)>,
    ) -> LocalBoxFuture<'a, Result<Answer, Refusal>>;
    /// Does at once what would be tried later.
    fn retry(&self);
    /// What asks it for anything else.
    fn client(&self) -> Client;
    /// Other machines, as it knows them.
    fn remotes(&self) -> Remotes;
    /// Means the tasks of that remote from now on, or its own.
    fn aim(&self, remote: Option<String>);
}

/// News of the companion's tasks.
pub(crate) enum News {
    /// One is now this, and whether more than its note has changed.
    Task(Box<TaskView>, bool),
    /// Any may have changed.
    Many,
}

/// Hears of news.
pub(crate) type OnNews = Rc<dyn Fn(News)>;

/// What the page knows of its companion.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// Whether there is a token.
    pub(crate) is_wanted: RwSignal<bool>,
    /// How the connection stands.
    pub(crate) connection: RwSignal<Connection>,
    /// What the companion says of itself; it stays when the connection is lost.
    pub(crate) environment: RwSignal<Option<MachineEnvironment>>,
    /// Why it could not say anything.
    pub(crate) unreadable: RwSignal<Option<Refusal>>,
    /// Its shelves, once they were read.
    pub(crate) shelves: RwSignal<Option<Result<Vec<Reading>, Refusal>>>,
    /// The remotes that it was paired with, as far as they were read.
    pub(crate) remotes: RwSignal<Vec<RemoteInfo>>,
    /// The key of the remote whose tasks are meant; nothing for the machine's own.
    pub(crate) aim: RwSignal<Option<String>>,
    /// The companion itself.
    pub(crate) host: StoredValue<Option<Rc<dyn Machine>>, LocalStorage>,
    /// Who hears of its tasks.
    pub(crate) on_news: StoredValue<Option<OnNews>, LocalStorage>,
    /// The page's own calls of which the live session has not told yet: the tool's id, and until when it would, in
    /// milliseconds since 1970.
    pub(crate) own_calls: StoredValue<Vec<(String, f64)>>,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self {
            is_wanted: RwSignal::new(false),
            connection: RwSignal::new(Connection::Off),
            environment: RwSignal::new(None),
            unreadable: RwSignal::new(None),
            shelves: RwSignal::new(None),
            remotes: RwSignal::default(),
            aim: RwSignal::new(None),
            host: StoredValue::new_local(None),
            on_news: StoredValue::new_local(None),
            own_calls: StoredValue::default(),
        }
    }

    /// What the machine is called.
    pub(crate) fn label(&self) -> String {
        let label = self.environment.with(|known| known.as_ref().map(|known| known.label.clone()));
        label.filter(|label| !label.is_empty()).unwrap_or_else(|| "This machine".to_owned())
    }

    /// Whether the connection is open.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.with(|connection| *connection == Connection::Connected)
    }
}

/// Connects, if there is a token from before. Called once.
pub(crate) fn start(state: State) {
    if !state.machine.is_wanted.get_untracked()
        && let Some(token) = preference::token()
    {
        connect(state, token);
    }
}

/// Takes the token out of the address, where it must not stay, and connects with it.
pub(crate) fn take_token(state: State) {
    let location = window().location();
    let hash = location.hash().unwrap_or_default();
    let (token, code) = (token::in_hash(&hash), token::code_in_hash(&hash));
    if token.is_none() && code.is_none() {
        return;
    }
    let clean = location.pathname().unwrap_or_default() + &location.search().unwrap_or_default();
    if let Ok(history) = window().history() {
        let _ = history.replace_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(&clean));
    }
    match (token, code) {
        (Some(token), _) => enter(state, &token),
        (None, Some(code)) => pair(state, code),
        (None, None) => {}
    }
}

/// Gets a token for a one-time code from whoever serves this page.
fn pair(state: State, code: String) {
    state.machine.is_wanted.set(true);
    state.machine.connection.set(Connection::Connecting);
    spawn_local(async move {
        match take_code(code).await {
            Ok(asked) => match asked.await {
                Ok(token) => enter(state, &token),
                Err(refusal) => state.machine.connection.set(Connection::Refused(refusal)),
            },
            Err(_) => state.machine.is_wanted.set(false),
        }
    });
}

/// Asks for the token.
#[wasm_split(companion, wasm_split_path = leptos::wasm_split, fallible)]
fn take_code(code: String) -> Result<LocalBoxFuture<'static, Result<String, Refusal>>, SplitLoaderError> {
    Ok(Box::pin(session::take_code(code)))
}

/// Keeps a token and connects with it.
pub(crate) fn enter(state: State, token: &str) {
    preference::set_token(Some(token));
    connect(state, token.to_owned());
}

fn connect(state: State, token: String) {
    let link = state.machine;
    link.host.set_value(None);
    link.is_wanted.set(true);
    link.connection.set(Connection::Connecting);
    spawn_local(async move {
        if open(state, token).await.is_err() {
            let why = "the part of the page that speaks to a companion could not be loaded";
            link.connection.set(Connection::Refused(Refusal::new(Code::MachineUnreachable, why)));
        }
    });
}

/// Forgets the token, and all that is known of the companion.
pub(crate) fn disconnect(state: State) {
    let link = state.machine;
    preference::set_token(None);
    link.host.set_value(None);
    link.is_wanted.set(false);
    link.connection.set(Connection::Off);
    link.environment.set(None);
    link.unreadable.set(None);
    link.shelves.set(None);
    link.remotes.set(Vec::new());
    link.aim.set(None);
    state.announce("Disconnected; the token is forgotten");
}

/// Tries again to connect.
pub(crate) fn retry(state: State) {
    match state.machine.host.get_value() {
        Some(host) => host.retry(),
        // Not even the part of the program was there.
        None => preference::token().into_iter().for_each(|token| connect(state, token)),
    }
}

#[wasm_split(companion, wasm_split_path = leptos::wasm_split, fallible)]
fn open(state: State, token: String) -> Result<(), SplitLoaderError> {
    session::open(state, &token);
    Ok(())
}

/// The machine among the environments.
#[wasm_split(companion, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn card_view(state: State) -> Result<AnyView, SplitLoaderError> {
    Ok(card::card(state))
}

/// How the connection stands, where it is not open.
#[wasm_split(companion, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn lost_view(state: State) -> Result<AnyView, SplitLoaderError> {
    Ok(card::lost(state))
}

/// The companion's tools in the Extensions panel.
#[wasm_split(companion, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn shelves_view(state: State) -> Result<AnyView, SplitLoaderError> {
    Ok(shelves::shelves(state))
}
