//! One tool: what it is, the form that runs it, and what came back.

use leptos::prelude::*;
use toolshelf_browser::core::abi::Abi;
use toolshelf_browser::core::limits::WASM_PAGE_BYTES;
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::core::shelf::Admitted;

use super::pace::Pace;
use super::places::places;
use super::refused::Refused;
use super::run_form::RunForm;
use super::tool_row::NO_ABI;
use crate::result::ResultPanel;
use crate::result::refusal::RefusalNote;
use crate::route::{PANEL, Place};
use crate::state::{Selected, tool_key, use_state};
use crate::text::{capitalised, counted, thousands};
use crate::ui::copy::CopyButton;
use crate::ui::icon::Icon;
use crate::ui::pin::Pin;
use crate::ui::rich::{DigestText, fact};

/// The tool that the address names.
#[component]
pub(super) fn ToolDetail(
    /// The tool and its shelf.
    selected: Selected,
) -> impl IntoView {
    let tool = &selected.tool;
    let body = match (&tool.verdict, selected.abi()) {
        (Err(refusal), _) => {
            // A module that was changed while the page was open may have been run before.
            let key = selected.key();
            let result = use_state().outcome(&key).map(|outcome| {
                view! { <ResultPanel key=key outcome=RwSignal::from(outcome)/> }
            });
            view! { <Refused selected=selected.clone() refusal=refusal.clone()/>{result} }.into_any()
        }
        (Ok(admitted), None) => view! {
            <div>
                <div class="note note--warn">
                    <Icon name="#i-alert"/>
                    <h4>"Admitted, not callable"</h4>
                    <p>{capitalised(NO_ABI)}". Its digest and its module are in order."</p>
                </div>
            </div>
            <Facts selected=selected.clone() admitted=*admitted/>
        }
        .into_any(),
        (Ok(admitted), Some(abi)) => view! {
            <Facts selected=selected.clone() admitted=*admitted/>
            <Pace key=selected.key()/>
            <Work place=selected.place id=tool.id.clone() abi=abi/>
        }
        .into_any(),
    };
    view! {
        <article class="detail" aria-labelledby="detail-h">
            <Head selected=selected.clone()/>
            {body}
        </article>
    }
}

/// The form and the result, which share what is kept of the tool.
#[component]
fn Work(
    /// Whose it is.
    place: Place,
    /// The tool's id.
    id: String,
    /// How it is called.
    abi: Abi,
) -> impl IntoView {
    let key = tool_key(place, &id);
    let form = use_state().form(&key, abi);
    let outcome = RwSignal::from(form.outcome.clone());
    view! {
        <RunForm place=place id=id abi=abi form=form/>
        <ResultPanel key=key outcome=outcome/>
    }
}

/// Name, state and description.
#[component]
fn Head(
    /// The tool and its shelf.
    selected: Selected,
) -> impl IntoView {
    let state = use_state();
    let (is_refused, is_callable) = (selected.tool.verdict.is_err(), selected.abi().is_some());
    let key = selected.key();
    let is_waiting = Memo::new(move |_| state.waiting(&key).is_some());
    let (place, tool) = (selected.place, selected.tool);
    let id = tool.id.clone();
    let kind = move || match (is_refused, is_waiting.get(), is_callable) {
        (true, ..) => ("refused", "Refused"),
        (false, true, _) => ("running", "Running"),
        (false, false, true) => ("callable", "Callable now"),
        (false, false, false) => ("idle", "Admitted, not callable"),
    };
    let pin = tool.digest.filter(|digest| digest.is_ascii() && digest.len() == 64).map(|digits| {
        let class = if is_refused { "pin pin--bad" } else { "pin" };
        view! { <Pin digits=digits class=class/> }
    });
    view! {
        <header class="detail__head">
            <a class="back" href=PANEL><Icon name="#i-back"/>"All tools"</a>
            <div class="detail__title">
                {pin}
                <h2 id="detail-h" tabindex="-1">{tool.id}</h2>
                <span class="state" data-state=move || kind().0>
                    <span class="dot" aria-hidden="true"></span>
                    {move || kind().1}
                </span>
            </div>
            <p class="detail__desc">{tool.description}</p>
            {places(state, place, id)}
        </header>
    }
}

/// What is known of an admitted module.
#[component]
fn Facts(
    /// The tool and its shelf.
    selected: Selected,
    /// What admission found.
    admitted: Admitted,
) -> impl IntoView {
    let pages = admitted.memory_pages;
    let kib = thousands(pages * WASM_PAGE_BYTES / 1024);
    let memory = [&counted(pages, "page", "pages"), ", ", &kib, " KiB"].concat();
    let digits = admitted.digest.to_string();
    view! {
        <div>
            <h3 class="vh">"Facts"</h3>
            <dl class="facts">
                <PinnedDigest digits=digits/>
                {fact("ABI", admitted.abi.map_or("none known", |abi| abi.layout().name).to_owned())}
                {fact("Imports", "0".to_owned())}
                {fact("Memory", memory)}
                {fact("Module", [&thousands(admitted.bytes), " bytes"].concat())}
                {fact("Shelf", shelf_name(&selected))}
            </dl>
        </div>
    }
}

/// The digest that the manifest pins.
#[component]
pub(super) fn PinnedDigest(
    /// The digits.
    digits: String,
) -> impl IntoView {
    view! {
        <div class="is-wide">
            <dt>"Pinned digest, checked again on every call"</dt>
            <dd class="facts__digest">
                <DigestText digits=digits.clone()/>
                <CopyButton text=digits label="Copy the digest"/>
            </dd>
        </div>
    }
}

/// The name of the shelf, and whether it came with the page.
pub(super) fn shelf_name(selected: &Selected) -> String {
    [selected.shelf_name.as_str(), if selected.is_builtin() { ", built in" } else { "" }].concat()
}

/// What is shown for an address that names no tool.
#[component]
pub(super) fn Unknown(
    /// The id in the address.
    id: String,
) -> impl IntoView {
    let why = ["no tool `", &id.replace('`', "'"), "` is on the shelf"].concat();
    view! {
        <article class="detail" aria-labelledby="detail-h">
            <header class="detail__head">
                <a class="back" href=PANEL><Icon name="#i-back"/>"All tools"</a>
                <div class="detail__title"><h2 id="detail-h" tabindex="-1">{id}</h2></div>
            </header>
            <div><RefusalNote refusal=Refusal::new(Code::UnknownTool, why)/></div>
        </article>
    }
}
