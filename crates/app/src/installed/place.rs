//! What the address names of extensions and facts: `#/installed`, `#/installed/<id>`, `#/facts`, `#/facts/below/<prefix>`,
//! `#/facts/of/<entity>` and `#/facts/of/<entity>/<key>`.

use crate::route::{decode, encode};

/// The address of what is installed.
pub(crate) const INSTALLED: &str = "#/installed";
/// The address of facts.
pub(crate) const FACTS: &str = "#/facts";

/// What the address names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Named {
    /// All that is installed.
    #[default]
    Nothing,
    /// One extension.
    Extension(String),
    /// The names below a prefix of facts.
    Below(String),
    /// The facts of an entity.
    Entity(String),
    /// One fact: its entity and its key.
    Fact(String, String),
}

/// Reads what stands behind `#/`.
pub(crate) fn parse(address: &str) -> Named {
    let mut parts = address.split('/');
    let kind = parts.next().unwrap_or_default();
    let mut next = || parts.next().map(decode).filter(|part| !part.is_empty());
    match (kind, next()) {
        ("installed", Some(id)) => Named::Extension(id),
        ("facts", word) => match (word.as_deref(), next(), next()) {
            (Some("below"), Some(prefix), _) => Named::Below(prefix),
            (Some("of"), Some(entity), None) => Named::Entity(entity),
            (Some("of"), Some(entity), Some(key)) => Named::Fact(entity, key),
            _ => Named::Below(String::new()),
        },
        _ => Named::Nothing,
    }
}

/// The address of what is named.
pub(crate) fn address(named: &Named) -> String {
    let mut address = String::new();
    match named {
        Named::Nothing => address.push_str(INSTALLED),
        Named::Extension(id) => {
            address.extend([INSTALLED, "/"]);
            encode(id, &mut address);
        }
        Named::Below(prefix) if prefix.is_empty() => address.push_str(FACTS),
        Named::Below(prefix) => {
            address.extend([FACTS, "/below/"]);
            encode(prefix, &mut address);
        }
        Named::Entity(entity) => {
            address.extend([FACTS, "/of/"]);
            encode(entity, &mut address);
        }
        Named::Fact(entity, key) => {
            address.extend([FACTS, "/of/"]);
            encode(entity, &mut address);
            address.push('/');
            encode(key, &mut address);
        }
    }
    address
}

/// A name taken apart at its separators: each part with its separator, and where it ends.
pub(crate) fn crumbs(name: &str) -> Vec<(&str, usize)> {
    let mut crumbs = Vec::new();
    let mut at = 0;
    while at < name.len() {
        let end = name[at..].find("::").map_or(name.len(), |found| at + found + 2);
        crumbs.push((&name[at..end], end));
        at = end;
    }
    crumbs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_back_as_it_was_written() {
        let text = || "a::b/c%é#?".to_owned();
        for named in [
            Named::Nothing,
            Named::Extension("ext.a-b".into()),
            Named::Below(String::new()),
            Named::Below(text()),
            Named::Entity(text()),
            Named::Fact(text(), text()),
        ] {
            let address = address(&named);
            assert_eq!(parse(&address[2..]), named, "{address}");
        }
        assert_eq!(parse("facts/elsewhere"), Named::Below(String::new()));
        assert_eq!(parse("installed/"), Named::Nothing);
    }

    #[test]
    fn a_name_is_taken_apart_at_its_separators() {
        assert_eq!(crumbs("a::b::c"), [("a::", 3), ("b::", 6), ("c", 7)]);
        assert_eq!(crumbs("é::"), [("é::", 4)]);
        assert_eq!(crumbs("::x:y"), [("::", 2), ("x:y", 5)]);
        assert!(crumbs("").is_empty());
    }
}
