//! The harness sees what the other tests rely on it to see.

use anyhow::Result;
use e2e::{Browser, ColorScheme, Page};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn errors_and_foreign_requests_are_seen() -> Result<()> {
    let page = Page::start().await?;
    page.open("").await?;
    page.run_js("console.error('a bad thing')", Vec::new()).await?;
    let error = page.assert_clean().await.unwrap_err().to_string();
    assert!(error.contains("a bad thing"), "{error}");
    // Asking a second time does not forget.
    assert_eq!(page.console_errors().await?.len(), 1);

    // A blank page has no policy that would stop the request.
    page.goto("about:blank").await?;
    page.run_async_js("await fetch('http://127.0.0.1:9/x', { mode: 'no-cors' }).catch(() => 0)", Vec::new())
        .await?;
    assert_eq!(page.foreign_requests().await?, ["http://127.0.0.1:9/x"]);
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_return_values_and_pass_on_what_they_throw() -> Result<()> {
    let browser = Browser::start().await?;
    let sum =
        browser.run_async_js("return (await arguments[0]) + arguments[1]", vec![json!(1), json!(2)]).await?;
    assert_eq!(sum, 3);
    let error = browser.run_async_js("throw new Error('no luck')", Vec::new()).await.unwrap_err().to_string();
    assert!(error.contains("no luck"), "{error}");
    browser.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn width_and_colour_scheme_are_what_the_test_asks_for() -> Result<()> {
    let browser = Browser::start().await?;
    browser.goto("data:text/html,<meta name=viewport content=width=device-width>").await?;
    browser.set_viewport(320, 600).await?;
    assert_eq!(browser.run_js("return innerWidth", Vec::new()).await?, 320);
    for (scheme, dark) in [(ColorScheme::Dark, true), (ColorScheme::Light, false)] {
        browser.set_color_scheme(scheme).await?;
        let matches =
            browser.run_js("return matchMedia('(prefers-color-scheme: dark)').matches", Vec::new()).await?;
        assert_eq!(matches, dark, "{scheme:?}");
    }
    browser.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn serious_accessibility_findings_are_reported_by_rule_and_element() -> Result<()> {
    let browser = Browser::start().await?;
    browser
        .goto("data:text/html,<html lang=en><title>t</title><main><h1>t</h1><img id=bare src=data:,>")
        .await?;
    let findings = browser.axe().await?;
    let [finding] = findings.as_slice() else { panic!("one finding expected: {findings:?}") };
    assert_eq!(
        (finding.rule.as_str(), finding.elements.as_slice()),
        ("image-alt", ["#bare".to_owned()].as_slice())
    );
    browser.quit().await
}
