//! Looking around: which names stand directly below a prefix. `::` parts an entity as `/` parts a path.

use serde::{Deserialize, Serialize};

/// What parts the names of an entity.
pub const SEPARATOR: &str = "::";
/// Names of one page where it does not say how many.
pub const BROWSE_LIMIT_DEFAULT: usize = 200;
/// Most names of one page.
pub const BROWSE_LIMIT_MAX: usize = 1_000;
/// Facts that are looked at for one page at most; beyond it a page ends early.
const SCANNED_MAX: usize = 20_000;

/// Which names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrowseRequest {
    /// Entities that begin like this; all where it is empty.
    pub prefix: String,
    /// The name that the page before has ended with.
    pub after: Option<String>,
    /// How many names, from 1 to [`BROWSE_LIMIT_MAX`]; [`BROWSE_LIMIT_DEFAULT`] where it is left out.
    pub limit: Option<usize>,
    /// Are private facts looked at?
    pub include_private: bool,
}

/// A name directly below a prefix, written out from its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// The entity, or the longer prefix, which ends with [`SEPARATOR`].
    pub name: String,
    /// Whether it is a prefix, with entities below it.
    pub is_prefix: bool,
}

/// One page of names, in the order of their bytes. A page may have fewer names than were asked for and still be followed
/// by another: private facts are passed over, and not without end in one page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Names {
    /// The names.
    pub names: Vec<Name>,
    /// What [`BrowseRequest::after`] is for the next page; none after the last one.
    pub next: Option<String>,
}

/// Where to look next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// At the next fact.
    On,
    /// At the first fact whose entity, NUL and key, as bytes, come after these.
    Past(Vec<u8>),
    /// Nowhere: the page is full.
    Full,
}

/// One walk over facts in the order of their entities.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    request: &'a BrowseRequest,
    page: Names,
    looked_at: usize,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(request: &'a BrowseRequest) -> Self {
        Self { request, page: Names::default(), looked_at: 0 }
    }

    /// Where the walk begins.
    pub(crate) fn start(&self) -> Vec<u8> {
        let BrowseRequest { prefix, after, .. } = self.request;
        after.as_ref().map_or_else(|| prefix.as_bytes().to_vec(), |after| past(prefix, after))
    }

    /// Looks at a fact below the prefix, and not before [`start`](Self::start).
    pub(crate) fn offer(&mut self, entity: &str, is_private: bool) -> Step {
        let BrowseRequest { prefix, limit, include_private, .. } = self.request;
        let limit = limit.unwrap_or(BROWSE_LIMIT_DEFAULT).clamp(1, BROWSE_LIMIT_MAX);
        if self.page.names.len() == limit || self.looked_at == SCANNED_MAX {
            // What was looked at last is where the next page goes on.
            return Step::Full;
        }
        self.looked_at += 1;
        if is_private && !include_private {
            self.page.next = Some(entity.to_owned());
            return Step::On;
        }
        let name = branch(prefix, entity).unwrap_or(entity).to_owned();
        let beyond = past(prefix, &name);
        let is_prefix = name.len() < entity.len() || branch(prefix, entity) == Some(entity);
        self.page.next = Some(name.clone());
        self.page.names.push(Name { name, is_prefix });
        Step::Past(beyond)
    }

    /// The page. `is_all` is whether the walk came to its end.
    pub(crate) fn finish(mut self, is_all: bool) -> Names {
        if is_all {
            self.page.next = None;
        }
        self.page
    }

    /// The page of a backend that has all entities at hand, in any order.
    pub(crate) fn over(request: &'a BrowseRequest, mut entities: Vec<(String, bool)>) -> Names {
        entities.sort();
        let mut walk = Self::new(request);
        let mut from = walk.start();
        for (entity, is_private) in &entities {
            let mut key = entity.clone().into_bytes();
            key.push(0);
            if key < from || !entity.starts_with(&request.prefix) {
                continue;
            }
            match walk.offer(entity, *is_private) {
                Step::On => {}
                Step::Past(beyond) => from = beyond,
                Step::Full => return walk.finish(false),
            }
        }
        walk.finish(true)
    }
}

/// The prefix below `prefix` that the entity is in, up to and with its separator.
fn branch<'e>(prefix: &str, entity: &'e str) -> Option<&'e str> {
    let rest = entity.get(prefix.len()..)?;
    Some(&entity[..prefix.len() + rest.find(SEPARATOR)? + SEPARATOR.len()])
}

/// What no fact of the name, or below it, comes after. Names are UTF-8, in which no byte is 255.
fn past(prefix: &str, name: &str) -> Vec<u8> {
    let end: &[u8] = if branch(prefix, name) == Some(name) { b"\xff" } else { b"\0\xff" };
    [name.as_bytes(), end].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(request: &BrowseRequest, entities: &[&str]) -> Vec<String> {
        let entities = entities.iter().map(|entity| ((*entity).to_owned(), entity.starts_with("secret")));
        let mut request = request.clone();
        let mut all = Vec::new();
        loop {
            let page = Walk::over(&request, entities.clone().collect());
            all.extend(page.names.into_iter().map(|name| match name.is_prefix {
                true => name.name + "*",
                false => name.name,
            }));
            match page.next {
                Some(next) => request.after = Some(next),
                None => return all,
            }
        }
    }

    const ENTITIES: [&str; 10] =
        ["a", "a::", "a::b", "a::b::c", "ab", "b::x", "b::y", "secret::a", "secret::b", "z"];

    #[test]
    fn names_are_told_once_whatever_the_size_of_a_page() {
        for limit in [1, 2, 3, 100] {
            let at = |prefix: &str, include_private| {
                let request = BrowseRequest {
                    prefix: prefix.into(),
                    limit: Some(limit),
                    include_private,
                    ..BrowseRequest::default()
                };
                names(&request, &ENTITIES)
            };
            assert_eq!(at("", false), ["a", "a::*", "ab", "b::*", "z"]);
            assert_eq!(at("", true), ["a", "a::*", "ab", "b::*", "secret::*", "z"]);
            assert_eq!(at("a::", false), ["a::", "a::b", "a::b::*"]);
            assert_eq!(at("a::b::", false), ["a::b::c"]);
            assert_eq!(at("a", false), ["a", "a::*", "ab"]);
            assert!(at("secret::", false).is_empty() && at("none", true).is_empty());
        }
    }

    #[test]
    fn a_page_ends_although_everything_is_private() {
        let request = BrowseRequest::default();
        let many = (0..SCANNED_MAX + 5).map(|at| (format!("secret::{at:06}"), true)).collect();
        let page = Walk::over(&request, many);
        assert!(page.names.is_empty());
        assert_eq!(page.next.as_deref(), Some("secret::019999"));
    }
}
