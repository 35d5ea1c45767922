//! One task: what was asked, what came back and who says so, and everything that happened to it.

use leptos::prelude::*;
use toolshelf_browser::core::RootDescriptor;
use toolshelf_browser::core::task::TaskState;
use toolshelf_browser::core::task::record::OutcomeBasis;
use toolshelf_browser::tasks::{Detail, Moment};

use super::desk::Desk;
use super::{places, service, words};
use crate::result::refusal::RefusalNote;
use crate::route::{self, Place};
use crate::state::State;
use crate::text::{self, counted, thousands, visible};
use crate::ui::copy::CopyButton;
use crate::ui::dom;
use crate::ui::icon::Icon;
use crate::ui::pin::Pin;
use crate::ui::rich::{DigestText, fact, rich};

/// The task that the address names. It is built anew for another task only, so that nothing jumps while one runs.
pub(super) fn detail(state: State, desk: Desk, here: Place, has_moved: StoredValue<bool>) -> AnyView {
    // Whose task it is, or why there is none.
    let which = Memo::new(move |_| {
        desk.detail.with(|shown| {
            let found = &shown.as_ref()?.1;
            Some(found.as_ref().map(|detail| detail.row.view.address.clone()).map_err(Clone::clone))
        })
    });
    let body = move || {
        let which = which.get();
        if which.is_some() && has_moved.get_value() {
            has_moved.set_value(false);
            if dom::is_narrow() {
                dom::focus_soon("#detail-h".to_owned());
            }
        }
        let first = desk.detail.with_untracked(|shown| shown.as_ref().and_then(|shown| shown.1.clone().ok()));
        match (which, first) {
            (Some(Ok(_)), Some(first)) => task(state, desk, here, &first),
            (Some(Err(refusal)), _) => view! {
                <header class="detail__head">
                    {ways_out(here)}
                    <h2 id="detail-h" tabindex="-1">"No such task"</h2>
                </header>
                <div><RefusalNote refusal=refusal/></div>
            }
            .into_any(),
            _ => view! {
                <header class="detail__head">
                    {ways_out(here)}
                    <p class="muted" role="status">"Reading the task…"</p>
                </header>
            }
            .into_any(),
        }
    };
    view! { <article class="detail work" aria-label="The task">{body}</article> }.into_any()
}

/// Back to the list where it is hidden, and to the form where the list is in sight.
fn ways_out(here: Place) -> AnyView {
    let all = route::to_tasks(here);
    view! {
        <a class="back only-narrow" href=all.clone()><Icon name="#i-back"/>"All tasks"</a>
        <a class="back only-wide" href=all><Icon name="#i-back"/>"Delegate another"</a>
    }
    .into_any()
}

fn task(state: State, desk: Desk, here: Place, first: &Detail) -> AnyView {
    let shown = Memo::new(move |before: Option<&Option<Detail>>| {
        let now = desk.detail.with(|shown| shown.as_ref().and_then(|shown| shown.1.clone().ok()));
        // While another one is read, this one stays.
        now.or_else(|| before.cloned().flatten())
    });
    let standing = Memo::new(move |_| {
        shown.with(|shown| shown.as_ref().map_or(TaskState::Queued, |now| now.row.view.state))
    });
    let words = move || words::of_state(standing.get());
    let outcome = move || shown.with(|shown| shown.as_ref().map(|now| outcome(here, now)));
    let address = first.row.view.address.clone();
    let deadline_ms = first.row.bounds.deadline_ms;
    let is_active = Memo::new(move |_| !standing.get().is_terminal());
    let wait = move || {
        let address = address.clone();
        is_active.get().then(|| {
            let ends_at = Memo::new(move |_| shown.with(|shown| shown.as_ref()?.row.ends_at_ms));
            let time = move || ends_at.get().map(|ends_at| (ends_at - state.now.get()).max(0.0));
            let left = move || {
                time().map(|left| [&words::left(left), " of ", &words::span(deadline_ms)].concat())
            };
            view! {
                <div class="wait">
                    <progress
                        max=deadline_ms.to_string()
                        prop:value=move || time().unwrap_or_default()
                        aria-label="What is left of the deadline"
                    ></progress>
                    <div class="row">
                        <span class="muted">{left}</span>
                        <button class="btn" type="button" on:click=move |_| service::cancel(state, address.clone())>
                            "Cancel"
                        </button>
                    </div>
                </div>
            }
        })
    };
    let answer = Memo::new(move |_| {
        shown.with(|shown| {
            let view = &shown.as_ref()?.row.view;
            Some((view.answer.clone(), view.partial.clone()))
        })
    });
    let answer = move || match answer.get().unwrap_or_default() {
        (Some(answer), _) => part("Answer", answer),
        (None, Some(partial)) => part("Partial answer, before it ended", partial),
        (None, None) => ().into_any(),
    };
    let moments = Memo::new(move |_| {
        shown.with(|shown| shown.as_ref().map(|now| now.moments.clone()).unwrap_or_default())
    });
    let history = move || {
        moments.with(|moments| match moments.is_empty() {
            true => {
                view! { <p class="muted">"This browser gives the page no database, so it is not kept."</p> }
                    .into_any()
            }
            false => view! { <ol class="line" role="list">{line(moments)}</ol> }.into_any(),
        })
    };
    view! {
        <header class="detail__head task__head" data-task=move || standing.get().as_str()>
            {ways_out(here)}
            <div class="detail__title">
                <h2 id="detail-h" tabindex="-1">{first.row.title.clone()}</h2>
                <span class="state">
                    <svg class="icon task__icon" aria-hidden="true"><use href=move || words().0></use></svg>
                    {move || words().1}
                </span>
            </div>
            {outcome}
            {wait}
        </header>
        {answer}
        {part("What was asked", first.task.clone())}
        <section class="part">
            <div class="part__head"><h3>"What happened"</h3></div>
            {history}
        </section>
        {facts(desk, here, first)}
    }
    .into_any()
}

/// How it stands, who says so, and why.
fn outcome(here: Place, now: &Detail) -> AnyView {
    let view = &now.row.view;
    let agent = view.agent.clone();
    let note = view.progress.as_ref().filter(|_| !view.state.is_terminal());
    let note = note.map(|note| [" Its last note: ", &visible(note.as_bytes())].concat());
    let said = match (view.outcome.map(|outcome| outcome.basis), view.state) {
        (Some(OutcomeBasis::ExecutorClaimed), _) => {
            " says that it is complete. That is its word: nobody else has checked the answer."
        }
        (Some(OutcomeBasis::HostObserved), TaskState::Failed) => " failed.",
        (Some(OutcomeBasis::HostObserved), TaskState::Interrupted) => " was interrupted.",
        (Some(OutcomeBasis::HostObserved), _) => " was cancelled.",
        (None, TaskState::Queued) => " has not begun yet.",
        (None, TaskState::CancelRequested) => " was asked to stop.",
        (None, TaskState::CancelUnconfirmed) => {
            " was asked to stop and was not seen to: it may still end in any way."
        }
        (None, _) => " is at work.",
    };
    let is_seen = view.outcome.is_some_and(|outcome| outcome.basis == OutcomeBasis::HostObserved);
    let seen = is_seen.then_some(match here {
        Place::Browser => " This page saw it.",
        Place::Machine => " The companion saw it.",
    });
    let reason = view.reason.clone().map(|reason| {
        let meaning = words::meaning(&reason).map(|meaning| view! { ": "{rich(meaning)} });
        view! { <p class="task__outcome">{words::reason(reason)}{meaning}</p> }
    });
    let elsewhere = (!now.row.here && !view.state.is_terminal()).then_some(match here {
        Place::Browser => " It runs in another tab.",
        Place::Machine => " It was begun by an earlier start of the companion.",
    });
    let stale = view.stale.then_some(match here {
        Place::Browser => " What is shown is what that tab wrote last; this one cannot confirm it.",
        Place::Machine => " What is shown is what that one wrote last; this one cannot confirm it.",
    });
    view! { <p class="task__outcome">{agent}{said}{seen}{note}{elsewhere}{stale}</p>{reason} }.into_any()
}

/// A text with its size and a copy button: a digest as a digest, JSON with a line for each value, all else as it is.
fn part(title: &'static str, content: String) -> AnyView {
    let size = counted(content.len() as u64, "byte", "bytes");
    let is_json = content.trim_start().starts_with(['{', '[']) && js_sys::JSON::parse(&content).is_ok();
    let kind = match (words::is_digest(&content), is_json) {
        (true, _) => " · digest",
        (false, true) => " · JSON",
        (false, false) => "",
    };
    let body = if words::is_digest(&content) {
        view! {
            <div class="result__digest">
                <Pin digits=content.clone()/>
                <DigestText digits=content.clone()/>
            </div>
        }
        .into_any()
    } else if content.is_empty() {
        view! { <p class="muted">"Empty."</p> }.into_any()
    } else {
        let laid_out = words::visible_lines(&if is_json { words::pretty(&content) } else { content.clone() });
        view! {
            <pre class="answer" tabindex="0" role="region" aria-label=title><code>{laid_out}</code></pre>
        }
        .into_any()
    };
    view! {
        <section class="part">
            <div class="part__head">
                <h3>{title}</h3>
                <span class="muted num">{size}{kind}</span>
                <CopyButton text=content label="Copy it as it is"/>
            </div>
            {body}
        </section>
    }
    .into_any()
}

/// Every change of state, with the time since the one before.
fn line(moments: &[Moment]) -> AnyView {
    let mut before = None;
    let moment = |moment: &Moment| {
        let at = words::moment(&moment.at);
        let since = before.replace(at).map(|before| ["+", &text::millis(at - before)].concat());
        let reason = moment.reason.clone().map(|reason| view! { " "{words::reason(reason)} });
        view! {
            <li data-task=moment.state.as_str()>
                <span><b>{words::of_state(moment.state).1}</b>{reason}</span>
                <time datetime=moment.at.clone() title=moment.at.clone()>{words::time_of_day(at)}</time>
                <span class="diff-ms">{since}</span>
            </li>
        }
    };
    moments.iter().map(moment).collect_view().into_any()
}

fn facts(desk: Desk, here: Place, first: &Detail) -> AnyView {
    let view = &first.row.view;
    let root = view.root.clone();
    let path = matches!(root, RootDescriptor::Machine { .. }).then(|| places::label(&root));
    let folder = move || {
        if path.is_some() {
            return path.clone();
        }
        desk.folders.with(|folders| {
            let folders = folders.as_ref()?.as_ref().ok()?;
            Some(folders.iter().find(|folder| folder.root == root)?.label.clone())
        })
    };
    let folder = move || folder().unwrap_or_else(|| "one that is not here any more".to_owned());
    // `Mon Nov 30 2026 13:47:04`, without the name of the time zone.
    let created = String::from(js_sys::Date::new(&view.created_at.as_str().into()).to_string());
    let created = created.split(" GMT").next().unwrap_or_default().to_owned();
    let output = [&thousands(first.row.bounds.max_output_bytes.into()), " bytes"].concat();
    let address = view.address.clone();
    let whose = match here {
        Place::Browser => "Sealed address, good for this browser alone",
        Place::Machine => "Sealed address, good at this companion alone",
    };
    view! {
        <section class="part">
            <h3 class="vh">"Facts"</h3>
            <dl class="facts">
                {fact("Agent", view.agent.clone())}
                <div><dt>"Folder"</dt><dd>{folder}</dd></div>
                {fact("Deadline", words::span(first.row.bounds.deadline_ms))}
                {fact("Longest answer", output)}
                {fact("Mechanism", first.mechanism.clone())}
                {fact("Delegated", created)}
                {fact("Environment", view.environment.clone())}
                {fact("Call id", first.call_id.clone())}
                <div class="is-wide">
                    <dt>{whose}</dt>
                    <dd class="facts__digest">
                        <code>{address.clone()}</code>
                        <CopyButton text=address label="Copy the address"/>
                    </dd>
                </div>
            </dl>
        </section>
    }
    .into_any()
}
