//! The shelf that comes with the page.
//!
//! Its files travel inside the page's own module, so that they are there without a request. They are stored like any
//! other shelf, and read from there on every call: a stored copy that somebody changed is refused by name, and can be
//! written anew.

use std::collections::BTreeMap;

use crate::storage::ShelfRecord;

/// Key of the built-in shelf. Shelves that a person adds have keys of another form.
pub const BUILTIN: &str = "builtin";

const MANIFEST: &[u8] = include_bytes!("../../../www/shelf/manifest.json");
const FILES: &[(&str, &[u8])] = &[
    ("hash.wasm", include_bytes!("../../../www/shelf/hash.wasm")),
    ("diff.wasm", include_bytes!("../../../www/shelf/diff.wasm")),
    ("diff-loose.wasm", include_bytes!("../../../www/shelf/diff-loose.wasm")),
];

/// The built-in shelf as it came with the page.
#[must_use]
pub fn record() -> ShelfRecord {
    // Extended, here and elsewhere: collecting sorts first, which costs the page more code than inserting.
    let mut files = BTreeMap::new();
    files.extend(FILES.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())));
    ShelfRecord { key: BUILTIN.to_owned(), order: 0.0, manifest: MANIFEST.to_vec(), files }
}

#[cfg(test)]
mod tests {
    use toolshelf_core::digest::Digest;
    use toolshelf_core::manifest::Manifest;

    use super::*;

    #[test]
    fn every_tool_of_the_manifest_travels_with_the_page_and_has_its_digest() {
        let manifest = Manifest::read(MANIFEST).unwrap();
        assert_eq!(manifest.entries.len(), FILES.len());
        for entry in &manifest.entries {
            let (_, path) = entry.locate().unwrap();
            let bytes = FILES.iter().find(|(name, _)| *name == path).unwrap().1;
            assert_eq!(entry.digest.as_deref(), Some(Digest::of(bytes).to_string().as_str()), "{path}");
        }
    }
}
