//! What a person chose, kept by the browser. Where it keeps nothing, a choice lasts as long as the page.

use leptos::prelude::*;

use crate::result::diff_rows::View;

/// The key that `theme.js` reads as well.
const THEME: &str = "toolshelf.theme";
const DIFF_VIEW: &str = "toolshelf.diff-view";
/// The companion's token. Keys that begin with `toolshelf.` are exported with a person's data; this one is not.
const TOKEN: &str = "toolshelf-token";
/// Windows narrower than this get one column by default, in CSS pixels.
const NARROW: f64 = 720.0;

fn get(key: &str) -> Option<String> {
    window().local_storage().ok().flatten()?.get_item(key).ok().flatten()
}

fn set(key: &str, value: Option<&str>) {
    if let Ok(Some(storage)) = window().local_storage() {
        // A storage that is full or closed is no reason to bother anybody.
        let _ = match value {
            Some(value) => storage.set_item(key, value),
            None => storage.remove_item(key),
        };
    }
}

/// The chosen theme: `light`, `dark` or `system`.
pub(crate) fn theme() -> &'static str {
    match get(THEME).as_deref() {
        Some("light") => "light",
        Some("dark") => "dark",
        _ => "system",
    }
}

/// Applies and keeps a theme.
pub(crate) fn set_theme(theme: &'static str) {
    let chosen = Some(theme).filter(|theme| *theme != "system");
    set(THEME, chosen);
    if let Some(root) = document().document_element() {
        let _ = match chosen {
            Some(theme) => root.set_attribute("data-theme", theme),
            None => root.remove_attribute("data-theme"),
        };
    }
}

/// The chosen layout of a diff; by default what the window has room for.
pub(crate) fn diff_view() -> View {
    match get(DIFF_VIEW).as_deref() {
        Some("split") => View::Split,
        Some("unified") => View::Unified,
        _ if window()
            .inner_width()
            .ok()
            .and_then(|width| width.as_f64())
            .is_some_and(|width| width < NARROW) =>
        {
            View::Unified
        }
        _ => View::Split,
    }
}

/// Keeps the layout of a diff.
pub(crate) fn set_diff_view(view: View) {
    set(DIFF_VIEW, Some(if view == View::Split { "split" } else { "unified" }));
}

/// The companion's token.
pub(crate) fn token() -> Option<String> {
    get(TOKEN)
}

/// Keeps the companion's token, or forgets it.
pub(crate) fn set_token(token: Option<&str>) {
    set(TOKEN, token);
}
