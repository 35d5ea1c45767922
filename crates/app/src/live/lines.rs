//! What was said, and each call with what it came back with.

use std::sync::Arc;

use leptos::prelude::*;

use super::answer;
use super::desk::{Called, Desk, Kind, Line, Shown};
use crate::result;
use crate::result::refusal::RefusalNote;
use crate::state::{End, State};
use crate::text;
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;
use crate::ui::pin::Pin;
use crate::ui::rich::{DigestText, rich};

/// Things to say, for whoever has said nothing yet.
const EXAMPLES: [(&str, &str); 4] = [
    ("hash hello", "the SHA-256 of a text"),
    ("diff \"a\\nb\\nc\\n\" \"a\\nB\\nc\\n\"", "two texts, line by line"),
    ("compare apples with pears", "words for the same"),
    ("list", "which tools there are"),
];

/// What is shown before anything was said.
pub(super) fn teach(state: State, desk: Desk) -> AnyView {
    let example = |(text, what): (&'static str, &'static str)| {
        let say = move |_| {
            answer::say(state, desk, text);
            crate::ui::dom::focus_soon("#live-text".to_owned());
        };
        view! {
            <li>
                <button class="btn" type="button" on:click=say><code>{text}</code></button>
                <span class="muted">{what}</span>
            </li>
        }
    };
    view! {
        <section class="teach" aria-labelledby="live-teach">
            <h2 id="live-teach">"Say what you want done"</h2>
            <p>
                "A script, a model or your companion reads it and calls the tools of the shelf. Each call is shown as it \
                happens: which tool, how long it took, and what it came back with."
            </p>
            <ul class="live__examples">{EXAMPLES.map(example).collect_view()}</ul>
        </section>
    }
    .into_any()
}

/// The conversation. New lines come into view.
pub(super) fn lines(desk: Desk) -> AnyView {
    Effect::new(move || {
        desk.lines.track();
        request_animation_frame(|| {
            if let Ok(Some(list)) = document().query_selector(".live__lines") {
                list.set_scroll_top(list.scroll_height());
            }
        });
    });
    let waiting =
        move || desk.busy.get().then(|| view! { <p class="live__wait muted">"Waiting for an answer"</p> });
    view! {
        <section class="live__lines" aria-label="Conversation" tabindex="0">
            <ol>
                <For each=move || desk.lines.get() key=|line| line.id let(line)>{row(line)}</For>
            </ol>
            {waiting}
        </section>
    }
    .into_any()
}

fn row(line: Line) -> AnyView {
    match line.kind {
        Kind::Person(words) => view! {
            <li class="live__line" data-by="person"><b class="vh">"You: "</b><p>{visible(&words)}</p></li>
        }
        .into_any(),
        Kind::Words(who, words) => {
            let shown = move || words.with(|words| rich(&visible(words)));
            view! { <li class="live__line"><b>{who.name()}</b><p>{shown}</p></li> }.into_any()
        }
        Kind::Call(call) => view! { <li class="live__line">{card(&call)}</li> }.into_any(),
        Kind::Fault(refusal) => {
            let refusal = toolshelf_browser::core::refusal::Refusal::new(refusal.code, visible(&refusal.why));
            view! { <li class="live__line"><RefusalNote refusal=refusal/></li> }.into_any()
        }
        Kind::Note(words) => view! { <li class="live__line muted"><p>{visible(&words)}</p></li> }.into_any(),
    }
}

/// Words of others, in which nothing hides. Line breaks stay.
fn visible(words: &str) -> String {
    words.lines().map(|line| text::visible(line.as_bytes())).collect::<Vec<_>>().join("\n")
}

/// A call: which tool, how it ended, how long it took, where, and what it came back with.
fn card(call: &Arc<Called>) -> AnyView {
    let is_ok = call.is_ok();
    let (state, word, chip) = match is_ok {
        true => ("callable", "ok", "chip chip--ok"),
        false => ("refused", "refused", "chip chip--code"),
    };
    view! {
        <article class="live__call" data-state=state data-call=call.name.clone()>
            <div class="live__head">
                <span class="dot" aria-hidden="true"></span>
                <code>{visible(&call.name)}</code>
                <span class=chip>{word}</span>
                <span class="lat">{text::millis(call.duration_ms)}</span>
                <span class="muted">{call.place}</span>
            </div>
            // Radio buttons of one name belong together inside of a form: each diff has a choice of its own.
            <form class="live__result">{result_of(call)}</form>
        </article>
    }
    .into_any()
}

fn result_of(call: &Called) -> AnyView {
    match &call.shown {
        Shown::Outcome(outcome) => match &outcome.end {
            End::Answered(answer) if answer.blocks.is_none() => digest(&answer.output),
            _ => result::shown(outcome),
        },
        Shown::Refused(refusal) => view! { <RefusalNote refusal=refusal.clone()/> }.into_any(),
        Shown::Output(output) if is_digest(output) => digest(output),
        Shown::Output(output) => {
            let shown = visible(output);
            let is_short = shown.len() < 1_000;
            view! {
                <details class="raw" open=is_short>
                    <summary><Icon name="#i-chevron"/>"Output"</summary>
                    <div class="raw__body" tabindex="0" role="region" aria-label="Output"><pre>{shown}</pre></div>
                </details>
            }
            .into_any()
        }
    }
}

/// A digest as the panel of its tool shows it, without what only one of a page can have.
fn digest(digits: &str) -> AnyView {
    let digits = digits.to_owned();
    view! {
        <div class="result__digest">
            <Pin digits=digits.clone()/>
            <DigestText digits=digits.clone()/>
            <CopyButton text=digits words="Copy" class="btn copy"/>
        </div>
    }
    .into_any()
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
