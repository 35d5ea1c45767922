//! Accessibility rules, run inside the page.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::browser::Browser;
use crate::workspace;

/// One rule that the page breaks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Finding {
    /// The name of the rule, such as `color-contrast`.
    pub rule: String,
    /// `serious` or `critical`.
    pub impact: String,
    /// What the rule asks for.
    pub help: String,
    /// The selectors of the elements that break it.
    pub elements: Vec<String>,
}

/// Injects axe-core unless it is there, and runs it.
const RUN: &str = "
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, impact, help, nodes }) => (
            { rule: id, impact, help, elements: nodes.map(({ target }) => target.flat().join(' ')) }
        ));
";

pub(crate) async fn run(browser: &Browser) -> Result<Vec<Finding>> {
    let path = workspace().join("target/tools/node_modules/axe-core/axe.min.js");
    let present = browser.run_js("return typeof axe === 'object'", Vec::new()).await?;
    if present != true {
        let script = std::fs::read_to_string(path).context("axe-core is missing: run `cargo xtask setup`")?;
        browser.run_js(&script, Vec::new()).await?;
    }
    let findings = browser.run_async_js(RUN, Vec::new()).await?;
    serde_json::from_value(findings).context("axe-core answered in an unknown form")
}
