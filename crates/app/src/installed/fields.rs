//! The fields of a tool's form.

use leptos::prelude::*;

use super::desk::Run;
use super::schema::{Field, Kind, Scalar, hint, plain};
use super::words;

/// The id of the field that takes all arguments as JSON.
pub(super) const WHOLE: &str = "json";

/// What is typed into a field.
pub(super) fn typed(run: Run, id: &str) -> String {
    run.typed.with_untracked(|typed| typed.get(id).cloned().unwrap_or_default())
}

/// The fields of a form, or of a group in it.
pub(super) fn group(run: Run, fields: &[Field]) -> AnyView {
    if fields.is_empty() {
        return view! { <p class="muted">"It takes no arguments."</p> }.into_any();
    }
    let one = |field: &Field| match &field.kind {
        Kind::Group(below) => {
            let id = ["arg-", &field.id].concat();
            let about = words::shown(&field.about, 300);
            view! {
                <fieldset class="group" id=id>
                    <legend>{words::name(&field.name)}{needed(field)}</legend>
                    {(!about.is_empty()).then(|| view! { <p>{about}</p> })}
                    {group(run, below)}
                </fieldset>
            }
            .into_any()
        }
        _ => one(run, field),
    };
    view! { <div class="opts inst__fields">{fields.iter().map(one).collect_view()}</div> }.into_any()
}

fn needed(field: &Field) -> Option<AnyView> {
    (!field.is_required).then(|| view! { <small>" may be left out"</small> }.into_any())
}

/// All arguments as JSON.
pub(super) fn whole(run: Run) -> AnyView {
    let field = Field {
        id: WHOLE.to_owned(),
        name: "Arguments".to_owned(),
        about: String::new(),
        is_required: true,
        default: None,
        kind: Kind::Json,
    };
    view! { <div class="opts inst__fields">{one(run, &field)}</div> }.into_any()
}

fn one(run: Run, field: &Field) -> AnyView {
    let id = ["arg-", &field.id].concat();
    let (about_id, fault_id) = ([&id, "-about"].concat(), [&id, "-fault"].concat());
    let fault = {
        let id = field.id.clone();
        Memo::new(move |_| {
            run.faults
                .with(|faults| faults.iter().find(|fault| fault.id == id).map(|fault| fault.why.clone()))
        })
    };
    let about = [words::shown(&field.about, 300), words::shown(&hint(field), 200)];
    let about = about.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    let described = {
        let (about_id, fault_id, has_about) = (about_id.clone(), fault_id.clone(), !about.is_empty());
        move || {
            let fault_id = fault.with(Option::is_some).then(|| fault_id.clone());
            let ids = has_about.then(|| about_id.clone()).into_iter().chain(fault_id).collect::<Vec<_>>();
            (!ids.is_empty()).then(|| ids.join(" "))
        }
    };
    let said = move || {
        fault.get().map(|why| view! { <p class="bad" id=fault_id.clone()>{words::shown(&why, 300)}</p> })
    };
    view! {
        <div class="opt">
            <label for=id.clone()>{words::name(&field.name)}{needed(field)}</label>
            {input(run, field, id, fault, described)}
            {said}
            {(!about.is_empty()).then(|| view! { <p id=about_id>{about}</p> })}
        </div>
    }
    .into_any()
}

fn input(
    run: Run,
    field: &Field,
    id: String,
    fault: Memo<Option<String>>,
    described: impl Fn() -> Option<String> + Send + Sync + 'static,
) -> AnyView {
    let text = {
        let id = field.id.clone();
        move || run.typed.with(|typed| typed.get(&id).cloned().unwrap_or_default())
    };
    let set = {
        let id = field.id.clone();
        move |text: String| {
            run.typed.update(|typed| drop(typed.insert(id.clone(), text)));
            if fault.with_untracked(Option::is_some) {
                run.faults.update(|faults| faults.retain(|fault| fault.id != id));
            }
        }
    };
    let invalid = move || fault.with(Option::is_some).then_some("true");
    let is_required = field.is_required.then_some("true");
    let choices: Option<Vec<String>> = match &field.kind {
        Kind::One(Scalar::Flag) => Some(vec!["true".to_owned(), "false".to_owned()]),
        Kind::One(Scalar::Choice(choices)) => Some(choices.iter().map(plain).collect()),
        _ => None,
    };
    if let Some(choices) = choices {
        let first = if field.is_required { "Choose" } else { "Leave it out" };
        let chosen = text();
        let options = choices.into_iter().map(|choice| {
            let (words, is_chosen) = (words::name(&choice), choice == chosen);
            view! { <option value=choice selected=is_chosen>{words}</option> }
        });
        return view! {
            <select
                class="field"
                id=id
                aria-required=is_required
                aria-invalid=invalid
                aria-describedby=described
                prop:value=text
                on:change=move |event| set(event_target_value(&event))
            >
                <option value="">{first}</option>
                {options.collect_view()}
            </select>
        }
        .into_any();
    }
    if matches!(field.kind, Kind::One(Scalar::Number { .. })) {
        return view! {
            <input
                class="field"
                id=id
                inputmode="decimal"
                autocomplete="off"
                placeholder=field.default.as_deref().map(|default| words::shown(default, 40))
                aria-required=is_required
                aria-invalid=invalid
                aria-describedby=described
                prop:value=text
                on:input=move |event| set(event_target_value(&event))
            />
        }
        .into_any();
    }
    let class = match field.kind {
        Kind::Json => "field area area--code",
        Kind::Many { .. } => "field area area--many",
        _ => "field area",
    };
    view! {
        <textarea
            class=class
            id=id
            rows="1"
            spellcheck="false"
            autocapitalize="off"
            autocomplete="off"
            placeholder=field.default.as_deref().map(|default| words::shown(default, 80))
            aria-required=is_required
            aria-invalid=invalid
            aria-describedby=described
            prop:value=text
            on:input=move |event| set(event_target_value(&event))
        ></textarea>
    }
    .into_any()
}
