//! The shipped tools, run natively against reference implementations; and the example extensions.
//!
//! [`Tool`] runs a module of the shelf the way any host does: fresh instance, inputs at the fixed addresses, one call,
//! output read back. [`Script`] is what a diff says, [`fewest_edits`] what it should cost, and [`hard_cases`] what
//! should not slow it down. [`Extension`] runs an example extension with a [`Host`] that answers as a test wants.

mod extension;
mod reference;
mod script;
mod texts;
mod tool;

pub use extension::{
    Called, Extension, FUEL, Host, NOW_UNIX_MS, RESPONSE_MAX_BYTES, Reply, extension_file, request,
};
pub use reference::fewest_edits;
pub use script::{Block, Op, Script, lines};
pub use texts::{Case, hard_cases};
pub use tool::{Running, Tool, module_bytes};
