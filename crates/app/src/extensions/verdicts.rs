//! What was decided about each entry of the folder that was just added.

use leptos::prelude::*;
use toolshelf_browser::Added;
use toolshelf_browser::core::shelf::Tool;

use super::is_callable;
use super::tool_row::NO_ABI;
use crate::result::refusal::RefusalNote;
use crate::state::{Verdicts, use_state};
use crate::ui::dom;
use crate::ui::icon::Icon;
use crate::ui::rich::{rich, short};

/// The verdicts, until they are dismissed. They get the focus: whoever added a folder wants to know.
#[component]
pub(super) fn VerdictTable() -> impl IntoView {
    let state = use_state();
    let dismiss = move |_| {
        state.verdicts.set(None);
        dom::focus_soon("#panel-h".to_owned());
    };
    move || {
        state.verdicts.get().map(|verdicts| {
            dom::focus_soon("#v-h".to_owned());
            let (title, summary, body) = match verdicts {
                Verdicts::Read(added) => {
                    let title = [&added.name, " was read"].concat();
                    (title, summary(&added), table(added.tools))
                }
                Verdicts::Refused(refusal) => {
                    let body = view! { <RefusalNote refusal=refusal/> }.into_any();
                    ("That is no shelf".to_owned(), "Nothing was added".to_owned(), body)
                }
            };
            view! {
                <section class="verdicts" aria-labelledby="v-h">
                    <div class="verdicts__head">
                        <div><h2 id="v-h" tabindex="-1">{title}</h2><p>{summary}</p></div>
                        <button class="btn btn--quiet btn--icon" type="button" aria-label="Dismiss" on:click=dismiss>
                            <Icon name="#i-cross"/>
                        </button>
                    </div>
                    {body}
                </section>
            }
        })
    }
}

/// `1 callable, 1 admitted, 2 refused`.
fn summary(added: &Added) -> String {
    let count = |is: &dyn Fn(&Tool) -> bool| added.tools.iter().filter(|tool| is(tool)).count();
    let callable = count(&is_callable);
    let parts = [
        (callable, " callable"),
        (count(&|tool| tool.verdict.is_ok()) - callable, " admitted"),
        (count(&|tool| tool.verdict.is_err()), " refused"),
    ];
    let parts: Vec<_> =
        parts.iter().filter(|part| part.0 > 0).map(|part| [&part.0.to_string(), part.1].concat()).collect();
    match (parts.is_empty(), added.stored) {
        (true, _) => "Its manifest lists no tools, so nothing was added".to_owned(),
        (false, 0) => [&parts.join(", "), "; nothing was added"].concat(),
        (false, _) => parts.join(", "),
    }
}

fn table(tools: Vec<Tool>) -> AnyView {
    if tools.is_empty() {
        return ().into_any();
    }
    let row = |tool: Tool| {
        let (class, words) = match &tool.verdict {
            Ok(admitted) if admitted.abi.is_some() => ("chip chip--ok", "callable"),
            Ok(_) => ("chip chip--warn", "admitted, not callable"),
            Err(refusal) => ("chip chip--code", refusal.code.as_str()),
        };
        let reason = match &tool.verdict {
            Ok(admitted) if admitted.abi.is_some() => ().into_any(),
            Ok(_) => NO_ABI.into_any(),
            Err(refusal) => rich(&refusal.why),
        };
        let digest = tool.digest.as_deref().filter(|digest| digest.len() == 64).map(short);
        view! {
            <tr>
                <th scope="row">{tool.id}</th>
                <td><span class=class>{words}</span></td>
                <td>{reason}</td>
                <td>{digest.map(|digest| view! { <code>{digest}</code> })}</td>
            </tr>
        }
    };
    let heads =
        ["Tool", "Verdict", "Reason", "Pinned digest"].map(|head| view! { <th scope="col">{head}</th> });
    view! {
        <table class="table">
            <thead><tr>{heads.collect_view()}</tr></thead>
            <tbody>{tools.into_iter().map(row).collect_view()}</tbody>
        </table>
    }
    .into_any()
}
