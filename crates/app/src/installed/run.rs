//! Calling a tool: on whose behalf, its arguments, and what came back.

use std::sync::Arc;

use leptos::ev::{KeyboardEvent, SubmitEvent};
use leptos::prelude::*;
use serde_json::Value;
use toolshelf_browser::companion::installed::{Extension, Outcome, Tool};

use super::desk::{Desk, End, Run, key};
use super::{fields, parts, schema, service, value, words};
use crate::actions;
use crate::extensions::tool_row::Latency;
use crate::route::Place;
use crate::state::{State, tool_key};
use crate::text::{self, thousands};
use crate::ui::copy::CopyButton;
use crate::ui::dom;
use crate::ui::icon::Icon;
use crate::ui::rich::{fact, rich};

/// The form of one of its tools.
pub(super) fn section(state: State, desk: Desk, one: &Extension) -> AnyView {
    let tools = one.manifest.tools.clone();
    if tools.is_empty() {
        return ().into_any();
    }
    let id = one.manifest.id.clone();
    let chosen = RwSignal::new(0_usize);
    let choice = (tools.len() > 1).then(|| {
        let options = tools.iter().enumerate().map(|(at, tool)| {
            view! { <option value=at.to_string() selected=at == 0>{words::name(&tool.name)}</option> }
        });
        view! {
            <div class="opt">
                <label for="run-tool">"Tool"</label>
                <select
                    class="field"
                    id="run-tool"
                    on:change=move |event| chosen.set(event_target_value(&event).parse().unwrap_or_default())
                >
                    {options.collect_view()}
                </select>
            </div>
        }
    });
    let form = {
        let id = id.clone();
        move || tools.get(chosen.get()).map(|tool| form(state, desk, &id, tool))
    };
    view! {
        <section class="part" aria-labelledby="run-h">
            <div class="part__head"><h3 id="run-h">"Run"</h3></div>
            {choice}
            {form}
        </section>
    }
    .into_any()
}

fn form(state: State, desk: Desk, id: &str, tool: &Tool) -> AnyView {
    let run = desk.run(state, id, &tool.name);
    let fields = Arc::new(schema::fields(&tool.input_schema));
    if fields.is_none() {
        run.is_json.set(true);
    }
    let key = tool_key(Place::Machine, &key(id, &tool.name));
    let is_running = {
        let key = key.clone();
        Memo::new(move |_| state.is_running(&key))
    };
    let call = {
        let (id, tool, fields) = (id.to_owned(), tool.name.clone(), Arc::clone(&fields));
        move || {
            let passport = desk.passport.get_untracked();
            let args = match run.is_json.get_untracked() {
                true => whole(run),
                false => {
                    schema::arguments(fields.as_deref().unwrap_or_default(), &|id| fields::typed(run, id))
                        .map(Value::from)
                }
            };
            match args {
                Ok(args) => {
                    run.faults.set(Vec::new());
                    service::invoke(state, desk, run, (id.clone(), tool.clone(), passport), args);
                }
                Err(faults) => {
                    if let Some(first) = faults.first() {
                        dom::focus_soon(["#arg-", &first.id].concat());
                    }
                    state.announce("Some fields are not right yet");
                    run.faults.set(faults);
                }
            }
        }
    };
    let submit = {
        let call = call.clone();
        move |event: SubmitEvent| {
            event.prevent_default();
            call();
        }
    };
    let keys = move |event: KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) && !event.is_composing() {
            event.prevent_default();
            call();
        }
    };
    let inputs = {
        let fields = Arc::clone(&fields);
        move || match (&*fields, run.is_json.get()) {
            (Some(fields), false) => fields::group(run, fields),
            _ => fields::whole(run),
        }
    };
    let can_switch = fields.is_some();
    let clear = move |_| {
        run.typed.set(Default::default());
        run.faults.set(Vec::new());
        run.end.set(None);
    };
    view! {
        <p class="muted">{rich(&words::shown(&tool.description, words::TEXT_MAX))}</p>
        <form class="run" aria-label="Run this tool" novalidate on:submit=submit on:keydown=keys>
            {passports(desk, id)}
            {inputs}
            <div class="run__actions">
                <button
                    class="btn btn--primary"
                    type="submit"
                    aria-busy=move || is_running.get().then_some("true")
                    aria-disabled=move || is_running.get().then_some("true")
                >
                    <span class="btn__swap"><span>"Run"</span><span class="is-busy">"Running…"</span></span>
                </button>
                <button class="btn btn--quiet" type="button" on:click=clear>"Clear"</button>
                <span class="run__hint"><kbd>{dom::control_key()}</kbd>" "<kbd>"Enter"</kbd>" runs it"</span>
                <span class="grow"></span>
                {can_switch.then(|| as_json(run, Arc::clone(&fields)))}
                <Latency key=key.clone()/>
            </div>
        </form>
        {result(state, run, key)}
    }
    .into_any()
}

/// All arguments, as they are written in JSON.
fn whole(run: Run) -> Result<Value, Vec<schema::Fault>> {
    let text = fields::typed(run, fields::WHOLE);
    let text = if text.trim().is_empty() { "{}" } else { &text };
    let fault = |why: String| vec![schema::Fault { id: fields::WHOLE.to_owned(), why }];
    match schema::json(text) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err(fault("Arguments are a JSON object.".to_owned())),
        Err(why) => Err(fault(why)),
    }
}

/// The choice between the form and JSON. What was filled in is taken along.
fn as_json(run: Run, fields: Arc<Option<Vec<schema::Field>>>) -> AnyView {
    let switch = move |_| {
        let is_json = !run.is_json.get_untracked();
        if is_json {
            let given =
                schema::arguments(fields.as_deref().unwrap_or_default(), &|id| fields::typed(run, id));
            let text = given.map(|given| serde_json::to_string_pretty(&given).unwrap_or_default());
            run.typed.update(|typed| {
                typed.insert(fields::WHOLE.to_owned(), text.unwrap_or_else(|_| "{\n  \n}".to_owned()));
            });
        }
        run.faults.set(Vec::new());
        run.is_json.set(is_json);
    };
    view! {
        <button class="btn btn--quiet" type="button" aria-pressed=move || run.is_json.get().to_string() on:click=switch>
            "As JSON"
        </button>
    }
    .into_any()
}

/// On whose behalf: a passport that has a grant, or any that is typed.
fn passports(desk: Desk, id: &str) -> AnyView {
    let granted = {
        let id = id.to_owned();
        Memo::new(move |_| {
            desk.grants.with(|all| match all.get(&id) {
                Some(Ok(grants)) => grants.iter().map(|grant| grant.passport_fpr.clone()).collect::<Vec<_>>(),
                _ => Vec::new(),
            })
        })
    };
    // The one that may call is the one that is meant, unless somebody says otherwise.
    Effect::new(move || {
        let first = granted.with(|granted| granted.first().cloned());
        if let Some(first) = first.filter(|_| desk.passport.with_untracked(String::is_empty)) {
            desk.passport.set(first);
        }
    });
    let about = move || match granted.with(Vec::is_empty) {
        true => "No passport has a grant yet, so every call is refused. Give one below.",
        false => "On whose behalf it is called; the grant of that passport decides.",
    };
    let options = move || {
        granted.get().into_iter().map(|passport| view! { <option value=passport></option> }).collect_view()
    };
    view! {
        <div class="opt opt--short">
            <label for="run-passport">"Passport"</label>
            <input
                class="field field--path"
                id="run-passport"
                list="run-passports"
                spellcheck="false"
                autocapitalize="off"
                autocomplete="off"
                aria-describedby="run-passport-about"
                prop:value=move || desk.passport.get()
                on:input=move |event| desk.passport.set(event_target_value(&event))
            />
            <datalist id="run-passports">{options}</datalist>
            <p id="run-passport-about">{about}</p>
        </div>
    }
    .into_any()
}

/// What came back, or the wait for it.
fn result(state: State, run: Run, key: String) -> AnyView {
    let is_waiting = {
        let key = key.clone();
        Memo::new(move |_| state.waiting(&key).is_some())
    };
    let shown = move || match (is_waiting.get(), run.end.get()) {
        (true, _) => {
            let key = key.clone();
            parts::busy("Running on the companion", move || actions::stop(state, &key))
        }
        (false, None) => view! { <p class="result__none">"Nothing has run yet."</p> }.into_any(),
        (false, Some(end)) => match &*end {
            End::Answered(outcome) => answered(outcome),
            End::Failed(no) => {
                let left = no.remains.as_ref().map(|left| {
                    view! {
                        {spent(left.elapsed_ms, Some(left.fuel_consumed), &left.request_id)}
                        <h4>"What it logged"</h4>
                        {parts::log(&left.log)}
                    }
                });
                view! { {parts::problem(no)}{left} }.into_any()
            }
            End::Stopped(after_ms) => {
                let after = text::millis(*after_ms);
                view! {
                    <div class="note">
                        <Icon name="#i-cross"/>
                        <h4>"Stopped"</h4>
                        <p>"You gave the call up after "{after}". What it had done until then, it has done."</p>
                    </div>
                }
                .into_any()
            }
        },
    };
    view! {
        <div class="result" aria-busy=move || is_waiting.get().then_some("true")>
            <div class="result__head"><h3>"Result"</h3></div>
            {shown}
        </div>
    }
    .into_any()
}

fn answered(outcome: &Outcome) -> AnyView {
    let dropped = outcome.drop_reasons.iter().map(|why| view! { <li>{words::shown(why, 300)}</li> });
    let dropped = (!outcome.drop_reasons.is_empty()).then(|| {
        view! { <h4>"Facts that were not written"</h4><ul class="wishes__tools">{dropped.collect_view()}</ul> }
    });
    view! {
        {value::shown(&outcome.result)}
        {spent(outcome.elapsed_ms, outcome.fuel_consumed, &outcome.request_id)}
        {dropped}
        <h4>"What it logged"</h4>
        {parts::log(&outcome.log)}
    }
    .into_any()
}

/// What a call has used.
fn spent(elapsed_ms: u64, fuel: Option<u64>, request_id: &str) -> AnyView {
    let request_id = words::name(request_id);
    view! {
        <dl class="facts spent">
            {fact("Time", text::millis(elapsed_ms as f64))}
            {fuel.map(|fuel| fact("Fuel", thousands(fuel)))}
            <div>
                <dt>"Request"</dt>
                <dd class="facts__digest">
                    <code>{request_id.clone()}</code>
                    <CopyButton text=request_id label="Copy the id of the request"/>
                </dd>
            </div>
        </dl>
    }
    .into_any()
}
