//! The page as one file, which opens from a disk by a double click: `dist-single/toolshelf.html`.
//!
//! A page that is opened from a disk may not ask for its neighbours, so everything is inside: style sheets and scripts
//! as they are, the icon as a `data:` URL, the app compressed and in Base64.
//! It is made of the finished page in `dist/`, so both run the same bytes; a folder of its own keeps it out of what a
//! static host serves.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::{finish, inline_app, sh};

/// The whole file fits into this many bytes.
const LIMIT: u64 = 1_600_000;

fn path() -> PathBuf {
    sh::root().join("dist-single/toolshelf.html")
}

/// Makes the one file of the page in `dist`.
pub(crate) fn write(dist: &Path) -> Result<()> {
    let html = with_everything_inside(dist).context("the page cannot be made one file")?;
    let path = path();
    std::fs::create_dir_all(path.parent().unwrap_or(sh::root()))?;
    std::fs::write(&path, html).with_context(|| format!("cannot write {}", path.display()))
}

/// Fails when the one file is larger than it may be.
pub(crate) fn check() -> Result<()> {
    let bytes = std::fs::metadata(path()).context("there is no dist-single/toolshelf.html yet")?.len();
    println!("as one file {bytes} bytes, of {LIMIT} at most");
    ensure!(bytes <= LIMIT, "dist-single/toolshelf.html has {bytes} bytes, more than {LIMIT}");
    Ok(())
}

fn with_everything_inside(dist: &Path) -> Result<String> {
    let load = |name: &str| {
        let path = dist.join(name.trim_start_matches("./"));
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let page = load("index.html")?;
    let page = replaced(&String::from_utf8(page)?, "<link", ">", |link| inlined_link(link, &load))?;
    let page = replaced(&page, "<script", "</script>", |script| inlined_script(script, &load))?;
    with_policy(&page)
}

/// The page with each piece from `open` to `close` replaced.
fn replaced(page: &str, open: &str, close: &str, with: impl Fn(&str) -> Result<String>) -> Result<String> {
    let (mut done, mut rest) = (String::new(), page);
    while let Some(start) = rest.find(open) {
        let end = rest[start..].find(close).with_context(|| format!("a {open} has no {close}"))?;
        let end = start + end + close.len();
        done += &rest[..start];
        done += &with(&rest[start..end])?;
        rest = &rest[end..];
    }
    Ok(done + rest)
}

fn inlined_link(link: &str, load: &impl Fn(&str) -> Result<Vec<u8>>) -> Result<String> {
    let href = attribute(link, "href").context("a link leads nowhere")?;
    Ok(match attribute(link, "rel").unwrap_or_default() {
        "stylesheet" => element("style", "", &String::from_utf8(load(href)?)?)?,
        "icon" => {
            let picture = BASE64_STANDARD.encode(load(href)?);
            format!("<link rel=\"icon\" href=\"data:image/svg+xml;base64,{picture}\" />")
        }
        // A file cannot be installed, and what is inside needs no early fetch.
        "manifest" | "preload" | "modulepreload" => String::new(),
        other => bail!("it is not known what becomes of a link to the {other}"),
    })
}

fn inlined_script(script: &str, load: &impl Fn(&str) -> Result<Vec<u8>>) -> Result<String> {
    let (tag, body) = script.split_once('>').context("a script tag is not closed")?;
    if let Some(source) = attribute(tag, "src") {
        return element("script", "", &String::from_utf8(load(source)?)?);
    }
    if attribute(tag, "type") == Some("module") {
        let glue = quoted(body, ".js").context("the loader names no script")?;
        let (folder, _) = glue.rsplit_once('/').context("the program has no folder")?;
        let script = inline_app::script(|name| load(&format!("{folder}/{name}")))?;
        return element("script", " type=\"module\"", &script);
    }
    // Beside a file there is no service worker.
    let registers = body.contains("serviceWorker");
    Ok(if registers { String::new() } else { script.to_owned() })
}

/// An element with a text that its end tag does not occur in.
fn element(name: &str, attributes: &str, text: &str) -> Result<String> {
    let end = format!("</{name}");
    ensure!(!text.contains(&end) && !text.contains("<!--"), "a {name} would end too early");
    Ok(format!("<{name}{attributes}>{text}</{name}>"))
}

/// The policy of the page without what comes from beside it: only the very scripts and styles inside may act.
fn with_policy(page: &str) -> Result<String> {
    let start = page.find("content=\"default-src").context("the page has no content security policy")?;
    let policy = attribute(&page[start..], "content").context("the policy is not closed")?;
    let own = policy.split(';').filter_map(|directive| {
        let words = directive.split_whitespace();
        let mut words =
            words.filter(|word| *word != "'self'" && !word.starts_with("'sha256-")).collect::<Vec<_>>();
        let hashes = match *words.first()? {
            "script-src" => hashes(page, "script"),
            "style-src" => hashes(page, "style"),
            _ => Vec::new(),
        };
        words.extend(hashes.iter().map(String::as_str));
        // One that names nothing any more says what `default-src 'none'` says.
        (words.len() > 1).then(|| words.join(" "))
    });
    let own = own.collect::<Vec<_>>().join("; ");
    Ok(page.replacen(policy, &own, 1))
}

fn hashes(page: &str, element: &str) -> Vec<String> {
    let (open, close) = (format!("<{element}"), format!("</{element}>"));
    let elements = page.split(&close).filter_map(|before| before.rsplit_once(&open));
    let texts = elements.filter_map(|(_, element)| Some(element.split_once('>')?.1));
    texts.map(finish::hash_source).collect()
}

/// The value of an attribute as Trunk and this workspace write it: in double quotes, with nothing escaped.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = tag.split_once(&format!("{name}=\""))?;
    Some(value.split_once('"')?.0)
}

/// The first text in single quotes that ends like this.
fn quoted<'a>(script: &'a str, end: &str) -> Option<&'a str> {
    script.split('\'').skip(1).step_by(2).find(|text| text.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str) -> Result<Vec<u8>> {
        Ok(match name {
            "./a.css" => &b"p { color: red }"[..],
            "./theme.js" => b"theme()",
            "./app-1/app.js" => {
                b"export class A {}\nfunction __wbg_init() {}\nexport { __wbg_init as default };\n"
            }
            "./app-1/__wasm_split.js" => b"",
            "./app-1/app_bg.wasm" => b"\0asm",
            "./icon.svg" => b"<svg/>",
            other => bail!("there is no {other}"),
        }
        .to_vec())
    }

    #[test]
    fn links_become_what_they_lead_to() {
        for (link, inlined) in [
            (
                "<link rel=\"stylesheet\" href=\"./a.css\" integrity=\"x\"/>",
                "<style>p { color: red }</style>",
            ),
            (
                "<link rel=\"icon\" href=\"./icon.svg\"/>",
                "<link rel=\"icon\" href=\"data:image/svg+xml;base64,PHN2Zy8+\" />",
            ),
            ("<link rel=\"manifest\" href=\"m\" />", ""),
        ] {
            assert_eq!(inlined_link(link, &load).unwrap(), inlined);
        }
        assert!(inlined_link("<link rel=\"next\" href=\"x\">", &load).is_err());
    }

    #[test]
    fn scripts_become_what_they_load_and_the_service_worker_is_left_out() {
        let inlined = |script| inlined_script(script, &load).unwrap();
        assert_eq!(inlined("<script src=\"./theme.js\"></script>"), "<script>theme()</script>");
        assert_eq!(inlined("<script>serviceWorker.register()</script>"), "");
        assert_eq!(inlined("<script>stay()</script>"), "<script>stay()</script>");
        let app = "<script type=\"module\">import init from './app-1/app.js'; await init();</script>";
        let app = inlined(app);
        assert!(app.starts_with("<script type=\"module\">const packed = {\n\"app_bg.wasm\": \""), "{app}");
        assert!(!app.contains("export ") && !app.contains("import "), "{app}");
    }

    #[test]
    fn texts_that_would_end_early_are_refused() {
        assert!(element("script", "", "'</script>'").is_err());
    }

    #[test]
    fn the_policy_allows_the_very_scripts_and_styles_and_nothing_from_beside_the_file() {
        let page = "<meta content=\"default-src 'none'; script-src 'self' 'wasm-unsafe-eval' 'sha256-x'; \
                    style-src 'self'; img-src 'self' data:; connect-src 'self'\"><style>a</style><script>b</script>";
        let (script, style) = (finish::hash_source("b"), finish::hash_source("a"));
        let policy = format!(
            "content=\"default-src 'none'; script-src 'wasm-unsafe-eval' {script}; style-src {style}; img-src data:\""
        );
        let page = with_policy(page).unwrap();
        assert!(page.contains(&policy), "{page}");
        assert!(with_policy("<p>").is_err());
    }
}
