//! The page opens, and keeps to itself.

use anyhow::Result;
use e2e::{Page, Site};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_page_opens_from_a_sub_path_without_an_error_or_a_foreign_request() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    assert_eq!(page.session().title().await?, "Toolshelf");
    let requests = page.requests().await?;
    assert!(requests.iter().any(|url| url.ends_with(".wasm")), "the app was loaded: {requests:?}");
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_content_security_policy_allows_no_inline_code_as_such() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    let policy = page
        .run_js(
            "return document.querySelector('meta[http-equiv=Content-Security-Policy]').content",
            Vec::new(),
        )
        .await?;
    let policy = policy.as_str().unwrap_or_default();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(policy.contains("'sha256-"), "the loader is allowed by its hash: {policy}");
    for forbidden in ["unsafe-inline", "'unsafe-eval'", "*", "http"] {
        assert!(!policy.contains(forbidden), "{policy}");
    }

    // The policy is not only written down but kept.
    let inline = "const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.head.append(script);
        return window.ran === true";
    assert_eq!(page.run_js(inline, Vec::new()).await?, false);
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_skeleton_gives_way_to_the_app() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    let hidden = "const boot = document.querySelector('#boot');
        return boot === null || getComputedStyle(boot).display === 'none'";
    page.wait_until("the skeleton to be hidden", hidden, Vec::new()).await?;
    page.quit().await
}

#[tokio::test]
async fn what_belongs_to_the_site_is_told_from_what_does_not() -> Result<()> {
    let site = Site::start().await?;
    assert!(site.owns(&site.url("a.wasm")));
    assert!(site.owns("blob:null/1"));
    for foreign in ["https://example.org/", "http://127.0.0.1:1/", "ws://127.0.0.1:1/"] {
        assert!(!site.owns(foreign), "{foreign}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_webassembly_is_told_what_is_missing() -> Result<()> {
    let page = Page::start().await?;
    let without = json!({ "source": "delete globalThis.WebAssembly" });
    page.devtools("Page.addScriptToEvaluateOnNewDocument", without).await?;
    page.goto(&page.site().url("")).await?;
    assert_eq!(page.run_js("return typeof WebAssembly", Vec::new()).await?, "undefined");
    page.wait_for_text("#boot", "needs a browser with WebAssembly").await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_scripts_is_told_so_at_once() -> Result<()> {
    let page = Page::start().await?;
    page.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await?;
    page.goto(&page.site().url("")).await?;
    let message = page.wait_for("#boot noscript p").await?;
    assert!(message.text().await?.contains("needs JavaScript"));
    page.quit().await
}
