//! Installing an extension: its files or a link, and the question before that.

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use toolshelf_browser::companion::installed::Manifest;
use toolshelf_browser::pick;

use super::desk::{Desk, Seen};
use super::{parts, service, words};
use crate::state::State;
use crate::ui::icon::Icon;
use crate::ui::rich::{rich, short};

/// The two ways to install one.
pub(super) fn ways(state: State, desk: Desk) -> AnyView {
    let link = RwSignal::new(String::new());
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        service::look_at_link(state, desk, link.get_untracked().trim().to_owned());
    };
    let wait = move || {
        desk.looking.get().map(|stop| parts::busy("The companion fetches the manifest", move || stop.abort()))
    };
    let unsigned = move || {
        desk.listed.with(|listed| match listed {
            Some(Ok(listed)) if listed.allow_unsigned => {
                "This companion also takes extensions that nobody has signed: it was started for development."
            }
            _ => "Only what a publisher has signed whom you trust is installed; `toolshelf keys add` trusts one.",
        })
    };
    view! {
        <section class="part" aria-labelledby="files-h">
            <h3 id="files-h">"From files"</h3>
            <p class="muted">
                "Its "<code>"manifest.json"</code>", together with the module that it names. You are told what it asks \
                for before anything is installed."
            </p>
            <div class="row">
                {picker("Pick the files…", "install-files", true, move |files| {
                    service::look_at_files(state, desk, files);
                })}
            </div>
        </section>
        <section class="part" aria-labelledby="link-h">
            <h3 id="link-h">"From a link"</h3>
            <form class="connect__form" on:submit=submit>
                <label for="install-link">"Address of its manifest"</label>
                <div class="row">
                    <input
                        class="field field--path grow"
                        id="install-link"
                        placeholder="https://"
                        spellcheck="false"
                        autocapitalize="off"
                        autocomplete="off"
                        prop:value=move || link.get()
                        on:input=move |event| link.set(event_target_value(&event))
                    />
                    <button class="btn" type="submit" aria-busy=move || desk.looking.with(Option::is_some).then_some("true")>
                        "Look at it"
                    </button>
                </div>
            </form>
            {wait}
            <p class="muted">{move || rich(unsigned())}</p>
        </section>
    }
    .into_any()
}

/// A button that asks for files.
fn picker(
    words: &'static str,
    id: &'static str,
    is_many: bool,
    take: impl Fn(Vec<toolshelf_browser::PickedFile>) + 'static,
) -> AnyView {
    let chooser = NodeRef::<leptos::html::Input>::new();
    let choose = move |_| {
        if let Some(chooser) = chooser.get() {
            chooser.click();
        }
    };
    let chosen = move |_| {
        let Some(chooser) = chooser.get() else { return };
        take(pick::from_input(&chooser));
        // The same files can be picked again.
        chooser.set_value("");
    };
    view! {
        <button class="btn" type="button" on:click=choose><Icon name="#i-file"/>{words}</button>
        <input
            class="vh"
            id=id
            type="file"
            tabindex="-1"
            aria-hidden="true"
            multiple=is_many
            node_ref=chooser
            on:change=chosen
        />
    }
    .into_any()
}

/// The question. It opens when a manifest was looked at.
pub(super) fn dialog(state: State, desk: Desk) -> AnyView {
    let dialog = NodeRef::<leptos::html::Dialog>::new();
    Effect::new(move || {
        let is_seen = desk.seen.with(Option::is_some);
        let Some(dialog) = dialog.get() else { return };
        match (is_seen, dialog.open()) {
            (true, false) => drop(dialog.show_modal()),
            (false, true) => dialog.close(),
            _ => {}
        }
    });
    let closed = move |_| desk.seen.set(None);
    let close = move |_| {
        if let Some(dialog) = dialog.get() {
            dialog.close();
        }
    };
    let about = move || desk.seen.get().map(|seen| about(state, desk, &seen));
    let can = Memo::new(move |_| desk.seen.with(|seen| seen.as_ref().is_some_and(can_install)));
    let busy = move || desk.installing.get().then_some("true");
    view! {
        <dialog class="dialog dialog--wide" id="install" aria-labelledby="install-h" node_ref=dialog on:close=closed>
            {about}
            <div class="dialog__actions">
                <button class="btn" type="button" on:click=close>
                    {move || if can.get() { "Do not install" } else { "Close" }}
                </button>
                <Show when=move || desk.seen.with(|seen| seen.as_ref().is_some_and(|seen| seen.refusal().is_none()))>
                    <button
                        class="btn btn--primary"
                        type="button"
                        aria-busy=busy
                        disabled=move || !can.get()
                        on:click=move |_| service::install(state, desk)
                    >
                        <span class="btn__swap">
                            <span>"Install"</span><span class="is-busy">"Installing…"</span>
                        </span>
                    </button>
                </Show>
            </div>
        </dialog>
    }
    .into_any()
}

/// Whether nothing is known that stands in the way.
fn can_install(seen: &Seen) -> bool {
    let Ok(about) = &seen.about else { return false };
    let Some(manifest) = &about.manifest else { return false };
    let fits = match (&manifest.module_path, &seen.module) {
        (None, _) => true,
        (Some(_), Some(module)) => manifest.module_sha256.as_deref() == Some(&*module.digits),
        (Some(_), None) => false,
    };
    about.refusal.is_none() && fits
}

fn about(state: State, desk: Desk, seen: &Seen) -> AnyView {
    let from = words::shown(&seen.from, 200);
    let refused = match (&seen.end, &seen.about, seen.refusal()) {
        (Some(no), ..) => Some(parts::problem(no)),
        (None, Err(no), _) => Some(parts::problem(no)),
        (None, Ok(_), Some(refusal)) => Some(parts::problem(&refusal.into())),
        (None, Ok(_), None) => None,
    };
    let inspected = seen.about.as_ref().ok();
    let Some((inspected, manifest)) = inspected.and_then(|about| Some((about, about.manifest.as_ref()?)))
    else {
        return view! {
            <h2 id="install-h" tabindex="-1" autofocus>"This cannot be installed"</h2>
            <p class="muted">"From "{from}</p>
            {refused}
        }
        .into_any();
    };
    let title = match inspected.refusal {
        Some(_) => "This cannot be installed: ",
        None => "Install ",
    };
    let summary = words::shown(&manifest.summary, words::TEXT_MAX);
    let signed = match (&manifest.signed_by, inspected.trust) {
        (None, _) => (true, "Nobody has signed it: anybody may have written it.".to_owned()),
        (Some(who), Some(tier)) => {
            (false, ["Signed by `", &words::name(who), "`: ", words::trust(tier), "."].concat())
        }
        (Some(who), None) => (true, ["It says that `", &words::name(who), "` has signed it."].concat()),
    };
    let wish = |(is_weighty, words): (bool, String)| {
        let icon = if is_weighty { "#i-alert" } else { "#i-check" };
        view! { <li data-weighty=is_weighty><Icon name=icon/><span>{rich(&words)}</span></li> }
    };
    let wishes =
        words::wishes(manifest, inspected.limits).into_iter().map(|wish| (wish.is_weighty, wish.words));
    let wishes: Vec<_> = wishes.chain([signed]).map(wish).collect();
    view! {
        <h2 id="install-h" tabindex="-1" autofocus>{title}"“"{words::name(&manifest.name)}"”"</h2>
        <p class="muted">
            "Version "{words::shown(&manifest.version, 40)}" · "<code>{words::name(&manifest.id)}</code>" · from "{from}
        </p>
        {(!summary.is_empty()).then(|| view! { <p>{rich(&summary)}</p> })}
        {refused}
        <h3>"What it asks for"</h3>
        <ul class="wishes" role="list">{wishes.collect_view()}</ul>
        {tools(manifest)}
        {module(state, desk, seen, manifest)}
    }
    .into_any()
}

/// The tools that it brings.
fn tools(manifest: &Manifest) -> AnyView {
    if manifest.tools.is_empty() {
        return ().into_any();
    }
    let tool = |tool: &toolshelf_browser::companion::installed::Tool| {
        view! { <li><code>{words::name(&tool.name)}</code>" "{rich(&words::shown(&tool.description, 300))}</li> }
    };
    let count = manifest.tools.len();
    let more = count.saturating_sub(8);
    let more = (more > 0).then(|| view! { <li class="muted">{more.to_string()}" more"</li> });
    view! {
        <h3>"Its tools"</h3>
        <ul class="wishes__tools" role="list">{manifest.tools.iter().take(8).map(tool).collect_view()}{more}</ul>
    }
    .into_any()
}

/// Where the module comes from, and whether it is the one that is pinned.
fn module(state: State, desk: Desk, seen: &Seen, manifest: &Manifest) -> AnyView {
    let pinned = manifest.module_sha256.clone().unwrap_or_default();
    if let Some(url) = &manifest.module_url {
        let url = words::shown(url, 300);
        return view! {
            <h3>"Its module"</h3>
            <p>"The companion downloads it from "<code>{url}</code>" and takes it only if its digest is "
                <code>{short(&pinned)}</code></p>
        }
        .into_any();
    }
    let Some(path) = &manifest.module_path else { return ().into_any() };
    let said = match &seen.module {
        Some(module) if module.digits == pinned => view! {
            <p class="ok"><Icon name="#i-check"/>" "<code>{words::name(&module.name)}</code>" has the pinned digest "
                <code>{short(&pinned)}</code></p>
        }
        .into_any(),
        Some(module) => view! {
            <p class="bad">
                <Icon name="#i-alert"/>" "<code>{words::name(&module.name)}</code>" has the digest "
                <code>{short(&module.digits)}</code>", and the manifest pins "<code>{short(&pinned)}</code>
            </p>
        }
        .into_any(),
        None => view! { <p>"The manifest names the file "<code>{words::name(path)}</code>"; pick it as well."</p> }.into_any(),
    };
    let is_missing = seen.module.as_ref().is_none_or(|module| module.digits != pinned);
    let pick = is_missing.then(|| {
        picker("Pick the module…", "install-module", false, move |files| {
            service::take_module(state, desk, files);
        })
    });
    view! { <h3>"Its module"</h3>{said}<div class="row">{pick}</div> }.into_any()
}
