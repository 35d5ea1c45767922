//! A person runs the shipped tools, on text and on real files.

use anyhow::Result;

use super::person::{Folder, choose, count, open, pick_file, run, text, type_text};

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[tokio::test(flavor = "multi_thread")]
async fn hash_of_a_file_is_shown_as_a_digest_that_can_be_compared() -> Result<()> {
    let folder = Folder::new("hash-file", &[("abc.txt", b"abc")])?;
    let page = open().await?;
    choose(&page, "hash").await?;
    pick_file(&page, 0, &folder.file("abc.txt")).await?;
    run(&page).await?;
    page.wait_for(".result__digest .digest").await?;
    assert_eq!(text(&page, ".result__digest .digest").await?, ABC);

    let compare = page.wait_for(".compare input").await?;
    compare.send_keys(ABC).await?;
    page.wait_for(".compare[data-match=yes]").await?;
    compare.clear().await?;
    compare.send_keys(ABC.replace("ba78", "ba79")).await?;
    page.wait_for(".compare[data-match=no]").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_updates_the_latency_badge_of_its_tool() -> Result<()> {
    let page = open().await?;
    choose(&page, "hash").await?;
    assert_eq!(count(&page, ".pace .spark rect.is-empty").await?, 20);
    for calls in 1..=3 {
        run(&page).await?;
        let done = format!(
            "return document.querySelectorAll('.pace .spark rect:not(.is-empty)').length === {calls}"
        );
        page.wait_until("the history to grow", &done, Vec::new()).await?;
    }
    assert!(text(&page, ".tool[data-state=callable] .lat:not([data-empty])").await?.ends_with("ms"));
    assert!(text(&page, ".pace__split").await?.contains("worker"));

    // A call that somebody makes from the console counts like any other.
    page.run_async_js("await toolshelf.callWasmTool('hash', {})", Vec::new()).await?;
    page.wait_for_text(".pace__count", "4 calls").await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn diff_of_two_files_is_shown_side_by_side_and_unified() -> Result<()> {
    let same = "same\n".repeat(40);
    let old = format!("alpha\nbeta\n{same}end");
    let new = format!("alpha\ngamma\nbeta\n{same}end\n");
    let folder = Folder::new("diff-files", &[("old.txt", old.as_bytes()), ("new.txt", new.as_bytes())])?;
    let page = open().await?;
    choose(&page, "diff").await?;
    pick_file(&page, 0, &folder.file("old.txt")).await?;
    pick_file(&page, 1, &folder.file("new.txt")).await?;
    run(&page).await?;
    page.wait_for(".diff").await?;
    let summary = text(&page, ".diff__sum").await?;
    assert!(summary.contains("+2") && summary.contains("−1"), "{summary}");
    page.wait_for_text(".diff .fold", "unchanged lines").await?;
    page.wait_for_text(".diff", "No newline at end of file").await?;

    let rows = count(&page, ".diff tbody tr").await?;
    page.wait_for(".diff .fold__open").await?.click().await?;
    let more = format!("return document.querySelectorAll('.diff tbody tr').length > {rows}");
    page.wait_until("the fold to open", &more, Vec::new()).await?;

    page.run_js("document.querySelector('input[name=view][value=unified]').click()", Vec::new()).await?;
    page.wait_for(".diff[data-view=unified]").await?;
    page.run_js("document.querySelector('input[name=view][value=split]').click()", Vec::new()).await?;
    page.wait_for(".diff[data-view=split]").await?;
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_texts_are_said_to_be_identical() -> Result<()> {
    let page = open().await?;
    choose(&page, "diff").await?;
    type_text(&page, 0, "one\ntwo\n").await?;
    type_text(&page, 1, "one\ntwo\n").await?;
    run(&page).await?;
    page.wait_for_text(".result", "identical").await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_is_too_long_is_refused_before_it_is_read() -> Result<()> {
    let folder = Folder::new("too-long", &[("big.bin", &[7; 8_193])])?;
    let page = open().await?;
    choose(&page, "hash").await?;
    pick_file(&page, 0, &folder.file("big.bin")).await.ok();
    page.wait_for_text(".run", "8,19").await?;
    let blocked = "const run = document.querySelector('.run button[type=submit]');
        return run.disabled || !!document.querySelector('[data-over-limit], .note--bad')";
    page.wait_until("the form to say no", blocked, Vec::new()).await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_draws_a_diff_is_fetched_with_the_first_diff_and_never_again() -> Result<()> {
    let page = open().await?;
    let fetched = async || -> Result<usize> {
        let requests = page.requests().await?;
        Ok(requests.iter().filter(|url| url.ends_with("/split_diff.wasm")).count())
    };
    choose(&page, "diff").await?;
    assert_eq!(fetched().await?, 0);
    for (field, words) in [(0, "one"), (1, "two")] {
        type_text(&page, field, words).await?;
    }
    for _ in 0..2 {
        run(&page).await?;
        page.wait_for_text(".diff__sum", "+1").await?;
        assert_eq!(fetched().await?, 1);
    }
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_cannot_be_fetched_is_said_to_be_missing_and_can_be_tried_again() -> Result<()> {
    let page = open().await?;
    let block = async |urls: &[&str]| {
        page.devtools("Network.setBlockedURLs", serde_json::json!({ "urls": urls })).await
    };
    page.devtools("Network.enable", serde_json::json!({})).await?;
    block(&["*/split_diff.wasm"]).await?;
    choose(&page, "diff").await?;
    type_text(&page, 0, "one").await?;
    run(&page).await?;
    page.wait_for("[data-missing-part]").await?;

    // The rest of the page goes on, and the part comes when the connection does.
    block(&[]).await?;
    page.wait_for("[data-missing-part] button").await?.click().await?;
    page.wait_for(".diff__sum").await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_two_letter_diff_is_answered_and_drawn() -> Result<()> {
    let page = open().await?;
    let script = "
        let state = 1;
        const letter = () => {
            state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
            return state & 64 ? 'a\\n' : 'b\\n';
        };
        const text = () => Array.from({ length: 32768 }, letter).join('');
        const answer = await toolshelf.callWasmTool('diff', { a: text(), b: text() });
        return [answer.ok, answer.inputBytes, answer.blocks?.length > 1000];";
    let answer = page.run_async_js(script, Vec::new()).await?;
    assert_eq!(answer, serde_json::json!([true, 131_072, true]));
    page.quit().await
}
