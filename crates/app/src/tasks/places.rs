//! What there is where a task can go: agents, folders and deadlines; and the choice between the places.

use leptos::prelude::*;
use toolshelf_browser::companion::remotes::RemoteInfo;
use toolshelf_browser::core::live::MachineEnvironment;
use toolshelf_browser::core::placement::{Placement, PlacementBounds};
use toolshelf_browser::core::{Abi, RootDescriptor};
use toolshelf_browser::tasks::{Access, MODEL_AGENT};

use super::desk::Desk;
use super::service;
use crate::route::{self, Panel, Place};
use crate::state::State;

/// The deadlines on offer, in milliseconds, as far as a placement grants them.
const DEADLINES_MS: [u32; 7] = [5_000, 30_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000];

/// Somebody whom a task can be given to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Agent {
    /// Its id.
    pub(super) id: String,
    /// What it does.
    pub(super) description: String,
    /// How it is called, if it is a tool.
    pub(super) abi: Option<Abi>,
    /// The deadline that its tasks get when they name none, in milliseconds.
    pub(super) deadline_ms: Option<u32>,
}

/// A folder that a task can work in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Root {
    /// The folder.
    pub(super) root: RootDescriptor,
    /// What it is called.
    pub(super) label: String,
    /// What stands in the way of using it; mostly nothing.
    pub(super) about: &'static str,
    /// Whether new tasks get it.
    pub(super) is_usual: bool,
}

/// The place that the address names. Another panel's address names none, and changes nothing.
pub(super) fn place(state: State) -> Memo<Place> {
    Memo::new(move |before: Option<&Place>| {
        let named = state.route.with(|route| (route.panel == Panel::Tasks).then_some(route.place));
        named.or(before.copied()).unwrap_or_default()
    })
}

/// The tools of a place that can be called, and then who else works there.
pub(super) fn agents(state: State, place: Place) -> Vec<Agent> {
    let mut agents: Vec<_> = state.with_readings(place, |readings| {
        let shelves = readings.iter().filter_map(|reading| reading.shelf.as_ref().ok());
        let tools = shelves.flat_map(|shelf| &shelf.tools).filter_map(|tool| {
            let (id, description) = (tool.id.clone(), tool.description.clone());
            Some(Agent { id, description, abi: Some(tool.driven()?.1), deadline_ms: None })
        });
        tools.collect()
    });
    match place {
        Place::Browser => {
            if state.environment.with(|here| here.as_ref().is_some_and(|here| here.model)) {
                let description = "answers in words".to_owned();
                agents.push(Agent { id: MODEL_AGENT.to_owned(), description, abi: None, deadline_ms: None });
            }
        }
        Place::Machine => {
            if let Some(remote) = aimed(state) {
                agents.clear();
                for id in remote.tools {
                    let abi = Abi::of_known_id(&id);
                    agents.push(Agent { id, description: String::new(), abi, deadline_ms: None });
                }
            }
            for agent in machine(state).iter().flat_map(|known| &known.agents) {
                agents.push(Agent {
                    id: agent.name.clone(),
                    description: agent.description.clone(),
                    abi: None,
                    deadline_ms: Some(agent.deadline_ms),
                });
            }
        }
    }
    agents
}

/// The folders of a place.
pub(super) fn roots(state: State, desk: Desk, place: Place) -> Vec<Root> {
    match place {
        Place::Browser => {
            let folders = desk.folders.get().and_then(Result::ok).unwrap_or_default();
            let root = |folder: toolshelf_browser::tasks::Folder| {
                let about = match folder.access {
                    Access::Granted => "",
                    Access::Ask => " (to be allowed again)",
                    Access::Denied => " (not allowed)",
                    Access::Gone => " (gone)",
                };
                Root { root: folder.root, label: folder.label, about, is_usual: folder.selected }
            };
            folders.into_iter().map(root).collect()
        }
        Place::Machine => {
            let known = machine(state);
            let roots = known.iter().flat_map(|known| &known.roots).enumerate();
            let root = |(at, known): (usize, &toolshelf_browser::core::live::MachineRoot)| Root {
                label: label(&known.root),
                root: known.root.clone(),
                about: if known.available { "" } else { " (gone)" },
                is_usual: at == 0,
            };
            roots.map(root).collect()
        }
    }
}

/// The remote whose tasks are meant; nothing for the machine's own.
pub(super) fn aimed(state: State) -> Option<RemoteInfo> {
    let aim = state.machine.aim.get()?;
    state.machine.remotes.with(|remotes| remotes.iter().find(|remote| remote.key == aim).cloned())
}

/// The machine whose tasks are meant: the companion's own, or a remote.
fn machine(state: State) -> Option<MachineEnvironment> {
    match aimed(state) {
        Some(remote) => remote.environment,
        None => state.machine.environment.get(),
    }
}

/// What a root of a machine is called: its path.
pub(super) fn label(root: &RootDescriptor) -> String {
    match root {
        RootDescriptor::Machine { path, .. } => path.clone(),
        other => other.to_string(),
    }
}

/// The folder that the task would get.
pub(super) fn root(state: State, desk: Desk, place: Place) -> Option<RootDescriptor> {
    let wanted = desk.form.root.get();
    let roots = roots(state, desk, place);
    let chosen = roots.iter().find(|root| wanted.as_ref() == Some(&root.root));
    chosen.or_else(|| roots.iter().find(|root| root.is_usual)).map(|root| root.root.clone())
}

/// What a place grants.
pub(super) fn bounds(state: State, place: Place) -> PlacementBounds {
    match place {
        Place::Browser => Placement::Browser.bounds(),
        Place::Machine => {
            machine(state).map(|known| known.bounds).unwrap_or_else(|| Placement::Machine.bounds())
        }
    }
}

/// The deadlines on offer, in milliseconds, and the one that a task gets of which nobody says anything.
pub(super) fn deadlines(bounds: PlacementBounds, agent: Option<&Agent>) -> (Vec<u32>, u32) {
    let usual = agent.and_then(|agent| agent.deadline_ms).unwrap_or(bounds.default_deadline_ms);
    let usual = usual.min(bounds.max_deadline_ms);
    let mut offered: Vec<_> = DEADLINES_MS.into_iter().filter(|ms| *ms <= bounds.max_deadline_ms).collect();
    for more in [usual, bounds.max_deadline_ms] {
        if let Err(at) = offered.binary_search(&more) {
            offered.insert(at, more);
        }
    }
    (offered, usual)
}

/// A place to delegate to, and the remote behind it where it is one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Way {
    place: Place,
    remote: Option<String>,
    name: String,
}

impl Way {
    /// Whether it is the one that is taken.
    fn is_taken(&self, state: State, here: Memo<Place>) -> bool {
        here.get() == self.place && (self.place == Place::Browser || state.machine.aim.get() == self.remote)
    }

    /// Its word in a form.
    fn value(&self) -> String {
        self.remote.clone().unwrap_or_else(|| route::to_tasks(self.place))
    }

    /// Shows its tasks, under the address that its place has.
    fn take(&self, state: State) {
        if self.place == Place::Machine {
            service::aim(state, self.remote.clone());
        }
        // The window takes any address of this page.
        let _ = window().location().set_hash(&route::to_tasks(self.place));
    }
}

/// The places by their names, where there is more than one.
fn ways(state: State, here: Memo<Place>) -> Vec<Way> {
    if !state.machine.is_wanted.get() && here.get() == Place::Browser {
        return Vec::new();
    }
    let own = [(Place::Browser, "This browser".to_owned()), (Place::Machine, state.machine.label())];
    let mut ways: Vec<_> = own.map(|(place, name)| Way { place, remote: None, name }).into();
    state.machine.remotes.with(|remotes| {
        for remote in remotes {
            let (remote, name) = (Some(remote.key.clone()), [&remote.label, " (remote)"].concat());
            ways.push(Way { place: Place::Machine, remote, name });
        }
    });
    ways
}

/// The choice between the places, above the list.
pub(super) fn switch(state: State, here: Memo<Place>) -> AnyView {
    let way = move |way: Way| {
        let (taken, name) = (way.clone(), way.name.clone());
        view! {
            <label class="seg__item">
                <input
                    type="radio"
                    name="tasks-place"
                    prop:checked=move || taken.is_taken(state, here)
                    on:change=move |_| way.take(state)
                />
                <span>{name}</span>
            </label>
        }
    };
    let ways = Memo::new(move |_| ways(state, here));
    let shown = move || {
        let ways = ways.get();
        (!ways.is_empty()).then(|| {
            view! {
                <fieldset class="seg tasks__place">
                    <legend class="vh">"Whose tasks are listed"</legend>
                    {ways.into_iter().map(way).collect_view()}
                </fieldset>
            }
        })
    };
    shown.into_any()
}

/// The same choice in the form.
pub(super) fn choice(state: State, here: Memo<Place>) -> AnyView {
    let ways = Memo::new(move |_| ways(state, here));
    let option = move |way: Way| {
        let (value, name) = (way.value(), way.name.clone());
        view! { <option value=value prop:selected=move || way.is_taken(state, here)>{name}</option> }
    };
    let choose = move |event| {
        let value = event_target_value(&event);
        let chosen = ways.with_untracked(|ways| ways.iter().find(|way| way.value() == value).cloned());
        if let Some(way) = chosen {
            way.take(state);
        }
    };
    let shown = move || {
        let ways = ways.get();
        (!ways.is_empty()).then(|| {
            view! {
                <div class="opt">
                    <label for="task-place">"Where"</label>
                    <select class="field" id="task-place" on:change=choose>
                        {ways.into_iter().map(option).collect_view()}
                    </select>
                </div>
            }
        })
    };
    shown.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_stay_within_what_the_place_grants() {
        let agent =
            |deadline_ms| Agent { id: String::new(), description: String::new(), abi: None, deadline_ms };
        let here = Placement::Browser.bounds();
        assert_eq!(deadlines(here, None), (vec![5_000, 30_000, 60_000, 300_000], 30_000));
        let (offered, usual) = deadlines(Placement::Machine.bounds(), Some(&agent(None)));
        assert_eq!((offered.last(), usual), (Some(&3_600_000), 60_000));
        let (offered, usual) = deadlines(Placement::Machine.bounds(), Some(&agent(Some(120_000))));
        assert_eq!((offered.contains(&120_000), offered.is_sorted(), usual), (true, true, 120_000));
        assert_eq!(deadlines(here, Some(&agent(Some(u32::MAX)))).1, 300_000);
    }
}
