//! The companion's token in an address, and what a person enters for it.

use toolshelf_browser::core::remote::link::is_code;

use crate::route::decode;

/// What stands in front of it in the link that `toolshelf serve` prints.
const IN_ADDRESS: &str = "#token=";
/// Longest token, in bytes.
const MAX_BYTES: usize = 512;

/// What a person entered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// A token for the companion that serves this page.
    Token(String),
    /// A link to a page that another companion serves.
    Link(String),
    /// Neither.
    Neither,
}

/// The token in the part of an address that starts with `#`.
pub(crate) fn in_hash(hash: &str) -> Option<String> {
    hash.strip_prefix(IN_ADDRESS).map(decode).filter(|token| is_token(token))
}

/// The code in the part of an address that starts with `#`, as in the link that `toolshelf pair` prints.
pub(crate) fn code_in_hash(hash: &str) -> Option<String> {
    let code = hash.strip_prefix("#pair=")?.split('&').next()?;
    is_code(code).then(|| code.to_owned())
}

/// Reads what was entered on a page of `origin`: a token, or the link that has it.
pub(crate) fn read(entered: &str, origin: &str) -> Entered {
    let entered = entered.trim();
    let is_web = ["http://", "https://"].iter().any(|scheme| entered.starts_with(scheme));
    if is_token(entered) && !is_web && !entered.contains(IN_ADDRESS) {
        return Entered::Token(entered.to_owned());
    }
    let Some((base, _)) = entered.split_once(IN_ADDRESS) else { return Entered::Neither };
    let Some(token) = in_hash(&entered[base.len()..]) else { return Entered::Neither };
    match base.trim_end_matches('/') == origin {
        true => Entered::Token(token),
        false if is_web => Entered::Link(entered.to_owned()),
        false => Entered::Neither,
    }
}

/// Whether a header could carry it: letters, digits and signs, and no space between them.
fn is_token(text: &str) -> bool {
    (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "http://127.0.0.1:14800";

    #[test]
    fn a_token_is_found_in_the_address_and_nothing_else_is() {
        assert_eq!(in_hash("#token=0f").as_deref(), Some("0f"));
        assert_eq!(in_hash("#token=a%2Fb%23").as_deref(), Some("a/b#"));
        for hash in ["", "#", "#/tasks", "#token=", "#token=a b", "#token=ä", "#/token=x"] {
            assert_eq!(in_hash(hash), None, "{hash}");
        }
        assert_eq!(in_hash(&format!("#token={}", "a".repeat(513))), None);
    }

    #[test]
    fn a_code_is_found_in_the_address_that_pairs() {
        assert_eq!(code_in_hash("#pair=00000042&env=env_x&fp=0f").as_deref(), Some("00000042"));
        for hash in ["", "#pair=", "#pair=1234567", "#pair=123456789", "#pair=1234567a", "#token=12345678"] {
            assert_eq!(code_in_hash(hash), None, "{hash}");
        }
    }

    #[test]
    fn a_link_is_as_good_as_its_token_on_the_page_that_it_opens() {
        let token = Entered::Token("0f0f".into());
        for entered in
            ["0f0f", " 0f0f\n", "http://127.0.0.1:14800/#token=0f0f", "http://127.0.0.1:14800#token=0f0f"]
        {
            assert_eq!(read(entered, ORIGIN), token, "{entered}");
        }
        let link = "http://localhost:14800/#token=0f0f";
        assert_eq!(read(link, ORIGIN), Entered::Link(link.into()));
        assert_eq!(read("a/b:c#d", ORIGIN), Entered::Token("a/b:c#d".into()));
        for entered in [
            "",
            "  ",
            "a b",
            "ä",
            "http://127.0.0.1:14800/",
            "javascript:x#token=0f",
            "#token=",
            "#token=a b",
            "x#token=0f",
        ] {
            assert_eq!(read(entered, ORIGIN), Entered::Neither, "{entered}");
        }
    }
}
