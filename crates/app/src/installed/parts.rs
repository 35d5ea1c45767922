//! Small things that extensions and facts draw.

use leptos::prelude::*;
use toolshelf_browser::companion::Problem;
use toolshelf_browser::core::extension::envelope::HostLogEntry;
use toolshelf_browser::core::refusal::Refusal;

use super::words::{TEXT_MAX, shown};
use crate::result::refusal::RefusalNote;
use crate::route::PANEL;
use crate::text::{self, thousands, visible};
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;

/// What starts a companion with its page.
const COMMAND: &str = "toolshelf serve --open";
/// Longest text that is laid out, in characters. It can be copied whole.
const LAID_OUT_MAX: usize = 20_000;

/// What is shown of extensions and facts where there is no companion.
pub(super) fn without_companion(is_fact: bool) -> AnyView {
    let (title, what) = match is_fact {
        true => (
            "Facts",
            "A fact says one thing of something: whose it is, which property, and the value. Extensions read and write \
             facts as far as a grant lets them, and every version is kept. They live in a companion, on your own \
             computer.",
        ),
        false => (
            "Installed extensions",
            "An extension is a WebAssembly module that agents call with JSON. It reads and writes facts, asks for secrets \
             and leaves receipts, as far as a grant lets it. It runs in a companion: a program on your own computer that \
             serves this page.",
        ),
    };
    view! {
        <section class="teach" aria-labelledby="detail-h">
            <a class="back" href=PANEL><Icon name="#i-back"/>"All tools"</a>
            <h2 id="detail-h" tabindex="-1">{title}</h2>
            <p>{what}</p>
            <ol class="teach__steps">
                <li>"Start a companion in a terminal. It opens this page from your computer."</li>
                <li>"Install an extension from its files or from a link; you are told first what it asks for."</li>
                <li>"Give a passport a grant: which facts it may read and write, and for how long."</li>
            </ol>
            <div class="sample">
                <div class="sample__head">
                    <code>{COMMAND}</code>
                    <CopyButton text=COMMAND.to_owned() words="Copy" class="btn btn--quiet copy"/>
                </div>
            </div>
        </section>
    }
    .into_any()
}

/// A "no", with its status, and when it may be asked again.
pub(super) fn problem(problem: &Problem) -> AnyView {
    let refusal = Refusal::new(problem.refusal.code, shown(&problem.refusal.why, TEXT_MAX));
    let status = (problem.status > 0).then(|| {
        let again = problem
            .retry_after_ms
            .map(|ms| [" · try again in ", &thousands(ms.div_ceil(1_000)), " s"].concat());
        view! { <p class="num">"Status "{problem.status.to_string()}{again}</p> }
    });
    view! { <RefusalNote refusal=refusal>{status}</RefusalNote> }.into_any()
}

/// What was read, or why not; a sign of waiting before that.
pub(super) fn read<T: Clone + 'static>(
    value: Option<Result<T, Problem>>,
    draw: impl FnOnce(T) -> AnyView,
) -> AnyView {
    match value {
        None => view! { <p class="muted" role="status">"Reading…"</p> }.into_any(),
        Some(Ok(value)) => draw(value),
        Some(Err(no)) => problem(&no),
    }
}

/// A moment, where the person is: `Mon Nov 30 2026 13:47:04`.
pub(super) fn date(unix_ms: u64) -> String {
    // Without the name of the time zone.
    let text = String::from(js_sys::Date::new(&(unix_ms as f64).into()).to_string());
    text.split(" GMT").next().unwrap_or_default().to_owned()
}

/// The lines of a text from outside, in which nothing hides.
pub(super) fn lines(text: &str) -> String {
    let kept: String = text.chars().take(LAID_OUT_MAX).collect();
    let mut lines: Vec<_> = kept.split('\n').map(|line| visible(line.as_bytes())).collect();
    if kept.len() < text.len() {
        lines.push(["… of ", &thousands(text.len() as u64), " bytes; copied, it is whole"].concat());
    }
    lines.join("\n")
}

/// What a call has logged.
pub(super) fn log(entries: &[HostLogEntry]) -> AnyView {
    if entries.is_empty() {
        return view! { <p class="muted">"It logged nothing."</p> }.into_any();
    }
    let first = entries.first().map_or(0, |entry| entry.at_unix_ms);
    let line = |entry: &HostLogEntry| {
        let since = ["+", &text::millis(entry.at_unix_ms.saturating_sub(first) as f64)].concat();
        let class = match entry.level.as_str() {
            "error" => "chip chip--code",
            "warn" => "chip chip--warn",
            _ => "chip",
        };
        view! {
            <li>
                <span class=class>{shown(&entry.level, 20)}</span>
                <span>{shown(&entry.message, TEXT_MAX)}</span>
                <span class="muted num">{since}</span>
            </li>
        }
    };
    view! { <ol class="log" role="list">{entries.iter().map(line).collect_view()}</ol> }.into_any()
}

/// A bar for what takes as long as it takes.
pub(super) fn waiting(words: &'static str) -> AnyView {
    view! {
        <div class="wait" role="status">
            <div class="row"><span>{words}</span></div>
            <progress aria-label=words></progress>
        </div>
    }
    .into_any()
}

/// A bar for what takes as long as it takes, and a way to give it up.
pub(super) fn busy(words: &'static str, stop: impl Fn() + 'static) -> AnyView {
    view! {
        <div class="wait" role="status">
            <div class="row">
                <span>{words}</span>
                <button class="btn" type="button" on:click=move |_| stop()>"Stop"</button>
            </div>
            <progress aria-label=words></progress>
        </div>
    }
    .into_any()
}
