//! The page's style sheets as one: fewer requests, and what they have in common is compressed once.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::chunks::integrity;

/// How Trunk links a style sheet.
const LINK: &str = "<link rel=\"stylesheet\" href=\"./";

/// Puts the style sheets of the page in `folder` into one file, in their order, and links that.
pub(crate) fn join(html: &str, folder: &Path) -> Result<String> {
    let (rest, names) = without_links(html)?;
    let mut style = String::new();
    for name in &names {
        let path = folder.join(name);
        let sheet = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read the staged {}", path.display()))?;
        let sheet = without_comments(&sheet)
            .with_context(|| format!("a comment of {} is not closed", path.display()))?;
        for line in sheet.lines().map(str::trim).filter(|line| !line.is_empty()) {
            style += line;
            style.push('\n');
        }
        std::fs::remove_file(&path)?;
    }
    let style = style.into_bytes();
    let hash: String = Sha256::digest(&style)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("style-{hash}.css");
    std::fs::write(folder.join(&name), &style).context("cannot write the style sheet")?;
    let link = format!("{LINK}{name}\" integrity=\"{}\"/>\n  </head>", integrity(&style));
    Ok(rest.replacen("</head>", &link, 1))
}

/// A style sheet without what is for its readers alone; `None` where a comment is not closed.
fn without_comments(sheet: &str) -> Option<String> {
    let (mut rest, mut text) = (sheet, String::with_capacity(sheet.len()));
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (before, from) = rest.split_at(at);
        text += before;
        let length = if let Some(comment) = from.strip_prefix("/*") {
            rest = &comment[comment.find("*/")? + 2..];
            continue;
        } else if from.starts_with('/') {
            1
        } else {
            end_of_string(from)
        };
        text += &from[..length];
        rest = &from[length..];
    }
    Some(text + rest)
}

/// Where the string ends that begins here, in bytes.
fn end_of_string(from: &str) -> usize {
    let quote = from.as_bytes()[0];
    let mut bytes = from.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    from.len()
}

/// The page without its style sheets, and their names.
fn without_links(html: &str) -> Result<(String, Vec<&str>)> {
    let mut pieces = html.split(LINK);
    let mut rest = pieces.next().unwrap_or_default().to_owned();
    let mut names = Vec::new();
    for piece in pieces {
        let (name, _) = piece.split_once('"').context("a style sheet has no address")?;
        let (_, after) = piece.split_once('>').context("the link of a style sheet is not closed")?;
        names.push(name);
        rest += after.trim_start();
    }
    ensure!(!names.is_empty() && rest.contains("</head>"), "index.html must have a head with style sheets");
    Ok((rest, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_sheets_are_joined_in_their_order() {
        let folder = std::env::temp_dir().join(format!("xtask-styles-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in [("b-1.css", "b {}"), ("a-2.css", "a {}")] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let page = "<head><link rel=\"stylesheet\" href=\"./b-1.css\" integrity=\"x\"/>\n<meta>\
                    <link rel=\"stylesheet\" href=\"./a-2.css\"/></head>";
        let page = join(page, &folder).unwrap();
        assert!(page.starts_with("<head><meta><link rel=\"stylesheet\" href=\"./style-"), "{page}");
        let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [style] = &files[..] else { panic!("one file is left: {files:?}") };
        assert_eq!(std::fs::read_to_string(style).unwrap(), "b {}\na {}\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn comments_go_and_what_looks_like_one_stays() {
        let of = |sheet: &str| without_comments(sheet).unwrap();
        assert_eq!(of("/* a \"b */a { }/**/ b {}"), "a { } b {}");
        assert_eq!(
            of(r#"a::after { content: "/* no */ \" /* no */"; }"#),
            r#"a::after { content: "/* no */ \" /* no */"; }"#
        );
        assert_eq!(
            of("a { background: url('/*.svg'); width: calc(1px / 2) }"),
            "a { background: url('/*.svg'); width: calc(1px / 2) }"
        );
        assert_eq!(without_comments("a {} /* open"), None);
    }

    #[test]
    fn a_page_without_style_sheets_is_refused() {
        assert!(without_links("<head></head>").is_err());
    }
}
