//! Sentences with code in them, and digests in groups.

use leptos::prelude::*;

use crate::text;

/// A sentence in which what stands between backticks, and digests, are set as code.
pub(crate) fn rich(sentence: &str) -> AnyView {
    let piece = |piece: text::Piece| match piece.code {
        true => view! { <code>{piece.text}</code> }.into_any(),
        false => piece.text.into_any(),
    };
    text::pieces(sentence).into_iter().map(piece).collect_view().into_any()
}

/// One fact of a list.
pub(crate) fn fact(name: &'static str, value: String) -> AnyView {
    view! { <div><dt>{name}</dt><dd>{value}</dd></div> }.into_any()
}

/// A digest in groups of eight digits. The gaps are margins, so that a selection copies the bare digest.
#[component]
pub(crate) fn DigestText(
    /// The digits.
    digits: String,
    /// Its class.
    #[prop(default = "digest")]
    class: &'static str,
) -> impl IntoView {
    let letters: Vec<_> = digits.chars().collect();
    let group = |group: &[char]| view! { <span>{group.iter().collect::<String>()}</span><wbr/> };
    view! { <code class=class>{letters.chunks(8).map(group).collect_view()}</code> }
}

/// The first 16 digits of a digest, with dots.
pub(crate) fn short(digest: &str) -> String {
    let mut short: String = digest.chars().take(16).collect();
    short.push('…');
    short
}
