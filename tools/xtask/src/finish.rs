//! Completes the page that Trunk staged, before it moves to `dist/`.
//!
//! Trunk brings the style sheets and all else that is only copied; the program is built by [`crate::app`] and linked
//! here.
//! The content security policy in `index.html` allows no inline script.
//! The loader is one, so its hash is added to the policy here: what runs is exactly what was built.
//! Then the service worker is told what the page is made of: see [`offline`].
//! This is a `post_build` hook in `Trunk.toml`, so the page of `trunk serve` goes through it too and is held to the
//! same policy.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use crate::app::{self, LINK, NAME, Profile};
use crate::chunks::integrity;
use crate::{offline, styles};

/// Says to the page's other scripts that the program has started, as Trunk's own loader does.
const STARTED: &str = "dispatchEvent(new Event('TrunkApplicationStarted'));";

/// The part of the policy that the hashes are added to.
const SCRIPT_SOURCES: &str = "script-src 'self' 'wasm-unsafe-eval'";

/// What stands where the program is to be linked. Trunk does not build it, and leaves the tag as it is.
const PROGRAM: &str = "<link data-trunk data-trunk-skip rel=\"rust\"";

/// What the reload script of `trunk serve` leaves to be filled in with each request. A hash needs a script that stays
/// as it is, so it is filled in here, by what the browser knows anyway.
const RELOAD_ADDRESS: [(&str, &str); 2] =
    [("'{{__TRUNK_ADDRESS__}}'", "window.location.host"), ("'{{__TRUNK_WS_BASE__}}'", "'/'")];

/// Completes the page in the folder that Trunk names.
pub(crate) fn staged() -> Result<()> {
    let folder = std::env::var_os("TRUNK_STAGING_DIR")
        .context("this is a hook of Trunk, which sets TRUNK_STAGING_DIR: run `cargo xtask build`")?;
    let folder = Path::new(&folder);
    let profile = Profile::of_trunk(&std::env::var("TRUNK_PROFILE").unwrap_or_default());
    let program = app::build(profile, folder)?;
    let links = links(&program, |file| {
        let path = folder.join(&program).join(file);
        std::fs::read(&path).with_context(|| format!("cannot read the staged {}", path.display()))
    })?;
    let path = folder.join("index.html");
    let html = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read the staged {}", path.display()))?;
    let reloads = html.contains(RELOAD_ADDRESS[0].0);
    let html = styles::join(&with_links(&html, &links)?, folder)?;
    let html = finished(&html)?;
    std::fs::write(&path, html).with_context(|| format!("cannot write the staged {}", path.display()))?;
    offline::write_worker(folder, reloads)
}

/// The loader of the program in that folder, and what else the browser may fetch at once, each with its digest.
///
/// The module's own address, which the loader leaves out, is the one that is preloaded.
fn links(program: &str, read: impl Fn(&str) -> Result<Vec<u8>>) -> Result<String> {
    let mut links = String::new();
    for script in [format!("{NAME}.js"), LINK.to_owned()] {
        let integrity = integrity(&read(&script)?);
        links += &format!(
            "<link rel=\"modulepreload\" href=\"./{program}/{script}\" crossorigin=\"anonymous\" integrity=\"{integrity}\">\n"
        );
    }
    let module = format!("{NAME}_bg.wasm");
    let integrity = integrity(&read(&module)?);
    links += &format!(
        "<link rel=\"preload\" href=\"./{program}/{module}\" crossorigin=\"anonymous\" integrity=\"{integrity}\" as=\"fetch\" type=\"application/wasm\">\n"
    );
    links += &format!(
        "<script type=\"module\">import init from './{program}/{NAME}.js'; await init(); {STARTED}</script>\n"
    );
    Ok(links)
}

/// The page with the links in the place of the program that Trunk passed over.
fn with_links(html: &str, links: &str) -> Result<String> {
    let (before, rest) =
        html.split_once(PROGRAM).with_context(|| format!("index.html must hold `{PROGRAM} …>`"))?;
    let (_, after) = rest.split_once('>').context("the link of the program is not closed")?;
    Ok([before, links.trim_end(), after].concat())
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
    fn the_program_is_linked_from_where_the_page_is_and_by_digest() {
        let links = links("app-1", |file| Ok(file.into())).unwrap();
        for file in ["app.js", "__wasm_split.js", "app_bg.wasm"] {
            let digest = integrity(file.as_bytes());
            assert!(
                links.contains(&format!(
                    "href=\"./app-1/{file}\" crossorigin=\"anonymous\" integrity=\"{digest}\""
                )),
                "{links}"
            );
        }
        let page = with_links(&format!("<head>{POLICY}{PROGRAM} href=\"a\"/></head><body>"), &links).unwrap();
        assert!(page.ends_with(&format!("await init(); {STARTED}</script></head><body>")), "{page}");
        assert!(finished(&page).unwrap().contains("'sha256-"));
        assert!(with_links("<body>", &links).is_err());
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
