//! The form that gives a grant.

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use toolshelf_browser::companion::Problem;
use toolshelf_browser::companion::installed::Extension;

use super::desk::Desk;
use super::draft::{Draft, Part, part_of};
use super::{parts, service, words};
use crate::state::State;
use crate::ui::dom;
use crate::ui::icon::Icon;

/// What is in the form, and what the companion said of it.
#[derive(Clone, Copy)]
struct Form {
    draft: RwSignal<Draft>,
    /// The field that is wrong, and why.
    fault: RwSignal<Option<(Part, String)>>,
    /// A "no" that is about none of the fields.
    problem: RwSignal<Option<Problem>>,
    sending: RwSignal<bool>,
}

/// The form, closed at first where there are grants already.
pub(super) fn form(state: State, desk: Desk, one: &Extension) -> AnyView {
    let form = Form {
        draft: RwSignal::default(),
        fault: RwSignal::new(None),
        problem: RwSignal::new(None),
        sending: RwSignal::new(false),
    };
    let id = one.manifest.id.clone();
    let submit = {
        let id = id.clone();
        move |event: SubmitEvent| {
            event.prevent_default();
            send(state, desk, form, id.clone());
        }
    };
    let tools = one.manifest.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    let is_first = {
        let id = id.clone();
        move || desk.grants.with(|all| matches!(all.get(&id), Some(Ok(grants)) if grants.is_empty()))
    };
    let line = |draft: fn(&mut Draft) -> &mut String| {
        (
            move || form.draft.with(|now| draft(&mut now.clone()).clone()),
            move |text: String| {
                form.draft.update(|now| *draft(now) = text);
            },
        )
    };
    let field = |part, label: &'static str, about: &'static str, is_area: bool, (text, set): (_, _)| {
        entry(form, part, label, about, is_area, text, set)
    };
    view! {
        <details class="raw give" open=is_first>
            <summary><Icon name="#i-chevron"/>"Give a grant"</summary>
            <form class="give__form" aria-label="Give a grant" novalidate on:submit=submit>
                <div class="opts give__fields">
                    {field(Part::Passport, "Passport", "On whose behalf the extension is called, such as p_ann.", false, line(|draft| &mut draft.passport))}
                    {field(Part::Rate, "Calls a minute", "Nothing: no bound for modules, 10 for external services.", false, line(|draft| &mut draft.rate))}
                    {field(Part::Read, "Reads facts that begin with", "One in each line, such as notes:: — nothing: none.", true, line(|draft| &mut draft.read))}
                    {field(Part::Write, "Writes facts that begin with", "One in each line.", true, line(|draft| &mut draft.write))}
                    {field(Part::Secrets, "Secrets", "Ids, one in each line. `toolshelf secret set` keeps one.", true, line(|draft| &mut draft.secrets))}
                    {expiry(form)}
                </div>
                {tool_choice(form, tools)}
                {move || form.problem.get().map(|no| parts::problem(&no))}
                <div class="row">
                    <button
                        class="btn btn--primary"
                        type="submit"
                        aria-busy=move || form.sending.get().then_some("true")
                    >
                        "Give the grant"
                    </button>
                    <span class="muted">"It holds from the next call on."</span>
                </div>
            </form>
        </details>
    }
    .into_any()
}

fn id_of(part: Part) -> &'static str {
    match part {
        Part::Passport => "grant-passport",
        Part::Tools => "grant-tools",
        Part::Read => "grant-read",
        Part::Write => "grant-write",
        Part::Rate => "grant-rate",
        Part::Expiry => "grant-expiry",
        Part::Secrets => "grant-secrets",
    }
}

fn send(state: State, desk: Desk, form: Form, id: String) {
    if form.sending.get_untracked() {
        return;
    }
    form.fault.set(None);
    form.problem.set(None);
    let wrong = move |part: Part, why: String| {
        form.fault.set(Some((part, why)));
        dom::focus_soon(["#", id_of(part)].concat());
    };
    let grant = match form.draft.get_untracked().grant(&id) {
        Ok(grant) => grant,
        Err((part, why)) => return wrong(part, why),
    };
    form.sending.set(true);
    service::with(state, async move |installed| {
        let given = installed.grant(&grant).await;
        // The form may be gone by now.
        let _gone = form.sending.try_set(false);
        match given {
            Ok(given) => {
                state.announce(["The grant of ", &words::name(&given.passport_fpr), " was given"].concat());
                desk.passport.set(given.passport_fpr);
                let _gone = form.draft.try_set(Draft::default());
                service::read_grants(state, desk, id);
                dom::focus_soon("#grants-h".to_owned());
            }
            Err(problem) => {
                state.announce(["No grant was given: ", &words::shown(&problem.refusal.why, 300)].concat());
                match part_of(&problem.refusal.why, &grant) {
                    Some(part) => wrong(part, words::shown(&problem.refusal.why, 300)),
                    None => form.problem.set(Some(problem)),
                }
            }
        }
    });
}

/// What is wrong with a field.
fn fault(form: Form, part: Part) -> Memo<Option<String>> {
    Memo::new(move |_| {
        form.fault.with(|fault| fault.as_ref().filter(|fault| fault.0 == part).map(|fault| fault.1.clone()))
    })
}

fn said(fault: Memo<Option<String>>, id: String) -> impl Fn() -> Option<AnyView> {
    move || fault.get().map(|why| view! { <p class="bad" id=id.clone()>{why}</p> }.into_any())
}

fn entry(
    form: Form,
    part: Part,
    label: &'static str,
    about: &'static str,
    is_area: bool,
    text: impl Fn() -> String + Send + Sync + 'static,
    set: impl Fn(String) + 'static,
) -> AnyView {
    let (id, fault) = (id_of(part), fault(form, part));
    let (about_id, fault_id) = ([id, "-about"].concat(), [id, "-fault"].concat());
    let described = [&about_id, " ", &fault_id].concat();
    let invalid = move || fault.with(Option::is_some).then_some("true");
    let input = move |event| {
        set(event_target_value(&event));
        if fault.with_untracked(Option::is_some) {
            form.fault.set(None);
        }
    };
    let field = match is_area {
        true => view! {
            <textarea
                class="field area area--many"
                id=id
                rows="1"
                spellcheck="false"
                autocapitalize="off"
                autocomplete="off"
                aria-invalid=invalid
                aria-describedby=described
                prop:value=text
                on:input=input
            ></textarea>
        }
        .into_any(),
        false => view! {
            <input
                class="field field--path"
                id=id
                spellcheck="false"
                autocapitalize="off"
                autocomplete="off"
                aria-invalid=invalid
                aria-describedby=described
                prop:value=text
                on:input=input
            />
        }
        .into_any(),
    };
    view! {
        <div class="opt">
            <label for=id>{label}</label>
            {field}
            {said(fault, fault_id)}
            <p id=about_id>{crate::ui::rich::rich(about)}</p>
        </div>
    }
    .into_any()
}

/// When it ends.
fn expiry(form: Form) -> AnyView {
    let (id, fault) = (id_of(Part::Expiry), fault(form, Part::Expiry));
    let input = move |event| {
        let text = event_target_value(&event);
        // A text without a time zone is one of the person's own.
        let at = js_sys::Date::parse(&text);
        form.draft.update(|draft| draft.expires_at_ms = (at.is_finite() && at >= 0.0).then_some(at as u64));
        form.fault.set(None);
    };
    let is_empty = move || form.draft.with(|draft| draft.expires_at_ms.is_none());
    let cleared = move || is_empty().then(String::new);
    view! {
        <div class="opt">
            <label for=id>"Ends"</label>
            <input
                class="field"
                id=id
                type="datetime-local"
                aria-invalid=move || fault.with(Option::is_some).then_some("true")
                aria-describedby="grant-expiry-about grant-expiry-fault"
                prop:value=cleared
                on:change=input
            />
            {said(fault, "grant-expiry-fault".to_owned())}
            <p id="grant-expiry-about">"Nothing: when it is revoked."</p>
        </div>
    }
    .into_any()
}

/// The tools: all, or those that are ticked.
fn tool_choice(form: Form, tools: Vec<String>) -> AnyView {
    let fault = fault(form, Part::Tools);
    let tool = |name: String| {
        let shown = words::name(&name);
        let is_ticked = {
            let name = name.clone();
            move || form.draft.with(|draft| draft.tools.contains(&name))
        };
        let tick = move |event| {
            let is_ticked = event_target_checked(&event);
            form.draft.update(|draft| {
                draft.tools.retain(|tool| *tool != name);
                if is_ticked {
                    draft.tools.push(name.clone());
                }
            });
        };
        view! {
            <label class="tick"><input type="checkbox" prop:checked=is_ticked on:change=tick/><code>{shown}</code></label>
        }
    };
    let ticks = tools.into_iter().map(tool).collect_view();
    view! {
        <fieldset class="group" id=id_of(Part::Tools) tabindex="-1">
            <legend>"Tools"<small>" none ticked: all"</small></legend>
            {ticks}
            {said(fault, "grant-tools-fault".to_owned())}
        </fieldset>
    }
    .into_any()
}
