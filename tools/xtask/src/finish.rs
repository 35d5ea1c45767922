//! Completes the page that Trunk staged, before it moves to `dist/`.
//!
//! The content security policy in `index.html` allows no inline script.
//! Trunk puts one into the page, the loader, so its hash is added to the policy here: what runs is exactly what was
//! built.
//! Then the service worker is told what the page is made of: see [`offline`].
//! This is a `post_build` hook in `Trunk.toml`, so the page of `trunk serve` goes through it too and is held to the
//! same policy.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use crate::offline;

/// The part of the policy that the hashes are added to.
const SCRIPT_SOURCES: &str = "script-src 'self' 'wasm-unsafe-eval'";

/// What the reload script of `trunk serve` leaves to be filled in with each request. A hash needs a script that stays
/// as it is, so it is filled in here, by what the browser knows anyway.
const RELOAD_ADDRESS: [(&str, &str); 2] =
    [("'{{__TRUNK_ADDRESS__}}'", "window.location.host"), ("'{{__TRUNK_WS_BASE__}}'", "'/'")];

/// Completes the page in the folder that Trunk names.
pub(crate) fn staged() -> Result<()> {
    let folder = std::env::var_os("TRUNK_STAGING_DIR")
        .context("this is a hook of Trunk, which sets TRUNK_STAGING_DIR: run `cargo xtask build`")?;
    let path = Path::new(&folder).join("index.html");
    let html = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read the staged {}", path.display()))?;
    let reloads = html.contains(RELOAD_ADDRESS[0].0);
    let html = finished(&html)?;
    std::fs::write(&path, html).with_context(|| format!("cannot write the staged {}", path.display()))?;
    offline::write_worker(Path::new(&folder), reloads)
}

/// The page with each inline script allowed by its hash, and nothing else.
fn finished(html: &str) -> Result<String> {
    let mut html = html.to_owned();
    for (open, filled) in RELOAD_ADDRESS {
        html = html.replace(open, filled);
    }
    ensure!(
        html.matches(SCRIPT_SOURCES).count() == 1,
        "index.html must hold a content security policy with exactly `{SCRIPT_SOURCES}`"
    );
    let mut sources = SCRIPT_SOURCES.to_owned();
    for script in inline_scripts(&html)? {
        sources.push(' ');
        sources += &hash_source(script);
    }
    Ok(html.replace(SCRIPT_SOURCES, &sources))
}

/// How a policy names an inline script or style.
pub(crate) fn hash_source(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// The texts of the scripts that have no `src`, as a browser hashes them.
fn inline_scripts(html: &str) -> Result<Vec<&str>> {
    let mut scripts = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find("<script") {
        let tag = &rest[start..];
        let tag_end = tag.find('>').context("a script tag is not closed")?;
        let end = tag.find("</script>").context("a script has no end")?;
        ensure!(tag_end < end, "a script tag is not closed");
        if !tag[..tag_end].contains(" src=") {
            scripts.push(&tag[tag_end + 1..end]);
        }
        rest = &tag[end + "</script>".len()..];
    }
    Ok(scripts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str =
        "<meta content=\"default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self'\">";

    #[test]
    fn each_inline_script_is_allowed_by_its_hash_and_outside_ones_are_left_alone() {
        let page = format!("{POLICY}<script src=\"a.js\"></script><script type=\"module\">alert(1)</script>");
        let page = finished(&page).unwrap();
        // The digest of `alert(1)`, from `printf 'alert(1)' | openssl dgst -sha256 -binary | base64`.
        let hash = "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";
        assert!(page.contains(&format!("'wasm-unsafe-eval' {hash}; img-src")), "{page}");
        assert_eq!(page.matches("sha256-").count(), 1);
    }

    #[test]
    fn the_reload_script_holds_nothing_that_would_change_with_a_request() {
        let script = "const address = '{{__TRUNK_ADDRESS__}}'; const base = '{{__TRUNK_WS_BASE__}}';";
        let page = finished(&format!("{POLICY}<script>{script}</script>")).unwrap();
        assert!(page.contains("const address = window.location.host; const base = '/';"), "{page}");
        assert!(!page.contains("__TRUNK_"));
    }

    #[test]
    fn a_page_without_the_policy_or_with_a_torn_script_is_refused() {
        assert!(finished("<p>").unwrap_err().to_string().contains("content security policy"));
        let torn = format!("{POLICY}<script>alert(1)");
        assert_eq!(finished(&torn).unwrap_err().to_string(), "a script has no end");
    }

    #[test]
    fn the_page_of_this_workspace_has_the_policy() {
        let html = std::fs::read_to_string(crate::sh::root().join("index.html")).unwrap();
        let page = finished(&html).unwrap();
        assert!(!page.contains("unsafe-inline"), "no inline script or style is allowed as such");
        assert_eq!(inline_scripts(&html).unwrap(), [""; 0], "the source has no inline script of its own");
    }
}
