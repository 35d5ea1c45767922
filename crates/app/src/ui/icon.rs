//! Icons out of the sprite in `index.html`.

use leptos::prelude::*;

/// An icon that decorates; what it means is said in words beside it.
#[component]
pub(crate) fn Icon(
    /// Its place in the sprite, such as `#i-copy`.
    name: &'static str,
    /// Its class.
    #[prop(default = "icon")]
    class: &'static str,
) -> impl IntoView {
    view! { <svg class=class aria-hidden="true"><use href=name></use></svg> }
}
