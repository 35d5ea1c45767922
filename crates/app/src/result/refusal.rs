//! A "no", with what to do about it.

use leptos::prelude::*;
use toolshelf_browser::core::refusal::Refusal;

use crate::text::capitalised;
use crate::ui::icon::Icon;
use crate::ui::rich::rich;

/// A refusal: its code, the sentence with the evidence, and what to do next.
#[component]
pub(crate) fn RefusalNote(
    /// The refusal.
    refusal: Refusal,
    /// What is shown between the sentence and the way on.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let Refusal { code, why } = refusal;
    view! {
        <div class="note note--bad">
            <Icon name="#i-alert"/>
            <h4><code title=code.meaning()>{code.as_str()}</code></h4>
            <p>{rich(&capitalised(&why))}</p>
            {children.map(|children| children())}
            <p><b>"What to do: "</b>{rich(code.remedy())}</p>
        </div>
    }
}
