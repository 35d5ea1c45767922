//! The one place where the versions of outside tools are pinned.

/// The wasm-bindgen command line tool. It must be the very version of the crate; a tidy check compares the two.
pub(crate) const WASM_BINDGEN: &str = "0.2.130";

/// The bundler. Newer releases ask for a newer compiler than this workspace does.
pub(crate) const TRUNK: &str = "0.21.14";

/// The accessibility rules that the end-to-end tests run on the page.
pub(crate) const AXE_CORE: &str = "4.14.1";

/// SHA-256 of `axe.min.js` in that version: what runs inside the page under test is what was reviewed.
pub(crate) const AXE_CORE_SHA256: &str = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c";

/// The NATS server of the tests, as a Python package brings it.
pub(crate) const NATS_SERVER: &str = "2.15.1";

/// The target that the page and the shipped tools are compiled for.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";
