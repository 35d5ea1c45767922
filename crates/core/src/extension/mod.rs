//! Extensions: the manifest, its rules and its signature; what a module is called with and what it answers.
//!
//! Source: the seed of WASM extensions, and the reference facts, C1 to C6.
//!
//! | module | idea |
//! |---|---|
//! | [`manifest`] | `crux.integration.v1`: its fields and their defaults |
//! | [`read`] | reading it, with its bounds |
//! | [`validate`] | the rules of a manifest, in their order, with their texts |
//! | `signature` | what is signed, and the manifest's hash (feature `extensions`) |
//! | `keyring` | who is trusted (feature `extensions`) |
//! | [`rc`] | the return codes of host functions |
//! | [`envelope`] | what a call is asked and what it answers, as JSON |
//! | [`layout`] | where request and response lie in the module's memory |
//! | [`errors`] | every "no" of installing and calling: text, status, code |
//! | [`external`] | what an outbound call to an external tool can end with |

pub mod envelope;
pub mod errors;
pub mod external;
#[cfg(feature = "extensions")]
pub mod keyring;
pub mod layout;
pub mod manifest;
pub mod rc;
pub mod read;
#[cfg(feature = "extensions")]
pub mod signature;
pub mod validate;

pub use errors::ExtensionError;
pub use manifest::{EntryKind, IntegrationManifest, TrustTier};
pub use rc::ReturnCode;
pub use validate::ManifestFault;
