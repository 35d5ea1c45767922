//! The blocks of a diff script as the module wrote them.

use leptos::prelude::*;
use toolshelf_browser::core::script::{Block, Op};

use crate::text::{counted, thousands};
use crate::ui::icon::Icon;

/// Blocks that are shown. A script can hold fifteen thousand.
const SHOWN: usize = 500;

/// The name of what a block says.
fn name(op: Op) -> String {
    match op {
        Op::Equal => "equal".to_owned(),
        Op::Delete => "delete".to_owned(),
        Op::Insert => "insert".to_owned(),
        Op::Unknown(op) => op.to_string(),
    }
}

fn numbers(block: &Block) -> [u32; 4] {
    [block.a_line, block.a_count, block.b_line, block.b_count]
}

/// The blocks as a table, opened on demand.
#[component]
pub(crate) fn RawBlocks(
    /// The blocks.
    blocks: Vec<Block>,
    /// Bytes of the whole script.
    bytes: usize,
) -> impl IntoView {
    let size =
        [&counted(blocks.len() as u64, "block", "blocks"), ", ", &counted(bytes as u64, "byte", "bytes")]
            .concat();
    let opened = RwSignal::new(false);
    let more = blocks.len().saturating_sub(SHOWN);
    let row = |block: &Block| {
        let cells = numbers(block).map(|number| view! { <td>{number.to_string()}</td> });
        view! { <tr><td>{name(block.op)}</td>{cells.collect_view()}</tr> }
    };
    let table = move || {
        opened.get().then(|| {
            view! {
                <table class="blocks">
                    <thead>
                        <tr>
                            {["op", "aLine", "aCount", "bLine", "bCount"]
                                .map(|head| view! { <th scope="col">{head}</th> })
                                .collect_view()}
                        </tr>
                    </thead>
                    <tbody>{blocks.iter().take(SHOWN).map(row).collect_view()}</tbody>
                </table>
                {(more > 0).then(|| view! { <p class="muted">"and "{thousands(more as u64)}" more"</p> })}
            }
        })
    };
    view! {
        <details class="raw" on:toggle=move |_| opened.set(true)>
            <summary><Icon name="#i-chevron"/>"Raw blocks "<span class="muted">{size}</span></summary>
            <div class="raw__body" tabindex="0" role="region" aria-label="Raw blocks">{table}</div>
        </details>
    }
}

/// Blocks among which are some that the format does not define: nothing but JSON says what they are.
#[component]
pub(crate) fn RawJson(
    /// The blocks.
    blocks: Vec<Block>,
) -> impl IntoView {
    let more = blocks.len().saturating_sub(SHOWN);
    let json = json(&blocks[..blocks.len() - more]);
    view! {
        <div class="note note--warn">
            <Icon name="#i-alert"/>
            <h4>"The script holds operations that the format does not define"</h4>
            <p>"So it cannot be drawn as a diff. These are its blocks as the module wrote them."</p>
        </div>
        <div class="sample">
            <div class="sample__head">
                <span>{counted((blocks.len() - more) as u64, "block", "blocks")}</span>
                {(more > 0).then(|| [&thousands(more as u64), " more are left out"].concat())}
            </div>
            <pre tabindex="0" role="region" aria-label="The blocks as JSON"><code>{json}</code></pre>
        </div>
    }
}

fn json(blocks: &[Block]) -> String {
    let mut json = String::from("[");
    for (at, block) in blocks.iter().enumerate() {
        json.push_str(if at == 0 { "\n  {\"op\": " } else { ",\n  {\"op\": " });
        let quote = if matches!(block.op, Op::Unknown(_)) { "" } else { "\"" };
        json.extend([quote, &name(block.op), quote]);
        for (key, number) in ["aLine", "aCount", "bLine", "bCount"].into_iter().zip(numbers(block)) {
            json.extend([", \"", key, "\": ", &number.to_string()]);
        }
        json.push('}');
    }
    json.push_str("\n]");
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_is_what_the_wire_would_carry() {
        let block = |op| Block { op, a_line: 1, a_count: 2, b_line: 3, b_count: 4 };
        let shown = json(&[block(Op::Insert), block(Op::Unknown(9))]);
        let expected = "[\n  {\"op\": \"insert\", \"aLine\": 1, \"aCount\": 2, \"bLine\": 3, \"bCount\": 4},\n  \
                        {\"op\": 9, \"aLine\": 1, \"aCount\": 2, \"bLine\": 3, \"bCount\": 4}\n]";
        assert_eq!(shown, expected);
    }
}
