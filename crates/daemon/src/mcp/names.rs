//! One name for each tool, whatever it is called where it comes from.
//!
//! Clients take names of 1 to 64 letters, digits, `_` and `-`. A tool keeps its own name where that is such a name and
//! nobody else has it. Who has a name keeps it: a tool that comes later gets a longer one, with where it comes from in
//! front (`shelf__hash`, `my-extension__search`). So no name ever passes to another tool.

use std::collections::HashMap;

use toolshelf_core::Digest;

use super::fixed;

/// Longest name.
const NAME_MAX_CHARS: usize = 64;
/// Digits of the hash by which a name is told apart that had to be cut.
const HASH_DIGITS: usize = 8;
/// Between where a tool comes from and its own name.
const SEPARATOR: &str = "__";

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// From the shelf.
    Shelf {
        /// The tool's id.
        id: String,
    },
    /// From an extension.
    Extension {
        /// The extension's id.
        extension: String,
        /// The tool's name.
        tool: String,
    },
}

impl Source {
    /// What it is called in `shelf.lock`. Ids have no colon and no slash.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Shelf { id } => format!("shelf:{id}"),
            Self::Extension { extension, tool } => format!("extension:{extension}/{tool}"),
        }
    }

    fn own_name(&self) -> &str {
        match self {
            Self::Shelf { id } => id,
            Self::Extension { tool, .. } => tool,
        }
    }

    fn origin(&self) -> &str {
        match self {
            Self::Shelf { .. } => "shelf",
            Self::Extension { extension, .. } => extension,
        }
    }
}

/// Names that are taken, each by the key of its tool.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashMap<String, String>,
}

impl Names {
    /// Notes that a tool has a name already.
    pub(super) fn take(&mut self, name: &str, key: String) {
        self.taken.insert(name.to_owned(), key);
    }

    /// A name for a tool that has none yet.
    pub(super) fn give(&mut self, source: &Source) -> String {
        let own = fit(source.own_name());
        let qualified = fit(&[source.origin(), SEPARATOR, source.own_name()].concat());
        // The key is one tool's alone, and so is a name with its hash.
        let hashed = with_hash(&qualified, &source.key());
        let free = [own, qualified].into_iter().find(|name| !self.is_taken(name));
        let name = free.unwrap_or(hashed);
        self.take(&name, source.key());
        name
    }

    fn is_taken(&self, name: &str) -> bool {
        fixed::is_fixed(name) || self.taken.contains_key(name)
    }
}

/// The name as clients take it.
fn fit(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let fitting: String = name.chars().map(allowed).collect();
    match fitting.len() {
        0 => "_".to_owned(),
        1..=NAME_MAX_CHARS => fitting,
        _ => with_hash(&fitting, name),
    }
}

fn with_hash(name: &str, of: &str) -> String {
    let kept: String = name.chars().take(NAME_MAX_CHARS - HASH_DIGITS - 1).collect();
    format!("{kept}_{}", &Digest::of(of.as_bytes()).to_string()[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extension(extension: &str, tool: &str) -> Source {
        Source::Extension { extension: extension.to_owned(), tool: tool.to_owned() }
    }

    #[test]
    fn who_has_a_name_keeps_it() {
        let mut names = Names::default();
        assert_eq!(names.give(&Source::Shelf { id: "hash".into() }), "hash");
        assert_eq!(names.give(&extension("a", "hash")), "a__hash");
        assert_eq!(names.give(&extension("b", "hash")), "b__hash");
        assert_eq!(names.give(&Source::Shelf { id: "call_extension".into() }), "shelf__call_extension");
        assert_eq!(names.give(&extension("a.b", "c.search")), "c_search");
        assert_eq!(names.give(&extension("x.y", "c/search")), "x_y__c_search");
    }

    proptest! {
        #[test]
        fn names_are_valid_and_one_tools_alone(sources in prop::collection::hash_set(("[a-c._]{1,3}", "\\PC{1,80}"), 1..40)) {
            let mut names = Names::default();
            let given: Vec<String> = sources.iter().map(|(id, tool)| names.give(&extension(id, tool))).collect();
            for name in &given {
                prop_assert!((1..=NAME_MAX_CHARS).contains(&name.len()));
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
            }
            let distinct: std::collections::HashSet<_> = given.iter().collect();
            prop_assert_eq!(distinct.len(), given.len());
        }
    }
}
